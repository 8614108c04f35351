"""What is on record in two places, and differs: sleep, resets, bytes, requests, removals, switched caches, arrays."""

from __future__ import annotations

from typing import Any

import pytest
from array_stories import ARRAY, mirror
from msgspec.structs import replace
from stories import BACK, CUT, GONE, SURVIVORS, VICTIM, Bench, healthy

from plugpull.checks import answered, array_survived, undisturbed
from plugpull.checks.files.mounting import step_doubts
from plugpull.checks.record.coherent import coherent
from plugpull.checks.record.dut_record import dut_doubts
from plugpull.checks.record.resets_logged import resets_unlogged
from plugpull.checks.record.study_record import study_doubts
from plugpull.checks.record.uevent_record import uevents_doubted
from plugpull.checks.survivors.pace import kept_pace
from plugpull.history import events as ev
from plugpull.kernel.diagnosis.scope import place_of

DISK = SURVIVORS[0]


def kernel(bench: Bench, at: float, text: str, level: int = 6) -> None:
    bench.add(ev.KernelMessage(at=at, text=text, level=level))


def usb_of(bench: Bench, disk: str = DISK) -> str:
    return place_of(next(one.sysfs for one in bench.story().all_attachments if one.disk == disk)).usb


# --- sleep ------------------------------------------------------------------------------------------------------------


def slept(bench: Bench) -> None:
    """The kernel says that it was suspended, and a survivor was reset as it woke."""
    kernel(bench, 20.0, "PM: suspend entry (s2idle)")
    kernel(bench, 22.0, "PM: suspend exit")
    kernel(bench, 22.1, f"usb {usb_of(bench)}: reset high-speed USB device number 5 using xhci_hcd")


def test_a_sleep_that_nobody_is_on_record_for_is_a_doubt_and_explains_resets() -> None:
    bench = healthy()
    slept(bench)
    (doubt,) = dut_doubts(bench.story())
    assert "suspended at 20.00 s, and that it was asked to is not on record" in doubt
    assert bench.judge(undisturbed()).findings == ()
    bench.add(ev.DutSuspended(at=20.0, until=22.0, ok=True))
    assert list(dut_doubts(bench.story())) == []


def test_a_sleep_that_did_not_come_to_pass_is_a_doubt() -> None:
    bench = healthy()
    slept(bench)
    bench.add(ev.DutSuspended(at=20.0, until=22.0, ok=False, detail="busy"))
    (doubt,) = dut_doubts(bench.story())
    assert doubt == "the DUT was to be suspended at 20.00 s, and was not: busy"


@pytest.mark.parametrize(("until", "doubted"), [(22.2, False), (52.0, True)])
def test_a_sleep_ends_when_the_kernel_says_so(until: float, doubted: bool) -> None:
    bench = healthy()
    slept(bench)
    bench.add(ev.DutSuspended(at=20.0, until=until, ok=True))
    assert any("by its kernel it was awake at 22.00 s" in one for one in dut_doubts(bench.story())) is doubted


@pytest.mark.parametrize(("total", "doubted"), [(200, False), (100, True)])
def test_the_jiffies_of_an_emulated_dut_never_stand_still(total: int, doubted: bool) -> None:
    bench = healthy()
    begun = ev.Sampled(at=20.0, disks={}, cpu=(10, 100))
    bench.add(begun, replace(begun, at=24.0, cpu=(11, total)))
    assert any("counted no CPU time" in one for one in dut_doubts(bench.story())) is doubted


@pytest.mark.parametrize(
    "text",
    [
        "usb {usb}: PM: dpm_run_callback(): usb_dev_resume+0x0/0x20 returns -110",
        "usb {usb}: PM: failed to resume async: error -110",
    ],
)
def test_sleep_does_not_explain_a_device_that_does_not_wake(text: str) -> None:
    bench = healthy()
    slept(bench)
    bench.add(ev.DutSuspended(at=20.0, until=22.0, ok=True))
    assert bench.judge(undisturbed()).findings == ()
    kernel(bench, 21.9, text.format(usb=usb_of(bench)), level=3)
    (finding,) = bench.judge(undisturbed()).findings
    assert finding.subject == DISK


# --- resets, removals -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("logged", "failed", "doubted"), [(3, 0, False), (2, 0, True), (2, 1, False), (0, 0, True)])
def test_resets_on_request_are_in_the_log(logged: int, failed: int, doubted: bool) -> None:
    bench = healthy()
    usb = usb_of(bench)
    bench.add(ev.DiskRecovered(at=12.0, disk=DISK, until=13.0, resets=3, failed=failed))
    for number in range(logged):
        kernel(bench, 12.2 + number / 5, f"usb {usb}: reset high-speed USB device number 5 using xhci_hcd")
    assert bool(list(resets_unlogged(bench.story()))) is doubted


