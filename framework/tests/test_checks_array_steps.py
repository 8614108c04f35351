"""A step on an array that is not on record is a doubt, never a PASS and never a finding."""

from __future__ import annotations

import pytest
from array_stories import ARRAY, MEMBERS, NOTICED, READDED, STOPPED, act, mirror, state
from msgspec.structs import replace
from stories import VICTIM, Bench, healthy

from plugpull.checks import array_survived
from plugpull.checks.raid.array_doubts import array_doubts
from plugpull.history import events as ev

REMOVED, ERASED = READDED - 0.3, STOPPED + 1.0
ACTIONS: tuple[ev.ArrayAction, ...] = ("make", "remove_gone", "readd", "check", "stop", "erase")


def whole(*, numbered: bool = True) -> Bench:
    """A mirror that loses a member and gets it back, with each step that the bench takes."""
    bench = healthy()
    mirror(bench)
    without = state(REMOVED, degraded=1)
    bench.add(
        act(9.0, "make", *MEMBERS),
        act(REMOVED, "remove_gone"),
        act(ERASED, "erase", *MEMBERS),
        replace(without, members={disk: one for disk, one in without.members.items() if disk != VICTIM}),
    )
    acts = sorted((one for one in bench.events if isinstance(one, ev.ArrayActed)), key=lambda one: one.at or 0.0)
    assert tuple(one.action for one in acts) == ACTIONS
    for number, one in enumerate(acts if numbered else (), 1):
        bench.events[bench.events.index(one)] = replace(one, number=number)
    return bench


def doubts(bench: Bench) -> list[str]:
    return list(array_doubts(bench.story()))


def without(bench: Bench, action: str) -> Bench:
    bench.drop(ev.ArrayActed, keep=lambda event: event.action != action)
    return bench


@pytest.mark.parametrize("numbered", [True, False])
def test_all_steps_on_record_are_no_doubt(numbered: bool) -> None:
    assert doubts(whole(numbered=numbered)) == []


@pytest.mark.parametrize("action", ACTIONS[1:-1])
def test_a_numbered_step_that_is_missing_is_a_doubt(action: str) -> None:
    assert any("is on record with the numbers" in one for one in doubts(without(whole(), action)))


def test_a_step_that_is_on_record_twice_is_a_doubt() -> None:
    bench = whole()
    bench.add(replace(act(READDED + 0.01, "readd", VICTIM), number=3))
    assert any("with the numbers 1, 2, 3, 3, 4, 5, 6" in one for one in doubts(bench))


@pytest.mark.parametrize("action", ["remove_gone", "erase", "check", "stop"])
def test_a_step_that_failed_and_was_not_taken_again_is_a_doubt(action: str) -> None:
    bench = whole()
    failed = next(one for one in bench.events if isinstance(one, ev.ArrayActed) and one.action == action)
    bench.events[bench.events.index(failed)] = replace(failed, ok=False, detail="mdadm: Device or resource busy")
    said = [one for one in doubts(bench) if "failed" in one]
    assert said == [f"the last {action} of {ARRAY} failed: mdadm: Device or resource busy"]
    bench.add(replace(failed, at=(failed.at or 0.0) + 0.2, number=0))
    assert not [one for one in doubts(bench) if "failed" in one]


UNNUMBERED: dict[ev.ArrayAction, str] = {
    "make": f"how {ARRAY} was made is not on record",
    "remove_gone": f"{VICTIM} was put back into {ARRAY} at {READDED:.2f} s, and that the missing members had been "
    "removed is not on record",
    "readd": f"{VICTIM} was put into {ARRAY} by {READDED:.2f} s, and by what is not on record",
    "stop": f"{ARRAY} was gone at {STOPPED:.2f} s, although nobody had stopped it",
    "erase": f"that the superblocks of {ARRAY} were erased is not on record",
}


