"""Nobody outside a blast radius is removed, reset or in error: each defect, and the healthy story most like it."""

from __future__ import annotations

import msgspec
import pytest
from stories import BACK, CUT, GONE, LAST, RESTORED, RIG, SURVIVORS, VICTIM, Bench, healthy
from test_kernel_scope import bench, warn

from plugpull.checks import Check, check_name, kept_pace, no_errors
from plugpull.checks.undisturbed import Undisturbed, undisturbed
from plugpull.history import events as ev
from plugpull.history.reader import Story
from plugpull.judging.judge import judge_story
from plugpull.judging.results import Verdict

HUB, CONTROLLER = "/devices/pci0000:00/0000:00:05.0/usb1/1-1", "/devices/pci0000:00/0000:00:05.0"
TREE = {
    **RIG,
    "hub": [{"name": "hub1", "at": "usb.1", "ports": 4, "cable": "cables.4"}],
    "disk": [{**disk, "cable": f"cables.{number}"} for number, disk in enumerate(RIG["disk"], 1)],
}


def story(made: Bench) -> Story:
    found = made.story()
    return Story(found.begun, found.events, rig=TREE)


def found(made: Bench) -> list[tuple[str, str]]:
    return [(finding.subject, finding.summary) for finding in undisturbed().judge(story(made)).findings]


def subjects(made: Bench) -> list[str]:
    return [subject for subject, _ in found(made)]


def removed_uevent(path: str, at: float, disks: tuple[str, ...] = ()) -> ev.Uevent:
    return ev.Uevent(at=at, action="remove", subsystem="usb", devtype="usb_device", devpath=path, disks=disks)


def test_the_healthy_story() -> None:
    assert found(bench()) == []
    assert bench().unreached(undisturbed()) == ()


# --- removals ------------------------------------------------------------------------------------------------------


def test_a_survivor_that_drops_off_and_returns() -> None:
    made = bench()
    made.detach("disk2", CUT + 0.3)
    made.attach("disk2", CUT + 1.3)
    ((subject, said),) = found(made)
    assert subject == "disk2"
    assert said == f"disk2 left at {CUT + 0.3:.2f} s though it was not cut, 0.30 s after disk1.cable was"


def test_the_victim_before_its_cut_and_after_its_return() -> None:
    made = bench()
    made.detach(VICTIM, 22.0)
    made.attach(VICTIM, 23.0)
    assert subjects(made) == [VICTIM]
    made = bench()
    made.replace(ev.DiskDetached, at=13.0)
    assert subjects(made) == [VICTIM]


def test_a_part_of_a_survivor_goes() -> None:
    made = bench()
    made.add(removed_uevent(f"{HUB}/1-1.2", 16.0, ("disk2",)))
    assert subjects(made) == ["disk2"]


def test_partitions_come_and_go() -> None:
    made = bench()
    path = f"{HUB}/1-1.2/1-1.2:1.0/host2/target2:0:0/2:0:0:0/block/sdc/sdc1"
    made.add(
        ev.Uevent(at=13.0, action="remove", subsystem="block", devtype="partition", devpath=path, disks=("disk2",))
    )
    assert found(made) == []


def test_what_leaves_when_the_bench_is_taken_down() -> None:
    made = bench()
    made.detach("disk2", LAST + 0.1)
    events = [*made.scenario(end=False), ev.Phase(at=LAST, name="heal")]
    last = max(index for index, event in enumerate(events) if isinstance(event, ev.Judged))
    gone = [event for event in events[:last] if (event.at or 0.0) > LAST]
    events = [event for event in events if event not in gone] + gone
    begun = events[0]
    assert isinstance(begun, ev.ScenarioBegun)
    assert gone
    assert undisturbed().judge(Story(begun, tuple(events), rig=TREE)).findings == ()