def test_a_disk_that_left_by_the_record_and_was_sampled_on_did_not_leave() -> None:
    bench = healthy()
    stay = next(one for one in bench.story().all_attachments if one.disk == DISK)
    gone = ev.DiskDetached(at=CUT + 1.0, disk=DISK, kname=stay.kname, diskseq=stay.diskseq)
    bench.add(gone)
    for check in (undisturbed(), kept_pace(DISK)):
        assert not any("removed" in one.summary or "left" in one.summary for one in bench.judge(check).findings)
    assert any("was sampled until" in one for one in bench.judge(coherent()).unknowns)


def test_a_disk_that_left_and_was_not_sampled_any_more_left() -> None:
    bench = healthy()
    bench.detach(DISK, CUT + 1.0)
    assert any("left at" in one.summary for one in bench.judge(undisturbed()).findings)
    assert any("was removed" in one.summary for one in bench.judge(kept_pace(DISK)).findings)


def uevent(at: float, number: int, action: str) -> ev.Uevent:
    path = "/devices/pci0000:00/0000:00:10.0/usb1/1-2/1-2:1.0/host5/target5:0:0/5:0:0:0/block/sdx"
    return ev.Uevent(at=at, action=action, subsystem="block", devpath=path, devtype="disk", seqnum=number)


def test_disks_come_and_go_in_turns_by_their_uevents() -> None:
    bench = healthy()
    bench.drop(ev.Uevent)
    bench.add(uevent(11.0, 1, "add"), uevent(12.0, 2, "remove"), uevent(13.0, 3, "add"))
    assert not any("twice" in one for one in uevents_doubted(bench.story()))
    bench.add(uevent(13.1, 4, "add"))
    assert any("the disk sdx came twice" in one for one in uevents_doubted(bench.story()))


def announced(bench: Bench, number: int, path: str, at: float = 0.0, action: str = "add") -> ev.Uevent:
    stay = next(one for one in bench.story().all_attachments if one.disk == DISK)
    at = at or (stay.at or 0.0)
    return ev.Uevent(at=at, action=action, subsystem="block", devpath=path, devtype="disk", seqnum=number)


PLACE = "/devices/pci0000:00/0000:00:10.0/usb1/1-2/1-2:1.0/host5/target5:0:0/5:0:0:0/block/"


@pytest.mark.parametrize(("port", "doubted"), [("1-2", False), ("1-3", True)])
def test_a_disk_comes_to_the_place_that_its_uevent_names(port: str, doubted: bool) -> None:
    bench = healthy()
    bench.drop(ev.Uevent)
    kname = next(one.kname for one in bench.story().all_attachments if one.disk == DISK)
    bench.replace(ev.DiskAttached, lambda event: event.disk == DISK, sysfs=f"/sys{PLACE}{kname}")
    bench.add(announced(bench, 1, f"{PLACE}{kname}".replace("1-2", port)))
    assert any("its uevent is of" in one for one in uevents_doubted(bench.story())) is doubted


@pytest.mark.parametrize(
    ("path", "doubted"),
    [("usb1/1-2", False), ("usb1/1-2/1-2:1.0/host5/target5:0:0/5:0:0:0/bsg", False), ("usb1/1-3", True)],
)
def test_a_uevent_is_of_the_disks_at_its_path(path: str, doubted: bool) -> None:
    bench = healthy()
    bench.replace(ev.DiskAttached, lambda event: event.disk == DISK, sysfs=f"/sys{PLACE}sdc")
    path = f"/devices/pci0000:00/0000:00:10.0/{path}"
    bench.add(ev.Uevent(at=CUT, action="change", subsystem="usb", devpath=path, disks=(DISK,), seqnum=0))
    assert any("is said to be of" in one for one in uevents_doubted(bench.story())) is doubted


@pytest.mark.parametrize(("above", "doubted"), [("1-2/1-2:1.0/host5", True), ("1-2", True), ("1-3", False)])
def test_no_disk_stays_below_a_device_that_left(above: str, doubted: bool) -> None:
    bench = healthy()
    kname = next(one.kname for one in bench.story().all_attachments if one.disk == DISK)
    bench.replace(ev.DiskAttached, lambda event: event.disk == DISK, sysfs=f"/sys{PLACE}{kname}")
    path = f"/devices/pci0000:00/0000:00:10.0/usb1/{above}"
    bench.add(ev.Uevent(at=CUT + 0.1, action="remove", subsystem="usb", devpath=path, devtype="", seqnum=0))
    assert any("below it did not" in one for one in uevents_doubted(bench.story())) is doubted


