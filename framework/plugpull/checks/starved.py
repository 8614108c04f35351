"""Time in which the DUT was starved by its host. It does not count, and is not the DUT's fault.

The agent samples every disk at a steady interval. An interval of more than ``GAP`` times the median, or of the interval
that was set (``SamplingSet``), means that the agent did not run. On a virtual bench the usual cause is the host, which
gave the guest's CPUs no time. It counts as starvation only if nothing else was heard from the agent: if it answered an
exchange of clocks meanwhile, only its sampler was held up, which may be the DUT's fault. An emulated DUT also stands
still while it aborts a command of a disk that stands still on request (``DiskStalled``), and a processor that waits for
the one that does keeps its host busy.

Usually a host does not stop a guest but runs it more slowly. Then the guest loses timer interrupts, by which
``/proc/stat`` accounts for time: with all its CPU time the guest counts ``cpus`` x 100 jiffies per second, and on a
busy host half of that or less. ``granted`` is that share. A guest that loses ticks although the host ran it for as long
as it was busy is at fault itself: its interrupts were off.
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import islice
from operator import sub
from typing import NamedTuple

from plugpull.checks.stalls import stood_still
from plugpull.history.events import ClockMapped, DutReady, SamplingSet
from plugpull.history.medians import usual_of
from plugpull.history.story import Story
from plugpull.history.suspensions import suspensions
from plugpull.history.time_index import TimeIndex

GAP = 3.0
"""An interval between two samples this many times the median is a gap."""
FREEZE = 1.0
"""A gap of at least these seconds is the DUT's own fault if its host ran it meanwhile. 107 healthy scenarios on a busy
host had 37 such silent gaps, with at most 0.53 CPU seconds per second."""


class Span(NamedTuple):
    """DUT seconds from ``begin`` to ``end``."""

    begin: float
    end: float

    @property
    def length(self) -> float:
        return self.end - self.begin


def gaps(story: Story) -> tuple[Span, ...]:
    """All gaps between two samples of ``story``, of any cause."""
    return story.once(_gaps)


def _gaps(story: Story) -> tuple[Span, ...]:
    ordered = story.samples.ordered
    times = story.sample_times if ordered else sorted(story.sample_times)
    if len(times) < 3:
        return ()
    lengths = story.samples.steps if ordered else array("d", map(sub, islice(times, 1, None), times))
    # If the interval was changed on purpose, the shortest one is the first sieve.
    same = story.of(SamplingSet) or ordered
    longest = GAP * (story.sample_interval if same else usual_of(lengths))
    if max(lengths) <= longest:
        return ()
    found = (Span(times[i], times[i + 1]) for i, length in enumerate(lengths) if length > longest)
    if not story.of(SamplingSet):
        return tuple(found)
    return tuple(gap for gap in found if gap.length > GAP * story.interval_between(gap.begin, gap.end))


def starved(story: Story) -> tuple[Span, ...]:
    """The gaps in which nothing was heard from the DUT although its agent was not lost, and which it did not cause
    itself: a kernel that stops all CPUs keeps its host busy."""
    return story.once(_starved)


def _starved(story: Story) -> tuple[Span, ...]:
    answers = story.once(_answers)

    def silent(gap: Span) -> bool:
        return bisect_left(answers, gap.end) <= bisect_right(answers, gap.begin)

    def lost(gap: Span) -> bool:
        return any(one.begin < gap.end and (one.end is None or one.end > gap.begin) for one in story.silences)

    def froze(gap: Span) -> bool:
        return gap.length >= FREEZE and ran(story, gap) and not stood_still(story, gap.begin, gap.end)

    return tuple(gap for gap in gaps(story) if slept(story, gap) or (silent(gap) and not lost(gap) and not froze(gap)))


def _answers(story: Story) -> list[float]:
    """When the agent answered an exchange of clocks."""
    return sorted(event.at for event in story.of(ClockMapped) if event.at is not None)


def slept(story: Story, gap: Span) -> bool:
    """Whether the DUT was suspended on request in this gap."""
    return any(begin < gap.end and end > gap.begin for begin, end in suspensions(story))


def starved_within(story: Story, begin: float, end: float) -> float:
    """Seconds of [begin, end] in which the DUT was starved."""
    return _within(starved(story), begin, end)


def _within(spans: Sequence[Span], begin: float, end: float) -> float:
    """Seconds of [begin, end] that are in one of these spans, which are in order and do not overlap."""
    first, last = bisect_right(spans, begin, key=_end), bisect_left(spans, end, key=_begin)
    return sum(max(0.0, min(gap.end, end) - max(gap.begin, begin)) for gap in spans[first:last])


def _begin(span: Span) -> float:
    return span.begin


def _end(span: Span) -> float:
    return span.end


def awake(story: Story, begin: float, end: float) -> float:
    """The counted seconds of [begin, end]: without starved time, and less for time in which the host ran the DUT
    slowly.

    I/O waits for the guest and for the emulation of its devices in turn, so it waits twice: the granted share of CPU
    time is squared."""
    passed = max(0.0, end - begin)
    if passed == 0:
        return 0.0
    stood = _within(story.once(_frozen), begin, end)
    return stood + max(0.0, passed - stood - starved_within(story, begin, end)) * granted(story, begin, end) ** 2


FULLY = 0.85
"""CPU seconds per second around a gap which show that the DUT caused it. Around healthy gaps of a second there were at
most 0.7."""


def _frozen(story: Story) -> tuple[Span, ...]:
    """Gaps in which the host ran the DUT: they count in full."""
    gone = [gap for gap in gaps(story) if slept(story, gap) or stood_still(story, gap.begin, gap.end)]
    long = (gap for gap in gaps(story) if gap.length >= FREEZE and gap not in gone)
    return tuple(gap for gap in long if (_rate(story, gap) or 0.0) >= FULLY)


LEAST_GRANTED = 0.5
"""With less than this share of its CPU time, the speed of a DUT cannot be judged."""


def excused(story: Story, begin: float, end: float, within: float) -> bool:
    """Whether [begin, end] is longer than ``within`` seconds only because the host ran the DUT slowly. Gaps without any
    evidence are not an excuse but a reason for UNKNOWN."""
    had = granted(story, begin, end)
    return LEAST_GRANTED <= had < 1.0 and (end - begin) * had**2 <= within


HZ = 100
"""Jiffies of ``/proc/stat`` per second (USER_HZ; proc(5))."""
QUIET = 0.8
"""The share of its jiffies that an emulated DUT counts on a quiet host: 0.72 to 0.97 in 75 healthy scenarios."""


def granted(story: Story, begin: float, end: float) -> float:
    """The share of its CPU time that an emulated DUT got from its host around [begin, end]; 1 without a sign of less,
    and on real machines."""
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
    # If the agent's samples are on time, it had enough CPU time, however few ticks were counted.
    share = max(min(ticks, 1.0 - late), 1.0 - LATE_SHARE * late)
    if share >= 1.0 or _had_its_way(story, at1, at2, (busy2 - busy1) / HZ / (at2 - at1)):
        return 1.0
    return max(0.05, share)


LATE = 1.5
"""A sample is late after an interval of this many times the median: the agent did not run in time."""
ANSWERS = 2
"""So many exchanges of clocks between two samples show that the agent ran and samples are missing. There is one per
second."""
LATE_SHARE = 3.0
"""The ratio of time not granted to lateness is at most 3. In 1,820 windows of a second on a busy host, windows with 35
% of their ticks were late by 20 % (median), those with 55 % by 12 %, and those with 85 % were on time."""
AROUND = 0.5
"""Seconds before and after a span that are included, because a span may be shorter than two samples."""


def lateness(story: Story, begin: float, end: float) -> float:
    """The share of the time around [begin, end] by which samples were late. If clocks were compared meanwhile, samples
    are missing, not late."""
    times = story.sample_times
    if len(times) < 3:
        return 0.0
    first = max(0, bisect_right(times, begin - AROUND) - 1)
    last = min(len(times) - 1, bisect_left(times, end + AROUND))
    if last <= first or times[last] <= times[first]:
        return 0.0
    places, late = story.once(_late)
    inside = late[bisect_left(places, first) : bisect_left(places, last)]
    return sum(inside) / (times[last] - times[first])


def _late(story: Story) -> tuple[list[int], list[float]]:
    """The samples after which the next one was late: their places in the record, and by how many seconds. While the DUT
    was suspended on request, none was due."""
    times, answers = story.sample_times, story.once(_answers)
    longest = LATE * story.sample_interval
    lengths = map(sub, islice(times, 1, None), times)
    places, late = [], []
    for place in [place for place, length in enumerate(lengths) if length > longest]:
        one, two = times[place], times[place + 1]
        answered = bisect_left(answers, two) - bisect_right(answers, one)
        if answered < ANSWERS and not slept(story, Span(one, two)):
            places.append(place)
            late.append(max(0.0, two - one - story.interval_between(one, two)))
    return places, late


def _cpus(story: Story) -> int:
    readies = [event for event in story.before if isinstance(event, DutReady)] + list(story.of(DutReady))
    return readies[-1].cpus if readies and readies[-1].kind == "virtual" else 0


def _threads(story: Story) -> float:
    """How many threads of the host emulate the DUT's CPUs."""
    known = [event.threads for event in story.of(DutReady) if event.threads]
    return known[-1] if known else math.inf


