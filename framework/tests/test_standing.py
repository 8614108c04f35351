"""What is judged for every scenario, whatever it asks for and however it ends."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest
from stories import BACK, CUT, GONE, RESTORED, RIG, SIZE, VICTIM, Bench, healthy, later

from plugpull.checks import kernel_clean, removed, returned
from plugpull.checks.base import check_name, encode_check
from plugpull.checks.standing import STANDING, standing_checks
from plugpull.history import events as ev
from plugpull.history.reader import Story
from plugpull.judging.judge import judge_story
from plugpull.judging.results import ScenarioResult, Verdict

OOPS = "BUG: kernel NULL pointer dereference, address: 0000000000000010"
STOP = ev.ScenarioError(at=18.0, fault="rig", summary="the agent did not answer 'fio'")
INTERRUPT = ev.ScenarioError(at=18.0, fault="interrupt", summary="interrupted: SIGINT")


def nothing_asked(bench: Bench) -> Bench:
    bench.checks = ()
    return bench


def judged(bench: Bench) -> ScenarioResult:
    return judge_story(nothing_asked(bench).story())


@pytest.mark.parametrize("stop", [STOP, INTERRUPT])
def test_a_finding_stands_beside_a_fault_of_the_bench(stop: ev.ScenarioError) -> None:
    bench = healthy()
    bench.add(stop, ev.KernelMessage(at=17.9, text=OOPS, level=1))
    result = judged(bench)
    assert result.verdict is Verdict.FAIL
    assert OOPS in result.sentence
    assert stop.summary in result.sentence
    assert stop.summary in result.unknowns


@pytest.mark.parametrize("stop", [STOP, INTERRUPT])
def test_a_scenario_that_stopped_with_nothing_wrong_on_record_is_unknown(stop: ev.ScenarioError) -> None:
    bench = healthy()
    bench.add(stop)
    assert judged(bench).verdict is Verdict.UNKNOWN


def never_back() -> Bench:
    bench = healthy(until=30.0)
    bench.drop(ev.DiskAttached, lambda event: event.at != BACK)
    del bench._attached[VICTIM][1:]
    return bench


def late() -> Bench:
    bench = healthy()
    bench.drop(ev.DiskDetached)
    bench.drop(ev.Uevent)
    bench._attached[VICTIM][0] = (*bench._attached[VICTIM][0][:1], CUT + 1.8, *bench._attached[VICTIM][0][2:])
    bench.add(ev.DiskDetached(at=CUT + 1.8, disk=VICTIM, kname="sdb", diskseq=1))
    return bench


@pytest.mark.parametrize(
    ("bench", "said"),
    [(never_back(), "did not come back within 5 s"), (late(), "was removed 1.79 s after disk1.cable was cut")],
)
def test_victims_are_judged_though_nobody_asked(bench: Bench, said: str) -> None:
    bench.add(STOP)
    result = judged(bench)
    assert result.verdict is Verdict.FAIL
    assert said in result.sentence


def test_victims_that_the_scenario_names_are_judged_as_it_asks() -> None:
    asked = [encode_check(removed(VICTIM, within=30.0)), encode_check(returned(VICTIM))]
    by_name = {check_name(check): check for check in standing_checks(asked)}
    assert by_name["removed"].besides == (VICTIM,)  # type: ignore[attr-defined]
    assert by_name["returned"].besides == (VICTIM,)  # type: ignore[attr-defined]
    assert "removed" not in {check_name(check) for check in standing_checks([encode_check(removed(None))])}


def test_what_the_scenario_asks_for_itself_is_judged_once() -> None:
    assert len({check_name(check) for check in STANDING}) == len(STANDING)
    for check in STANDING:
        assert check_name(check) not in {check_name(one) for one in standing_checks([encode_check(check)])}
    result = judge_story(healthy(checks=(kernel_clean(),)).story())
    assert [check.standing for check in result.checks if check.check == "kernel_clean"] == [False]


def test_every_standing_check_is_content_with_a_healthy_scenario() -> None:
    result = judge_story(healthy().story())
    assert result.verdict is Verdict.PASS
    assert {check.check for check in result.checks if check.standing} >= {
        "cuts_made",
        "coherent",
        "removed",
        "returned",
    }


# --- after the scenario, and between two of them ------------------------------------------------------------------


def test_what_the_kernel_says_after_the_scenario_is_held_against_it() -> None:
    story = healthy().story()
    after = (ev.KernelMessage(at=27.0, text=OOPS, level=1),)
    assert judge_story(replace(story, after=after)).verdict is Verdict.FAIL
    died = (ev.DutDied(at=27.0, headline="Kernel panic - not syncing: Fatal exception"),)
    assert "Fatal exception" in judge_story(replace(story, after=died)).sentence
    harmless = (ev.KernelMessage(at=27.0, text="usb 1-1.1: new high-speed USB device number 9 using xhci_hcd"),)
    assert judge_story(replace(story, after=harmless)).verdict is Verdict.PASS


def dut(**changes: str) -> Bench:
    bench = healthy()
    known = {"kernel": "6.12.1", "kind": "ssh", "how": "found", "boot_id": "aaaa"} | changes
    (ready,) = (event for event in bench.events if isinstance(event, ev.DutReady))
    bench.drop(ev.DutReady)
    bench.add(msgspec.structs.replace(ready, **known))
    return bench


def after(bench: Bench) -> Story:
    """The story of a bench 100 s after the others by the controller's clock."""
    story = bench.story()
    return Story(story.begun, tuple(later(event, 100.0) for event in story.events), rig=story.rig)


