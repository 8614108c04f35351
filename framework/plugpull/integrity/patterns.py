"""Patterns of stamped writes for loads."""

from __future__ import annotations

from dataclasses import dataclass, field

from plugpull.history import events as ev
from plugpull.integrity.oracle.stamp import SECTOR
from plugpull.load.patterns import SMALLEST_SPAN, UNKNOWN_RATE_SPAN, Pattern, Room, span_of

Extents = tuple[tuple[int, int], ...]
"""(first sector, sectors), in units of 512 bytes, in rising order."""
ANCHOR = 128
"""Sectors stamped at each power of two of the disk and at its end; a write's size if that is more."""
FILL_SECONDS = 1.0
"""The span is what the disk transfers in this time. It is written once before the load and read back after it."""


@dataclass(frozen=True)
class Writing:
    """How a session writes.

    ``block`` is sectors per write, ``depth`` writes in flight. ``order``: see ``WriteOrder``. A flush is sent every
    ``flush_writes`` writes and every ``flush_ms`` milliseconds (0 turns either off). ``fua`` is the percentage of
    writes with FUA. ``rest`` sectors at the end of the span are written by the fill, and then left alone.
    """

    block: int = 8
    depth: int = 16
    order: ev.WriteOrder = "random"
    flush_writes: int = 0
    flush_ms: int = 0
    fua: int = 0
    rest: int = 0

    @property
    def promises(self) -> bool:
        """True if the session flushes or writes with FUA."""
        return bool(self.flush_writes or self.flush_ms or self.fua)

    def arguments(self) -> list[str]:
        return [
            *("--block", str(self.block), "--depth", str(self.depth), "--order", self.order),
            *("--flush-writes", str(self.flush_writes), "--flush-ms", str(self.flush_ms), "--fua", str(self.fua)),
            *("--rest", str(self.rest)),
        ]


@dataclass(frozen=True)
class Stamped:
    """A load of stamped writes.

    ``span`` is bytes from the beginning of the disk (0: what it transfers in a second; more than its size: all of it).
    Without ``fill``, the earlier content is not overwritten first, and only the load's own writes are judged. Without
    ``anchors``, only the span is covered.
    """

    name: str
    writing: Writing = field(default_factory=Writing)
    span: int = 0
    fill: bool = True
    anchors: bool = True


flushed_writes = Stamped("random 4 KiB writes, a flush every 64", Writing(flush_writes=64))
"""The load of a database: small random writes with frequent flushes."""
unflushed_writes = Stamped("random 4 KiB writes, never flushed")
sequential_stamps = Stamped(
    "sequential 64 KiB writes, a flush every 200 ms", Writing(block=128, depth=4, order="sequential", flush_ms=200)
)
hot_spot = Stamped("4 KiB writes to a hot spot, a flush every 32", Writing(order="hot", flush_writes=32))
fua_writes = Stamped("random 4 KiB writes, every fourth with FUA", Writing(fua=25))


def steady(pattern: Pattern) -> Stamped:
    """A load of ``plugpull.load`` as stamped writes, at an even pace: it rewrites the same span and flushes only at the
    end."""
    writing = Writing(block=pattern.block // SECTOR, depth=pattern.depth, order="sequential")
    return Stamped(pattern.name, writing, fill=False, anchors=False)


def extents_for(room: Room, pattern: Stamped) -> Extents:
    """The extents that a load covers: its span, and an anchor at each power of two beyond it and at the disk's end.

    The anchors reveal a disk whose addresses wrap or whose capacity is wrong (as in f3probe).
    """
    block = pattern.writing.block
    whole = room.size // SECTOR // block * block
    if not pattern.anchors:
        span = pattern.span or span_of(room, Pattern(pattern.name, "write", block * SECTOR))
        return ((0, min(whole, max(block, span // SECTOR // block * block))),)
    span = pattern.span or (
        UNKNOWN_RATE_SPAN if room.rate is None else max(SMALLEST_SPAN, int(room.rate * FILL_SECONDS))
    )
    covered = min(whole, max(block, span // SECTOR // block * block))
    found = [(0, covered)]
    anchor = max(block, ANCHOR // block * block)
    place = 1
    while place < whole:
        if place >= covered and place % block == 0 and place + anchor <= whole - anchor:
            found.append((place, anchor))
        place *= 2
    if whole - anchor >= covered:
        found.append((whole - anchor, anchor))
    return _merged(found)


def _merged(extents: list[tuple[int, int]]) -> Extents:
    """In rising order, with overlapping and adjacent extents merged."""
    made: list[tuple[int, int]] = []
    for first, count in sorted(extents):
        if made and first <= made[-1][0] + made[-1][1]:
            last, length = made[-1]
            made[-1] = (last, max(length, first + count - last))
        else:
            made.append((first, count))
    return tuple(made)
