"""Nobody outside a blast radius is reset or in error: each defect, and the healthy case next to it."""

from __future__ import annotations

import msgspec
import pytest
from disturbances import CONTROLLER, HUB, TREE, found, removed_uevent, story, subjects
from paces import resampled
from stories import BACK, CUT, GONE, RESTORED, SURVIVORS, VICTIM
from test_kernel_scope import bench, warn

from plugpull.checks import kernel_clean, no_errors
from plugpull.checks.survivors.undisturbed import undisturbed
from plugpull.history import events as ev
from plugpull.history.reader import Story
from plugpull.judging.judge import judge_story
from plugpull.judging.results import Verdict


@pytest.mark.parametrize(
    ("text", "subject"),
    [
        ("usb 1-1.2: reset high-speed USB device number 5 using xhci_hcd", "disk2"),
        ("I/O error, dev sdc, sector 8 op 0x1:(WRITE) flags 0x0 phys_seg 1", "disk2"),
        ("usb 1-1.2: device firmware changed", "disk2"),
        ("sd 2:0:0:0: [sdc] tag#0 Unaligned partial completion (resid=200, sector_sz=512)", "disk2"),
        ("sd 2:0:0:0: Power-on or device reset occurred", "disk2"),
        ("usb 1-1: reset high-speed USB device number 2 using xhci_hcd", "hub1"),
        ("usb 1-1: USB disconnect, device number 2", "hub1"),
        ("usb 1-4: reset full-speed USB device number 7 using xhci_hcd", "1-4"),
        ("usb 1-1-port4: over-current condition", "1-1.4"),
        ("usb usb1-port1: over-current condition", "hub1"),
    ],
)
@pytest.mark.parametrize("at", [13.0, CUT + 0.1, CUT + 1.0, BACK + 2])
def test_outside_the_blast_radius_at_any_time(text: str, subject: str, at: float) -> None:
    made = bench()
    made.add(warn(text, at, 6))
    assert subjects(made) == [subject]


@pytest.mark.parametrize(("made_at", "accused"), [(13.3, []), (12.9, ["disk2"]), (40.0, ["disk2"]), (None, ["disk2"])])
def test_a_new_array_is_not_clean_although_its_name_was_that_of_another(
    made_at: float | None, accused: list[str]
) -> None:
    """The log of the array before names its member."""
    made = bench()
    made.add(warn("md/raid:md127: device sdc operational as raid disk 0", 12.5, 6))
    made.add(warn("md/raid:md127: not clean -- starting background reconstruction", 13.0, 5))
    if made_at is not None:
        array = ev.ArrayMade(
            at=made_at,
            array="array2",
            kname="md127",
            uuid="u",
            level="raid5",
            members=("disk2",),
            spare=1,
            size=1 << 20,
        )
        made.add(array)
    assert subjects(made) == accused


def test_a_reset_soon_after_a_survivor_was_plugged_in() -> None:
    reset = "sd 4:0:0:0: Power-on or device reset occurred"
    sysfs = "/sys/devices/pci0000:00/0000:00:05.0/usb1/1-1/1-1.2/1-1.2:1.0/host4/target4:0:0/4:0:0:0"

    def plugged_in_at(begin: float, at: float, text: str = reset) -> list[str]:
        made = bench()
        made.drop(ev.DiskAttached, lambda event: event.disk != "disk2")
        made.drop(ev.KernelMessage, lambda event: "[sdc]" not in event.text)
        made.drop(ev.LoadBegun, lambda event: event.disk != "disk2")
        made.attach("disk2", begin, sysfs=sysfs)
        made.add(warn(text, at, 4))
        return subjects(made)

    begin = CUT - 2.2
    assert plugged_in_at(begin, begin - 0.05) == [], "while it comes up"
    assert plugged_in_at(begin, begin + 0.4) == [], "udev's first reads"
    assert plugged_in_at(begin, begin + 2.3) == ["disk2"], "0.1 s after the cut"
    assert plugged_in_at(CUT - 0.5, CUT + 0.1) == ["disk2"], "it was up when the cut was made"
    odd = "sd 4:0:0:0: [sdc] the flux capacitor is out of phase"
    assert plugged_in_at(begin, begin - 0.05, odd) == []
    assert plugged_in_at(begin, begin + 2.3, odd) == ["disk2"]
    assert plugged_in_at(CUT + 1, CUT + 0.95) == [], "plugged in after a cut, it comes up like any other"


