"""A disk's counter over time, without the time in which the DUT was starved."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, MutableSequence, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, chain, islice, pairwise, repeat
from operator import lt, mul, sub
from typing import NamedTuple, overload

from plugpull.checks.starved import Span
from plugpull.history.medians import usual_of

EPSILON = 1e-9
AT_ONCE = 4096
"""Numbers that are made objects at once: few enough for a processor's cache."""


class Stall(NamedTuple):
    """A disk stood still for ``seconds``, from DUT time ``began`` on."""

    began: float
    seconds: float


class TimeLine:
    """The times of samples, DUT seconds, and their places on a time line that leaves starved time out.

    ``steps`` are the differences of the places, ``shares`` the share of the step before a sample that was starved, by
    the number of the sample; a number that is not in it has none."""

    def __init__(self, times: Sequence[float], starved: Sequence[Span] = ()) -> None:
        self.times, self.shares = times, _shares(times, starved)
        steps: Iterable[float] = map(sub, islice(times, 1, None), times)
        if self.shares:
            steps = counted = array("d", steps)
            for i, share in self.shares.items():
                counted[i - 1] = (1.0 - share) * (times[i] - times[i - 1])
        self.clock: Sequence[float] = array("d", accumulate(steps, initial=0.0))

    @cached_property
    def steps(self) -> Sequence[float]:
        return array("d", map(sub, islice(self.clock, 1, None), self.clock))

    @cached_property
    def usual_step(self) -> float:
        """The usual place between two samples that is not starved."""
        steps = array("d", filter((0.0).__lt__, self.steps))
        return usual_of(steps) if steps else 0.0

    @cached_property
    def longest_step(self) -> float:
        return max(self.steps, default=0.0)


@dataclass(frozen=True)
class Track:
    """One disk's counter over a time line that leaves starved time out.

    ``line`` has the samples' times. ``moved`` are the bytes up to each of them. ``gaps`` holds the (seconds, bytes)
    left out just before a sample, by its number, where something was.
    """

    line: TimeLine
    moved: Sequence[float]
    gaps: Mapping[int, tuple[float, float]]

    @cached_property
    def fewest(self) -> float:
        """The bytes of the step in which the fewest were moved."""
        if isinstance(self.moved, Since):
            return self.moved.least_step
        return min(map(sub, islice(self.moved, 1, None), self.moved), default=0.0)

    @property
    def times(self) -> Sequence[float]:
        """DUT times of the samples."""
        return self.line.times

    @property
    def clock(self) -> Sequence[float]:
        """The places of the samples on the time line."""
        return self.line.clock

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
        slow = self._slow_steps(trickle)
        if not any(slow):
            return ()
        # Bytes above what a trickle would have moved: a stretch from i to j is slow if surplus[j] <= surplus[i]. What
        # moved in starved time ends a stretch too.
        gaps = (self.gaps.get(i, NO_GAP) for i in range(last + 1))
        left_out = accumulate(max(0.0, moved - trickle * length) for length, moved in gaps)
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

    def _slow_steps(self, trickle: float) -> bytes:
        """For each sample, and one after the last, whether the step before it is slow."""
        # Sums of bytes are rounded to much less than one byte.
        if not self.gaps and self.fewest - 1.0 >= trickle * self.line.longest_step:
            return bytes(len(self.clock) + 1)
        gained = array("d", map(sub, islice(self.moved, 1, None), self.moved))
        slow = bytearray(map(lt, gained, map(mul, repeat(trickle), self.line.steps)))
        for i, (length, moved) in self.gaps.items():
            if self.line.steps[i - 1] <= 0:
                # Starved time belongs to the stall around it if nothing moved in it.
                slow[i - 1] = moved <= trickle * length
        return bytes((0, *slow, 0))


NO_GAP = (0.0, 0.0)


def _shares(times: Sequence[float], starved: Sequence[Span]) -> dict[int, float]:
    """The starved share of the step before each sample, where a part of it was."""
    touched: set[int] = set()
    for span in starved:
        touched.update(
            range(max(1, bisect_right(times, span.begin)), min(len(times), bisect_left(times, span.end) + 1))
        )
    shares = {}
    for i in sorted(touched):
        t1, t2 = times[i - 1], times[i]
        near = starved[
            bisect_right(starved, t1, key=lambda one: one.end) : bisect_left(starved, t2, key=lambda one: one.begin)
        ]
        share = min(1.0, sum(max(0.0, min(span.end, t2) - max(span.begin, t1)) for span in near) / (t2 - t1))
        if share > 0:
            shares[i] = 1.0 if share > 1.0 - EPSILON else share
    return shares


def track(samples: Sequence[tuple[float, float]], starved: Sequence[Span] = ()) -> Track:
    """The time line of ``samples`` (DUT time, bytes so far), at least one, without the ``starved`` spans.

    If an interval between two samples is partly starved, its bytes are divided in proportion to time."""
    pairs = [(one, two) for one, two in pairwise(samples) if two[0] > one[0]]
    line = TimeLine([samples[0][0], *(two[0] for _, two in pairs)], starved)
    return _on_line(line, [two[1] - one[1] for one, two in pairs])


def on_line(line: TimeLine, first: float, counts: Sequence[int]) -> Track:
    """The bytes of one disk on a time line: ``first`` and then ``counts`` are its bytes so far, one per sample."""
    if not line.shares:
        return Track(line, Since(first, counts), {})
    gained = array("d", (count - first for count in counts[:1]))
    gained.extend(map(sub, islice(counts, 1, None), counts))
    return _on_line(line, gained)


class Since(Sequence[float]):
    """How much more than ``first`` each of ``counts`` is, after a 0. Each is calculated when it is asked for."""

    def __init__(self, first: float, counts: Sequence[int]) -> None:
        self._first, self._counts = first, counts

    def __len__(self) -> int:
        return len(self._counts) + 1

    @overload
    def __getitem__(self, index: int) -> float: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[float]: ...
    def __getitem__(self, index: int | slice) -> float | Sequence[float]:
        if isinstance(index, slice):
            return list(self)[index]
        place = range(len(self))[index]
        return self._counts[place - 1] - self._first if place else 0.0

    def __iter__(self) -> Iterator[float]:
        return chain((0.0,), map(sub, self._counts, repeat(self._first)))

    @cached_property
    def least_step(self) -> float:
        """The least difference between two neighbours; 0 if there are no counts."""
        least = [count - self._first for count in self._counts[:1]]
        for begin in range(0, len(self._counts) - 1, AT_ONCE):
            some = list(self._counts[begin : begin + AT_ONCE + 1])
            least.append(min(map(sub, islice(some, 1, None), some)))
        return min(least, default=0.0)


def _on_line(line: TimeLine, gained: MutableSequence[float]) -> Track:
    gaps = {}
    for i, share in line.shares.items():
        whole = gained[i - 1]
        gaps[i] = (share * (line.times[i] - line.times[i - 1]), share * whole)
        gained[i - 1] = (1.0 - share) * whole
    return Track(line, array("d", accumulate(gained, initial=0.0)), gaps)


def interpolate(xs: Sequence[float], ys: Sequence[float], x: float) -> float:
    """The value at ``x`` between the points (xs, ys), xs ascending; the first or last one outside them."""
    i = bisect_right(xs, x)
    if i == 0:
        return ys[0]
    if i == len(xs):
        return ys[-1]
    return ys[i - 1] + (ys[i] - ys[i - 1]) * (x - xs[i - 1]) / (xs[i] - xs[i - 1])
