"""Defects that make a drive slow, one class per kind. Runs in nbdkit's Python, like ``firmware_defects.py``."""

from __future__ import annotations

import mmap
import struct
import threading
import time
from pathlib import Path

from plugpull.virtual.firmware_drive import SECTOR, Drive, DriveDefect

LINGERS = 0.3
"""Seconds that a drive counts as busy after a request: fio takes a moment to send the next one."""


class Every:
    """True once in ``count`` calls, starting at a random call."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._left: int | None = None
        self._lock = threading.Lock()

    def __call__(self, drive: Drive) -> bool:
        with self._lock:
            if self._left is None:
                self._left = drive.random.randrange(self._count)
            due = self._left == 0
            self._left = self._count - 1 if due else self._left - 1
        if due:
            drive.fired()
        return due


class Pace:
    """Time that is granted at ``rate`` bytes per second, to one request after the other."""

    def __init__(self, rate: int) -> None:
        self._rate = rate
        self._busy_until = 0.0
        self._lock = threading.Lock()

    def wait(self, length: int) -> float:
        """Seconds that a request of ``length`` bytes waits from now on."""
        with self._lock:
            now = time.monotonic()
            self._busy_until = max(self._busy_until, now) + length / self._rate
            return self._busy_until - now


class LongTransferStall(DriveDefect):
    """One in ``every`` requests of more than ``sectors`` hangs for ``seconds``. By default that is 64 KiB."""

    def __init__(self, every: int = 16, seconds: float = 3.0, sectors: int = 128) -> None:
        self._due = Every(every)
        self._seconds = seconds
        self._most = sectors * SECTOR

    def before(self, drive: Drive, writing: bool | None, offset: int, length: int) -> None:
        if length > self._most and self._due(drive):
            time.sleep(self._seconds)  # this is the defect


class GarbageCollection(DriveDefect):
    """After every ``sectors`` that were written, no request is served for ``seconds``: flash that cleans up.

    With a ``rate``, requests are served at so many bytes per second meanwhile.
    """

    def __init__(self, sectors: int = 8192, seconds: float = 1.0, rate: int = 0) -> None:
        self._every = sectors * SECTOR
        self._seconds = seconds
        self._slow = Pace(rate) if rate else None
        self._left = self._every
        self._busy_until = 0.0
        self._lock = threading.Lock()

    def before(self, drive: Drive, writing: bool | None, offset: int, length: int) -> None:
        with self._lock:
            if writing:
                self._left -= length
                if self._left <= 0:
                    self._left += self._every
                    self._busy_until = time.monotonic() + self._seconds
                    drive.fired()
            wait = self._busy_until - time.monotonic()
        if wait > 0:
            time.sleep(wait if self._slow is None else self._slow.wait(length))  # this is the defect


class CommandTimeout(DriveDefect):
    """One in ``every`` reads and writes is answered only after ``seconds``.

    The default is a little more than the kernel's timeout of 30 s. A DUT with a lower /sys/block/DISK/device/timeout
    needs less. It is only a little more because QEMU does not abandon a request that the kernel aborts. QEMU and with
    it the whole guest wait for the answer (blk_drain in hw/scsi/scsi-bus.c's scsi_device_purge_requests; measured).
    """

    def __init__(self, every: int = 40, seconds: float = 31.0) -> None:
        self._due = Every(every)
        self._seconds = seconds

    def before(self, drive: Drive, writing: bool | None, offset: int, length: int) -> None:
        if writing is not None and self._due(drive):
            time.sleep(self._seconds)  # this is the defect


class CacheCollapse(DriveDefect):
    """A full cache drains at ``rate`` bytes per second, and the writes that need the room wait for it.

    It models shingled disks, and flash whose fast cells are used up. Flushes are not slowed.
    """

    def __init__(self, rate: int = 1 << 20) -> None:
        self._pace = Pace(rate)

    def evicted(self, drive: Drive, length: int) -> float:
        drive.fired()
        return self._pace.wait(length)


class SlowThrough(DriveDefect):
    """Writes that bypass the cache take their time, ``rate`` bytes per second: each waits for the medium to come round.

    QEMU sends such writes (FUA) while the cache is switched off by MODE SELECT.
    """

    def __init__(self, rate: int = 512 << 10) -> None:
        self._pace = Pace(rate)

    def through(self, drive: Drive, length: int) -> float:
        drive.fired()
        return self._pace.wait(length)


class Crowded(DriveDefect):
    """While more than ``disks`` drives with this defect are busy, each has ``rate`` bytes per second: a hub or a
    controller that thrashes. The drives of one bench see each other by files beside their media."""

    def __init__(self, disks: int = 2, rate: int = 256 << 10) -> None:
        self._most = disks
        self._pace = Pace(rate)
        self._signs: dict[Path, mmap.mmap] = {}
        self._lock = threading.Lock()

    def before(self, drive: Drive, writing: bool | None, offset: int, length: int) -> None:
        if writing is None:
            return
        own = drive.home.with_suffix(".busy")
        with self._lock:
            self._look(own)
            self._set_busy(own, LINGERS)
            crowded = self._busy() > self._most
        if not crowded:
            return
        drive.fired()
        wait = self._pace.wait(length)
        with self._lock:
            self._set_busy(own, wait + LINGERS)
        time.sleep(wait)  # this is the defect

    def _look(self, own: Path) -> None:
        """Map the files of drives that have appeared."""
        if own not in self._signs and not own.exists():
            fresh = own.with_suffix(".busy-new")
            fresh.write_bytes(bytes(8))
            fresh.rename(own)  # nobody sees it empty
        for path in own.parent.glob("*.busy"):
            if path not in self._signs:
                with path.open("r+b") as file:
                    self._signs[path] = mmap.mmap(file.fileno(), 8)

    def _set_busy(self, own: Path, seconds: float) -> None:
        until = max(time.monotonic() + seconds, *struct.unpack("=d", self._signs[own][:8]))
        self._signs[own][:8] = struct.pack("=d", until)

    def _busy(self) -> int:
        now = time.monotonic()
        return sum(struct.unpack("=d", sign[:8])[0] > now for sign in self._signs.values())
