"""Dips in a series of windows of a long transfer: where the rate falls for a while, or for good."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise
from math import fsum
from statistics import median, quantiles

DEEP = 0.5
"""A window below this share of the usual rate is a dip."""
SHALLOW = 0.75
"""So are several in a row below this share, if they cost the time of a usual window or more."""
RECOVERED = 0.9
"""A dip is over with the first window that has this share of the usual rate again, or as much as noise leaves."""
USUAL = 15
"""The number of windows below which nothing is usual."""
NOISE = 7.0
"""A dip also takes at least so many times as much longer as one in ten of the other windows does, so that a noisy
series has none. Time shows dips better than the rate: a window at a third of the rate takes two windows longer, and no
noise of the rate does that."""
LEAST = 0.02
"""Windows that are equal by chance count as this different."""
BEFORE = 3
"""Windows before a collapse at least."""
FOR_GOOD = 0.1
"""A dip that lasts until the end is a collapse if it takes at least this share of the windows, ..."""
REMAINING = 0.2
"""... or this share of the time: a disk that keeps a tenth of its rate writes few windows in it."""
LASTING = 0.2
"""The same for a fall that leaves more than ``DEEP``."""
LEAST_RATE = 1e-9
"""Bytes per second, in place of none."""
LONGER = 1.5
"""And for this many times as long as any dip before it, in time: the last one of several may only not be over yet."""
ORDERLY = 0.8
"""The share of windows, before and after a collapse, that have to be on their side of ``SHALLOW``, or of the middle
between both rates if it is higher."""


@dataclass(frozen=True)
class Dip:
    """``first`` is the index of its first window, ``length`` the number of windows from there to the last deep one.
    ``recovery`` is the number of windows after these until the rate was usual again, ``None`` if it was not. ``worst``
    is the lowest rate."""

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

    A collapse is looked for first: what comes after it is not usual.
    """
    if len(rates) < USUAL:
        raise ValueError(f"{len(rates)} windows are too few to say what is usual: {USUAL} are needed")
    end = _collapse(rates)
    if end < len(rates) and _time(rates[end:]) < LONGER * _longest(_dips(rates[:end], usual_rate(rates[:end])), rates):
        end = len(rates)
    usual = usual_rate(rates[:end])
    found = list(_dips(rates[:end], usual)) if end >= USUAL or end == len(rates) else []
    last = None
    if end < len(rates):
        last = Dip(end, len(rates) - end, None, min(rates[end:]), usual)
        found = [dip if dip.recovery is not None else replace(dip, recovery=0) for dip in found]
        found.append(last)
    elif found and found[-1].recovery is None:
        first, longest = found[-1].first, _longest(found[:-1], rates)
        if _lasting(rates, first) and _time(rates[first:]) >= LONGER * longest:
            last = found[-1]
    return Dips(tuple(found), last, min(range(len(rates)), key=rates.__getitem__))


def usual_rate(rates: Sequence[float]) -> float:
    """The rate of all windows together that are not deep. A median would be that of windows with few whole requests."""
    middle = median(rates)
    usual = [rate for rate in rates if rate > DEEP * middle]
    return len(usual) / fsum(1 / rate for rate in usual) if usual else middle


def _time(rates: Iterable[float]) -> float:
    """How long these windows take, if each has one byte. None takes for ever."""
    return fsum(1 / max(rate, LEAST_RATE) for rate in rates)


def _longest(found: Iterable[Dip], rates: Sequence[float]) -> float:
    return max((_time(rates[dip.first : dip.first + dip.length + (dip.recovery or 0)]) for dip in found), default=0.0)


def _lasting(rates: Sequence[float], first: int) -> bool:
    """Whether what is left from a window on is long enough to be called for good."""
    return len(rates) - first >= FOR_GOOD * len(rates) or _time(rates[first:]) >= REMAINING * _time(rates)


def _collapse(rates: Sequence[float]) -> int:
    """The index from which on the rate is low for good; the number of windows if it is not."""
    best, least = len(rates), float("inf")
    for place in range(BEFORE, len(rates)):
        before, after = rates[:place], rates[place:]
        usual, left = median(before), median(after)
        if not _lasting(rates, place):
            continue
        if left >= SHALLOW * usual or (left >= DEEP * usual and len(after) < LASTING * len(rates)):
            continue
        between = max(SHALLOW * usual, (usual + left) / 2)
        fine, low = sum(rate > between for rate in before), sum(rate < between for rate in after)
        if fine < ORDERLY * len(before) or low < (1 + ORDERLY) / 2 * len(after):
            continue
        off = fsum(abs(rate - usual) for rate in before) + fsum(abs(rate - left) for rate in after)
        if off < least:
            best, least = place, off
    return best


def _dips(rates: Sequence[float], usual: float) -> Iterator[Dip]:
    costs = [usual / max(rate, 1e-9 * usual) - 1.0 for rate in rates]
    """The time that each window takes longer than a usual one, in windows."""
    noise = max(LEAST, _ninth(cost for cost in costs if cost < 1 / SHALLOW - 1))
    deep = _deep(rates, costs, usual, noise)
    back = usual * min(RECOVERED, max(SHALLOW, 1 / (1 + 1.5 * noise)))
    place = 0
    while place < len(rates):
        if place not in deep:
            place += 1
            continue
        end = next((n for n in range(place, len(rates)) if rates[n] >= back and n not in deep), None)
        inside = range(place, len(rates) if end is None else end)
        last = max(deep.intersection(inside)) + 1
        yield Dip(place, last - place, None if end is None else end - last, min(rates[n] for n in inside), usual)
        place = inside.stop


def _ninth(costs: Iterable[float]) -> float:
    """The ninth decile; 0 for fewer than 2 values."""
    values = list(costs)
    return quantiles(values, n=10)[8] if len(values) > 1 else 0.0


def _deep(rates: Sequence[float], costs: Sequence[float], usual: float, noise: float) -> set[int]:
    """The windows of dips: those that are deep by themselves, and rows of those that are together."""
    found = {n for n, rate in enumerate(rates) if rate < DEEP * usual and costs[n] > NOISE * noise}
    for low, row in groupby(range(len(rates)), key=lambda n: rates[n] < SHALLOW * usual):
        members = list(row)
        cost = fsum(costs[n] for n in members)
        if low and len(members) > 1 and not found.intersection(members) and cost > max(1.0, NOISE * noise):
            found.update(members)
    for first in sorted(found):  # the window in which it begins is low in part
        while first and rates[first - 1] < SHALLOW * usual:
            first -= 1
            found.add(first)
    return found