@pytest.mark.parametrize(("action", "why"), UNNUMBERED.items())
def test_what_the_array_shows_of_a_missing_step_is_a_doubt(action: ev.ArrayAction, why: str) -> None:
    assert why in doubts(without(whole(numbered=False), action))


def test_a_member_that_nobody_removed_is_a_doubt() -> None:
    bench = whole(numbered=False)
    bench.replace(ev.ArrayActed, lambda event: event.action == "readd", action="add")
    without(bench, "remove_gone")
    assert f"{VICTIM} was removed from {ARRAY} by {REMOVED:.2f} s, and by what is not on record" in doubts(bench)


def test_udev_of_a_real_dut_may_remove_and_add_members() -> None:
    bench = without(whole(numbered=False), "remove_gone")
    bench.replace(ev.ArrayActed, lambda event: event.action == "readd", action="add")
    bench.events = [replace(one, kind="ssh") if isinstance(one, ev.DutReady) else one for one in bench.events]
    assert not any("by what is not on record" in one for one in doubts(bench))


def test_a_step_whose_answer_was_read_late_explains_a_state() -> None:
    bench = whole(numbered=False)
    bench.replace(ev.ArrayActed, lambda event: event.action == "readd", at=READDED + 3.0)
    bench.replace(ev.ArrayActed, lambda event: event.action == "remove_gone", at=READDED + 2.9, seconds=0.1)
    assert not any("by what is not on record" in one for one in doubts(bench))


def test_superblocks_may_be_left_where_the_scenario_was_stopped() -> None:
    bench = without(whole(), "erase")
    bench.add(ev.ScenarioError(at=STOPPED + 0.1, fault="rig", summary="stopped"))
    assert doubts(bench) == []


def test_an_array_whose_stop_is_missing_from_the_record_is_not_accused_of_being_inactive() -> None:
    bench = whole(numbered=False)
    bench.add(state(STOPPED - 0.1, word="inactive"))
    without(bench, "stop")
    assert bench.judge(array_survived(ARRAY)).findings == ()


def test_an_array_that_is_inactive_in_the_middle_is_accused() -> None:
    bench = whole()
    bench.add(state(NOTICED - 3.0, word="inactive"))
    assert any("is inactive" in one.summary for one in bench.judge(array_survived(ARRAY)).findings)


OLDER = "not possible; its superblock is of event 17, bits of the bitmap were cleared at event 18"


def refused(*, added: bool) -> Bench:
    """md does not take the member back, because it missed an event."""
    bench = whole(numbered=False)
    bench.replace(ev.ArrayActed, lambda event: event.action == "readd", ok=False, detail=OLDER)
    if added:
        bench.add(act(READDED + 0.01, "add", VICTIM))
    return bench


def test_a_disk_that_is_added_since_md_did_not_take_it_back_is_no_doubt() -> None:
    assert doubts(refused(added=True)) == []
    assert refused(added=True).judge(array_survived(ARRAY)).findings == ()


def test_a_disk_of_which_it_is_not_on_record_that_it_was_added_is_a_doubt() -> None:
    assert any("that it was added as a new member is not on record" in one for one in doubts(refused(added=False)))


def test_a_step_on_an_array_that_was_stopped_and_not_assembled_is_a_doubt() -> None:
    bench = whole(numbered=False)
    bench.add(act(READDED - 2.0, "stop"))
    assert any("that it was assembled again is not on record" in one for one in doubts(bench))
    bench.add(act(READDED - 1.5, "assemble", *MEMBERS))
    assert not any("that it was assembled again is not on record" in one for one in doubts(bench))


def test_each_member_that_appears_was_put_in_by_a_step_of_its_own() -> None:
    bench = whole(numbered=False)
    bench.replace(ev.ArrayActed, lambda event: event.action == "readd", disks=(MEMBERS[1],))
    assert f"{VICTIM} was put into {ARRAY} by {READDED:.2f} s, and by what is not on record" in doubts(bench)
