"""A disk's inside: a medium, a volatile write cache in front of it, and what is wrong with them.

Runs in nbdkit's Python, so the standard library is all it imports. The medium is a file: what was written to it has
reached the medium; what is only in ``Drive`` is lost with the process.

A SIGKILL never leaves half a block on the medium: blocks are no larger than a page and aligned, and the kernel copies a
``pwrite`` into the page cache page by page and looks for fatal signals only in between (``generic_perform_write`` in
mm/filemap.c; tmpfs and ext4 use it). A write of several blocks may be cut short, as one of a real disk may.
"""

from __future__ import annotations

import errno
import mmap
import os
import random
import struct
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

SECTOR = 512
"""Bytes; the unit of ``errors``, whatever the disk's blocks are."""
EVICTED_AT_ONCE = 16
"""When the cache is full, at least one part in this many leaves together, as a disk sorts what it destages."""

COUNTERS = ("reads", "writes", "fua", "flushes", "bytes_read", "bytes_written", "bytes_out", "dirty_bytes", "fired")
"""What the firmware counts. ``fua`` are the writes that asked for it, ``bytes_out`` what left for the medium,
``dirty_bytes`` what the cache holds now, ``fired`` how often defects did something."""

Piece = tuple[int, int, int]
"""(offset on the disk, offset in the request's data, length)."""


class Counters:
    """Numbers in a file that others map: they outlive the process, and reading them disturbs nobody."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.touch()
        os.truncate(path, len(COUNTERS) * 8)
        with path.open("r+b") as file:
            self._page = mmap.mmap(file.fileno(), len(COUNTERS) * 8)
        self._lock = threading.Lock()

    def add(self, name: str, count: int) -> None:
        with self._lock:
            self.set(name, self[name] + count)

    def set(self, name: str, value: int) -> None:
        struct.pack_into("=Q", self._page, COUNTERS.index(name) * 8, value)

    def __getitem__(self, name: str) -> int:
        value: int = struct.unpack_from("=Q", self._page, COUNTERS.index(name) * 8)[0]
        return value


class Defect:
    """Something wrong with a drive. Every hook does nothing here; a kind overrides what it needs."""

    def before(self, drive: Drive, writing: bool | None, offset: int, length: int) -> None:
        """A request is about to be served (``writing`` is None for a flush). May wait, or raise OSError to fail it.
        The only hook without the drive's lock."""

    def pieces(self, drive: Drive, pieces: Sequence[Piece], writing: bool) -> Sequence[Piece]:
        """Where the parts of a request land."""
        return pieces

    def alter(self, drive: Drive, data: bytes) -> bytes:
        """What is written instead of ``data``."""
        return data

    def keeps(self, drive: Drive, dirty: Sequence[int]) -> Iterable[int]:
        """Blocks that stay in the cache although they were to be made durable."""
        return ()

    def overwrites(self, drive: Drive, block: int, data: bytes) -> None:
        """``data`` is about to reach the medium at ``block``."""

    def flushed(self, drive: Drive) -> None:
        """What was dirty has been made durable."""

    def evicted(self, drive: Drive, length: int) -> float:
        """``length`` bytes had to leave a full cache. Seconds that the request waits for it."""
        return 0.0

    def power_failing(self, drive: Drive) -> None:
        """The supply is going down; what is done here is the last the drive does."""


@dataclass(frozen=True)
class Traits:
    """How a healthy drive is. Sizes in bytes, times in seconds."""

    size: int
    block: int = SECTOR
    cache: int = 0
    eviction: str = "oldest"
    write_back: float | None = None
    latency: float = 0.0


@dataclass(frozen=True)
class BadSectors:
    """Sectors that fail: ``count`` of 512 bytes from ``first`` on."""

    first: int
    count: int
    reads: bool = True
    writes: bool = True

    def hit(self, offset: int, length: int, writing: bool) -> bool:
        begin, end = self.first * SECTOR, (self.first + self.count) * SECTOR
        return (self.writes if writing else self.reads) and offset < end and offset + length > begin


