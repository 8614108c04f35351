"""Records that lack one half of what belongs together: begun and ended, planned and done, shortened and restored."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from stories import SETTLED, STOPPED, SURVIVORS, VICTIM, Bench, healthy
from test_checks_recovered import with_traces

from plugpull.checks.record.counterparts import missing_counterparts
from plugpull.checks.record.on_record import on_record
from plugpull.history import events as ev

DISK = SURVIVORS[0]


def doubts(bench: Bench) -> list[str]:
    found = list(missing_counterparts(bench.story()))
    assert set(found) <= set(bench.judge(on_record()).unknowns)
    return found


def measured(count: int = 3) -> Bench:
    """Measurements in the middle of the healthy story."""
    bench = healthy()
    for number in range(1, count + 1):
        at = SETTLED + number
        bench.add(ev.Phase(at=at, name="measure", text=f"{number} of {count}"))
        bench.add(
            ev.Measured(
                at=at + 0.9,
                begin=at,
                disks=(DISK,),
                mode="write",
                block=65536,
                depth=4,
                number=number,
                planned=count,
                repeat=1,
                repeats=1,
            )
        )
    return bench


def tasks(*numbers: int) -> Bench:
    """Tasks of studies, with these numbers."""
    bench = healthy()
    for place, number in enumerate(numbers):
        at = SETTLED + place
        known: dict[str, Any] = {"planned": 2, "repeat": 1, "repeats": 2}
        bench.add(ev.Phase(at=at, name="measure"))
        bench.add(
            ev.FioRan(
                at=at + 0.9, begin=at, task="t", disks=(DISK,), mode="read", block=512, depth=1, number=number, **known
            )
        )
    return bench


def copied() -> Bench:
    """The victim was copied onto a survivor, before its load."""
    bench = healthy()
    for disk, mode in ((VICTIM, "read"), (DISK, "write")):
        known: dict[str, Any] = {"mode": mode, "block": 122880, "depth": 1, "span": 1 << 20, "argv": ("copy",)}
        bench.add(ev.LoadBegun(at=10.9, disk=disk, job="copy", **known))
        bench.add(ev.LoadEnded(at=10.95, disk=disk, job="copy", asked=False, exit_status=0))
    return bench


@pytest.mark.parametrize("bench", [healthy, measured, copied, with_traces, lambda: tasks(1, 2, 3, 1, 2, 1)])
def test_nothing_is_missing(bench: Callable[[], Bench]) -> None:
    assert doubts(bench()) == []


@pytest.mark.parametrize("disk", [VICTIM, DISK])
def test_a_load_that_ended_was_begun(disk: str) -> None:
    bench = healthy()
    bench.drop(ev.LoadBegun, keep=lambda event: event.disk != disk)
    assert doubts(bench) == [f"how the load load-{disk} on {disk} was begun is not on record"]


def test_a_load_that_settled_was_begun() -> None:
    bench = healthy()
    for kind in (ev.LoadBegun, ev.LoadEnded):
        bench.drop(kind, keep=lambda event: event.disk != DISK)
    assert doubts(bench) == [f"the load on {DISK} settled, and how it was begun is not on record"]


@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_measurement_that_was_begun_was_made(number: int) -> None:
    bench = measured()
    bench.drop(ev.Measured, keep=lambda event: event.number != number)
    assert doubts(bench) == ["3 measurements were begun, and 2 are on record"]
    bench.drop(ev.Phase)
    assert len(doubts(bench)) == (number < 3), "the last one leaves no hole in the numbers"


@pytest.mark.parametrize(("numbers", "wanted"), [((1, 3), "3 follows number 1"), ((2, 3), "2 follows number 0")])
def test_tasks_are_numbered(numbers: tuple[int, ...], wanted: str) -> None:
    assert doubts(tasks(*numbers)) == [f"measurement {wanted}"]


def test_a_copy_was_compared() -> None:
    bench = copied()
    bench.drop(ev.Verified, keep=lambda event: event.disk != DISK)
    assert doubts(bench) == [f"how the copy on {DISK} compares with its source is not on record"]


@pytest.mark.parametrize(("which", "word"), [(0, "shortened before it stood"), (1, "restored after it had stood")])
def test_the_timeout_of_a_disk_that_stood_still_was_changed_twice(which: int, word: str) -> None:
    bench = with_traces()
    changes = [event for event in bench.events if isinstance(event, ev.TimersSet) and event.moment == "stalled"]
    bench.events.remove(changes[which])
    (doubt,) = doubts(bench)
    assert f"that the timeout of {DISK} was {word} still is not on record" == doubt


def test_a_disk_that_left_has_no_timeout_to_be_restored() -> None:
    bench = with_traces()
    changes = [event for event in bench.events if isinstance(event, ev.TimersSet) and event.moment == "stalled"]
    bench.events.remove(changes[1])
    bench.detach(DISK, STOPPED)
    assert doubts(bench) == []


def test_a_scenario_that_stopped_did_not_get_that_far() -> None:
    bench = measured()
    bench.drop(ev.Measured, keep=lambda event: event.number < 3)
    bench.add(ev.ScenarioError(at=SETTLED + 3.5, fault="rig", summary="the agent did not answer"))
    assert doubts(bench) == []
