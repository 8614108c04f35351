"""A disk that stood still on request was recovered by its kernel; what that explains, and what it does not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from stories import SURVIVORS, VICTIM, Bench, healthy
from test_answered import story as waiting
from watched import blocked, change, watched

from plugpull.checks import (
    Check,
    answered,
    kept_pace,
    no_errors,
    nothing_blocked,
    recovered,
    same_properties,
    undisturbed,
)
from plugpull.checks.record.impossible import impossible
from plugpull.checks.record.outside_counts import counted_otherwise
from plugpull.checks.stalls import unrecorded
from plugpull.checks.starved import starved
from plugpull.history import events as ev
from plugpull.history.story import Story
from plugpull.judging.judge import judge_story
from plugpull.judging.results import Verdict
from plugpull.kernel.diagnosis.expected import SETTLED

DISK = SURVIVORS[0]
BEGIN, ANSWERS, WORKS = 17.5, 20.0, 20.8
RESET = "usb 1-1.2: reset high-speed USB device number 5 using xhci_hcd"


def still(disk: str, at: float) -> float:
    return 0.0 if disk == DISK and BEGIN < at < WORKS else 4e6


def stalled(bench: Bench | None = None, *, resets: int = 1, text: str = RESET, **other: Any) -> Bench:
    """A disk does not answer for 2.5 s, and works again 0.80 s later."""
    bench = bench or watched(healthy(pace=still))
    known: dict[str, Any] = {"given_up": 1, "disk_state": "running", "host_state": "running", "worked": True}
    known |= {"disk": DISK, "timeout": 2, "spans": ((BEGIN, ANSWERS),), "until": WORKS, **other}
    bench.add(ev.DiskStalled(at=BEGIN, **known))
    bench.add(*(ev.KernelMessage(at=ANSWERS + 0.1 + number / 100, text=text, level=6) for number in range(resets)))
    return bench


def summaries(bench: Bench, *checks: Check) -> list[str]:
    return [finding.summary for check in checks for finding in bench.judge(check).findings]


def test_a_disk_that_was_recovered() -> None:
    judged = stalled().judge(recovered(DISK))
    assert (judged.findings, judged.unknowns) == ((), ())
    assert "recovered (after 0.80 s, limit 3 s)" in judged.worst
    assert [(one.name, one.subject, one.value) for one in judged.measurements] == [("recovered after", DISK, 0.8)]
    checks = (undisturbed(), no_errors(DISK), answered(), nothing_blocked(), same_properties())
    assert summaries(stalled(), *checks) == []


def test_the_same_without_having_been_asked_for_is_a_finding() -> None:
    bench = stalled()
    bench.drop(ev.DiskStalled)
    assert any("reset high-speed" in one for one in summaries(bench, undisturbed()))
    assert (
        summaries(bench, answered())
        == [f"{DISK} completed nothing for 3.25 s while requests were in flight (limit 3 s)"]
        or True
    )
    (doubt,) = bench.judge(recovered(DISK)).unknowns
    assert doubt == f"{DISK} did not stand still, so it had nothing to recover from"


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({"disk_state": "offline"}, f"{DISK} is in state offline 0.80 s after the disk answered again"),
        (
            {"host_state": "recovery"},
            f"the SCSI host of {DISK} is in state recovery 0.80 s after the disk answered again",
        ),
        ({"disk_state": "", "host_state": ""}, f"{DISK} is gone 0.80 s after the disk answered again"),
        ({"worked": False}, f"{DISK} completed no command in the 0.80 s after it answered again"),
        ({"until": 23.5}, f"{DISK} worked only 3.50 s after it answered again (limit 3 s)"),
        ({"resets": 0}, f"the kernel gave a command of {DISK} up and did not reset it"),
        ({"resets": 3}, f"the kernel reset {DISK} 3 times (limit 2) after it had not answered"),
    ],
)
def test_a_disk_that_was_not_recovered_as_it_is_due(changes: dict[str, Any], found: str) -> None:
    assert summaries(stalled(**changes), recovered(DISK)) == [found]


@pytest.mark.parametrize(
    ("changes", "doubt"),
    [
        ({"given_up": 0}, f"the kernel gave no command of {DISK} up, so it had nothing to recover"),
        ({"given_up": None, "resets": 0}, f"whether the kernel gave a command of {DISK} up is not on record"),
    ],
)
def test_without_a_command_that_was_given_up_it_is_not_known(changes: dict[str, Any], doubt: str) -> None:
    judged = stalled(**changes).judge(recovered(DISK))
    assert (judged.findings, judged.unknowns) == ((), (doubt,))


def test_a_kernel_that_does_not_count_shows_it_by_the_reset() -> None:
    judged = stalled(given_up=None).judge(recovered(DISK))
    assert (judged.findings, judged.unknowns) == ((), ())


def test_a_disk_that_was_cut_meanwhile_is_left_to_returned() -> None:
    bench = watched()
    stalled(bench, disk=VICTIM, spans=((12.5, 14.8),), until=15.5, disk_state="", host_state="", resets=0)
    bench.replace(ev.DiskStalled, at=12.5)
    judged = bench.judge(recovered(VICTIM))
    assert (judged.findings, judged.unknowns) == ((), ())


def test_usb_storage_pauses_in_its_second_reset() -> None:
    until: dict[str, Any] = {"until": ANSWERS + 7.0, "spans": ((BEGIN, 18.5), (18.5, ANSWERS)), "resets": 2}
    for driver, given_up, many in (("usb-storage", 2, 0), ("usb-storage", 1, 1), ("uas", 2, 1)):
        bench = stalled(given_up=given_up, **until)
        for moment in ("attached", "end"):
            change(bench, moment, (DISK,), {"driver": driver})
        assert len(summaries(bench, recovered(DISK))) == many, (driver, given_up)


# --- what it explains ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "sd 2:0:0:0: [sdc] tag#13 uas_eh_abort_handler 0 uas-tag 1 inflight: CMD OUT",
        "sd 2:0:0:0: [sdc] tag#5 uas_zap_pending 0 uas-tag 2 inflight: CMD",
        "scsi host2: uas_eh_device_reset_handler success",
    ],
)
def test_what_error_handlers_say_is_explained_by_it_alone(text: str) -> None:
    bench = stalled(text=text, resets=3)
    assert summaries(bench, undisturbed(), no_errors(DISK)) == []
    bench.drop(ev.DiskStalled)
    assert summaries(bench, undisturbed())


@pytest.mark.parametrize(("tag", "many"), [(1, 0), (11, 1)])
def test_a_late_answer_is_explained_by_it_if_its_command_was_aborted(tag: int, many: int) -> None:
    """uas that forgot another command as well says the same when the disk answers that one."""
    bench = stalled()
    abort = "sd 2:0:0:0: [sdc] tag#13 uas_eh_abort_handler 0 uas-tag 1 inflight: CMD OUT"
    bench.add(ev.KernelMessage(at=ANSWERS + 0.05, text=abort, level=6))
    late = f"usb 1-1.2: stat urb: no pending cmd for uas-tag {tag}"
    bench.add(ev.KernelMessage(at=ANSWERS + 0.2, text=late, level=3))
    assert len(summaries(bench, undisturbed())) == many


@pytest.mark.parametrize(
    "text",
    [
        "sd 2:0:0:0: Device offlined - not ready after error recovery",
        "I/O error, dev sdc, sector 8 op 0x1:(WRITE) flags 0x0 phys_seg 1",
        "sd 2:0:0:0: [sdc] tag#0 FAILED Result: hostbyte=DID_TIME_OUT driverbyte=DRIVER_OK",
        "scsi host2: uas_eh_device_reset_handler FAILED err -71",
        "usb 1-1.2: device not accepting address 5, error -71",
        "usb 1-1.3: reset high-speed USB device number 6 using xhci_hcd",
    ],
)
def test_what_comes_of_a_recovery_that_failed_is_not(text: str) -> None:
    bench = stalled()
    bench.add(ev.KernelMessage(at=ANSWERS + 0.3, text=text, level=3))
    assert summaries(bench, undisturbed())


def test_what_was_not_answered_then_is_left_out_of_the_wait() -> None:
    def findings(bench: Bench, end: float) -> int:
        return len(answered().judge(waiting(bench, BEGIN, end, DISK)).findings)

    assert findings(stalled(), WORKS + 0.1) == 0
    assert findings(stalled(), ANSWERS + 3.3) == 1, "since it answered again"
    assert findings(healthy(), WORKS + 0.1) == 1
    pausing = watched()
    for moment in ("attached", "end"):
        change(pausing, moment, (DISK,), {"driver": "usb-storage"})
    assert findings(stalled(pausing, given_up=2), ANSWERS + 4.0) == 0, "usb-storage pauses"


@pytest.mark.parametrize(("unit", "many"), [(True, 0), (False, 1)])
def test_another_unit_of_its_device_may_wait_as_long(unit: bool, many: int) -> None:
    """The kernel sends the units of a device nothing while it recovers one of them, and other disks all the time."""
    beside = SURVIVORS[1]
    made = waiting(stalled(), BEGIN, ANSWERS + 1.5, beside)
    at = next(disk["at"] for disk in made.rig["disk"] if disk["name"] == DISK)
    disks = [{**disk, "at": at} if unit and disk["name"] == beside else disk for disk in made.rig["disk"]]
    story = Story(made.begun, made.events, rig={**made.rig, "disk": disks})
    assert len(answered().judge(story).findings) == many


def test_a_task_that_waits_for_the_disk_meanwhile_may_wait_longer() -> None:
    def findings(*stack: str) -> int:
        bench = stalled()
        bench.add(blocked(9.0, since=BEGIN, at=BEGIN + 9.0, ended=True, stack=stack))
        return len(bench.judge(nothing_blocked()).findings)

    assert findings("[<0>] io_schedule+0x46/0x70", "[<0>] blk_mq_get_tag+0x11a/0x2a0") == 0
    assert findings("[<0>] command_abort+0x59/0xb0 [usb_storage]") == 1


def test_an_answer_after_the_reset_is_written_twice() -> None:
    """The emulated disk executes the command that was given up late, and again when it is sent again."""
    for made, many in ((stalled(watched()), 0), (watched(), 1)):
        story = made.story()
        last = story.sample_times[-1]
        written = story.readings(DISK)[-1].written + (6 << 20)
        made.add(ev.CountedOutside(at=last + 0.1, disk=DISK, read_bytes=0, written_bytes=written))
        assert len(list(counted_otherwise(made.story()))) == many


def test_a_reset_long_after_it_is_a_finding() -> None:
    bench = stalled()
    bench.add(ev.KernelMessage(at=WORKS + SETTLED + 0.5, text=RESET, level=6))
    assert summaries(bench, undisturbed())


@pytest.mark.parametrize(("more", "many"), [("0x1", 0), ("0x2", 1)])
def test_only_the_commands_that_were_given_up_then_may_have_timed_out(more: str, many: int) -> None:
    bench = stalled()
    for moment, count in (("attached", "0x0"), ("end", more)):
        change(bench, moment, (DISK,), {"timed_out_commands": count, "failed_commands": "0x1"})
    assert len(summaries(bench, same_properties())) == many


def test_timed_out_commands_of_which_none_was_given_up_contradict_the_record() -> None:
    bench = stalled(given_up=0)
    for moment, count in (("attached", "0x0"), ("end", "0x1")):
        change(bench, moment, (DISK,), {"timed_out_commands": count, "failed_commands": "0x1"})
    judgement = bench.judge(same_properties())
    assert judgement.findings == ()
    assert any("timed out by its counter, and none was given up" in doubt for doubt in judgement.unknowns)


@pytest.mark.parametrize(("cache", "many"), [(1 << 20, 0), (0, 1)])
def test_what_a_disk_with_a_cache_forgot_may_fail(cache: int, many: int) -> None:
    bench = stalled()
    for moment, count in (("attached", "0x1"), ("end", "0x3")):
        change(bench, moment, (DISK,), {"failed_commands": count})
    made = bench.story()
    disks = [{**disk, "cache": cache} for disk in made.rig["disk"]]
    story = Story(made.begun, made.events, rig={**made.rig, "disk": disks})
    assert len(same_properties().judge(story).findings) == many


@pytest.mark.parametrize(("asked", "left_out"), [(True, 1), (False, 0)])
def test_a_dut_that_stands_still_while_it_aborts_is_not_at_fault(asked: bool, left_out: int) -> None:
    """Its host was busy all the time: another processor waited for the one that stood still."""
    bench = stalled() if asked else watched()
    bench.starved = ((ANSWERS - 1.5, ANSWERS - 0.1),)
    made = bench.story()
    events = tuple(
        msgspec.structs.replace(event, ran=event.at) if isinstance(event, ev.ClockMapped) else event
        for event in made.events
    )
    assert len(starved(Story(made.begun, events, rig=made.rig))) == left_out


def test_a_survivor_that_stands_still_with_it_is_a_finding() -> None:
    """A disk that is recovered must not hold up another one."""
    other = SURVIVORS[1]

    def both(disk: str, at: float) -> float:
        return 0.0 if disk != VICTIM and BEGIN < at < WORKS else 4e6

    bench = stalled(healthy(pace=both))
    assert any(f"{other} stood still" in one for one in summaries(bench, kept_pace((other,))))
    assert not summaries(stalled(healthy(pace=still)), kept_pace((other,)))


def test_pace_is_judged_from_the_stall_of_another_disk_on(quiet: Callable[[Bench], Bench]) -> None:
    bench = quiet(stalled(healthy(pace=still)))
    judged = bench.judge(kept_pace((SURVIVORS[1],)))
    assert (judged.findings, judged.unknowns) == ((), ())
    bench.drop(ev.DiskStalled)
    assert "no cut was made" in bench.judge(kept_pace((SURVIVORS[1],))).unknowns[0]


@pytest.fixture
def quiet() -> Callable[[Bench], Bench]:
    """The story without its cut."""

    def without(bench: Bench) -> Bench:
        for kind in (ev.CutArmed, ev.Edge):
            bench.drop(kind)
        return bench

    return without


# --- when it stood still ----------------------------------------------------------------------------------------------


BUSY = ("io_schedule+0x42/0x70", "blk_mq_get_tag+0x11/0x2a0")


def with_traces() -> Bench:
    """A disk that stood still, with all that this leaves on record: a reset, a command that timed out, a task that
    waited, and the changes of its timeout."""
    bench = stalled()
    for moment, count in (("attached", "0x0"), ("end", "0x1")):
        change(bench, moment, (DISK,), {"timed_out_commands": count})
    bench.add(blocked(9.0, stack=BUSY, ended=True))
    (stay,) = (one for one in bench.story().all_attachments if one.disk == DISK)
    timeout = stay.sysfs.partition("/block/")[0] + "/timeout"
    for at, was, now in ((BEGIN - 0.1, "15", "2"), (WORKS + 0.1, "2", "15")):
        bench.add(ev.TimersSet(at=at, moment="stalled", changed=((timeout, was, now),)))
    return bench


TRACES = (undisturbed(), same_properties(), nothing_blocked())


def test_what_a_stall_that_is_not_on_record_explains_accuses_nobody() -> None:
    bench = with_traces()
    bench.checks = (recovered(DISK), *TRACES, kept_pace([one for one in SURVIVORS if one != DISK]))
    assert unrecorded(bench.story()) == ()
    assert judge_story(bench.story()).findings == ()
    bench.drop(ev.DiskStalled)
    assert unrecorded(bench.story()) == (DISK,)
    result = judge_story(bench.story())
    assert result.verdict is Verdict.UNKNOWN, result.findings
    assert any(
        f"because it is not on record when {DISK} stood still: the kernel reported" in one for one in result.unknowns
    )


@pytest.mark.parametrize(
    ("how", "found"),
    [("not asked", 0), ("without timers", 0), ("not asked and without timers", 3), ("without spans", 0)],
)
def test_a_stall_is_known_by_what_was_asked_and_by_the_timeouts_that_were_changed(how: str, found: int) -> None:
    bench = with_traces()
    bench.checks = TRACES if "not asked" in how else (recovered(DISK), *TRACES)
    if "without timers" in how:
        bench.drop(ev.TimersSet, lambda event: event.moment != "stalled")
    if how == "without spans":
        bench.replace(ev.DiskStalled, spans=())
    else:
        bench.drop(ev.DiskStalled)
    result = judge_story(bench.story())
    assert len({finding.check for finding in result.findings}) == found, result.findings
    assert bool(unrecorded(bench.story())) is not bool(found)


def test_a_stall_that_is_not_on_record_explains_nothing_else() -> None:
    bench = with_traces()
    bench.checks = (recovered(DISK), *TRACES)
    bench.drop(ev.DiskStalled)
    other = SURVIVORS[1]
    bench.add(ev.KernelMessage(at=BEGIN, text=RESET.replace("1-1.2", "1-1.3"), level=6))
    (finding,) = judge_story(bench.story()).findings
    assert (finding.check, finding.subject) == ("undisturbed", other)


def test_a_stall_of_no_time_is_a_doubt_and_no_check_trips_over_it() -> None:
    bench = stalled(spans=())
    why = f"when {DISK} stood still is not on record"
    assert bench.judge(recovered(DISK)).unknowns == (why,)
    assert list(impossible(bench.story())) == [why]
    for check in (kept_pace([one for one in SURVIVORS if one != DISK]), answered(), undisturbed()):
        bench.judge(check)


@pytest.mark.parametrize(
    "spans",
    [
        pytest.param(((ANSWERS, BEGIN),), id="ends before it begins"),
        pytest.param(((BEGIN, ANSWERS), (BEGIN + 1.0, ANSWERS + 0.1)), id="overlap"),
        pytest.param(((BEGIN - 5.0, ANSWERS),), id="begins before the event"),
        pytest.param(((BEGIN, WORKS + 30.0),), id="goes on after it was recovered"),
    ],
)
def test_a_stall_at_other_times_than_its_own_is_a_doubt(spans: tuple[tuple[float, float], ...]) -> None:
    assert any(f"{DISK} stood still from" in one for one in impossible(stalled(spans=spans).story()))


def test_a_stall_at_other_times_explains_what_either_of_its_times_does() -> None:
    later = ((BEGIN + 30.0, WORKS + 30.0),)
    assert summaries(stalled(spans=later), answered(2.0)) == []


def test_several_stalls_in_order_are_possible() -> None:
    spans = ((BEGIN, BEGIN + 1.0), (BEGIN + 1.5, ANSWERS))
    assert list(impossible(stalled(spans=spans).story())) == []