@pytest.mark.parametrize(
    ("before", "now", "verdict", "said"),
    [
        (dut(), dut(), Verdict.PASS, ""),
        (dut(), dut(boot_id="bbbb"), Verdict.FAIL, "the DUT restarted on its own"),
        (dut(), dut(kernel="6.13.0", boot_id="bbbb"), Verdict.UNKNOWN, "runs kernel 6.13.0, and ran 6.12.1"),
        (dut(kind="virtual"), dut(kind="virtual", boot_id="bbbb"), Verdict.UNKNOWN, "is of another boot"),
    ],
)
def test_the_dut_is_still_the_same(before: Bench, now: Bench, verdict: Verdict, said: str) -> None:
    result = judge_story(after(now), before.story())
    assert result.verdict is verdict
    assert said in result.sentence


def test_a_dut_that_died_and_was_started_again_is_not_accused_a_second_time() -> None:
    died = dut()
    died.add(ev.DutDied(at=20.0, headline="Kernel panic - not syncing: x"))
    assert judge_story(after(dut(boot_id="bbbb")), died.story()).verdict is Verdict.PASS


# --- what a failing bench explains --------------------------------------------------------------------------------


def stalled() -> Bench:
    bench = healthy()
    bench.pace = lambda disk, at: 0.0 if disk == "disk2" and 18.0 < at < 21.0 else 20e6
    return bench


def test_a_fault_of_the_bench_explains_what_took_long_and_nothing_else() -> None:
    assert judge_story(stalled().story()).verdict is Verdict.FAIL
    bench = stalled()
    bench.add(ev.RigFault(at=18.0, summary="the firmware of a disk was stopped for 3 s"))
    result = judge_story(bench.story())
    assert result.verdict is Verdict.UNKNOWN
    assert any("disk2 stood still" in why for why in result.unknowns)
    bench.add(ev.KernelMessage(at=19.0, text=OOPS, level=1))
    assert judge_story(bench.story()).verdict is Verdict.FAIL


def test_a_fault_that_names_a_disk_explains_what_that_disk_did() -> None:
    bench = never_back()
    bench.add(ev.RigFault(at=18.0, summary="the power supply of disk1 was switched off by hand"))
    assert judge_story(bench.story()).verdict is Verdict.UNKNOWN
    bench = never_back()
    bench.add(ev.RigFault(at=18.0, summary="the power supply of disk12 was switched off by hand"))
    assert judge_story(bench.story()).verdict is Verdict.FAIL
    assert GONE < RESTORED


# --- the users of disks, and their data ---------------------------------------------------------------------------


def ended(bench: Bench, **changes: object) -> ScenarioResult:
    bench.replace(ev.LoadEnded, lambda event: event.disk == VICTIM, **changes)
    return judged(bench)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"errno": 0, "exit_status": 0}, "ended without an error though the disk was gone"),
        ({"asked": True, "asked_at": CUT + 3, "at": CUT + 4, "errno": 0}, "never got an error"),
        ({"at": CUT + 9}, "got its error only 8.93 s (limit 5 s) after the disk was gone"),
        ({"stuck": True}, "could not be ended"),
        ({"at": CUT - 1}, "met an I/O error, 1.00 s before its cut"),
    ],
)
def test_users_of_a_dead_disk_are_given_an_error_and_in_time(changes: dict[str, object], said: str) -> None:
    result = ended(healthy(), **changes)
    assert result.verdict is Verdict.FAIL
    assert any(said in finding.summary for finding in result.findings), result.findings


