"""Defects of a drive, one class per kind. Runs in nbdkit's Python, like ``firmware_drive.py``.

A kind's parameters are its constructor's, with the names and units of ``[[defect]]`` in a rig file. With the defaults,
each defect shows within seconds of a load on a disk of some tens of MiB. ``every`` means one in that many: requests are
counted from a random start, so that the rate holds even in a short load.

Each class's docstring names the real fault that it models.
"""

from __future__ import annotations

import errno
import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from plugpull.virtual.firmware_drive import SECTOR, Drive, DriveDefect, Piece
from plugpull.virtual.firmware_slow import (
    CacheCollapse,
    CommandTimeout,
    Crowded,
    Every,
    GarbageCollection,
    LongTransferStall,
    SlowThrough,
)

REMEMBERED = 4096
"""Number of blocks for which ``stale`` keeps an older version."""


class FlushLost(DriveDefect):
    """Flushes and FUA are acknowledged but nothing leaves the cache: a bridge that swallows SYNCHRONIZE CACHE."""

    def keeps(self, drive: Drive, dirty: Sequence[int]) -> Iterable[int]:
        if dirty:
            drive.fired()
        return dirty


class CacheLied(FlushLost):
    """As ``FlushLost``, but the disk reports write-through, so the kernel sends no flush. (QEMU makes that report.)"""


class Reordered(DriveDefect):
    """At a flush, one in ``every`` dirty blocks stays in the cache while newer blocks go out."""

    def __init__(self, every: int = 3) -> None:
        self._every = every

    def keeps(self, drive: Drive, dirty: Sequence[int]) -> Iterable[int]:
        kept = [block for block in dirty if drive.random.randrange(self._every) == 0]
        if kept:
            drive.fired()
        return kept


class TornSector(DriveDefect):
    """When power fails, up to ``sectors`` dirty blocks are half written: new first half, old second half."""

    def __init__(self, sectors: int = 8) -> None:
        self._sectors = sectors

    def power_failing(self, drive: Drive) -> None:
        left, half = self._sectors, drive.block // 2
        for block, new in reversed(drive.dirty().items()):  # the newest first
            if not left:
                break
            old = bytearray(half)
            drive.read_medium(block * drive.block + half, memoryview(old))
            if bytes(old) != new[half:]:
                drive.write_medium(block * drive.block, new[:half])
                drive.fired()
                left -= 1


class Misdirected(DriveDefect):
    """One in ``every`` writes lands ``sectors`` too low (too high near the start), as after a servo error."""

    def __init__(self, every: int = 20, sectors: int = 1024) -> None:
        self._due = Every(every)
        self._shift = sectors * SECTOR

    def pieces(self, drive: Drive, pieces: Sequence[Piece], writing: bool) -> Sequence[Piece]:
        if not writing or not self._due(drive):
            return pieces
        shift = -self._shift if pieces[0][0] >= self._shift else self._shift
        return [(min(at + shift, drive.size - length), begin, length) for at, begin, length in pieces]


class LostWrite(DriveDefect):
    """One in ``every`` writes is acknowledged but not executed: a lost update of a mapping table."""

    def __init__(self, every: int = 20) -> None:
        self._due = Every(every)

    def pieces(self, drive: Drive, pieces: Sequence[Piece], writing: bool) -> Sequence[Piece]:
        return () if writing and self._due(drive) else pieces


class LostPass(DriveDefect):
    """After ``every`` writes, all further writes are acknowledged but not executed.

    It models flash that has turned read-only without reporting it. A disk that is overwritten repeatedly keeps the data
    of an earlier pass.
    """

    def __init__(self, every: int = 50) -> None:
        self._left = every
        self._lock = threading.Lock()

    def pieces(self, drive: Drive, pieces: Sequence[Piece], writing: bool) -> Sequence[Piece]:
        if not writing:
            return pieces
        with self._lock:
            self._left -= 1
            lost = self._left < 0
        if lost:
            drive.fired()
        return () if lost else pieces