def test_a_hub_that_leaves_uncut_and_one_that_is_cut() -> None:
    made = bench()
    made.add(removed_uevent(HUB, CUT + 0.5))
    ((subject, said),) = found(made)
    assert (subject, said) == ("hub1", f"the hub hub1 (1-1) left at {CUT + 0.5:.2f} s though it was not cut")
    made.replace(ev.CutArmed, point="hub1.cable", victims=(VICTIM, *SURVIVORS))
    assert found(made) == []


def test_the_other_half_of_a_hub_that_is_cut() -> None:
    made = bench()
    made.replace(ev.CutArmed, point="hub1.cable", victims=(VICTIM, *SURVIVORS))
    made.add(removed_uevent(f"{CONTROLLER}/usb2/2-1", CUT + 0.2), removed_uevent(f"{CONTROLLER}/usb2/2-5", CUT + 0.2))
    assert found(made) == []


def test_a_stranger_on_the_benchs_controller() -> None:
    made = bench()
    made.add(removed_uevent(f"{CONTROLLER}/usb1/1-4", 13.0))
    assert subjects(made) == ["1-4"]
    made = bench()
    made.add(removed_uevent("/devices/pci0000:00/0000:00:14.0/usb3/3-4", 13.0))
    assert found(made) == [], "it is on another controller"


def test_on_a_real_machine_a_stranger_is_judged_only_next_to_a_cut() -> None:
    for at, expected in ((13.0, []), (CUT + 0.5, ["1-4"])):
        made = bench()
        (ready,) = (event for event in made.events if isinstance(event, ev.DutReady))
        made.drop(ev.DutReady)
        made.add(msgspec.structs.replace(ready, kind="ssh"), removed_uevent(f"{CONTROLLER}/usb1/1-4", at))
        assert subjects(made) == expected


# --- errors and resets ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "subject"),
    [
        ("usb 1-1.2: reset high-speed USB device number 5 using xhci_hcd", "disk2"),
        ("I/O error, dev sdc, sector 8 op 0x1:(WRITE) flags 0x0 phys_seg 1", "disk2"),
        ("usb 1-1.2: device firmware changed", "disk2"),
        ("sd 2:0:0:0: Power-on or device reset occurred", "disk2"),
        ("usb 1-1: reset high-speed USB device number 2 using xhci_hcd", "hub1"),
        ("usb 1-1: USB disconnect, device number 2", "hub1"),
        ("usb 1-4: reset full-speed USB device number 7 using xhci_hcd", "1-4"),
        ("usb 1-1-port4: over-current condition", "1-1.4"),
    ],
)
@pytest.mark.parametrize("at", [13.0, CUT + 0.1, CUT + 1.0, BACK + 2])
def test_outside_the_blast_radius_at_any_time(text: str, subject: str, at: float) -> None:
    made = bench()
    made.add(warn(text, at, 6))
    assert subjects(made) == [subject]


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


# --- swapped outlets -----------------------------------------------------------------------------------------------


def test_swapped_outlets_accuse_nobody() -> None:
    made = healthy()
    made.replace(ev.DiskDetached, lambda event: event.disk == VICTIM, disk="disk2", kname="sdc", diskseq=2)
    made.drop(ev.DiskAttached, lambda event: event.at != BACK)
    made.drop(ev.Uevent)
    made._attached = {
        VICTIM: [(10.4, LAST, "sdb", 1)],
        "disk2": [(10.5, GONE, "sdc", 2)],
        "disk3": [(10.6, LAST, "sdd", 3)],
    }
    made.replace(ev.KernelMessage, lambda event: "disconnect" in event.text, text="usb 1-1.2: USB disconnect, device 4")
    made.add(warn("I/O error, dev sdc, sector 8", CUT + 0.2))
    made.replace(ev.LoadEnded, lambda event: event.disk == VICTIM, errno=0, asked=True)
    judgement = undisturbed().judge(story(made))
    assert judgement.findings == ()
    assert "the outlets look swapped" in judgement.unknowns[0]


