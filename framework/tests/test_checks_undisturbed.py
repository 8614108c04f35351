"""Nobody outside a blast radius is removed: each defect, and the healthy case next to it."""

from __future__ import annotations

import msgspec
import pytest
from disturbances import CONTROLLER, HUB, TREE, found, removed_uevent, story, subjects
from stories import BACK, CUT, GONE, LAST, SURVIVORS, VICTIM, healthy
from test_kernel_scope import bench, warn

from plugpull.checks import check_name, kept_pace, no_errors
from plugpull.checks.survivors.undisturbed import Undisturbed, undisturbed
from plugpull.history import events as ev
from plugpull.history.reader import Story


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
    begin, _, kname, number = made._attached[VICTIM][0]
    made._attached[VICTIM][0] = (begin, 13.0, kname, number)
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


@pytest.mark.parametrize(("state_at", "many"), [(LAST + 0.05, 0), (LAST + 0.5, 1)])
def test_the_bench_is_taken_down_after_the_last_look_at_the_kernel(state_at: float, many: int) -> None:
    made = bench()
    made.detach("disk2", LAST + 0.1)
    look = ev.DutState(at=state_at, moment="end", boot_id="one")
    events = [*made.scenario(end=False), ev.Phase(at=LAST, name="heal"), look]
    last = max(index for index, event in enumerate(events) if isinstance(event, ev.Judged))
    gone = [event for event in events[:last] if (event.at or 0.0) > LAST]
    events = sorted([event for event in events if event not in gone] + gone, key=lambda event: event.at or 0.0)
    begun = next(event for event in events if isinstance(event, ev.ScenarioBegun))
    assert len(undisturbed().judge(Story(begun, tuple(events), rig=TREE)).findings) == many


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


def test_for_survivors_it_is_what_nearly_every_scenario_asks_for() -> None:
    names = [check_name(check) for check in undisturbed(["disk2", "disk3"])]
    assert names == ["kept_pace", "no_errors", "kernel_clean", "nothing_left", "nothing_stuck"]
    pace, errors = undisturbed("disk2")[:2]
    assert (pace, errors) == (kept_pace("disk2"), no_errors("disk2"))
    assert undisturbed() == Undisturbed()


# --- resets on request ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("disk", "failed", "kind", "accused", "doubted"),
    [
        ("disk2", 2, "virtual", ["disk2"], False),
        ("disk2", 0, "virtual", [], False),
        ("disk2", 2, "ssh", [], True),
        (VICTIM, 2, "virtual", [], False),  # it was cut meanwhile
    ],
)
def test_a_disk_that_cannot_be_reset(disk: str, failed: int, kind: str, accused: list[str], doubted: bool) -> None:
    made = bench()
    made.events = [
        msgspec.structs.replace(event, kind=kind) if isinstance(event, ev.DutReady) else event for event in made.events
    ]
    made.add(ev.DiskRecovered(at=CUT - 0.5, disk=disk, until=CUT + 0.5, resets=3, failed=failed, detail="I/O error"))
    assert subjects(made) == accused
    assert any("resets of" in said for said in undisturbed().judge(story(made)).unknowns) is doubted


@pytest.mark.parametrize(("gap", "accused"), [(0.6, ["disk2"]), (2.0, [])])
def test_a_disk_that_cannot_be_reset_while_the_host_stands_still(gap: float, accused: list[str]) -> None:
    """A host that stands still for seconds lets the kernel's commands time out; a short pause does not."""
    made = bench()
    made.starved = ((CUT - 0.4, CUT - 0.4 + gap),)
    made.add(ev.DiskRecovered(at=CUT - 0.5, disk="disk2", until=CUT + 2, resets=3, failed=2, detail="I/O error"))
    said = undisturbed().judge(story(made))
    assert [finding.subject for finding in said.findings] == accused
    assert any("resets of disk2 failed: I/O error, but the DUT was starved" in why for why in said.unknowns) is (
        not accused
    )