def _runs(story: Story) -> tuple[list[tuple[float, float]], TimeIndex]:
    """(DUT time, CPU seconds that its host had given it by then), and those times."""
    known = [(one.at, one.ran) for one in story.of(ClockMapped) if one.at is not None and one.ran is not None]
    return known, TimeIndex([at for at, _ in known])


def _had_its_way(story: Story, begin: float, end: float, busy: float) -> bool:
    """Whether the host is on record as having run the DUT for as long as it was ``busy``, CPU seconds per second. More
    than one for each thread that emulates its CPUs cannot be had."""
    known, index = story.once(_runs)
    if not known:
        return False
    at1, used = known[max(0, index.last_until(begin))]
    at2, used_then = known[min(len(known) - 1, index.first_from(end))]
    return at2 > at1 and (used_then - used) / (at2 - at1) >= max(min(busy, _threads(story)), BUSY)


def host_rate(story: Story, begin: float, end: float) -> float | None:
    """The CPU seconds per second that the host gave an emulated DUT in [begin, end], all its processors together; None
    if that is not on record. Nothing in the DUT can have used more, whatever it counted itself: time in which the host
    ran something else counts there for the task that was interrupted."""
    known, _ = story.once(_runs)
    if len(known) < 2 or end <= begin or begin < known[0][0] or end > known[-1][0]:
        return None
    return (_used(known, end) - _used(known, begin)) / (end - begin)