# --- properties ----------------------------------------------------------------------------------------------------


def coming_up(disk: str, port: int, at: float) -> list[ev.Event]:
    size = "131072 512-byte logical blocks: (67.1 MB/64.0 MiB)"
    lines = (size, "Write Protect is off", "Write cache: enabled, read cache: enabled, doesn't support DPO or FUA")
    return [warn(f"sd {port}:0:0:0: [{disk}] {line}", at, 5) for line in lines]


@pytest.mark.parametrize(
    "text",
    [
        "sdc: detected capacity change from 131072 to 0",
        "sdc: detected capacity change from 131072 to 65536",
        "sd 2:0:0:0: [sdc] Write Protect is on",
        "sd 2:0:0:0: [sdc] Write cache: disabled, read cache: enabled, doesn't support DPO or FUA",
        "sd 2:0:0:0: [sdc] Assuming drive cache: write through",
        "sd 2:0:0:0: [sdc] 65536 512-byte logical blocks: (33.6 MB/32.0 MiB)",
        "sd 2:0:0:0: [sdc] 0 512-byte logical blocks: (0 B/0 B)",
    ],
)
def test_a_survivor_changes_its_properties(text: str) -> None:
    made = bench()
    made.add(*coming_up("sdc", 2, 10.49), warn(text, CUT + 0.5, 5))
    assert "disk2" in subjects(made)
    assert len(subjects(made)) == 1


def test_a_victim_comes_back_as_it_was_or_does_not() -> None:
    made = bench()
    made.add(*coming_up("sdb", 1, 10.39), *coming_up("sdb", 1, BACK - 0.02))
    made.add(warn("sdb: detected capacity change from 131072 to 0", GONE - 0.01, 6))
    assert found(made) == []
    made.add(warn("sd 1:0:0:0: [sdb] Assuming drive cache: write through", BACK - 0.01, 3))
    ((subject, said),) = found(made)
    assert (subject, said) == (VICTIM, f"disk1 had a write cache and has no write cache since {BACK - 0.01:.2f} s")


@pytest.mark.parametrize("blocks", ["16384 4096-byte", "131064 512-byte"])
def test_a_victim_comes_back_with_other_blocks(blocks: str) -> None:
    made = bench()
    made.add(*coming_up("sdb", 1, 10.39))
    made.add(warn(f"sd 1:0:0:0: [sdb] {blocks} logical blocks: (67.1 MB/64.0 MiB)", BACK - 0.02, 5))
    ((subject, said),) = found(made)
    number, size = blocks.removesuffix("-byte").split()
    now = f"has {number} blocks of {size} bytes since {BACK - 0.02:.2f} s"
    assert (subject, said) == (VICTIM, f"disk1 had 131072 blocks of 512 bytes and {now}")


def test_a_disk_that_cannot_be_asked_for_its_size_has_not_changed_it() -> None:
    made = bench()
    nothing = "sd 1:0:0:0: [sdb] 0 512-byte logical blocks: (0 B/0 B)"
    made.add(warn(nothing, 10.3, 5), *coming_up("sdb", 1, 10.39), warn(nothing, GONE - 0.01, 5))
    made.add(warn(nothing, BACK - 0.5, 5), *coming_up("sdb", 1, BACK - 0.02))
    assert found(made) == []


def test_a_size_that_is_logged_long_before_the_disk_is_announced_is_its_own() -> None:
    """Both disks went, and each comes back under the other's name, slowly."""
    made = bench()
    made.replace(ev.CutArmed, point="hub1.cable", victims=(VICTIM, "disk2"))
    made.detach("disk2", GONE)
    made.drop(ev.DiskAttached, lambda event: event.at != BACK)
    made.attach(VICTIM, BACK, kname="sdc")
    made.attach("disk2", BACK + 0.1, kname="sdb")
    small = "sd 2:0:0:0: [{}] 65536 512-byte logical blocks: (33.6 MB/32.0 MiB)"
    made.add(*coming_up("sdb", 1, 10.39)[:1], warn(small.format("sdc"), 10.49, 5))
    made.add(*coming_up("sdc", 1, BACK - 1.5)[:1], warn(small.format("sdb"), BACK - 1.4, 5))
    assert found(made) == []


