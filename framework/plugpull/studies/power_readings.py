"""The readings of one power meter: what they say about a span of time, and whether they can be believed."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from statistics import median

from plugpull.history.events import MeterOpened, PowerSampled
from plugpull.history.story import Story

FAST = 10.0
"""Readings per second at least that can show the peak of a disk that starts."""
LATE = 1.15
"""Of that: the interval between two readings may be longer by this factor."""
LEAST = 2
"""Readings of a span at least."""
WHOLE = 0.5
"""The share of a span that the readings have to cover, and of them that have to have a value."""
COUNTED = 60.0
"""Seconds over which the meter's own counter of energy is compared with its watts."""
AGREE = 0.15
"""The share by which the two may differ. A plug's watts are rounded, and its counter is updated once per minute."""
SHORTEST_RANGE = 1e-9


@dataclass(frozen=True)
class WattSpan:
    """The watts of a span: ``mean`` over time, and the ``highest`` reading. ``reason`` says why there are none."""

    mean: float = 0.0
    highest: float = 0.0
    count: int = 0
    reason: str = ""


@dataclass(frozen=True)
class MeterRecord:
    """A meter, and all its readings in order of time."""

    meter: MeterOpened
    readings: tuple[PowerSampled, ...]

    @cached_property
    def times(self) -> list[float]:
        return [one.at or 0.0 for one in self.readings]

    @property
    def name(self) -> str:
        return self.meter.meter

    def within(self, begin: float, end: float) -> Sequence[PowerSampled]:
        """The readings whose values cannot be older than this span."""
        found = self.readings[bisect_left(self.times, begin) : bisect_right(self.times, end)]
        return [one for one in found if (one.at or 0.0) - one.uncertainty >= begin]

    def over(self, begin: float, end: float) -> WattSpan:
        """The watts from ``begin`` to ``end``, DUT seconds."""
        asked = self.within(begin, end)
        good = [(one.at or 0.0, one.watts) for one in asked if one.watts is not None]
        if not asked:
            return WattSpan(reason="it was not read then")
        if len(good) < LEAST or len(good) < WHOLE * len(asked):
            why = next((one.why for one in asked if one.watts is None and one.why), "too few readings")
            return WattSpan(reason=f"{len(good)} of {len(asked)} readings have a value ({why})")
        if good[-1][0] - good[0][0] < WHOLE * (end - begin):
            return WattSpan(reason=f"its readings cover only {good[-1][0] - good[0][0]:.1f} s of {end - begin:.1f} s")
        return WattSpan(_mean(good), max(watts for _, watts in good), len(good))

    def contradiction(self) -> str:
        """Why its watts cannot be right: they are negative, or its own counter of energy says something else. Empty if
        they agree."""
        lowest = min((one.watts for one in self.readings if one.watts is not None), default=0.0)
        if lowest < 0:
            return f"it reads {lowest:.3g} W, and disks give no power back"
        counted = [(one.at or 0.0, one.joules) for one in self.readings if one.joules is not None]
        # Only where the counter has just changed is it up to date.
        changed = [two for one, two in pairwise(counted) if two[1] != one[1]]
        if len(changed) < 2 or changed[-1][0] - changed[0][0] < COUNTED:
            return ""
        (begin, first), (end, last) = changed[0], changed[-1]
        if last < first:
            return "its counter of energy went back"
        counter, span = (last - first) / (end - begin), self.over(begin, end)
        # A counter that counts in steps is wrong by up to one of them.
        step = min(abs(two[1] - one[1]) for one, two in pairwise(changed)) / (end - begin)
        if span.reason or abs(counter - span.mean) <= max(AGREE * span.mean, self.meter.resolution) + step:
            return ""
        return f"its readings are {span.mean:.3g} W on average, and its own counter of energy says {counter:.3g} W"

    def fast(self, begin: float, end: float) -> bool:
        """Whether it was read often enough here to show the peak of a disk that starts."""
        times = [one.at or 0.0 for one in self.within(begin, end) if one.watts is not None]
        steps = [two - one for one, two in pairwise(times)]
        return len(steps) >= LEAST and median(steps) <= LATE / FAST


def meter_records(story: Story, disks: Sequence[str]) -> tuple[MeterRecord, ...]:
    """The meters that were read with at least one of these disks behind them, by name."""
    opened: dict[str, MeterOpened] = {}
    for event in story.of(MeterOpened):
        opened.setdefault(event.meter, event)
    readings = sorted(story.of(PowerSampled), key=lambda one: one.at or 0.0)
    return tuple(
        MeterRecord(meter, tuple(one for one in readings if one.meter == name))
        for name, meter in opened.items()
        if set(meter.disks) & set(disks)
    )


def _mean(good: Sequence[tuple[float, float]]) -> float:
    """The mean over time: each reading counts for the time to the next ones."""
    spans = [(two[0] - one[0], (one[1] + two[1]) / 2) for one, two in pairwise(good)]
    total = sum(seconds for seconds, _ in spans)
    if total < SHORTEST_RANGE:
        return sum(watts for _, watts in good) / len(good)
    return sum(seconds * watts for seconds, watts in spans) / total