class Drive:
    """A drive. Any thread may call any method; OSError is what its requests end with when they fail."""

    def __init__(
        self, medium: int, traits: Traits, counters: Counters, defects: Sequence[Defect] = (), seed: Any = None
    ) -> None:
        self.traits = traits
        self.block = traits.block
        self.size = traits.size
        self.random = random.Random(seed)
        self._capacity = traits.cache // traits.block
        self._medium = medium
        self._counters = counters
        self._defects = tuple(defects)
        self._dirty: dict[int, tuple[float, bytes]] = {}
        """By block: when it was written and what, the oldest first."""
        self._lock = threading.Lock()
        self._calm = threading.Condition()
        self._stalled_until = 0.0
        self._errors: tuple[BadSectors, ...] = ()

    # --- requests -----------------------------------------------------------------------------------------------

    def read(self, offset: int, buffer: memoryview) -> None:
        length = len(buffer)
        self._before(False, offset, length)
        with self._lock:
            for at, begin, count in self._pieces(offset, length, writing=False):
                self._load(at, buffer[begin : begin + count])
            self._counters.add("reads", 1)
            self._counters.add("bytes_read", length)

    def write(self, offset: int, data: bytes, fua: bool = False) -> None:
        """Completed once it is in the cache; with ``fua``, once it is on the medium."""
        self._before(True, offset, len(data))
        wait = 0.0
        with self._lock:
            for defect in self._defects:
                data = defect.alter(self, data)
            for at, begin, count in self._pieces(offset, len(data), writing=True):
                wait += self._store(at, data[begin : begin + count], fua)
            self._counters.add("writes", 1)
            self._counters.add("fua", int(fua))
            self._counters.add("bytes_written", len(data))
            self._counters.set("dirty_bytes", len(self._dirty) * self.block)
        if wait:
            time.sleep(wait)  # this is the defect

    def zero(self, offset: int, length: int, fua: bool = False) -> None:
        """Write zeros, as any other data: a drive that trims gives zeros back here."""
        step = 1 << 20
        for at in range(offset, offset + length, step):
            self.write(at, bytes(min(step, offset + length - at)), fua)

    def flush(self) -> None:
        """What was completed before is on the medium when this returns."""
        self._before(None, 0, 0)
        with self._lock:
            self._make_durable(list(self._dirty))
            for defect in self._defects:
                defect.flushed(self)
            self._counters.add("flushes", 1)

    def _before(self, writing: bool | None, offset: int, length: int) -> None:
        with self._calm:
            while (left := self._stalled_until - time.monotonic()) > 0:
                self._calm.wait(left)
        if self.traits.latency:
            time.sleep(self.traits.latency)  # this is what was asked for
        if writing is not None and any(bad.hit(offset, length, writing) for bad in self._errors):
            raise OSError(errno.EIO, "medium error")
        for defect in self._defects:
            defect.before(self, writing, offset, length)

    def _pieces(self, offset: int, length: int, *, writing: bool) -> Sequence[Piece]:
        pieces: Sequence[Piece] = ((offset, 0, length),)
        for defect in self._defects:
            pieces = defect.pieces(self, pieces, writing)
        return pieces

    # --- cache; with the lock -------------------------------------------------------------------------------------

    def _load(self, offset: int, buffer: memoryview) -> None:
        """The newest of every byte: from the cache where it is there, else from the medium."""
        self.read_medium(offset, buffer)
        if not self._dirty:
            return
        end = offset + len(buffer)
        for block in range(offset // self.block, -(-end // self.block)):
            held = self._dirty.get(block)
            if held is not None:
                begin = block * self.block
                low, high = max(begin, offset), min(begin + self.block, end)
                buffer[low - offset : high - offset] = held[1][low - begin : high - begin]

    def _store(self, offset: int, data: bytes, fua: bool) -> float:
        """Put data where it belongs. Seconds to wait for it, which a healthy drive has none of."""
        first = offset // self.block
        data = self._whole_blocks(offset, data)
        blocks = range(first, first + len(data) // self.block)
        through = len(blocks) > self._capacity or (fua and not list(self._kept(list(blocks))))
        if through:
            for block in blocks:
                self._dirty.pop(block, None)
            self._to_medium(first, data)
            return 0.0
        wait = self._make_room(len(blocks))
        now = time.monotonic()
        for number, block in enumerate(blocks):
            self._dirty.pop(block, None)  # its age begins anew
            self._dirty[block] = (now, data[number * self.block : (number + 1) * self.block])
        return wait

    def _whole_blocks(self, offset: int, data: bytes) -> bytes:
        """Data with what is around it, up to where blocks begin and end."""
        before, after = offset % self.block, -(offset + len(data)) % self.block
        if not before and not after:
            return data
        whole = bytearray(before + len(data) + after)
        self._load(offset - before, memoryview(whole))
        whole[before : before + len(data)] = data
        return bytes(whole)

    def _make_room(self, count: int) -> float:
        over = len(self._dirty) + count - self._capacity
        if over <= 0:
            return 0.0
        leaving = min(len(self._dirty), max(over, self._capacity // EVICTED_AT_ONCE))
        if self.traits.eviction == "newest":
            blocks = list(islice(reversed(self._dirty), leaving))
        elif self.traits.eviction == "random":
            blocks = self.random.sample(list(self._dirty), leaving)
        else:
            blocks = list(islice(self._dirty, leaving))
        self._write_out(blocks)
        return sum(defect.evicted(self, leaving * self.block) for defect in self._defects)

    def _kept(self, blocks: Sequence[int]) -> set[int]:
        return {block for defect in self._defects for block in defect.keeps(self, blocks)}

    def _make_durable(self, blocks: Sequence[int]) -> None:
        kept = self._kept(blocks)
        self._write_out([block for block in blocks if block not in kept])

    def _write_out(self, blocks: Iterable[int]) -> None:
        """These leave the cache for the medium, neighbours together."""
        run: list[bytes] = []
        first = 0
        for block in sorted(blocks):
            if run and block != first + len(run):
                self._to_medium(first, b"".join(run))
                run = []
            if not run:
                first = block
            run.append(self._dirty[block][1])
        if run:
            self._to_medium(first, b"".join(run))
        for block in blocks:
            self._dirty.pop(block)
        self._counters.set("dirty_bytes", len(self._dirty) * self.block)

    # --- medium; with the lock --------------------------------------------------------------------------------------

    def read_medium(self, offset: int, buffer: memoryview) -> None:
        done = 0
        while done < len(buffer):
            count = os.preadv(self._medium, [buffer[done:]], offset + done)
            if not count:
                raise OSError(errno.EIO, "the medium is shorter than the disk")
            done += count

    def write_medium(self, offset: int, data: bytes) -> None:
        done = 0
        while done < len(data):
            done += os.pwrite(self._medium, data[done:] if done else data, offset + done)

    def _to_medium(self, first: int, data: bytes) -> None:
        for defect in self._defects:
            defect.overwrites(self, first, data)
        self.write_medium(first * self.block, data)
        self._counters.add("bytes_out", len(data))

    # --- what else happens to a drive -----------------------------------------------------------------------------

    def fired(self) -> None:
        """A defect did something."""
        self._counters.add("fired", 1)

    def dirty(self) -> dict[int, bytes]:
        """What the cache holds, by block, the oldest first. For defects, with the lock."""
        return {block: data for block, (_, data) in self._dirty.items()}

    def write_out_older_than(self, age: float) -> None:
        """What has been in the cache for ``age`` seconds leaves it."""
        with self._lock:
            limit = time.monotonic() - age
            old = []
            for block, (written, _) in self._dirty.items():
                if written > limit:
                    break
                old.append(block)
            self._write_out(old)

    def stall(self, seconds: float) -> None:
        """Answer no request for so long; 0 ends a stall."""
        with self._calm:
            self._stalled_until = time.monotonic() + seconds
            self._calm.notify_all()

    def fail(self, errors: Sequence[BadSectors]) -> None:
        """These sectors are bad from now on, and no others."""
        self._errors = tuple(errors)

    def power_failing(self) -> None:
        """The supply goes down: nothing is served any more. The caller kills the process next."""
        self._lock.acquire()
        for defect in self._defects:
            defect.power_failing(self)