@pytest.mark.parametrize(
    "text",
    [
        "usb 1-1-port1: over-current condition",
        "hub 1-1:1.0: hub_ext_port_status failed (err = -71)",
        "usb 1-1.1: device descriptor read/64, error -71",
        "usb 1-1-port1: Cannot enable. Maybe the USB cable is bad?",
        "usb 1-1.1: device not accepting address 5, error -71",
        "usb 1-1-port1: attempt power cycle",
        "usb 1-1-port1: unable to enumerate USB device",
        "xhci_hcd 0000:00:05.0: WARN Set TR Deq Ptr cmd failed due to incorrect slot or ep state.",
    ],
)
def test_what_a_real_cut_makes_its_port_and_hub_say(text: str) -> None:
    for at in (CUT + 0.01, CUT + 1, RESTORED + 0.2, BACK - 0.1):
        made = bench()
        made.add(warn(text, at))
        assert found(made) == []
    for at in (13.0, BACK + 3):
        made = bench()
        made.add(warn(text, at))
        assert len(found(made)) == 1


@pytest.mark.parametrize("text", ["I/O error, dev sdb, sector 8", "usb 1-1.1: reset high-speed USB device"])
def test_a_victim_in_error_before_its_cut_and_after_its_return(text: str) -> None:
    for at, expected in ((13.0, [VICTIM]), (CUT + 0.5, []), (BACK - 0.1, []), (BACK + 2.0, [VICTIM]), (23.0, [VICTIM])):
        made = bench()
        made.add(warn(text, at))
        assert subjects(made) == expected, at


def test_the_attachment_that_was_cut_is_excused_for_good() -> None:
    made = bench()
    made.replace(ev.DiskAttached, lambda event: event.at == BACK, kname="sdz")
    made.add(warn("EXT4-fs (sdb): I/O error while writing superblock", BACK + 2.0))
    assert found(made) == []
    made.add(warn("EXT4-fs (sdz): I/O error while writing superblock", BACK + 2.0))
    assert subjects(made) == [VICTIM]


def test_the_other_bus_of_the_controller_is_the_cut_ports_too() -> None:
    for at, expected in ((RESTORED + 0.2, 0), (13.0, 1), (BACK + 3, 1)):
        made = bench()
        added = ev.Uevent(at=10.1, action="add", subsystem="usb", devpath=f"{CONTROLLER}/usb2/2-1")
        made.add(added, warn("usb 2-1.1: device descriptor read/8, error -71", at))
        assert len(found(made)) == expected


def test_a_hub_that_does_not_answer_is_in_error_whatever_is_cut_below_it() -> None:
    for error, expected in ((-71, []), (-110, ["hub1"])):
        made = bench()
        made.add(warn(f"hub 1-1:1.0: hub_ext_port_status failed (err = {error})", CUT + 1, 3))
        assert subjects(made) == expected
    made.replace(ev.CutArmed, point="hub1.cable", victims=(VICTIM, *SURVIVORS))
    for disk in SURVIVORS:
        made.detach(disk, GONE)
        made.attach(disk, BACK + 0.2)
    assert subjects(made) == [], "the hub itself is cut"


@pytest.mark.parametrize(("came", "expected"), [(BACK - 1.0, ["hub1"]), (BACK + 0.3, []), (None, [])])
def test_a_hub_that_is_back_answers_however_late_its_disks_return(came: float | None, expected: list[str]) -> None:
    made = bench()
    made.replace(ev.CutArmed, point="hub1.cable", victims=(VICTIM, *SURVIVORS))
    for disk in SURVIVORS:
        made.detach(disk, GONE)
        made.attach(disk, BACK + 0.2)
    if came is not None:
        gone, back = (("remove", GONE), ("add", came))
        for action, at in (gone, back):
            made.add(ev.Uevent(at=at, action=action, subsystem="usb", devtype="usb_device", devpath=HUB))
    made.add(warn("hub 1-1:1.0: hub_ext_port_status failed (err = -110)", BACK + 0.3, 3))
    assert [subject for subject in subjects(made) if subject == "hub1"] == expected


@pytest.mark.parametrize(("kind", "expected"), [("virtual", ["hub1"]), ("ssh", [])])
def test_nothing_disturbs_the_transfers_of_an_emulated_hub(kind: str, expected: list[str]) -> None:
    made = bench()
    made.add(warn("hub 1-1:1.0: hub_ext_port_status failed (err = -71)", CUT + 1, 3))
    whole = story(made)
    whole = Story(whole.begun, whole.events, rig={**whole.rig, "dut": {"kind": kind}})
    assert [finding.subject for finding in undisturbed().judge(whole).findings] == expected


SILENT = (
    ("hub 1-1:1.0: hub_ext_port_status failed (err = -110)", 0.8, 0.3),
    ("usb 1-1.2: device descriptor read/64, error -110", 4.0, 1.0),
    ("usb 1-1.2: reset high-speed USB device number 5 using xhci_hcd", 9.0, 5.0),
    ("usb 1-4: device descriptor read/64, error -110", 4.0, 1.0),
)


