"""The content of a disk when it was read back, as runs of sectors with the same kind of content.

The reader on the DUT compares every sector with its stamp. It sends one record for each run of sectors with the same
result (little-endian):

    kind             bytes  fields
    15 READING       24     u8 kind, u8 0, u16 0, u32 session, u64 run, u64 device: the beginning,
                            sent if a session was named
    16 STAMPED       24     u8 kind, u8 0, u16 0, u32 sectors, u64 first sector, u64 number of the write:
                            whole, of this run and device, each in its own place
    17 ZEROED        24     the same, number 0: nothing but zeros
    18 UNREADABLE    24     the same with the errno in the u16
    19 ELSEWHERE     48     the same and u64 run, u64 device, u64 sector of the first stamp: whole stamps that belong to
                            another place (rising with the sectors of the run), disk or run
    20 DAMAGED       536    the same (one sector), and its 512 bytes: neither whole nor zeros
    21 MORE DAMAGED  24     as ZEROED: damaged sectors whose bytes were not sent, after too many of them
    22 READ          24     u8 kind, u8 0, u16 errno, u32 bytes of a logical block (0: not known), u64 sectors read,
                            u64 sectors of which a run was sent: the end
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from enum import IntEnum

READING = 15


class ContentKind(IntEnum):
    STAMPED = 16
    ZEROED = 17
    UNREADABLE = 18
    ELSEWHERE = 19
    DAMAGED = 20
    MORE_DAMAGED = 21
    READ = 22


RUN = struct.Struct("<BBHIQQ")
PLACE = struct.Struct("<QQQ")
SIZES: dict[int, int] = {
    READING: 24,
    ContentKind.STAMPED: 24,
    ContentKind.ZEROED: 24,
    ContentKind.UNREADABLE: 24,
    ContentKind.ELSEWHERE: 48,
    ContentKind.DAMAGED: 536,
    ContentKind.MORE_DAMAGED: 24,
    ContentKind.READ: 24,
}


@dataclass(frozen=True, slots=True)
class SectorRun:
    """``sectors`` sectors from ``first`` on.

    ``number`` is that of the write, for stamps (here or elsewhere); ``raw`` are the bytes of one damaged sector.
    """

    kind: ContentKind
    first: int
    sectors: int
    number: int = 0
    errno: int = 0
    run: int = 0
    device: int = 0
    origin: int = 0
    raw: bytes = b""

    @property
    def end(self) -> int:
        return self.first + self.sectors


@dataclass
class Found:
    """A disk's read-back. ``runs`` are in rising order and do not overlap; ``problems`` as in ``Ledger``.

    ``session``, ``run`` and ``device`` are those that the reader looked for, 0 if not known; ``logical`` is in bytes.
    """

    runs: list[SectorRun] = field(default_factory=list)
    complete: bool = False
    logical: int = 0
    session: int = 0
    run: int = 0
    device: int = 0
    problems: list[str] = field(default_factory=list)
