"""Dips in a series of windows of a long transfer: where the rate falls for a while, or for good."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

DEEP = 0.5
"""A window below this share of the usual rate is a dip."""
RECOVERED = 0.9
"""A dip is over with the first window that has this share of the usual rate again."""
USUAL = 15
"""The usual rate is the median of this many windows before."""
NOISE = 7.0
"""A dip is also at least this many median deviations below the usual rate, so that a noisy series has none."""
NOISE_WINDOWS = 60
"""The median deviation is that of this many windows before: of fewer, it is too uncertain."""
FOR_GOOD = 0.1
"""A dip that lasts until the end, and for at least this share of the series, is a collapse."""


@dataclass(frozen=True)
class Dip:
    """``first`` is the index of its first window, ``length`` the number of windows below half of the ``usual`` rate or
    between two such. ``recovery`` is the number of windows after these until the rate was at 90 % again, ``None`` if it
    was not. ``worst`` is the lowest rate."""

    first: int
    length: int
    recovery: int | None
    worst: float
    usual: float

    @property
    def depth(self) -> float:
        """The missing share of the usual rate in the worst window."""
        return 1.0 - self.worst / self.usual


@dataclass(frozen=True)
class Dips:
    """``period`` is the median distance of the beginnings of 3 dips or more, in windows. ``collapse`` is the dip after
    which the rate did not come back."""

    dips: tuple[Dip, ...]
    collapse: Dip | None
    worst: int
    """The index of the lowest window."""

    @property
    def period(self) -> float | None:
        starts = [dip.first for dip in self.dips]
        return median(two - one for one, two in pairwise(starts)) if len(starts) > 2 else None


def dips(rates: Sequence[float]) -> Dips:
    """Find the dips in the rates of at least ``USUAL`` windows of equal size. Raises ValueError for fewer.

    The usual rate is taken from windows outside of dips only, so that a long dip does not become usual.
    """
    if len(rates) < USUAL:
        raise ValueError(f"{len(rates)} windows are too few to say what is usual: {USUAL} are needed")
    healthy = list(rates[:USUAL])
    found: list[Dip] = []
    place = 0
    while place < len(rates):
        usual = median(healthy[-USUAL:])
        if not _is_deep(rates[place], usual, healthy[-NOISE_WINDOWS:]):
            if place >= USUAL:
                healthy.append(rates[place])
            place += 1
            continue
        dip = _dip(rates, place, usual)
        found.append(dip)
        place = len(rates) if dip.recovery is None else place + dip.length + dip.recovery
    last = found[-1] if found and found[-1].recovery is None else None
    for_good = last is not None and len(rates) - last.first >= FOR_GOOD * len(rates)
    return Dips(tuple(found), last if for_good else None, min(range(len(rates)), key=rates.__getitem__))


def _is_deep(rate: float, usual: float, before: Sequence[float]) -> bool:
    noise = median(abs(one - usual) for one in before)
    return rate < DEEP * usual and usual - rate > NOISE * noise


def _dip(rates: Sequence[float], first: int, usual: float) -> Dip:
    back = next((n for n in range(first, len(rates)) if rates[n] >= RECOVERED * usual), None)
    inside = range(first, len(rates) if back is None else back)
    deep_until = max(n for n in inside if rates[n] < DEEP * usual) + 1
    recovery = None if back is None else back - deep_until
    return Dip(first, deep_until - first, recovery, min(rates[n] for n in inside), usual)