@pytest.mark.parametrize(("text", "enough", "less"), SILENT)
def test_a_device_that_did_not_answer_while_the_host_starved_the_dut(text: str, enough: float, less: float) -> None:
    for lost, accused in ((enough, 0), (less, 1), (0.0, 1)):
        made = bench()
        made.add(warn(text, 24.0))
        made.starved = ((24.0 - lost, 24.0),) if lost else ()
        judgement = undisturbed().judge(story(made))
        assert (len(judgement.findings), len(judgement.unknowns)) == (accused, 1 - accused), lost
        assert all("its host did not run it" in what for what in judgement.unknowns)
        asked = no_errors(SURVIVORS).judge(story(made))
        if "1-4" not in text:
            assert (len(asked.findings) > 0, len(asked.unknowns) > 0) == (accused > 0, accused == 0), lost


def test_a_device_that_did_not_answer_though_clocks_were_compared_meanwhile() -> None:
    made = bench()
    made.add(warn(SILENT[0][0], 24.0), ev.ClockMapped(at=23.6, controller=623.6, error=0.002))
    made.starved = ((23.2, 24.0),)
    assert subjects(made) == ["hub1"], "the DUT ran"


@pytest.mark.parametrize(("share", "brief", "long"), [(1.0, 1, 1), (0.3, 0, 1)])
def test_a_dut_that_its_host_runs_slowly(share: float, brief: int, long: int) -> None:
    """It may take a second for an answer that would take half, but not five."""
    for (text, *_), accused in ((SILENT[0], brief), (SILENT[1], long)):
        made = resampled(bench(), lambda one: msgspec.structs.replace(one, cpu=(1, round((one.at or 0) * 200 * share))))
        made.events = [
            msgspec.structs.replace(one, cpus=2) if isinstance(one, ev.DutReady) else one for one in made.events
        ]
        samples = made.samples
        made.samples = lambda samples=samples: [  # type: ignore[misc, method-assign]
            one
            for number, one in enumerate(samples())
            if share == 1.0 or number % 3 == 0 or not 14.0 < (one.at or 0.0) < 21.0
        ]
        made.add(warn(text, 20.0))
        assert len(subjects(made)) == accused


def test_a_controller_that_died_while_the_host_starved_the_dut() -> None:
    for starved, accused in ((((20.0, 24.0),), 0), ((), 1)):
        made = bench()
        made.add(warn("xhci_hcd 0000:00:05.0: xHCI host controller not responding, assume dead", 24.0, 3))
        made.add(warn("xhci_hcd 0000:00:05.0: HC died; cleaning up", 24.0, 3))
        made.starved = starved
        judgement = kernel_clean().judge(story(made))
        assert (bool(judgement.findings), bool(judgement.unknowns)) == (accused == 1, accused == 0)


def test_a_permanent_cut_excuses_the_hub_for_a_while() -> None:
    said = "hub 1-1:1.0: hub_ext_port_status failed (err = -71)"
    for at in (CUT + 0.3, 24.0):
        made = bench()
        made.replace(ev.CutArmed, permanent=True)
        made.drop(ev.Edge, lambda event: event.state == "off")
        made.drop(ev.DiskAttached, lambda event: event.at != BACK)
        made.add(warn(said, at), warn("I/O error, dev sdb, sector 8", 20.0))
        assert found(made) == []
    made.add(warn(said, 25.5))
    assert subjects(made) == ["hub1"]


def test_several_disks_behind_one_cut() -> None:
    made = bench()
    made.replace(ev.CutArmed, point="hub1.cable", victims=(VICTIM, *SURVIVORS))
    for disk in SURVIVORS:
        made.detach(disk, GONE)
        made.attach(disk, BACK + 0.2)
        made.add(warn(f"I/O error, dev sd{'c' if disk == 'disk2' else 'd'}, sector 8", CUT + 0.2))
    made.add(warn("usb 1-1: USB disconnect, device number 2", CUT + 0.05, 6), removed_uevent(HUB, CUT + 0.1))
    assert found(made) == []


def test_a_load_that_met_an_error_though_its_disk_was_not_cut() -> None:
    made = bench()
    made.replace(ev.LoadEnded, lambda event: event.disk == "disk3", errno=5, message="Input/output error")
    assert found(made) == [("disk3", "the load on disk3 met an I/O error: Input/output error")]


def test_what_no_errors_was_asked_about_is_said_once() -> None:
    made = bench()
    made.add(warn("I/O error, dev sdc, sector 8", 16.0))
    made.checks = (no_errors(SURVIVORS),)
    assert [finding.check for finding in judge_story(story(made)).findings] == ["no_errors"]
    made.checks = (no_errors("disk3"),)
    assert [finding.check for finding in judge_story(story(made)).findings] == ["undisturbed"]


