"""The median of very many numbers, without sorting all of them."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from statistics import median

FEW = 4096
"""So many numbers are sorted."""


def ranked(numbers: Sequence[float], rank: int) -> float:
    """What ``sorted(numbers)[rank]`` is. None of the numbers may be NaN."""
    below, inside = _around(numbers, rank)
    return inside[rank - below]


def median_of(numbers: Iterable[float]) -> float:
    """The same as ``statistics.median``. None of the numbers may be NaN."""
    kept = array("d", numbers)
    if len(kept) <= FEW:
        return median(kept)
    upper = len(kept) // 2
    lower = upper - 1 + len(kept) % 2
    below, inside = _around(kept, upper)
    if lower < below:
        below, inside = 0, sorted(kept)
    return inside[upper - below] if lower == upper else (inside[lower - below] + inside[upper - below]) / 2


AT_ONCE = 0.001
"""Seconds between two samples below which they are of one moment: reading the counters of a disk takes about as
long."""


def usual_of(steps: Sequence[float]) -> float:
    """The median of the times between samples. Samples of one moment count as one."""
    apart = array("d", filter(AT_ONCE.__le__, steps))
    return median_of(apart or steps)


def _around(numbers: Sequence[float], rank: int) -> tuple[int, list[float]]:
    """How many numbers are less than some number, and the next larger ones in order, the one with this rank among
    them."""
    if len(numbers) > FEW:
        some = sorted(numbers[:: len(numbers) // 1024])
        near = rank * len(some) // len(numbers)
        low, high = some[max(0, near - 64)], some[min(len(some) - 1, near + 64)]
        below = sum(map(low.__gt__, numbers))
        inside = sorted([number for number in numbers if low <= number <= high])
        if below <= rank < below + len(inside):
            return below, inside
    return 0, sorted(numbers)
