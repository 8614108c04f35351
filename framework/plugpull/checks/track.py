"""A disk's counter over time, rid of the gaps in its sampling."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

GAP = 3.0
"""An interval this many times the median is a gap in the sampling."""


@dataclass(frozen=True)
class Track:
    """One disk's counter over a time line without sampling gaps.

    ``times`` are DUT times of the samples, ``clock`` the same on the time line without gaps, ``moved`` the bytes up to
    there. ``gaps`` holds, for each sample, the (seconds, bytes) taken out just before it; (0, 0) where nothing was.
    """

    times: tuple[float, ...]
    clock: tuple[float, ...]
    moved: tuple[float, ...]
    gaps: tuple[tuple[float, float], ...]

    @property
    def end(self) -> float:
        return self.clock[-1]

    def at(self, time: float) -> float:
        """Where DUT time ``time`` is on the time line; a time inside a gap is at the gap."""
        return interpolate(self.times, self.clock, time)

    def time(self, place: float) -> float:
        """The DUT time of the first sample after a place on the time line."""
        return self.times[min(bisect_right(self.clock, place), len(self.times) - 1)]

    def rate(self, begin: float, end: float) -> float:
        """Mean bytes per second between two places on the time line."""
        return (interpolate(self.clock, self.moved, end) - interpolate(self.clock, self.moved, begin)) / (end - begin)

    def stall(self) -> tuple[float, float]:
        """The longest contiguous time without movement, seconds, and the DUT time at which it began."""
        longest, began = 0.0, self.times[0]
        start = 0
        for i in range(1, len(self.times)):
            if self.moved[i] > self.moved[i - 1] or self.gaps[i][1] > 0:
                start = i
            elif self.clock[i] - self.clock[start] > longest:
                longest, began = self.clock[i] - self.clock[start], self.times[start]
        return longest, began


def track(samples: Sequence[tuple[float, float]], interval: float) -> Track:
    """The time line of ``samples`` (DUT time, bytes so far), at least one, given the median sampling ``interval``."""
    times, clock, moved, gaps = [samples[0][0]], [0.0], [0.0], [(0.0, 0.0)]
    for (t1, b1), (t2, b2) in pairwise(samples):
        if t2 <= t1:
            continue
        starved = t2 - t1 > GAP * interval
        gaps.append((t2 - t1, b2 - b1) if starved else (0.0, 0.0))
        times.append(t2)
        clock.append(clock[-1] + (0.0 if starved else t2 - t1))
        moved.append(moved[-1] + (0.0 if starved else b2 - b1))
    return Track(tuple(times), tuple(clock), tuple(moved), tuple(gaps))


def interpolate(xs: Sequence[float], ys: Sequence[float], x: float) -> float:
    """The value at ``x`` between the points (xs, ys), xs ascending; the first or last one outside them."""
    i = bisect_right(xs, x)
    if i == 0:
        return ys[0]
    if i == len(xs):
        return ys[-1]
    return ys[i - 1] + (ys[i] - ys[i - 1]) * (x - xs[i - 1]) / (xs[i] - xs[i - 1])
