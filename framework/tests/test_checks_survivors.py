"""A rig on which nobody survives the cuts is judged by what it can be judged by."""

from __future__ import annotations

from pathlib import Path

import pytest
from desks import desk

from plugpull.checks import Check, data_intact, encode_check, kept_pace, no_errors, removed, undisturbed
from plugpull.checks.base import check_name
from plugpull.checks.survivors.survivors import that_apply
from plugpull.draw import Draw
from plugpull.history import events as ev
from plugpull.scenario import ScenarioRig
from plugpull.streams import VICTIMS

STILL = ev.DiskStalled(
    at=1.0, disk="two", until=2.0, spans=((1.0, 2.0),), timeout=2, given_up=1, disk_state="", host_state="", worked=True
)
RESET = ev.DiskRecovered(at=1.0, disk="two", until=2.0, resets=3)


def cut_of(*victims: str) -> ev.CutArmed:
    return ev.CutArmed(at=1.0, cut=1, point="cable", mechanism="data", trigger="now", victims=victims)


def names(checks: tuple[Check, ...], scratch: tuple[str, ...], *events: ev.Event) -> list[str]:
    return [check_name(check) for check in that_apply(checks, scratch, events)[0]]


def test_a_rig_with_one_disk_is_not_asked_about_survivors() -> None:
    asked = (removed("one"), *undisturbed(()), data_intact(()))
    expected = ["removed", "kernel_clean", "nothing_left", "nothing_stuck"]
    assert names(asked, ("one",), cut_of("one")) == expected
    why = that_apply(asked, ("one",), [cut_of("one")])[1]
    assert why == "no scratch disk of this rig survives, so this is not judged: kept_pace, no_errors, data_intact"


@pytest.mark.parametrize("event", [STILL, RESET, cut_of("two")])
def test_a_disk_that_something_else_was_done_to_is_no_survivor(event: ev.Event) -> None:
    assert names((kept_pace(()), removed("one")), ("one", "two"), cut_of("one"), event) == ["removed"]


def test_a_check_that_forgets_the_survivors_is_judged() -> None:
    asked = (removed("one"), kept_pace(()), no_errors(()))
    assert that_apply(asked, ("one", "two"), [cut_of("one")]) == (asked, "")
    assert that_apply(asked, ("one",), []) == (asked, "")


def test_other_checks_about_nobody_are_judged() -> None:
    assert names((removed(()), data_intact(), kept_pace("one")), ("one",), cut_of("one")) == [
        "removed",
        "data_intact",
        "kept_pace",
    ]


def test_a_scenario_records_what_it_leaves_out(tmp_path: Path) -> None:
    with desk(tmp_path) as on:
        rig = ScenarioRig(on.context, Draw(on.context.streams.of(VICTIMS), "test"))
        on.recorder.record(cut_of(*(disk.name for disk in rig.disks)))
        rig.judge(removed("disk1"), kept_pace(()))
        (judged,) = on.recorded(ev.Judged)
        (note,) = on.recorded(ev.Note)
        assert judged.checks == (encode_check(removed("disk1")),)
        assert note.text.endswith("this is not judged: kept_pace")
        assert rig.asked == 1