def test_it_stands_though_the_scenario_stopped_before_it_could_judge() -> None:
    made = bench()
    made.detach("disk3", 22.0)
    events = [event for event in made.scenario() if not isinstance(event, ev.Judged)]
    events.insert(-1, ev.ScenarioError(at=24.0, fault="rig", summary="the agent did not answer 'fio'"))
    begun = events[0]
    assert isinstance(begun, ev.ScenarioBegun)
    result = judge_story(Story(begun, tuple(events), rig=TREE))
    assert result.verdict is Verdict.FAIL
    assert "disk3 left at 22.00 s" in result.sentence


@pytest.mark.parametrize(
    "text",
    [
        "FAT-fs (sdb): Volume was not properly unmounted. Some data may be corrupt. Please run fsck.",
        "FAT-fs (sdb): error, fat_get_cluster: invalid cluster chain (i_pos 21382)",
        "FAT-fs (sdb): Filesystem has been set read-only",
        "exFAT-fs (sdb): start_clu is invalid cluster(0x0)",
        "exFAT-fs (sdb): abnormal access to deleted dentry",
        'ntfs3(sdb): volume is dirty and "force" flag is not set!',
        "ntfs3(sdb): It is recommened to use chkdsk.",
        "ntfs3(sdb): It is recommended to use chkdsk.",
        "ntfs3(sdb): failed to replay log file. Can't mount rw!",
        'ntfs3(sdb): ino=1b, "dir" directory corrupted',
        "F2FS-fs (sdb): invalid crc value",
        "F2FS-fs (sdb): invalid crc_offset: 0",
        "EXT4-fs (sdb): error count since last fsck: 2",
        "EXT4-fs (sdb): warning: mounting fs with errors, running e2fsck is recommended",
        "BTRFS info (device sdb): bdev /dev/sdb errs: wr 5, rd 0, flush 0, corrupt 0, gen 0",
    ],
)
def test_a_filesystem_that_was_cut_is_dirty_when_it_is_mounted_again(text: str) -> None:
    for at, expected in ((BACK + 3, []), (13.0, [VICTIM])):
        made = bench()
        made.add(warn(text, at, 4))
        assert subjects(made) == expected
    made = bench()
    made.add(warn(text.replace("sdb", "sdc"), BACK + 3, 4))
    assert subjects(made) == ["disk2"]


@pytest.mark.parametrize(
    "text",
    [
        "FAT-fs (sdc): utf8 is not a recommended IO charset for FAT filesystems, filesystem will be case sensitive!",
        "XFS (sdc): Deprecated V4 format (crc=0) will not be supported after September 2030.",
    ],
)
def test_what_healthy_filesystems_warn_of(text: str) -> None:
    made = bench()
    made.add(warn(text, 13.0, 4))
    assert found(made) == []


@pytest.mark.parametrize(
    "text",
    [
        "Spectre V2 : WARNING: Unprivileged eBPF is enabled with eIBRS on, data leaks possible",
        "RETBleed: WARNING: Spectre v2 mitigation leaves CPU vulnerable to RETBleed attacks, data leaks possible!",
        "Speculative Store Bypass: Vulnerable",
    ],
)
def test_what_a_kernel_says_of_its_processor_accuses_nobody(text: str) -> None:
    """Some of it has the level of an error (arch/x86/kernel/cpu/bugs.c)."""
    made = bench()
    made.add(warn(text, 13.0, 3))
    assert made.judge(kernel_clean()).unknowns == ()
    assert found(made) == []
    made.add(warn("usb_core: a WARNING that nobody knows", 13.0, 3))
    assert made.judge(kernel_clean()).unknowns != ()


def test_a_program_that_uses_a_bridge_without_claiming_it_disturbs_nobody() -> None:
    made = bench()
    made.add(warn("usb 1-1.2: usbfs: process 345 (hdparm) did not claim interface 0 before use", 13.0, 4))
    assert subjects(made) == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("usb 1-1-port1: couldn't allocate usb_device", ["disk1"]),
        ("usb 1-1.1: can't allocate memory for its descriptors", ["disk1"]),
        ("usb 1-1.1: device descriptor read/64, error -71", []),
    ],
)
def test_no_cut_takes_the_kernels_memory(text: str, found: list[str]) -> None:
    made = bench()
    made.add(warn(text, CUT + 0.1, 3))
    assert subjects(made) == found


@pytest.mark.parametrize(
    ("device", "found"), [("xhci_hcd 0000:00:05.0", ["0000:00:05.0"]), ("usb 1-1", ["hub1"]), ("usb 1-1.1", [])]
)
def test_what_does_not_wake_while_a_disk_is_cut(device: str, found: list[str]) -> None:
    """The disk that is cut is not there to wake, but its controller and its hub are."""
    made = bench()
    made.add(warn(f"{device}: PM: failed to resume async: error -110", CUT + 0.2, 3))
    assert subjects(made) == found