def test_a_device_above_a_disk_leaves_with_it() -> None:
    bench = healthy()
    kname = next(one.kname for one in bench.story().all_attachments if one.disk == DISK)
    bench.replace(ev.DiskAttached, lambda event: event.disk == DISK, sysfs=f"/sys{PLACE}{kname}")
    bench.detach(DISK, CUT + 0.5)
    path = PLACE.partition("/1-2:1.0")[0]
    bench.add(ev.Uevent(at=CUT + 0.6, action="remove", subsystem="usb", devpath=path, devtype="", seqnum=0))
    assert not any("below it did not" in one for one in uevents_doubted(bench.story()))


# --- requests ---------------------------------------------------------------------------------------------------------


def requests(bench: Bench, **fields: Any) -> Any:
    bench.checks = ()  # kept_pace is asked about the disk
    bench.replace(ev.LoadEnded, lambda event: event.disk == DISK, **fields)
    return bench.judge(answered())


def test_one_request_that_takes_long_while_others_are_completed() -> None:
    assert requests(healthy(), longest=0.4).findings == ()
    (finding,) = requests(healthy(), longest=9.2).findings
    assert finding.summary == f"a request of {DISK} took 9.20 s (limit 5 s)"
    assert requests(healthy(), longest=9.2, errno=5).findings == ()


def test_the_slowest_request_of_a_cut_disk_is_not_judged() -> None:
    bench = healthy()
    bench.replace(ev.LoadEnded, lambda event: event.disk == VICTIM, longest=9.2, errno=0)
    assert bench.judge(answered()).findings == ()


@pytest.mark.parametrize(("current", "doubted"), [(True, True), (False, False)])
def test_a_slowest_request_that_is_not_on_record_is_a_doubt(current: bool, doubted: bool) -> None:
    bench = healthy()
    bench.replace(ev.DutReady, records=("reports",) if current else ())
    bench.replace(ev.LoadBegun, argv=("fio", "--name=load"))
    judgement = requests(bench, longest=None, written_bytes=1 << 20)
    assert any("slowest request of the load" in one for one in judgement.unknowns) is doubted


@pytest.mark.parametrize(("number", "depth", "doubted"), [(64, 1, False), (60, 4, False), (64 * 5, 1, True)])
def test_bytes_of_a_task_are_those_of_its_requests(number: int, depth: int, doubted: bool) -> None:
    bench = healthy()
    figures = ev.FioFigures(bytes=4 << 20, seconds=2.0, requests=number)
    ran = ev.FioRan(
        at=20.0, begin=17.0, task="direct", disks=(DISK,), mode="write", block=65536, depth=depth, number=1, planned=1,
        repeat=1, repeats=1, figures={DISK: figures},
    )  # fmt: skip
    bench.add(ran)
    assert any("requests of 65536 bytes" in one for one in study_doubts(bench.story())) is doubted


def step(at: float, action: ev.ActionName, *, ok: bool = True, ended: bool = True) -> list[ev.Event]:
    begun = ev.StepBegun(at=at, action=action, disk=DISK)
    return [begun, *([ev.Acted(at=at + 0.1, action=action, disk=DISK, ok=ok, seconds=0.1)] if ended else [])]


def test_a_step_begins_and_ends() -> None:
    bench = healthy()
    bench.add(*step(11.0, "mount"), *step(12.0, "umount", ok=False), *step(13.0, "umount"))
    refused = ev.Acted(at=14.0, action="mount", disk=DISK, ok=False, seconds=0.0, detail="another filesystem")
    bench.add(refused, ev.Acted(at=10.9, action="mkfs", disk=DISK, ok=True, seconds=1.0))
    assert list(step_doubts(bench.story())) == []


def test_an_umount_that_fails_for_good_is_a_doubt() -> None:
    bench = healthy()
    bench.add(*step(11.0, "mount"), *step(12.0, "umount", ok=False))
    assert list(step_doubts(bench.story())) == [f"the umount of {DISK} failed: ?"]


@pytest.mark.parametrize("ended", [True, False])
def test_a_step_of_which_one_end_is_missing_is_a_doubt(ended: bool) -> None:
    bench = healthy()
    bench.add(*step(11.0, "mount"), *step(13.0, "umount", ended=ended)[ended:])
    (doubt,) = step_doubts(bench.story())
    assert doubt.endswith(f"umount of {DISK} began {1 - ended} times and ended {int(ended)} times")


@pytest.mark.parametrize(("took", "doubted"), [(1.6, False), (120.0, True)])
def test_an_umount_that_takes_minutes_is_a_doubt(took: float, doubted: bool) -> None:
    bench = healthy()
    bench.add(ev.Acted(at=BACK + 200.0, action="umount", disk=DISK, ok=True, seconds=took))
    assert bool(list(step_doubts(bench.story()))) is doubted


# --- arrays and caches ------------------------------------------------------------------------------------------------


def none_missing(event: ev.Event) -> ev.Event:
    if not isinstance(event, ev.ArrayState) or "degraded" not in event.values:
        return event
    return replace(event, values=event.values | {"degraded": "0"})


