"""A drive: a medium, a volatile write cache in front of it, and their defects.

Runs in nbdkit's Python, so it imports only the standard library. The medium is a file: data written to the file has
reached the medium; data held only by ``Drive`` is lost with the process.

A SIGKILL never leaves half a block on the medium. Blocks are aligned and no larger than a page. The kernel copies a
``pwrite`` into the page cache page by page and looks for fatal signals only in between (``generic_perform_write`` in
mm/filemap.c; tmpfs and ext4 use it). A write of several blocks may be cut short, as on a real disk.
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
"""Bytes; the unit of ``errors``, independent of the disk's block size."""
EVICTED_AT_ONCE = 16
"""When the cache is full, at least one block in this many leaves together, as a disk sorts what it destages."""

COUNTERS = ("reads", "writes", "fua", "flushes", "bytes_read", "bytes_written", "bytes_out", "dirty_bytes", "fired")
"""The names of the counters. ``fua`` counts writes with FUA, ``bytes_out`` what left the cache for the medium,
``dirty_bytes`` what the cache holds now, ``fired`` how often defects acted."""

Piece = tuple[int, int, int]
"""(offset on the disk, offset in the request's data, length)."""


class DriveCounters:
    """Numbers in a mapped file: they outlive the process, and reading them does not disturb it."""

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


class DriveDefect:
    """A defect of a drive. Every hook does nothing here; a kind overrides those it needs."""

    def before(self, drive: Drive, writing: bool | None, offset: int, length: int) -> None:
        """Called before a request is served; ``writing`` is None for a flush. May wait, or raise OSError to fail it.

        This is the only hook that is called without the drive's lock.
        """

    def pieces(self, drive: Drive, pieces: Sequence[Piece], writing: bool) -> Sequence[Piece]:
        """The places where the parts of a request land."""
        return pieces

    def alter(self, drive: Drive, data: bytes) -> bytes:
        """The data that is written instead of ``data``."""
        return data

    def keeps(self, drive: Drive, dirty: Sequence[int]) -> Iterable[int]:
        """Dirty blocks that stay in the cache although they should be made durable."""
        return ()

    def overwrites(self, drive: Drive, block: int, data: bytes) -> None:
        """Called before ``data`` reaches the medium at ``block``."""

    def flushed(self, drive: Drive) -> None:
        """Called after the dirty blocks have been made durable."""

    def evicted(self, drive: Drive, length: int) -> float:
        """Called when ``length`` bytes had to leave a full cache. Returns the seconds that the request waits."""
        return 0.0

    def through(self, drive: Drive, length: int) -> float:
        """Called when ``length`` bytes were written past the cache (FUA). Returns the seconds that it waits."""
        return 0.0

    def power_failing(self, drive: Drive) -> None:
        """Called when the power supply fails, as the drive's last action."""


@dataclass(frozen=True)
class Traits:
    """The properties of a healthy drive. Sizes in bytes, times in seconds."""

    size: int
    block: int = SECTOR
    cache: int = 0
    eviction: str = "oldest"
    write_back: float | None = None
    latency: float = 0.0


@dataclass(frozen=True)
class FailingSectors:
    """Sectors that fail: ``count`` of 512 bytes from ``first`` on."""

    first: int
    count: int
    reads: bool = True
    writes: bool = True

    def hit(self, offset: int, length: int, writing: bool) -> bool:
        begin, end = self.first * SECTOR, (self.first + self.count) * SECTOR
        return (self.writes if writing else self.reads) and offset < end and offset + length > begin