class TornWrite(DriveDefect):
    """One in ``every`` writes does not write the second half of its last block."""

    def __init__(self, every: int = 20) -> None:
        self._due = Every(every)

    def pieces(self, drive: Drive, pieces: Sequence[Piece], writing: bool) -> Sequence[Piece]:
        if not writing or not self._due(drive):
            return pieces
        *others, (at, begin, length) = pieces
        return [*others, (at, begin, length - drive.block // 2)]


class Wraps(DriveDefect):
    """Addresses from ``sector`` on wrap around to 0: faked capacity, a 32-bit LBA.

    The default is 1 MiB, which even a small load crosses.
    """

    def __init__(self, sector: int = 2048) -> None:
        self._limit = sector * SECTOR

    def pieces(self, drive: Drive, pieces: Sequence[Piece], writing: bool) -> Sequence[Piece]:
        limit = min(self._limit, drive.size)
        wrapped: list[Piece] = []
        for at, begin, length in pieces:
            if at + length > limit:
                drive.fired()
            while length:
                count = min(length, limit - at % limit)
                wrapped.append((at % limit, begin, count))
                at, begin, length = at + count, begin + count, length - count
        return wrapped


class CapacityOffByOne(DriveDefect):
    """READ CAPACITY reports one block too many: the last block of the declared size cannot be read or written."""

    def before(self, drive: Drive, writing: bool | None, offset: int, length: int) -> None:
        if writing is not None and offset + length > drive.size - drive.block:
            drive.fired()
            raise OSError(errno.EIO, "beyond the end of the medium")


class Stale(DriveDefect):
    """When power fails, up to ``sectors`` flushed blocks fall back to their older content: an unsaved mapping table."""

    def __init__(self, sectors: int = 16) -> None:
        self._sectors = sectors
        self._since_flush: dict[int, bytes] = {}
        self._flushed: dict[int, bytes] = {}

    def overwrites(self, drive: Drive, block: int, data: bytes) -> None:
        old = bytearray(len(data))
        drive.read_medium(block * drive.block, memoryview(old))
        for number in range(min(len(data) // drive.block, REMEMBERED)):
            before = bytes(old[number * drive.block : (number + 1) * drive.block])
            if before != data[number * drive.block : (number + 1) * drive.block]:
                self._since_flush.setdefault(block + number, before)
        while len(self._since_flush) > REMEMBERED:
            del self._since_flush[next(iter(self._since_flush))]

    def flushed(self, drive: Drive) -> None:
        self._flushed.update(self._since_flush)
        self._since_flush.clear()
        while len(self._flushed) > REMEMBERED:
            del self._flushed[next(iter(self._flushed))]

    def power_failing(self, drive: Drive) -> None:
        for block in drive.random.sample(list(self._flushed), min(self._sectors, len(self._flushed))):
            drive.write_medium(block * drive.block, self._flushed[block])
            drive.fired()


class BitFlips(DriveDefect):
    """One bit is inverted in one of ``every`` writes: a bad buffer RAM, a bad solder joint."""

    def __init__(self, every: int = 20) -> None:
        self._due = Every(every)

    def alter(self, drive: Drive, data: bytes) -> bytes:
        if not data or not self._due(drive):
            return data
        spoilt = bytearray(data)
        spoilt[drive.random.randrange(len(data))] ^= 1 << drive.random.randrange(8)
        return bytes(spoilt)


class ErrorsAt(DriveDefect):
    """``sectors`` sectors from ``sector`` on cannot be read or written."""

    def __init__(self, sector: int, sectors: int = 1) -> None:
        self._begin, self._end = sector * SECTOR, (sector + sectors) * SECTOR

    def before(self, drive: Drive, writing: bool | None, offset: int, length: int) -> None:
        if writing is not None and offset < self._end and offset + length > self._begin:
            drive.fired()
            raise OSError(errno.EIO, "medium error")


class ErrorsScattered(DriveDefect):
    """One in ``every`` reads and writes fails, wherever it is: a bridge, and not the medium."""

    def __init__(self, every: int = 40) -> None:
        self._due = Every(every)

    def before(self, drive: Drive, writing: bool | None, offset: int, length: int) -> None:
        if writing is not None and self._due(drive):
            raise OSError(errno.EIO, "bridge error")


KINDS: Mapping[str, type[DriveDefect]] = {
    "flush-lost": FlushLost,
    "cache-lied": CacheLied,
    "reordered": Reordered,
    "torn-sector": TornSector,
    "misdirected": Misdirected,
    "lost-write": LostWrite,
    "lost-pass": LostPass,
    "torn-write": TornWrite,
    "wraps": Wraps,
    "capacity-off-by-one": CapacityOffByOne,
    "stale": Stale,
    "bit-flips": BitFlips,
    "long-transfer-stall": LongTransferStall,
    "garbage-collection": GarbageCollection,
    "command-timeout": CommandTimeout,
    "cache-collapse": CacheCollapse,
    "slow-through": SlowThrough,
    "crowded": Crowded,
    "errors-at": ErrorsAt,
    "errors-scattered": ErrorsScattered,
}


def make(kind: str, parameters: Mapping[str, Any]) -> DriveDefect:
    """Create a defect. Raises KeyError for an unknown kind, TypeError for an unknown parameter."""
    return KINDS[kind](**parameters)