def test_a_member_that_was_put_back_had_been_counted_as_missing() -> None:
    bench = healthy()
    mirror(bench)
    assert not any("never counted" in one for one in bench.judge(coherent()).unknowns)
    bench.events = [none_missing(event) for event in bench.events]
    assert any("which never counted a missing member" in one for one in bench.judge(coherent()).unknowns)


def test_an_array_of_which_nothing_done_is_on_record_accuses_nobody() -> None:
    bench = healthy()
    mirror(bench)
    bench.drop(ev.ArrayActed)
    stopping = next(one for one in bench.story().of(ev.ArrayState) if one.values)
    bench.add(replace(stopping, at=GONE - 3.0, values=stopping.values | {"array_state": "inactive"}))
    judgement = bench.judge(array_survived(ARRAY))
    assert not any("inactive" in one.summary for one in judgement.findings)
    assert judgement.unknowns


LOST = "sd {address}: [{kname}] Write cache: disabled, read cache: enabled, doesn't support DPO or FUA"


@pytest.mark.parametrize(("off", "found"), [(False, False), (None, True), (True, True)])
def test_a_cache_that_a_study_switched_accuses_nobody(off: bool | None, found: bool) -> None:
    bench = healthy()
    stay = next(one for one in bench.story().all_attachments if one.disk == DISK)
    for at, text in ((11.0, LOST.replace("disabled", "enabled")), (20.0, LOST)):
        kernel(bench, at, text.format(address=place_of(stay.sysfs).address, kname=stay.kname))
    ran = ev.FioRan(
        at=21.0, begin=18.0, task="O_SYNC", disks=(DISK,), mode="write", block=65536, depth=1, number=1, planned=1,
        repeat=1, repeats=1, drive_cache=off,
    )  # fmt: skip
    bench.add(ran)
    said = [one.summary for one in bench.judge(undisturbed()).findings]
    assert any("has no write cache since" in one for one in said) is found


# --- what a cut explains ----------------------------------------------------------------------------------------------


def test_the_loss_of_a_member_does_not_spoil_the_bitmap_of_an_array() -> None:
    bench = healthy()
    mirror(bench)
    kname = next(one.kname for one in bench.story().all_attachments if one.disk == VICTIM)
    kernel(bench, CUT + 0.3, f"md/raid1:md127: Disk failure on {kname}, disabling device.", level=2)
    assert bench.judge(undisturbed()).findings == ()
    kernel(bench, BACK + 1.0, "md127: failed to create bitmap (-5)", level=3)
    (finding,) = bench.judge(undisturbed()).findings
    assert "failed to create bitmap" in finding.summary


# --- measurements -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changed", "begin", "doubt"),
    [
        (2, 24.0, ""),
        (2, 25.4, "measurement 3 lasted for 0.10 s, and the others for 1.50 s and more"),
        (2, 22.0, "measurement 3 began at 22.00 s, and the one before was over at 23.50 s"),
    ],
)
def test_measurements_last_alike_and_come_one_after_the_other(changed: int, begin: float, doubt: str) -> None:
    bench = healthy()
    for number in range(4):
        own = begin if number == changed else 20.0 + 2 * number
        made = ev.Measured(
            at=21.5 + 2 * number,
            begin=own,
            disks=(DISK,),
            mode="write",
            block=65536,
            depth=4,
            number=number + 1,
            planned=4,
            repeat=1,
            repeats=1,
        )
        bench.add(made)
    found = [one for one in study_doubts(bench.story()) if "lasted" in one or "began at" in one]
    assert found == ([doubt] if doubt else [])


def test_an_overloaded_host_makes_some_measurements_longer_and_none_shorter() -> None:
    bench = healthy()
    for number, seconds in enumerate((1.04, 2.3, 2.4, 1.2, 2.3)):
        begin = 10.0 + 3 * number
        one = ev.Measured(
            at=begin + seconds, begin=begin, disks=(DISK,), mode="write", block=65536, depth=4, number=number + 1,
            planned=5, repeat=1, repeats=1,
        )  # fmt: skip
        bench.add(one)
    assert not [one for one in study_doubts(bench.story()) if "lasted" in one]


@pytest.mark.parametrize(("still", "doubted"), [(True, False), (False, True)])
def test_a_disk_that_stands_still_moves_nothing(still: bool, doubted: bool) -> None:
    bench = healthy(pace=lambda disk, at: 0.0 if still and disk == DISK and 17.4 < at < 20.1 else 4e6)
    stall = ev.DiskStalled(at=17.5, disk=DISK, until=20.5, spans=((17.5, 20.0),), timeout=2, given_up=1, worked=True)
    bench.add(stall)
    said = [one for one in bench.judge(coherent()).unknowns if "and moved" in one]
    assert bool(said) is doubted