def test_names_that_are_exchanged_on_return_exchange_no_properties() -> None:
    made = bench()
    made.replace(ev.CutArmed, point="hub1.cable", victims=(VICTIM, "disk2"))
    made.detach("disk2", GONE)
    made.drop(ev.DiskAttached, lambda event: event.at != BACK)
    made.attach(VICTIM, BACK, kname="sdc")
    made.attach("disk2", BACK + 0.1, kname="sdb")
    through = "sd {}:0:0:0: [{}] Write cache: disabled, read cache: enabled, doesn't support DPO or FUA"
    made.add(*coming_up("sdb", 1, 10.39), warn(through.format(2, "sdc"), 10.49, 5))
    made.add(*coming_up("sdc", 1, BACK - 0.02), warn(through.format(2, "sdb"), BACK + 0.08, 5))
    assert found(made) == []


def test_it_has_no_required_fields() -> None:
    check: Check = undisturbed()
    assert msgspec.json.encode(check) == b'{"check":"undisturbed"}'


# --- a record with holes -------------------------------------------------------------------------------------------


def test_a_cut_whose_edges_are_not_on_record_accuses_nobody() -> None:
    made = bench()
    made.drop(ev.Edge)
    assert found(made) == []
    made = bench()
    made.drop(ev.CutArmed)
    assert found(made) == []
    made.replace(ev.Edge, point="hub1.cable")
    assert found(made) == []
    made.replace(ev.Edge, point="disk3.cable")
    assert set(subjects(made)) == {VICTIM}, "it left, and its load met an error"


def test_a_removal_or_an_attachment_that_is_not_on_record_accuses_nobody() -> None:
    reset = warn("sd 1:0:0:0: Power-on or device reset occurred", BACK - 0.03, 4)
    made = bench()
    made.add(reset)
    made.drop(ev.DiskDetached)
    assert found(made) == []
    made = bench()
    made.replace(ev.CutArmed, point="hub1.cable")
    made.drop(ev.DiskAttached, lambda event: event.disk != VICTIM or event.at == BACK)
    made.add(reset, removed_uevent(HUB, CUT + 0.1), warn("usb 1-1: USB disconnect, device number 2", CUT + 0.05, 6))
    assert found(made) == []


def test_a_first_attachment_that_is_not_on_record_was_one_all_the_same() -> None:
    made = bench()
    made.drop(ev.DiskAttached, lambda event: event.disk != VICTIM or event.at == BACK)
    made.add(warn("usb 1-1.1: not running at top speed; connect to a high speed hub", 10.1, 6))
    assert found(made) == []


def test_a_survivor_loses_its_capacity_soon_after_it_came_up() -> None:
    made = bench()
    made.add(warn("sdc: detected capacity change from 0 to 131072", 10.51, 6))
    assert found(made) == []
    made.add(warn("sdc: detected capacity change from 131072 to 0", 10.9, 6))
    assert subjects(made) == ["disk2"]


@pytest.mark.parametrize(
    "text",
    [
        "FAT-fs (sdb): Volume was not properly unmounted. Some data may be corrupt. Please run fsck.",
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


def test_for_survivors_it_is_what_nearly_every_scenario_asks_for() -> None:
    names = [check_name(check) for check in undisturbed(["disk2", "disk3"])]
    assert names == ["kept_pace", "no_errors", "kernel_clean", "nothing_left", "nothing_stuck"]
    pace, errors = undisturbed("disk2")[:2]
    assert (pace, errors) == (kept_pace("disk2"), no_errors("disk2"))
    assert undisturbed() == Undisturbed()
