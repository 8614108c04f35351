"""Whether an emulated disk moved more than it can: then requests were answered that never reached it.

A sample that comes late holds what the disk moved since the one before, and the next one may hold requests that were
completed before it: a guest that its host runs again catches up. So a window begins before the late samples in it and
just before it, and counts all the time that the disk had.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from itertools import accumulate
from operator import add

from plugpull.checks.starved import AROUND, LATE
from plugpull.checks.survivors.survivor import Watched
from plugpull.checks.survivors.track import NO_GAP, Track
from plugpull.history.story import Story

FASTEST, FAST_FOR = 2.0, 1.0
"""Share of its declared rate that an emulated disk cannot exceed for so many seconds. The most in 22 loads was 1.06."""


def fastest(story: Story, seen: Watched, own: float) -> tuple[float, float] | None:
    """The highest rate of ``seen`` over ``FAST_FOR`` seconds, bytes/s, and when, DUT time, if it exceeds ``FASTEST``
    times its ``own`` rate."""
    line = seen.line
    rates = line.windows(0.0, line.end, FAST_FOR)
    above = sorted(((rate, i * FAST_FOR) for i, rate in enumerate(rates) if rate > FASTEST * own), reverse=True)
    if not above:
        return None
    moved = _all_moved(line)
    for rate, place in above:
        first = _first(story, line, place)
        last = min(bisect_left(line.clock, place + FAST_FOR), len(line.clock) - 1)
        if moved[last] - moved[first] > FASTEST * own * (line.times[last] - line.times[first]):
            return rate, line.time(place)
    return None


def _all_moved(line: Track) -> list[float]:
    """The bytes up to each sample, those in starved time included."""
    left_out = accumulate(line.gaps.get(i, NO_GAP)[1] for i in range(len(line.moved)))
    return list(map(add, line.moved, left_out))


def _first(story: Story, line: Track, place: float) -> int:
    """The sample from which a window counts that begins at ``place``: the one before all late ones around there."""
    first = bisect_left(line.clock, line.clock[max(0, bisect_right(line.clock, place) - 1)])
    for two in range(first, 0, -1):
        one = two - 1
        if line.times[first] - line.times[two] > AROUND:
            break
        if line.times[two] - line.times[one] > LATE * story.interval_between(line.times[one], line.times[two]):
            first = one
    return first
