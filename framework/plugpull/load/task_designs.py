"""Which tasks of fio a study compares."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar

from plugpull.history.events import LoadMode
from plugpull.load.sweep import LEAST_SECONDS, MODES, MOST_SECONDS, REQUESTS, sizes
from plugpull.load.tasks import FioTask
from plugpull.studies.task_names import (
    BUFFERED,
    CACHE_OFF,
    DIRECT,
    END_FSYNC,
    O_SYNC,
    READ,
    REWRITE,
    SEEKS,
    SMALL_SYNC,
    WRITE,
    on_filesystem,
)

T = TypeVar("T")
R = TypeVar("R", bound="HasRate")

SYNC_SECONDS = 3.0
"""Of small synchronous writes: an emulated disk completes some hundred per second."""


def caching_design(disks: Sequence[T]) -> tuple[FioTask[T], ...]:
    """The same write through fewer and fewer caches: as dd does it without options, with conv=fsync, with oflag=sync
    and with oflag=direct; the last two also with the drives' own caches off."""
    everyone = tuple(disks)
    synced: dict[str, FioTask[T]] = {
        O_SYNC: FioTask(O_SYNC, everyone, "write", direct=False, options=("--sync=1",)),
        DIRECT: FioTask(DIRECT, everyone, "write"),
    }
    return (
        FioTask(BUFFERED, everyone, "write", sized=True, direct=False),
        FioTask(END_FSYNC, everyone, "write", sized=True, direct=False, options=("--end_fsync=1",)),
        *synced.values(),
        *(
            FioTask(name + CACHE_OFF, everyone, "write", direct=one.direct, options=one.options, drive_cache=False)
            for name, one in synced.items()
        ),
    )


def latency_design(disks: Sequence[T]) -> tuple[FioTask[T], ...]:
    """Small synchronous writes to all disks at once, to random places."""
    percentiles = "--percentile_list=50:90:99:99.9:99.99"
    options = ("--sync=1", percentiles)
    return (FioTask(SMALL_SYNC, tuple(disks), "randwrite", 4096, seconds=SYNC_SECONDS, options=options),)


BONNIE_CHUNK = 8 << 10
"""Bytes that bonnie++ reads and writes at once by default."""
SEEKERS = 5
"""Processes that seek at once, as in bonnie++; one seek in ten rewrites what it read."""


def filesystem_tasks(volume: T, fstype: str = "ext4") -> tuple[FioTask[T], ...]:
    """The phases of bonnie++ on a filesystem, in their order, on a file that is new in each round. The page cache is
    in use, and written data is synced. bonnie++ wants a file twice as large as the memory; here, what was cached of the
    file is dropped before it is read, and seeks bypass the cache."""
    cached = ("--fallocate=none", "--invalidate=1")
    seeking = (f"--numjobs={SEEKERS}", "--group_reporting", "--rwmixread=90", "--unlink=1")

    def phase(name: str, mode: LoadMode, *options: str, **more: bool) -> FioTask[T]:
        return FioTask(on_filesystem(fstype, name), (volume,), mode, BONNIE_CHUNK, options=(*cached, *options), **more)

    return (
        phase(WRITE, "write", "--end_fsync=1", sized=True, direct=False),
        phase(REWRITE, "randrw", "--end_fsync=1", sized=True, direct=False, rewrites=True),
        phase(READ, "read", sized=True, direct=False),
        phase(SEEKS, "randrw", *seeking),
    )


def filesystem_counts(disks: int) -> tuple[int, ...]:
    """The numbers of disks that a filesystem is tried on: one, and arrays of more."""
    return tuple(sorted({count for count in (1, 2, 4, disks) if count <= disks}))


def filesystem_design(disks: Sequence[T]) -> tuple[FioTask[T], ...]:
    """All that the study of filesystems measures, to say beforehand how long it takes."""
    return tuple(task for _ in filesystem_counts(len(disks)) for task in filesystem_tasks(disks[0]))


LARGEST = 1 << 20
"""Bytes of the largest request that usb-storage and uas make at SuperSpeed (drivers/usb/storage/scsiglue.c, uas.c)."""


class HasRate(Protocol):
    """A disk with its declared rate, bytes per second."""

    @property
    def rate(self) -> int | None: ...


def sweep_design(disks: Sequence[R]) -> tuple[FioTask[R], ...]:
    """About what a sweep of the transfer size does, to say beforehand how long it takes."""
    slowest = min((disk.rate for disk in disks if disk.rate is not None), default=None)
    return tuple(
        FioTask(
            f"{pattern.name} of {size >> 10} KiB",
            tuple(disks),
            "read",
            size,
            seconds=min(MOST_SECONDS, max(LEAST_SECONDS, REQUESTS * size / slowest)) if slowest else LEAST_SECONDS,
            sized=True,
        )
        for size in sizes([LARGEST])
        for pattern in MODES
    )
