"""A disk's counter over time, without the time in which the DUT was starved."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import NamedTuple

from plugpull.checks.starved import Span

EPSILON = 1e-9


class Stall(NamedTuple):
    """A disk stood still for ``seconds``, from DUT time ``began`` on."""

    began: float
    seconds: float


@dataclass(frozen=True)
class Track:
    """One disk's counter over a time line that leaves starved time out.

    ``times`` are DUT times of the samples, ``clock`` the same on the time line, ``moved`` the bytes up to there.
    ``gaps`` holds, for each sample, the (seconds, bytes) left out just before it; (0, 0) where nothing was.
    """

    times: tuple[float, ...]
    clock: tuple[float, ...]
    moved: tuple[float, ...]
    gaps: tuple[tuple[float, float], ...]

    @property
    def end(self) -> float:
        return self.clock[-1]

    def at(self, time: float) -> float:
        """Where DUT time ``time`` is on the time line; starved time is all at one place."""
        return interpolate(self.times, self.clock, time)

    def time(self, place: float) -> float:
        """The DUT time of the first sample after a place on the time line."""
        return self.times[min(bisect_right(self.clock, place), len(self.times) - 1)]

    def rate(self, begin: float, end: float) -> float:
        """Mean bytes per second between two places on the time line."""
        return (interpolate(self.clock, self.moved, end) - interpolate(self.clock, self.moved, begin)) / (end - begin)

    def windows(self, begin: float, end: float, length: float) -> tuple[float, ...]:
        """Mean rates of the consecutive windows of ``length`` seconds from ``begin`` that end by ``end``."""
        count = int((end - begin) / length + EPSILON)
        return tuple(self.rate(begin + i * length, begin + (i + 1) * length) for i in range(count))

    def stalls(self, trickle: float) -> tuple[Stall, ...]:
        """The stretches in which less than ``trickle`` bytes per second moved, oldest first; none overlap.

        A stretch begins and ends with an interval between samples that is that slow. Inside it a few bytes may move,
        as long as the mean of the stretch stays below ``trickle``: a block every other second is a stall too.
        """
        last = len(self.clock) - 1
        slow = [False] * (last + 2)
        for i in range(1, last + 1):
            slow[i] = self._slow(i, trickle)
        # Bytes above what a trickle would have moved: a stretch from i to j is slow if surplus[j] <= surplus[i]. What
        # moved in starved time ends a stretch too.
        left_out = accumulate(max(0.0, moved - trickle * length) for length, moved in self.gaps)
        surplus = [moved + out - trickle * at for at, moved, out in zip(self.clock, self.moved, left_out, strict=True)]
        least = [float("inf")] * (last + 2)
        for j in range(last, 0, -1):
            least[j] = min(least[j + 1], surplus[j] if slow[j] else float("inf"))
        found: list[Stall] = []
        i = 0
        while i < last:
            if not slow[i + 1]:
                i += 1
                continue
            # ``least`` never falls, so the last stretch end that belongs to this beginning can be searched for.
            j = bisect_right(least, surplus[i] + EPSILON, lo=i + 1) - 1
            seconds = self.clock[j] - self.clock[i]
            if seconds > 0:
                found.append(Stall(self.times[i], seconds))
            i = max(j, i + 1)
        return tuple(found)

    def _slow(self, i: int, trickle: float) -> bool:
        length, gap = self.clock[i] - self.clock[i - 1], self.gaps[i]
        if length <= 0:
            # Starved time belongs to the stall around it if nothing moved in it.
            return gap[1] <= trickle * gap[0]
        return self.moved[i] - self.moved[i - 1] < trickle * length


def track(samples: Sequence[tuple[float, float]], starved: Sequence[Span] = ()) -> Track:
    """The time line of ``samples`` (DUT time, bytes so far), at least one, without the ``starved`` spans.

    If an interval between two samples is partly starved, its bytes are divided in proportion to time."""
    times, clock, moved, gaps = [samples[0][0]], [0.0], [0.0], [(0.0, 0.0)]
    for (t1, b1), (t2, b2) in pairwise(samples):
        if t2 <= t1:
            continue
        out = sum(max(0.0, min(span.end, t2) - max(span.begin, t1)) for span in starved)
        share = min(1.0, out / (t2 - t1))
        if share > 1.0 - EPSILON:
            share = 1.0
        gaps.append((share * (t2 - t1), share * (b2 - b1)))
        times.append(t2)
        clock.append(clock[-1] + (1.0 - share) * (t2 - t1))
        moved.append(moved[-1] + (1.0 - share) * (b2 - b1))
    return Track(tuple(times), tuple(clock), tuple(moved), tuple(gaps))


def interpolate(xs: Sequence[float], ys: Sequence[float], x: float) -> float:
    """The value at ``x`` between the points (xs, ys), xs ascending; the first or last one outside them."""
    i = bisect_right(xs, x)
    if i == 0:
        return ys[0]
    if i == len(xs):
        return ys[-1]
    return ys[i - 1] + (ys[i] - ys[i - 1]) * (x - xs[i - 1]) / (xs[i] - xs[i - 1])
