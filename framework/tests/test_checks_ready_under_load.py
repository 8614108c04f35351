"""The check ``ready_under_load``: a load on other disks does not delay a disk's return."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from stories import CUT, GONE, RESTORED, SURVIVORS, VICTIM, Bench, healthy

from plugpull.checks import ready_under_load, removed
from plugpull.history import events as ev


def cut_often(idle: Iterable[float], busy: Iterable[float]) -> Bench:
    """The victim is cut again and again: seconds that each return took, first while the others are busy."""
    busy, idle = list(busy), list(idle)
    bench = healthy(until=30.0 + 5 * (len(busy) + len(idle)))
    bench.drop(ev.DiskAttached, lambda event: event.disk != VICTIM or event.at < CUT)
    bench._attached[VICTIM].pop()
    bench.attach(VICTIM, RESTORED + busy[0])
    at = 28.0
    for disk in SURVIVORS:
        bench.load(disk, at - 1, at + 5.0 * (len(busy) - 1))
    for number, took in enumerate([*busy[1:], *idle], start=2):
        bench.arm(at - 0.1, cut=number)
        bench.switch("off", at, cut=number)
        bench.detach(VICTIM, at + 0.1)
        bench.switch("on", at + 1, cut=number)
        bench.attach(VICTIM, at + 1 + took)
        at += 5.0
    return bench


OFTEN = (1.0, 1.1, 1.2)


def test_ready_under_load_against_idle() -> None:
    judgement = cut_often(OFTEN, (1.2, 1.3, 1.1)).judge(ready_under_load(VICTIM))
    assert not judgement.findings
    assert not judgement.unknowns
    assert judgement.worst.startswith(
        "ready after 1.20 s under load, 1.10 s idle (limit 1.65 s, would have noticed 0.65 s"
    )
    assert (judgement.measured, judgement.limit, judgement.smallest) == pytest.approx((1.2, 1.65, 0.65), abs=0.01)


def test_a_doubling_under_load_is_a_finding() -> None:
    (finding,) = cut_often(OFTEN, (2.2, 2.3, 2.1)).judge(ready_under_load(VICTIM)).findings
    assert finding.summary == "disk1 was ready after 2.20 s under load, 1.10 s idle (limit 1.65 s)"
    assert not cut_often(OFTEN, (2.2, 1.2, 1.1)).judge(ready_under_load(VICTIM)).findings, "one slow return in three"
    assert not cut_often((0.4, 0.4, 0.4), (0.65, 0.65, 0.6)).judge(ready_under_load(VICTIM)).findings, (
        "0.25 s are chance"
    )


def test_ready_under_load_needs_three_of_each() -> None:
    judgement = cut_often(OFTEN, (1.1,)).judge(ready_under_load(VICTIM))
    assert judgement.unknowns == ("disk1 came back 3 idle and 1 under load, and 3 of each are needed to compare",)
    assert healthy().judge(ready_under_load(VICTIM)).unknowns == ("disk1 did not come back idle: nothing to compare",)


def test_a_factor_that_the_scenario_gives_takes_one_of_each() -> None:
    judgement = cut_often((1.1,), (1.21,)).judge(ready_under_load(VICTIM, factor=3, spare=1))
    assert not judgement.findings
    assert not judgement.unknowns
    assert cut_often((0.1,), (1.21,)).judge(ready_under_load(VICTIM, factor=3, spare=1)).findings


def test_several_disks_are_each_judged() -> None:
    judgement = healthy().judge(removed([VICTIM, *SURVIVORS]))
    assert len(judgement.unknowns) == 2
    assert GONE > CUT