class Drive:
    """A drive. Any thread may call any method; a request that fails raises OSError."""

    def __init__(
        self,
        medium: int,
        traits: Traits,
        counters: DriveCounters,
        defects: Sequence[DriveDefect] = (),
        seed: Any = None,
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
        """By block, the oldest first: the time of the write and the data."""
        self._lock = threading.Lock()
        self._calm = threading.Condition()
        self._stalled_until = 0.0
        self._forgets = False
        self._errors: tuple[FailingSectors, ...] = ()

    @property
    def home(self) -> Path:
        """The path of its files, without a suffix."""
        return self._counters.path.with_suffix("")

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
        """Returns when the data is in the cache; with ``fua``, when it is on the medium."""
        self._before(True, offset, len(data))
        wait = 0.0
        with self._lock:
            for defect in self._defects:
                data = defect.alter(self, data)
            for at, begin, count in self._pieces(offset, len(data), writing=True):
                wait += self._store(at, data[begin : begin + count], fua)
            if fua:
                wait += sum(defect.through(self, len(data)) for defect in self._defects)
            self._counters.add("writes", 1)
            self._counters.add("fua", int(fua))
            self._counters.add("bytes_written", len(data))
            self._counters.set("dirty_bytes", len(self._dirty) * self.block)
        if wait:
            time.sleep(wait)  # this is the defect

    def zero(self, offset: int, length: int, fua: bool = False) -> None:
        """Write zeros as ordinary data: reading a trimmed range of this drive gives zeros."""
        step = 1 << 20
        for at in range(offset, offset + length, step):
            self.write(at, bytes(min(step, offset + length - at)), fua)

    def flush(self) -> None:
        """Returns when all previously completed writes are on the medium."""
        self._before(None, 0, 0)
        with self._lock:
            self._make_durable(list(self._dirty))
            for defect in self._defects:
                defect.flushed(self)
            self._counters.add("flushes", 1)

    def _before(self, writing: bool | None, offset: int, length: int) -> None:
        with self._calm:
            stalled = False
            while (left := self._stalled_until - time.monotonic()) > 0:
                stalled = True
                self._calm.wait(left)
            if stalled and self._forgets:
                raise OSError(errno.EIO, "forgotten")
        # A drive with nothing in its cache answers a flush at once, also while a write is on its way.
        if self.traits.latency and (writing is not None or self._dirty):
            time.sleep(self.traits.latency)  # the latency of the model
        if writing is not None and any(bad.hit(offset, length, writing) for bad in self._errors):
            raise OSError(errno.EIO, "medium error")
        for defect in self._defects:
            defect.before(self, writing, offset, length)

    def _pieces(self, offset: int, length: int, *, writing: bool) -> Sequence[Piece]:
        pieces: Sequence[Piece] = ((offset, 0, length),)
        for defect in self._defects:
            pieces = defect.pieces(self, pieces, writing)
        return pieces

    # --- cache; call with the lock held ---------------------------------------------------------------------------

    def _load(self, offset: int, buffer: memoryview) -> None:
        """Read the newest version of every byte: from the cache if it is there, otherwise from the medium."""
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
        """Store data in the cache or on the medium. Returns the seconds to wait, 0 for a healthy drive."""
        first = offset // self.block
        data = self._whole_blocks(offset, data)
        blocks = range(first, first + len(data) // self.block)
        larger = len(blocks) > self._capacity
        if larger or (fua and not list(self._kept(list(blocks)))):
            for block in blocks:
                self._dirty.pop(block, None)
            self._to_medium(first, data)
            # What does not fit into the cache leaves it as fast as the rest does; FUA has a delay of its own.
            return sum(defect.evicted(self, len(data)) for defect in self._defects) if larger and not fua else 0.0
        wait = self._make_room(len(blocks))
        now = time.monotonic()
        for number, block in enumerate(blocks):
            self._dirty.pop(block, None)  # a rewritten block counts as new
            self._dirty[block] = (now, data[number * self.block : (number + 1) * self.block])
        return wait

    def _whole_blocks(self, offset: int, data: bytes) -> bytes:
        """Extend data to whole blocks with the content around it."""
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
        """Move these blocks from the cache to the medium, neighbours together."""
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

    # --- medium; call with the lock held ----------------------------------------------------------------------------

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

    # --- other events ---------------------------------------------------------------------------------------------

    def fired(self) -> None:
        """Count one action of a defect."""
        self._counters.add("fired", 1)

    def dirty(self) -> dict[int, bytes]:
        """The content of the cache by block, the oldest first. For defects, which hold the lock."""
        return {block: data for block, (_, data) in self._dirty.items()}

    def write_out_older_than(self, age: float) -> None:
        """Write out the blocks that have been in the cache for ``age`` seconds."""
        with self._lock:
            limit = time.monotonic() - age
            old = []
            for block, (written, _) in self._dirty.items():
                if written > limit:
                    break
                old.append(block)
            self._write_out(old)

    def stall(self, seconds: float, forgets: bool = False) -> None:
        """Answer no request for ``seconds``; 0 ends a stall. One that ``forgets`` is over without having executed the
        requests that came meanwhile: they fail."""
        with self._calm:
            self._stalled_until = time.monotonic() + seconds
            self._forgets = forgets
            self._calm.notify_all()

    def fail(self, errors: Sequence[FailingSectors]) -> None:
        """Make exactly these sectors bad from now on."""
        self._errors = tuple(errors)

    def power_failing(self) -> None:
        """Serve no more requests: the power supply fails. The caller kills the process next."""
        self._lock.acquire()
        for defect in self._defects:
            defect.power_failing(self)
