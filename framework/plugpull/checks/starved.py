"""Time in which the DUT was starved by its host: it does not count, and accuses nobody.

The agent samples every disk at a steady interval. An interval between two samples of more than ``GAP`` times the median
means that the agent did not run. On a virtual bench that is mostly the host, which gave the guest's CPUs no time. It is
starvation only if nothing else was heard from the agent either: where it answered an exchange of clocks meanwhile, its
sampler alone was held up, and that can be the DUT's doing.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from itertools import pairwise
from statistics import median
from typing import NamedTuple

from plugpull.history.events import ClockMapped
from plugpull.history.story import Story

GAP = 3.0
"""An interval between two samples this many times the median is a gap."""


class Span(NamedTuple):
    """DUT seconds from ``begin`` to ``end``."""

    begin: float
    end: float

    @property
    def length(self) -> float:
        return self.end - self.begin


def gaps(story: Story) -> tuple[Span, ...]:
    """Every gap between two samples of ``story``, whatever its cause."""
    times = sorted(story.sample_times)
    if len(times) < 3:
        return ()
    longest = GAP * median(two - one for one, two in pairwise(times))
    return tuple(Span(one, two) for one, two in pairwise(times) if two - one > longest)


def starved(story: Story) -> tuple[Span, ...]:
    """The gaps in which nothing was heard from the DUT although its agent was not lost."""
    answers = sorted(event.at for event in story.of(ClockMapped) if event.at is not None)

    def silent(gap: Span) -> bool:
        return bisect_left(answers, gap.end) <= bisect_right(answers, gap.begin)

    def lost(gap: Span) -> bool:
        return any(one.begin < gap.end and (one.end is None or one.end > gap.begin) for one in story.silences)

    return tuple(gap for gap in gaps(story) if silent(gap) and not lost(gap))


def starved_within(story: Story, begin: float, end: float) -> float:
    """Seconds of [begin, end] in which the DUT was starved."""
    return sum(max(0.0, min(gap.end, end) - max(gap.begin, begin)) for gap in starved(story))


def awake(story: Story, begin: float, end: float) -> float:
    """Seconds of [begin, end] that count: those in which the DUT was not starved.

    A limit is certainly exceeded if this is more than the limit, and certainly kept if ``end - begin`` is not; what
    lies between is UNKNOWN."""
    return max(0.0, end - begin) - starved_within(story, begin, end)


BUSY = 0.7
"""CPU seconds per second from which on an emulated DUT was certainly run: at least one of its processors was busy."""


def ran(story: Story, span: Span) -> bool:
    """Whether the host is on record as having run the DUT at full speed around ``span``: what it did then, or did not
    do, was its own doing. False where nothing tells."""
    known = sorted((one.controller, one.at or 0.0, one.ran) for one in story.of(ClockMapped) if one.ran is not None)
    before = [one for one in known if one[1] <= span.begin]
    after = [one for one in known if one[1] >= span.end]
    if not before or not after:
        return False
    (begin, _, used), (end, _, used_then) = before[-1], after[0]
    return end > begin and used_then is not None and used is not None and (used_then - used) / (end - begin) >= BUSY
