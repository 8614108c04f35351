"""Time in which the DUT was starved by its host: it does not count, and accuses nobody.

The agent samples every disk at a steady interval. An interval between two samples of more than ``GAP`` times the median
means that the agent did not run. On a virtual bench that is mostly the host, which gave the guest's CPUs no time. It is
starvation only if nothing else was heard from the agent either: where it answered an exchange of clocks meanwhile, its
sampler alone was held up, and that can be the DUT's doing.

Mostly a host does not stop a guest, it runs it more slowly. Then the guest's timer interrupts are lost, and so is what
``/proc/stat`` accounts by them: with all its CPU time it counts ``cpus`` x 100 jiffies a second, on a host that runs
something else beside it half of that or less. ``granted`` is that share. A guest that loses ticks although the host ran
it for as long as it was busy is to blame itself: its interrupts were off.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from itertools import pairwise
from statistics import median
from typing import NamedTuple

from plugpull.history.events import ClockMapped, DutReady
from plugpull.history.story import Story

GAP = 3.0
"""An interval between two samples this many times the median is a gap."""
FREEZE = 1.0
"""Seconds of a gap from which on it is the DUT's own if its host ran it meanwhile. In 107 healthy scenarios on a busy
host there were 37 such gaps in which nothing was heard, with at most 0.53 CPU seconds per second."""


class Span(NamedTuple):
    """DUT seconds from ``begin`` to ``end``."""

    begin: float
    end: float

    @property
    def length(self) -> float:
        return self.end - self.begin


def gaps(story: Story) -> tuple[Span, ...]:
    """Every gap between two samples of ``story``, whatever its cause."""
    return story.once(_gaps)


def _gaps(story: Story) -> tuple[Span, ...]:
    times = sorted(story.sample_times)
    if len(times) < 3:
        return ()
    longest = GAP * median(two - one for one, two in pairwise(times))
    return tuple(Span(one, two) for one, two in pairwise(times) if two - one > longest)


def starved(story: Story) -> tuple[Span, ...]:
    """The gaps in which nothing was heard from the DUT although its agent was not lost, and which were not its own
    doing: a kernel that stops all CPUs keeps its host busy."""
    return story.once(_starved)


def _starved(story: Story) -> tuple[Span, ...]:
    answers = sorted(event.at for event in story.of(ClockMapped) if event.at is not None)

    def silent(gap: Span) -> bool:
        return bisect_left(answers, gap.end) <= bisect_right(answers, gap.begin)

    def lost(gap: Span) -> bool:
        return any(one.begin < gap.end and (one.end is None or one.end > gap.begin) for one in story.silences)

    def froze(gap: Span) -> bool:
        return gap.length >= FREEZE and ran(story, gap)

    return tuple(gap for gap in gaps(story) if silent(gap) and not lost(gap) and not froze(gap))


def starved_within(story: Story, begin: float, end: float) -> float:
    """Seconds of [begin, end] in which the DUT was starved."""
    return sum(max(0.0, min(gap.end, end) - max(gap.begin, begin)) for gap in starved(story))


def awake(story: Story, begin: float, end: float) -> float:
    """Seconds of [begin, end] that count: without those in which the DUT was starved, and fewer for those in which its
    host ran it slowly.

    What waits for the guest and for the emulation of its devices in turn waits twice: the share of CPU time that it was
    granted counts squared."""
    passed = max(0.0, end - begin)
    if passed == 0:
        return 0.0
    stood = sum(max(0.0, min(gap.end, end) - max(gap.begin, begin)) for gap in _frozen(story))
    return stood + max(0.0, passed - stood - starved_within(story, begin, end)) * granted(story, begin, end) ** 2


FULLY = 0.85
"""CPU seconds per second around a gap that show that it was of the DUT's own making, and lasted as long as it did.
Around healthy gaps of a second it was at most 0.7."""


def _frozen(story: Story) -> tuple[Span, ...]:
    """Gaps in which a DUT that its host ran did nothing: they count in full."""
    return tuple(gap for gap in gaps(story) if gap.length >= FREEZE and (_rate(story, gap) or 0.0) >= FULLY)


LEAST_GRANTED = 0.5
"""Share of its CPU time without which what a DUT did says nothing about how fast it is."""


def excused(story: Story, begin: float, end: float, within: float) -> bool:
    """Whether a host that ran the DUT slowly is all that made [begin, end] longer than ``within`` seconds. Gaps without
    any evidence excuse nothing: they are a reason for UNKNOWN."""
    had = granted(story, begin, end)
    return LEAST_GRANTED <= had < 1.0 and (end - begin) * had**2 <= within


HZ = 100
"""Jiffies of ``/proc/stat`` in a second (USER_HZ; proc(5))."""
QUIET = 0.8
"""Share of its jiffies that an emulated DUT counts on a quiet host: 0.72 to 0.97 in 75 healthy scenarios."""


def granted(story: Story, begin: float, end: float) -> float:
    """Share of its CPU time that an emulated DUT got from its host around [begin, end]; 1 where nothing says less, and
    on real machines, which have no host."""
    times = story.cpu_times
    cpus = _cpus(story)
    if not cpus or len(times) < 2:
        return 1.0
    first = max(0, bisect_right(times, (begin,)) - 1)
    last = min(len(times) - 1, max(first + 1, bisect_left(times, (end,))))
    (at1, busy1, total1), (at2, busy2, total2) = times[first], times[last]
    if at2 <= at1:
        return 1.0
    late = lateness(story, begin, end)
    ticks = (total2 - total1) / (cpus * HZ * (at2 - at1)) / QUIET
    # Two witnesses: an agent whose samples come on time had what it needed, however few ticks were counted.
    share = max(min(ticks, 1.0 - late), 1.0 - LATE_SHARE * late)
    if share >= 1.0 or _had_its_way(story, at1, at2, (busy2 - busy1) / HZ / (at2 - at1)):
        return 1.0
    return max(0.05, share)


LATE = 1.5
"""An interval between two samples this many times the median is late: the agent did not get to run in time."""
ANSWERS = 2
"""Exchanges of clocks between two samples that show that the agent ran, and that samples are missing: there is one a
second."""
LATE_SHARE = 3.0
"""Of 1,820 windows of a second on a busy host those with 35 % of their ticks were late by 20 % (median), those with
55 % by 12 %, those with 85 % by nothing: a lateness of one part goes with at most three parts that were not granted."""
AROUND = 0.5
"""Seconds before and after a span that are looked at with it: a span may be shorter than two samples."""


def lateness(story: Story, begin: float, end: float) -> float:
    """The share of the time around [begin, end] by which samples were late. Where clocks were compared meanwhile they
    were not late: they are missing."""
    times = story.sample_times
    if len(times) < 3:
        return 0.0
    usual = story.sample_interval
    first = max(0, bisect_right(times, begin - AROUND) - 1)
    last = min(len(times) - 1, bisect_left(times, end + AROUND))
    if last <= first or times[last] <= times[first]:
        return 0.0
    answers = sorted(event.at for event in story.of(ClockMapped) if event.at is not None)
    late = 0.0
    for one, two in pairwise(times[first : last + 1]):
        heard = bisect_left(answers, two) - bisect_right(answers, one)
        if two - one > LATE * usual and heard < ANSWERS:
            late += two - one - usual
    return late / (times[last] - times[first])


def _cpus(story: Story) -> int:
    readies = [event for event in story.before if isinstance(event, DutReady)] + list(story.of(DutReady))
    return readies[-1].cpus if readies and readies[-1].kind == "virtual" else 0


def _had_its_way(story: Story, begin: float, end: float, busy: float) -> bool:
    """Whether the host is on record as having run the DUT for as long as it was ``busy``, CPU seconds per second."""
    known = [(one.at, one.ran) for one in story.of(ClockMapped) if one.at is not None and one.ran is not None]
    before = [one for one in known if one[0] <= begin] or known[:1]
    after = [one for one in known if one[0] >= end] or known[-1:]
    if not before or after[0][0] <= before[-1][0]:
        return False
    return (after[0][1] - before[-1][1]) / (after[0][0] - before[-1][0]) >= max(busy, BUSY)


BUSY = 0.7
"""CPU seconds per second from which on an emulated DUT was certainly run: at least one of its processors was busy."""


def ran(story: Story, span: Span) -> bool:
    """Whether the host is on record as having run the DUT at full speed around ``span``: what it did then, or did not
    do, was its own doing. False if that is not known."""
    rate = _rate(story, span)
    return rate is not None and rate >= BUSY


def _rate(story: Story, span: Span) -> float | None:
    """CPU seconds per second that an emulated DUT had from its host around ``span``; ``None`` if not known."""
    known = sorted((one.controller, one.at or 0.0, one.ran) for one in story.of(ClockMapped) if one.ran is not None)
    before = [one for one in known if one[1] <= span.begin]
    after = [one for one in known if one[1] >= span.end]
    if not before or not after:
        return None
    (begin, _, used), (end, _, used_then) = before[-1], after[0]
    if end <= begin or used_then is None or used is None:
        return None
    return (used_then - used) / (end - begin)
