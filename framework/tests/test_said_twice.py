"""What no recorded history of the tests has: cuts, reports and sleeps that cannot be as they are on record."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace
from stories import VICTIM, Bench, healthy

from plugpull.checks.record.coherent import coherent
from plugpull.checks.record.impossible import MECHANISMS, impossible
from plugpull.checks.record.line_order import FILED, lines_out_of_order
from plugpull.checks.record.said_twice import said_otherwise
from plugpull.history import events as ev
from plugpull.history.story import Story
from plugpull.rig.model import Mechanism


def doubts(bench: Bench) -> list[str]:
    story = bench.story()
    return [*lines_out_of_order(story), *said_otherwise(story), *impossible(story)]


def test_a_healthy_record_says_nothing_twice_otherwise() -> None:
    assert doubts(healthy()) == []
    assert healthy().judge(coherent()).unknowns == ()


@pytest.mark.parametrize(
    ("argv", "disks", "noticed"),
    [
        (("copy", "--direct=1"), ("disk1", "disk2"), False),
        (("copy", "--direct=1"), ("disk1", "disk2", "disk3"), True),
        (("fio", "--direct=1"), ("disk1", "disk2"), True),
    ],
)
def test_a_job_is_of_one_disk_and_a_copy_of_two(argv: tuple[str, ...], disks: tuple[str, ...], noticed: bool) -> None:
    bench = healthy()
    for disk in disks:
        begun = ev.LoadBegun(at=20.0, disk=disk, job="both", mode="read", block=1, depth=1, span=1, kname="", argv=argv)
        bench.add(begun, ev.LoadEnded(at=21.0, disk=disk, job="both", asked=True))
    found = [one for one in said_otherwise(bench.story()) if one.startswith("the job both is of ")]
    assert bool(found) == noticed


@pytest.mark.parametrize(
    ("mode", "moved", "doubted"),
    [
        ("randread", {"read_bytes": 4096}, False),
        ("randread", {"written_bytes": 4096}, True),
        ("write", {"written_bytes": 4096}, False),
        ("write", {"read_bytes": 4096}, True),
        ("randrw", {"read_bytes": 4096, "written_bytes": 4096}, False),
    ],
)
def test_a_load_moves_data_in_its_direction(mode: ev.LoadMode, moved: dict[str, Any], doubted: bool) -> None:
    bench = healthy()
    begun = ev.LoadBegun(at=20.0, disk=VICTIM, job="one", mode=mode, block=4096, depth=1, span=1 << 20)
    bench.add(begun, ev.LoadEnded(at=21.0, disk=VICTIM, job="one", asked=True, **moved))
    assert any("is on record as" in doubt for doubt in doubts(bench)) is doubted


@pytest.mark.parametrize(("logical", "doubted"), [(512, False), (4096, True)])
def test_a_disk_is_read_back_in_its_own_blocks(logical: int, doubted: bool) -> None:
    bench = healthy()
    stay = next(one for one in bench.story().all_attachments if one.disk == VICTIM)
    values = {"logical_block_size": "512"}
    read = ev.DiskProperties(
        at=10.6, disk=VICTIM, kname=stay.kname, diskseq=stay.diskseq, moment="begin", values=values
    )
    bench.add(read, ev.ReadBackBegun(at=24.0, disk=VICTIM, job="", session=1, extents=((0, 8),), logical=logical))
    assert any("was read back in blocks of" in doubt for doubt in doubts(bench)) is doubted


def test_the_mechanisms_are_those_of_rig_files() -> None:
    assert {str(one) for one in Mechanism} == MECHANISMS


def test_a_cut_of_no_mechanism() -> None:
    bench = healthy()
    bench.replace(ev.CutArmed, lambda event: True, mechanism="hope")
    assert doubts(bench) == [f"{VICTIM}.cable was cut by 'hope'"]


@pytest.mark.parametrize(
    ("until", "said"),
    [(11.0, "a dut.suspended began at 20.00 s and was over at 11.00 s"), (500.0, "was over at 500.00 s, and the")],
)
def test_a_sleep_that_ends_before_it_begins_or_after_the_scenario(until: float, said: str) -> None:
    bench = healthy()
    bench.add(ev.DutSuspended(at=20.0, until=until, ok=False))
    story = bench.story()
    events = [replace(one, at=27.0) if isinstance(one, ev.ScenarioEnded) else one for one in story.events]
    found = list(impossible(Story(story.begun, tuple(events), rig=story.rig)))
    assert any(said in one for one in found), found


@pytest.mark.parametrize(
    ("subsystem", "devtype", "end", "odd"),
    [
        ("usb", "usb_device", "usb1/1-1", False),
        ("usb", "usb_device", "usb1", False),
        ("usb", "usb_device", "usb1/1-1/1-1:1.0", True),
        ("usb", "usb_interface", "usb1/1-1.2/1-1.2:1.0", False),
        ("scsi", "scsi_host", "usb1/1-1/1-1:1.0/host2", False),
        ("scsi", "scsi_target", "usb1/1-1/1-1:1.0/host2", True),
        ("scsi", "scsi_device", "usb1/1-1/1-1:1.0/host2/target2:0:0/2:0:0:0", False),
        ("usb", "scsi_target", "usb1/1-1/1-1:1.0/host2/target2:0:0/2:0:0:0", True),
    ],
)
def test_a_uevent_of_a_kind_that_is_not_at_its_path(subsystem: str, devtype: str, end: str, odd: bool) -> None:
    bench = healthy()
    path = f"/devices/pci0000:00/0000:00:05.0/{end}"
    bench.add(ev.Uevent(at=20.0, action="bind", subsystem=subsystem, devtype=devtype, devpath=path))
    assert doubts(bench) == ([f"a uevent of {subsystem} {devtype} at 20.00 s is at {path}"] if odd else [])


@pytest.mark.parametrize(("until", "doubted"), [(25.7, False), (11.0, True), (500.0, True)])
def test_properties_are_read_until_a_time_of_the_scenario(until: float, doubted: bool) -> None:
    bench = healthy()
    stay = next(one for one in bench.story().all_attachments if one.disk == VICTIM)
    bench.add(
        ev.DiskProperties(
            at=25.6, disk=VICTIM, kname=stay.kname, diskseq=stay.diskseq, moment="end", values={}, until=until
        )
    )
    story = bench.story()
    events = tuple(replace(one, at=27.0) if isinstance(one, ev.ScenarioEnded) else one for one in story.events)
    found = list(impossible(Story(story.begun, events, rig=story.rig)))
    assert any("disk.properties" in one and "was over at" in one for one in found) is doubted, found


def test_an_nvme_disk_is_a_block_device_without_a_block_directory() -> None:
    bench = healthy()
    path = "/devices/pci0000:00/0000:00:1d.0/0000:3d:00.0/nvme/nvme0/nvme0n1"
    bench.add(ev.Uevent(at=20.0, action="change", subsystem="block", devtype="disk", devpath=path))
    assert doubts(bench) == []


@pytest.mark.parametrize(("late", "noticed"), [(FILED - 0.5, False), (FILED + 0.5, True)])
def test_a_line_of_an_earlier_time(late: float, noticed: bool) -> None:
    bench = healthy()
    story = bench.story()
    events = list(story.events)
    place = next(i for i, event in enumerate(events) if isinstance(event, ev.Judged))
    latest = max(event.at or 0.0 for event in story.others[: story.others.index(events[place])])
    events.insert(place, ev.Phase(at=latest - late, name="hold"))
    said = list(lines_out_of_order(Story(story.begun, tuple(events), rig=story.rig)))
    assert bool(said) == noticed, said


@pytest.mark.parametrize("slept", [False, True])
def test_a_line_that_is_written_after_a_sleep(slept: bool) -> None:
    """It may be of the time before, which counts as no delay."""
    bench = healthy()
    story = bench.story()
    events = list(story.events)
    place = next(i for i, event in enumerate(events) if isinstance(event, ev.Judged))
    latest = max(event.at or 0.0 for event in story.others[: story.others.index(events[place])])
    events.insert(place, ev.Phase(at=latest - FILED - 2.0, name="hold"))
    if slept:
        events.append(ev.DutSuspended(at=latest - FILED - 1.0, until=latest - 0.5, ok=True))
    said = list(lines_out_of_order(Story(story.begun, tuple(events), rig=story.rig)))
    assert bool(said) == (not slept), said
