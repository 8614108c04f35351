"""Faults as data: written and read back, the laws of composing them, and what they mean for the disks of a rig.

What is said here of all faults is said of those on paper; ``test_faults_injected.py`` says it of the bench.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from fault_strategies import faults, timed, triggers
from hypothesis import given, settings
from hypothesis import strategies as st
from stories import BACK, CUT, GONE, RESTORED, Bench, healthy

from plugpull.checks import Check, removed, returned
from plugpull.checks.record.cuts_made import cuts_made
from plugpull.errors import UsageError
from plugpull.faults import after, bounce, cut, held, in_sequence, judged_by, kernel_says, pause, repeated, together
from plugpull.faults.bouncing import Bounce
from plugpull.faults.codec import decode, encode
from plugpull.faults.compose import CutFault, Fault
from plugpull.faults.expected import ExpectedOutcome, expected, points_cut, rehearse, whole
from plugpull.faults.script import MovedAway, Opening, Script
from plugpull.faults.triggers import Now, Trigger
from plugpull.history import events as ev
from plugpull.rig.load import load_rig

QUICK = load_rig(Path(__file__).parents[2] / "rigs/quick.toml")
POINTS = ("disk1.cable", "disk2.cable", "disk3.power", "hub1.cable")
SECONDS = (0.0, 0.5, 1.0, 2.0)
LAW = settings(deadline=None)
"""A busy machine may take a moment over an example."""
ANY = faults(POINTS, timed(SECONDS), SECONDS)

# --- data and back --------------------------------------------------------------------------------------------


@LAW
@given(faults(POINTS, triggers(("disk1", "disk2")), permanent=True))
def test_a_fault_is_read_back_from_its_data(fault: Fault) -> None:
    event = ev.FaultInjected(at=1.0, number=1, fault=encode(fault))
    line = msgspec.json.decode(msgspec.json.encode(event), type=ev.FaultInjected)
    again = decode(line.fault, Fault)
    assert again == fault
    assert hash(again) == hash(fault)


@LAW
@given(triggers(("disk1",)))
def test_a_trigger_is_read_back_from_its_data(trigger: Trigger) -> None:
    again = decode(encode(trigger), Trigger)
    assert again == trigger
    assert again.text() == trigger.text()


def test_the_data_is_what_a_person_would_write() -> None:
    fault = held(cut("disk1.cable", when=after(2)), 0.5)
    assert encode(fault) == {
        "kind": "held",
        "fault": {
            "kind": "cut",
            "points": ["disk1.cable"],
            "when": {"kind": "after", "seconds": 2},
            "permanent": False,
        },
        "seconds": 0.5,
    }
    assert decode({"kind": "cut", "points": ["disk1.cable"]}, Fault) == cut("disk1.cable")


@pytest.mark.parametrize(
    ("data", "error", "says"),
    [
        ({"kind": "flood"}, msgspec.ValidationError, "this version has no fault .*flood"),
        ({"kind": "held", "fault": {"kind": "after"}, "seconds": 1}, msgspec.ValidationError, r"at `\$\.fault`"),
        ({"kind": "cut", "points": 3}, msgspec.ValidationError, r"at `\$\.points`"),
        ("cut", msgspec.ValidationError, "no fault"),
        ({"kind": "cut", "points": []}, UsageError, "needs a point"),
        ({"kind": "pause", "until": {"kind": "after", "seconds": -1}}, UsageError, "after -1 s"),
    ],
)
def test_data_that_is_not_a_fault_is_refused(data: Any, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        decode(data, Fault)


@pytest.mark.parametrize(
    "make",
    [
        cut,
        lambda: bounce(gaps=(1,)),
        lambda: bounce("disk1.cable", gaps=()),
        lambda: bounce("disk1.cable", gaps=(1, 2)),
        lambda: bounce("disk1.cable", gaps=(-1,)),
        lambda: held(cut("disk1.cable"), -1),
        lambda: repeated(cut("disk1.cable"), 0),
        lambda: pause(-1),
    ],
)
def test_a_fault_that_cannot_be_made_is_refused_before_anything_is_done(make: Any) -> None:
    with pytest.raises(UsageError):
        make()


# --- laws -----------------------------------------------------------------------------------------------------

Outline = tuple[tuple[float, tuple[str, ...], tuple[str, ...]], ...]


def outline(fault: Fault) -> Outline:
    """When which points are opened and closed, from the injection to the healing."""
    return outline_of(whole(fault))


def outline_of(script: Script) -> Outline:
    return tuple(
        (
            round(step.at, 6),
            tuple(sorted(point for opening in step.off for point in opening.points)),
            tuple(sorted(point for opening in step.on for point in opening.points)),
        )
        for step in rehearse(script)
    )


@LAW
@given(ANY, ANY, ANY)
def test_a_sequence_is_associative(one: Fault, two: Fault, three: Fault) -> None:
    flat = outline(in_sequence(one, two, three))
    assert outline(in_sequence(in_sequence(one, two), three)) == flat
    assert outline(in_sequence(one, in_sequence(two, three))) == flat


@LAW
@given(ANY, ANY)
def test_together_is_commutative(one: Fault, two: Fault) -> None:
    assert outline(together(one, two)) == outline(together(two, one))


@LAW
@given(ANY, ANY, ANY)
def test_together_is_associative(one: Fault, two: Fault, three: Fault) -> None:
    flat = outline(together(one, two, three))
    assert outline(together(one, together(two, three))) == flat
    assert outline(together(together(one, two), three)) == flat


@LAW
@given(ANY)
def test_nothing_added_changes_nothing(fault: Fault) -> None:
    nothing = in_sequence()
    same = (in_sequence(fault), in_sequence(nothing, fault, nothing), together(fault), together(fault, nothing))
    for composed in (*same, repeated(fault, 1, gap=2)):
        assert outline(composed) == outline(fault)


@LAW
@given(ANY, st.sampled_from(SECONDS))
def test_repeating_is_a_sequence_with_pauses(fault: Fault, gap: float) -> None:
    expanded = in_sequence(fault, pause(gap), fault, pause(gap), fault)
    assert outline(repeated(fault, 3, gap)) == outline(expanded)


@LAW
@given(ANY)
def test_what_was_opened_is_closed_once_by_healing(fault: Fault) -> None:
    plan = rehearse(whole(fault))
    opened = [opening for step in plan for opening in step.off]
    closed = [opening for step in plan for opening in step.on]
    assert len(set(opened)) == len(opened)
    assert len(closed) == len(set(closed))
    assert set(closed) == set(opened)


@LAW
@given(ANY, st.sampled_from(SECONDS))
def test_what_is_held_needs_no_healing(fault: Fault, seconds: float) -> None:
    left: list[Opening | MovedAway] = []
    assert outline_of(held(fault, seconds).inject(left)) == outline(held(fault, seconds))
    assert left == []


def test_cuts_side_by_side_overlap() -> None:
    fault = together(held(cut("disk1.cable"), 2), in_sequence(pause(1), held(cut("disk2.cable"), 3)))
    assert outline(fault) == (
        (0.0, ("disk1.cable",), ()),
        (1.0, ("disk2.cable",), ()),
        (2.0, (), ("disk1.cable",)),
        (4.0, (), ("disk2.cable",)),
    )


def test_cuts_with_equal_triggers_are_one_command() -> None:
    when = kernel_says("reset")
    assert outline(together(cut("disk1.cable", when=when), cut("disk2.cable", when=when))) == (
        (0.0, ("disk1.cable", "disk2.cable"), ()),
        (0.0, (), ("disk1.cable", "disk2.cable")),
    )


def test_a_bounce_opens_and_closes_with_its_gaps() -> None:
    assert outline(bounce("disk1.cable", gaps=(0.1, 0.2, 0.3), when=after(1))) == (
        (1.0, ("disk1.cable",), ()),
        (1.1, (), ("disk1.cable",)),
        (1.3, ("disk1.cable",), ()),
        (1.6, (), ("disk1.cable",)),
    )


# --- what they mean for a rig ---------------------------------------------------------------------------------


def test_a_hub_takes_its_disks_and_the_others_survive() -> None:
    assert expected(cut("hub1.cable"), QUICK) == ExpectedOutcome(
        removed=("disk2", "disk3"), returned=("disk2", "disk3"), gone=(), unpowered=(), survivors=("disk1",)
    )


def test_what_is_cut_for_good_does_not_return() -> None:
    both = [cut("hub1.cable"), cut("disk3.power", permanent=True)]
    assert expected(both, QUICK) == ExpectedOutcome(
        removed=("disk2", "disk3"), returned=("disk2",), gone=("disk3",), unpowered=("disk3",), survivors=("disk1",)
    )


def test_a_permanent_cut_is_not_healed_by_holding_it() -> None:
    assert expected(held(cut("disk1.cable", permanent=True), 1), QUICK).gone == ("disk1",)


@LAW
@given(st.lists(faults(POINTS, timed(SECONDS), SECONDS, permanent=True), max_size=3))
def test_every_disk_is_accounted_for_once(several: list[Fault]) -> None:
    due = expected(several, QUICK)
    assert sorted((*due.removed, *due.survivors)) == ["disk1", "disk2", "disk3"]
    assert sorted((*due.returned, *due.gone)) == sorted(due.removed)
    assert expected(in_sequence(*several), QUICK) == due == expected(together(*several), QUICK)


def names(checks: tuple[Check, ...]) -> dict[str, Any]:
    return {str(check.__struct_config__.tag): getattr(check, "disks", None) for check in checks}


def test_the_checks_follow_from_the_faults() -> None:
    assert names(judged_by(cut("hub1.cable"), QUICK)) == {
        "removed": ("disk2", "disk3"),
        "returned": ("disk2", "disk3"),
        "no_errors": ("disk1",),
        "kernel_clean": None,
        "nothing_left": None,
        "nothing_stuck": None,
    }
    assert "returned" not in names(judged_by(cut("disk1.cable", permanent=True), QUICK))
    assert "no_errors" not in names(judged_by(cut("hub1.cable", "disk1.cable"), QUICK))
    assert "removed" not in names(judged_by(pause(1), QUICK))


def test_a_point_that_the_rig_does_not_have_is_named() -> None:
    with pytest.raises(UsageError, match=r'no cut point "disk9\.cable"'):
        expected(cut("disk9.cable"), QUICK)


def test_points_are_listed_in_the_order_they_are_cut() -> None:
    assert points_cut(in_sequence(cut("hub1.cable"), bounce("disk1.cable", "hub1.cable", gaps=(1,)))) == (
        "hub1.cable",
        "disk1.cable",
    )


# --- a bounce in a history ------------------------------------------------------------------------------------


def bounced() -> Bench:
    """The healthy story, with a contact that closes and opens again shortly after it was cut."""
    bench = healthy()
    bench.arm(14.9, cut=2)
    bench.replace(ev.CutArmed, group=1)
    bench.drop(ev.Edge)
    for number, (off, on) in enumerate(((CUT, CUT + 0.04), (CUT + 0.1, RESTORED)), 1):
        bench.switch("off", off, cut=number)
        bench.switch("on", on, cut=number)
    return bench


def test_a_bounce_is_one_cut_to_its_disk() -> None:
    for one in bounced().story().cut_records:
        times = one.times("disk1")
        assert (times.removed_at, times.returned_at) == (GONE, BACK)
        assert one.off.commanded_at == CUT
        assert one.restored_at == RESTORED
    for check in (removed("disk1"), returned("disk1", within=1.5), cuts_made()):
        judgement = bounced().judge(check)
        assert (judgement.findings, judgement.unknowns) == ((), ()), check


def test_a_disk_that_is_slow_to_return_from_a_bounce_is_found() -> None:
    """Counted from the last closing: back 1.2 s after that, and 3.2 s after the first."""
    judgement = bounced().judge(returned("disk1", within=1.1))
    assert {finding.subject for finding in judgement.findings} == {"disk1"}


def test_a_disk_that_does_not_return_from_a_bounce_is_found() -> None:
    bench = bounced()
    bench.drop(ev.DiskAttached, keep=lambda event: event.disk != "disk1" or event.at < CUT)
    assert {finding.subject for finding in bench.judge(returned("disk1", within=2)).findings} == {"disk1"}


def test_defaults_are_at_once_and_not_for_good() -> None:
    assert cut("disk1.cable") == CutFault(("disk1.cable",), Now(), False)
    assert bounce("disk1.cable", gaps=(1,)) == Bounce(("disk1.cable",), (1,), Now())