def _used(known: Sequence[tuple[float, float]], at: float) -> float:
    """CPU seconds that the host had given by ``at``, evenly between two records."""
    after = max(1, bisect_left(known, (at,)))
    (at1, used1), (at2, used2) = known[after - 1], known[min(after, len(known) - 1)]
    return used1 if at2 <= at1 else used1 + (used2 - used1) * (at - at1) / (at2 - at1)


BUSY = 0.7
"""With these CPU seconds per second, the host certainly ran an emulated DUT: at least one processor was busy."""


def ran(story: Story, span: Span) -> bool:
    """Whether the host ran the DUT at full speed around ``span``, so that the DUT itself caused the gap. False if that
    is not known."""
    rate = _rate(story, span)
    return rate is not None and rate >= BUSY


def _runs_by_controller(story: Story) -> tuple[list[tuple[float, float, float]], TimeIndex]:
    """(controller's time, DUT time, CPU seconds that its host had given it by then), and the DUT times."""
    known = sorted((one.controller, one.at or 0.0, one.ran) for one in story.of(ClockMapped) if one.ran is not None)
    return known, TimeIndex([at for _, at, _ in known])


def _rate(story: Story, span: Span) -> float | None:
    """CPU seconds per second that an emulated DUT had from its host around ``span``; ``None`` if not known."""
    known, index = story.once(_runs_by_controller)
    before, after = index.last_until(span.begin), index.first_from(span.end)
    if before < 0 or after >= len(known):
        return None
    (begin, _, used), (end, _, used_then) = known[before], known[after]
    if end <= begin:
        return None
    return (used_then - used) / (end - begin)
