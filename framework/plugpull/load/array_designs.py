"""Which arrays a study makes, and the tasks that it runs on each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol, TypeVar

from plugpull.load.designs import Condition, Design, each_alone
from plugpull.load.patterns import sequential_read, sequential_write
from plugpull.load.tasks import FioTask
from plugpull.targets.array import LEAST, RaidLevel

T = TypeVar("T")

COUNTS = (2, 3, 4, 6)
"""Numbers of members that are tried, and all disks of the rig."""
CHUNKS = (16 << 10, 64 << 10, 256 << 10)
"""Bytes."""
USUAL_CHUNK = CHUNKS[1]
MIRRORS = 3
"""A RAID 1 of more members than these is not tried."""
BASELINE_REPEATS = 3
"""Rounds in which the members are measured without an array, at most."""
SECONDS = 2.0
DEPTH = 4
MAKING = 5.0
"""Seconds to make an array and to stop it, on an emulated guest."""


class ArrayCell(NamedTuple):
    """One array: ``chunk`` is in bytes (0: not striped)."""

    level: RaidLevel
    members: int
    chunk: int

    @property
    def stripe(self) -> int:
        """Bytes of data in a stripe, which are written at once: of RAID 5 and 6, no less avoids reading."""
        parity = {RaidLevel.PARITY: 1, RaidLevel.DOUBLE_PARITY: 2}.get(self.level, 0)
        return (self.chunk or USUAL_CHUNK) * (self.members - parity if self.chunk else 1)


def array_cells(disks: int) -> tuple[ArrayCell, ...]:
    """The arrays that a rig with so many scratch disks is measured with: RAID 0 of each number of members with each
    chunk, RAID 5 with each chunk of all disks, and everything else with one chunk."""
    return tuple(_cells(disks))


def _cells(disks: int) -> Iterator[ArrayCell]:
    for level in RaidLevel:
        counts = sorted({count for count in (*COUNTS, disks) if LEAST[level] <= count <= disks})
        for count in counts:
            if level is RaidLevel.MIRRORED:
                if count <= MIRRORS:
                    yield ArrayCell(level, count, 0)
                continue
            swept = level is RaidLevel.STRIPED or (level is RaidLevel.PARITY and count == disks)
            for chunk in CHUNKS if swept else (USUAL_CHUNK,):
                yield ArrayCell(level, count, chunk)


class SizedDisk(Protocol):
    """A disk with its size in bytes, and its declared rate in bytes per second."""

    @property
    def size(self) -> int: ...

    @property
    def rate(self) -> int | None: ...


def member_size(disks: Sequence[SizedDisk]) -> str:
    """How much of each disk an array uses: what is copied in a few seconds, as ``rig.array`` takes it."""
    rates = [disk.rate for disk in disks if disk.rate is not None]
    wanted = max(4 << 20, int(SECONDS * min(rates))) if rates else 256 << 20
    return f"{min(wanted, min(disk.size for disk in disks) // 2) >> 20} MiB"


def array_tasks(array: T, cell: ArrayCell) -> tuple[FioTask[T], ...]:
    """Whole stripes are written and read, one after the other."""
    return tuple(
        FioTask(pattern.name, (array,), "read" if pattern is sequential_read else "write", cell.stripe, DEPTH, SECONDS)
        for pattern in (sequential_write, sequential_read)
    )


def array_baseline(disks: Sequence[T]) -> Design[T]:
    """The members without an array: each alone, and as many at once as the arrays have."""
    counts = sorted({cell.members for cell in array_cells(len(disks))})
    groups = [tuple(disks[:count]) for count in counts]
    return each_alone(disks) + tuple(
        Condition(group, pattern) for pattern in (sequential_write, sequential_read) for group in groups
    )


def array_design(disks: Sequence[T]) -> tuple[Condition[T] | FioTask[T], ...]:
    """All that the study of arrays measures, to say beforehand how long it takes."""
    cells = array_cells(len(disks))
    tasks = [task for cell in cells for task in array_tasks(disks[0], cell)]
    # An array is made once for all repeats.
    making = tuple(FioTask("making", (disks[0],), "write", seconds=MAKING / 5, sized=True) for _ in cells)
    return (*array_baseline(disks), *tasks, *making) if cells else ()


def rebuild_design(disks: Sequence[T]) -> tuple[FioTask[T], ...]:
    """About how long rebuilds take, without a load and with one."""
    if len(disks) < LEAST[RaidLevel.MIRRORED]:
        return ()
    return tuple(FioTask("rebuild", tuple(disks), "write", seconds=seconds, sized=True) for seconds in (3.0, 7.0))