def test_users_who_were_asked_to_end_before_the_cut_need_no_error() -> None:
    result = ended(healthy(), asked=True, asked_at=CUT - 0.1, errno=0)
    assert not result.findings


def test_a_load_that_is_buffered_need_not_notice() -> None:
    bench = healthy()
    bench.replace(ev.LoadBegun, argv=("fio", "--direct=0"))
    assert not ended(bench, errno=0, exit_status=0).findings


def test_wrong_data_is_wrong_whether_asked_about_or_not() -> None:
    bench = healthy(checks=(kernel_clean(),))
    bench.replace(ev.Verified, lambda event: event.disk == "disk2", bad=((0, 512, "corrupt"),))
    result = judge_story(bench.story())
    assert result.verdict is Verdict.FAIL
    assert {finding.subject for finding in result.findings} == {"disk2"}


# --- what the rig file says of the cuts ---------------------------------------------------------------------------


def wired(**cables: str) -> dict[str, object]:
    disks = [disk | {"cable": cables.get(disk["name"], "")} for disk in RIG["disk"]]
    return RIG | {"disk": disks}


@pytest.mark.parametrize(
    ("rig", "said"),
    [
        (wired(disk1="cables.1"), ""),
        (wired(disk1="cables.2"), "by cables port 1, and the rig file says cables.2"),
        (wired(disk1="cables.1", disk2="cables.1"), "was armed to take disk1, and the rig file says disk1, disk2"),
    ],
)
def test_a_record_that_does_not_fit_the_rig_file_accuses_nobody(rig: dict[str, object], said: str) -> None:
    bench = healthy()
    bench.replace(ev.DiskAttached, lambda event: event.at == BACK, serial="X")
    result = judge_story(replace(bench.story(), rig=rig))
    assert result.verdict is (Verdict.UNKNOWN if said else Verdict.FAIL)
    assert any(said in why for why in result.unknowns) or not said


def test_a_switch_that_moved_for_another_point_accuses_nobody() -> None:
    bench = healthy()
    bench.replace(ev.Edge, point="disk2.cable")
    bench.replace(ev.DiskAttached, lambda event: event.at == BACK, serial="X")
    result = judge_story(bench.story())
    assert result.verdict is Verdict.UNKNOWN
    assert any("was armed for disk1.cable, and disk2.cable was switched off" in why for why in result.unknowns)


def test_a_command_that_is_not_on_record_has_no_time() -> None:
    bench = healthy()
    bench.drop(ev.Edge, lambda event: event.phase != "commanded")
    bench.replace(ev.Edge, lambda event: event.phase == "acknowledged", sent=CUT)
    result = judge_story(bench.story())
    assert result.verdict is Verdict.UNKNOWN
    assert any("at an unknown time" in why for why in result.unknowns)


def test_a_dut_of_which_nothing_is_on_record() -> None:
    bench = healthy()
    bench.drop(ev.DutReady)
    assert "which kernel the DUT ran is not on record" in judge_story(bench.story()).unknowns


# --- what the rig file says of the disks --------------------------------------------------------------------------


def sized(size: int) -> dict[str, object]:
    return RIG | {"disk": [disk | {"size": size} for disk in RIG["disk"]]}


def test_a_disk_of_another_size_than_declared() -> None:
    story = healthy().story()
    assert judge_story(replace(story, rig=sized(SIZE))).verdict is Verdict.PASS
    result = judge_story(replace(story, rig=sized(2 * SIZE)))
    assert result.verdict is Verdict.FAIL
    assert "disk1 was announced with 67108864 bytes, and the rig file says 134217728" in result.sentence


def test_a_disk_that_is_there_twice() -> None:
    bench = healthy()
    bench.attach("disk2", 20.0, kname="sdq")
    found = {finding.summary for finding in judged(bench).findings}
    assert "disk2 is attached twice, as sdc and sdq" in found


def test_a_record_of_disks_that_the_rig_file_does_not_have_accuses_nobody() -> None:
    story = healthy().story()
    result = judge_story(replace(story, rig=RIG | {"disk": [{"name": "other"}]}))
    assert result.verdict is Verdict.UNKNOWN
    assert "the rig file on record does not have disk1" in result.unknowns


def test_a_removal_under_another_disks_name_accuses_nobody() -> None:
    bench = healthy()
    bench.replace(ev.DiskDetached, disk="disk2")
    result = judged(bench)
    assert result.verdict is Verdict.UNKNOWN
    assert any("was attached as disk1 and removed as disk2" in why for why in result.unknowns)
