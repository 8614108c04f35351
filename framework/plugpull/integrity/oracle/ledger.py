"""The ledger of one writing session: what was issued, completed and flushed, in the order in which the writer did it.

The writer on the DUT appends records to its standard output as it goes: the record of an issue before the kernel is
given the write, the record of a completion after the kernel reported it. A record that is in the ledger therefore
happened, and its place in the ledger is its place in time. Records (little-endian; times are microseconds since BEGUN
modulo 2**32, ``number`` counts writes, or flushes, from 1):

    kind                 bytes  fields
    1  BEGUN             64     u8 kind, u8 version, u16 0, u32 session, u64 run, u64 device, u64 CLOCK_MONOTONIC in ns,
                                u64 sectors covered, u32 sectors of a block, u32 depth,
                                u32 bytes of a logical block (0: not said), 12 bytes 0
    2  ISSUED            24     u8 kind, u8 flags (1: FUA, 2: fill), u16 0, u32 sectors, u32 number, u64 sector,
                                u32 time
    3  COMPLETED         16     u8 kind, u8 0, u16 errno, u32 number, u32 time, u32 bytes written
    4  FLUSH SUBMITTED   16     u8 kind, u8 0, u16 0, u32 number, u32 time, u32 0
    5  FLUSH COMPLETED   16     u8 kind, u8 0, u16 errno, u32 number, u32 time, u32 0
    6  ENDED             32     u8 kind, u8 reason, u16 errno, u32 issued, u32 completed, u32 flushes submitted,
                                u32 flushes completed, u32 time, 8 bytes 0

In a stamp a write's number is ``session << 32 | number``.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from enum import IntEnum

VERSION = 1


class Kind(IntEnum):
    BEGUN = 1
    ISSUED = 2
    COMPLETED = 3
    FLUSH_SUBMITTED = 4
    FLUSH_COMPLETED = 5
    ENDED = 6


class Reason(IntEnum):
    """Why a writer stopped issuing."""

    ASKED = 0
    ERROR = 1
    """A write or a flush failed; ``errno`` is the first one's."""
    DONE = 2
    """It was to write so much and no more."""
    STUCK = 3
    """Told to end, it waited for what was in flight until it was told once more."""


BEGUN = struct.Struct("<BBHIQQQQII16x")
LOGICAL = struct.Struct("<I")
LOGICAL_AT = 48
"""Where BEGUN has the bytes of a logical block."""
ISSUED = struct.Struct("<BBHIIQI")
SHORT = struct.Struct("<BBHIII")
ENDED = struct.Struct("<BBHIIIII8x")
SIZES = {
    Kind.BEGUN: BEGUN.size,
    Kind.ISSUED: ISSUED.size,
    Kind.COMPLETED: SHORT.size,
    Kind.FLUSH_SUBMITTED: SHORT.size,
    Kind.FLUSH_COMPLETED: SHORT.size,
    Kind.ENDED: ENDED.size,
}
FUA, FILL = 1, 2
_WRAP = 1 << 32


@dataclass(slots=True)
class Write:
    """One write. ``issued`` and ``completed`` are positions in the ledger (None: no completion is known); times are
    seconds since the session began. ``number`` is the stamp's. ``error`` is an errno, 0 for success."""

    number: int
    sector: int
    sectors: int
    issued: int
    issued_at: float
    fua: bool = False
    fill: bool = False
    completed: int | None = None
    completed_at: float | None = None
    error: int = 0

    @property
    def end(self) -> int:
        return self.sector + self.sectors


@dataclass(slots=True)
class Flush:
    """One flush. ``submitted`` and ``completed`` are positions in the ledger."""

    number: int
    submitted: int
    submitted_at: float
    completed: int | None = None
    completed_at: float | None = None
    error: int = 0


@dataclass
class Ledger:
    """A session's ledger, as far as it is known.

    ``problems`` say, a sentence each, why something may be missing or cannot be believed; a ledger without any is
    whole.
    """

    session: int = 0
    run: int = 0
    device: int = 0
    begun_ns: int = 0
    sectors: int = 0
    block: int = 0
    depth: int = 0
    logical: int = 0
    writes: list[Write] = field(default_factory=list)
    flushes: list[Flush] = field(default_factory=list)
    reason: Reason | None = None
    errno: int = 0
    problems: list[str] = field(default_factory=list)

    @property
    def whole(self) -> bool:
        return not self.problems
