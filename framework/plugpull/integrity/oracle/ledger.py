"""The ledger of one writing session: writes issued, completed and flushed, in the order of the writer's actions.

The writer on the DUT appends records to its standard output. It records an issue before it gives the write to the
kernel, and a completion after the kernel reported it. So every recorded action happened, and its position in the ledger
is its position in time. Records (little-endian; times are microseconds since BEGUN modulo 2**32; ``number`` counts
writes, or flushes, from 1):

    kind                 bytes  fields
    1  BEGUN             64     u8 kind, u8 version, u16 0, u32 session, u64 run, u64 device, u64 CLOCK_MONOTONIC in ns,
                                u64 sectors covered, u32 sectors of a block, u32 depth,
                                u32 bytes of a logical block (0: not known), 12 bytes 0
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


class LedgerKind(IntEnum):
    BEGUN = 1
    ISSUED = 2
    COMPLETED = 3
    FLUSH_SUBMITTED = 4
    FLUSH_COMPLETED = 5
    ENDED = 6


class Reason(IntEnum):
    """Why a writer stopped issuing writes."""

    ASKED = 0
    ERROR = 1
    """A write or a flush failed; ``errno`` belongs to the first failure."""
    DONE = 2
    """The requested number of blocks was written."""
    STUCK = 3
    """It got a second signal to end while writes were still in flight after the first."""


BEGUN = struct.Struct("<BBHIQQQQII16x")
LOGICAL = struct.Struct("<I")
LOGICAL_AT = 48
"""Offset in BEGUN of the bytes of a logical block."""
ISSUED = struct.Struct("<BBHIIQI")
SHORT = struct.Struct("<BBHIII")
ENDED = struct.Struct("<BBHIIIII8x")
SIZES = {
    LedgerKind.BEGUN: BEGUN.size,
    LedgerKind.ISSUED: ISSUED.size,
    LedgerKind.COMPLETED: SHORT.size,
    LedgerKind.FLUSH_SUBMITTED: SHORT.size,
    LedgerKind.FLUSH_COMPLETED: SHORT.size,
    LedgerKind.ENDED: ENDED.size,
}
FUA, FILL = 1, 2
_WRAP = 1 << 32


@dataclass(slots=True)
class Write:
    """One write.

    ``issued`` and ``completed`` are positions in the ledger (None: no completion is known); times are seconds since the
    session began. ``number`` is the stamp's. ``error`` is an errno, 0 for success.
    """

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
    """The known part of a session's ledger.

    Each of ``problems`` is a sentence on something that may be missing or cannot be trusted. A ledger without problems
    is complete.
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
