"""Limits for a rig file, from the values that healthy runs of the bench measured, disk by disk.

A limit is the worst value measured plus a margin. After n healthy values, the next one is the worst of all with a
probability of 1 / (n + 1), so few values need more margin: twice the worst value for 3 of them, 1.5 times for many. A
limit is never below the resolution of the samples.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from math import ceil, floor, sqrt

from plugpull.checks.base import Check, decode_check
from plugpull.checks.files.unmountable import Unmountable
from plugpull.checks.limits import NAMES
from plugpull.checks.starved import LEAST_GRANTED, awake, granted
from plugpull.checks.survivors.pace import KeptPace
from plugpull.checks.victims.discovered import Discovered
from plugpull.checks.victims.ended_with_error import EndedWithError
from plugpull.checks.victims.ready_under_load import ReadyUnderLoad
from plugpull.history.events import Judged
from plugpull.history.reader import Story

LONG = 3600.0
"""Seconds. A limit that is never exceeded, so that everything is measured."""
FEWEST = 3
"""The number of values that a suggested limit needs."""
LEAST = {"removed": 0.5, "returned": 1.0, "max_stall": 0.3, "all_stalls": 0.6, "recover_within": 1.0}
"""The lowest suggested limit on stalls, seconds: two samples, and a short disturbance of the bench."""
SHORTEST = 0.5
"""The lowest of the other suggested limits, seconds."""


@dataclass(frozen=True)
class Suggestion:
    """A limit of one disk: the ``worst`` of ``count`` values, and the ``limit`` that follows, both in seconds or, for
    ``min_ratio`` and ``ready_under_load``, a ratio. ``limit`` is ``None`` if there were too few."""

    name: str
    count: int
    worst: float
    limit: float | None

    @property
    def toml(self) -> str:
        """The limit as a line of a rig file: ``returned = "4.5 s"``."""
        if self.limit is None:
            return ""
        return f"{self.name} = {self.limit:g}" if self.name in RATIOS else f'{self.name} = "{self.limit:g} s"'


RATIOS = frozenset({"min_ratio", "ready_under_load"})


def measure(stories: Iterable[Story]) -> dict[str, dict[str, list[float]]]:
    """Every value in the stories that counts for a limit, by disk and by the name of the limit."""
    found: defaultdict[str, dict[str, list[float]]] = defaultdict(lambda: {name: [] for name in NAMES})
    for story in stories:
        times = story.sample_times
        if not times or granted(story, times[0], times[-1]) < LEAST_GRANTED:
            continue
        for disk, name, value in _values(story):
            found[disk][name].append(value)
    return dict(found)


def suggest(values: dict[str, list[float]]) -> tuple[Suggestion, ...]:
    """The limits of one disk, for each limit that has at least one value."""
    made = [_suggestion(name, values[name]) for name in NAMES if values.get(name)]
    return tuple(_ordered(made))


def _suggestion(name: str, values: list[float]) -> Suggestion:
    count = len(values)
    worst = min(values) if name == "min_ratio" else max(values)
    if count < FEWEST:
        return Suggestion(name, count, worst, None)
    margin = 1.5 + 0.5 * sqrt(FEWEST / count)
    if name == "min_ratio":
        loss = max(0.05, 1.0 - worst) * margin
        return Suggestion(name, count, worst, max(0.05, min(0.95, floor((1.0 - loss) * 20 + 1e-9) / 20)))
    if name == "ready_under_load":
        return Suggestion(name, count, worst, max(1.2, ceil((1.0 + (worst - 1.0) * margin) * 10 - 1e-9) / 10))
    return Suggestion(name, count, worst, max(LEAST.get(name, SHORTEST), _rounded_up(worst * margin)))


def _rounded_up(value: float) -> float:
    """Round to tenths of a second; from 2 s on, to half seconds."""
    step = 0.1 if value < 2 else 0.5
    return round(ceil(value / step - 1e-9) * step, 6)


def _ordered(made: list[Suggestion]) -> list[Suggestion]:
    """One stall is part of all of them, so that ``all_stalls`` is never less than ``max_stall``."""
    one = next((each.limit for each in made if each.name == "max_stall"), None)
    return [
        Suggestion(each.name, each.count, each.worst, max(each.limit, one))
        if each.name == "all_stalls" and each.limit is not None and one is not None
        else each
        for each in made
    ]


def _values(story: Story) -> Iterable[tuple[str, str, float]]:
    for cut in story.cut_records:
        for times in cut.disks:
            begin = cut.off.commanded_at
            if cut.executed and begin is not None and times.removed_at is not None:
                yield times.disk, "removed", awake(story, min(begin, times.removed_at), times.removed_at)
            if cut.restored_at is not None and times.returned_at is not None:
                since = min(cut.restored_at, times.returned_at)
                yield times.disk, "returned", awake(story, since, times.returned_at)
    for check in _asked(story):
        yield from _of_check(story, check)


def _asked(story: Story) -> Iterable[Check]:
    for judged in story.of(Judged):
        for data in judged.checks:
            try:
                yield decode_check(data)
            except ValueError:
                continue


def _of_check(story: Story, check: Check) -> Iterable[tuple[str, str, float]]:
    """The values that a check of the scenario measures if its limits allow everything."""
    if isinstance(check, KeptPace):
        yield from _pace(story, check)
    elif isinstance(check, ReadyUnderLoad):
        ratio = check.ratio(story)
        if ratio is not None:
            yield check.disk, "ready_under_load", ratio
    elif isinstance(check, EndedWithError | Unmountable | Discovered):
        name = {EndedWithError: "ended_with_error", Unmountable: "unmountable", Discovered: "discovered"}[type(check)]
        for disk in check.disks:
            measured = type(check)((disk,), LONG).judge(story).measured
            if measured is not None:
                yield disk, name, measured


def _pace(story: Story, check: KeptPace) -> Iterable[tuple[str, str, float]]:
    lax = KeptPace(check.disks, max_stall=LONG, min_ratio=check.min_ratio, recover_within=LONG, all_stalls=LONG)
    for survivor in lax.judge(story).survivors:
        values = {
            "max_stall": survivor.stall_s,
            "all_stalls": survivor.stalls_s,
            "min_ratio": survivor.final_ratio,
            "recover_within": survivor.recovery_s,
        }
        for name, value in values.items():
            # A scenario that allows one load more time says nothing about the other loads of the bench.
            if value is not None and (check.min_ratio is None or name not in RATIOS):
                yield survivor.disk, name, value
