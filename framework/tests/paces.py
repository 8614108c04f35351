"""Stories for the check ``kept_pace``: its old and its default limits, and paces of one disk."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from stories import RATE, RIG, SURVIVORS, Bench, Pace

from plugpull.checks import Check, Judgement, kept_pace
from plugpull.history import events as ev
from plugpull.history.story import Story
from plugpull.judging.judge import judge_story
from plugpull.judging.results import ScenarioResult

OLD = kept_pace(SURVIVORS, max_stall=2.0, min_ratio=0.7, recover_within=5.0)
"""What histories ask that were recorded before limits had defaults."""
NEW = kept_pace(SURVIVORS)
BOTH = pytest.mark.parametrize("check", [OLD, NEW], ids=["old limits", "default limits"])
STOPPED = 24.0


def only(disk: str, rate: Callable[[float], float]) -> Pace:
    """The pace of one disk as a share of what it should be, over time; the others are steady."""
    return lambda name, at: RATE * (rate(at) if name == disk else 1.0)


def between(begin: float, end: float, share: float, otherwise: float = 1.0) -> Callable[[float], float]:
    return lambda at: share if begin <= at < end else otherwise


def verdict(bench: Bench, check: Check = NEW) -> ScenarioResult:
    bench.checks = (check,)
    return judge_story(bench.story())


def with_rates(bench: Bench, rate: int, kind: str = "virtual", **load: Any) -> Judgement:
    """Judged on a rig whose disks declare a rate."""
    bench.replace(ev.LoadBegun, **({"argv": ("fio", "--time_based")} | load))
    story = bench.story()
    rig = RIG | {"dut": {"kind": kind}, "disk": [disk | {"rate": rate} for disk in RIG["disk"]]}
    return NEW.judge(Story(story.begun, story.events, rig=rig))


def resampled(bench: Bench, change: Callable[[ev.Sampled], ev.Sampled]) -> Bench:
    """The bench with each of its samples changed."""
    made = bench.samples
    bench.samples = lambda: [change(one) if isinstance(one, ev.Sampled) else one for one in made()]  # type: ignore[method-assign]
    return bench


def without_samples(bench: Bench, disks: tuple[str, ...], last: float) -> Bench:
    knames = {event.kname for event in bench.events if isinstance(event, ev.DiskAttached) and event.disk in disks}

    def fewer(one: ev.Sampled) -> ev.Sampled:
        late = (one.at or 0) > last
        return ev.Sampled(at=one.at, disks={k: v for k, v in one.disks.items() if not late or k not in knames})

    return resampled(bench, fewer)


def add_cpu(bench: Bench, busy: float) -> None:
    def used(one: ev.Sampled) -> ev.Sampled:
        total = round((one.at or 0) * 200)
        return ev.Sampled(at=one.at, disks=one.disks, cpu=(round(total * busy), total))

    resampled(bench, used)
