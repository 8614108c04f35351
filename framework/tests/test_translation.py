"""The agent's messages as events with the rig's names; and what becomes of messages that make no sense, or stop."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from desks import BLOCK, PATIENCE, USB, described, desk

from plugpull.dut.conversation.disk_table import DiskTable
from plugpull.dut.conversation.link import AgentGone
from plugpull.dut.conversation.translation import translate
from plugpull.history import events as ev
from plugpull.history.counters import Counters
from plugpull.history.recorder import Recorder


@pytest.fixture
def disk_table() -> DiskTable:
    return DiskTable({"disk1": "S-1", "disk2": "S-2"}, {"disk1": "0000:00:05.0/1:0"})


# --- which name is which disk -----------------------------------------------------------------------------------------


def test_a_disk_is_known_by_its_serial_number_whatever_it_is_called(disk_table: DiskTable) -> None:
    first = disk_table.attach(described("S-2", "sda", 3), 1.0)
    assert (first.disk, first.kname, first.diskseq) == ("disk2", "sda", 3)
    assert disk_table.attached("disk2") == first
    assert disk_table.attached("disk1") is None


def test_a_disk_the_rig_does_not_know_is_put_on_record_without_a_name(disk_table: DiskTable) -> None:
    assert disk_table.attach(described("STRANGER"), 1.0).disk == ""
    assert disk_table.attached("disk1") is None
    assert disk_table.below(BLOCK.removeprefix("/sys")) == ()


def test_a_detached_disk_is_named_as_it_was(disk_table: DiskTable) -> None:
    disk_table.attach(described("S-1", "sda", 7), 1.0)
    assert disk_table.detach("sda", 2.0) == ev.DiskDetached(at=2.0, disk="disk1", kname="sda", diskseq=7)
    assert disk_table.attached("disk1") is None
    assert disk_table.detach("sda", 3.0) == ev.DiskDetached(at=3.0, disk="", kname="sda", diskseq=0)


def test_a_name_that_is_handed_on_belongs_to_its_new_disk(disk_table: DiskTable) -> None:
    disk_table.attach(described("S-1", "sda", 7), 1.0)
    disk_table.detach("sda", 2.0)
    disk_table.attach(described("S-2", "sda", 8), 3.0)
    assert disk_table.attached("disk1") is None
    now = disk_table.attached("disk2")
    assert now is not None
    assert (now.kname, now.diskseq) == ("sda", 8)


def test_a_disk_back_under_another_name_before_the_old_one_is_gone(disk_table: DiskTable) -> None:
    disk_table.attach(described("S-1", "sda", 7), 1.0)
    disk_table.attach(described("S-1", "sdb", 8), 2.0)
    disk_table.detach("sda", 3.0)
    now = disk_table.attached("disk1")
    assert now is not None
    assert (now.kname, now.diskseq) == ("sdb", 8)


@pytest.mark.parametrize(
    ("path", "below"),
    [
        (USB, ("disk1",)),
        (f"{BLOCK}/sda", ("disk1",)),
        ("/sys/devices/pci0000:00/0000:00:05.0/usb1", ("disk1",)),
        ("/sys/devices/pci0000:00/0000:00:05.0/usb1/1-10", ()),
        ("/sys/devices/pci0000:00/0000:00:05.0/usb1/1-1/1-1:1.1", ()),
        (f"{BLOCK}/sda/sda1", ()),
    ],
)
def test_a_path_leads_to_the_disks_that_hang_or_hung_below_it(
    disk_table: DiskTable, path: str, below: tuple[str, ...]
) -> None:
    disk_table.attach(described(), 1.0)
    assert disk_table.below(path.removeprefix("/sys")) == below
    disk_table.detach("sda", 2.0)
    assert disk_table.below(path.removeprefix("/sys")) == below


# --- messages and events ----------------------------------------------------------------------------------------------

STAT = "10 1 2048 5 20 2 4096 6 3 77 88 0 0 0 0 1 1"
"""17 numbers, as kernels since 5.5 have (Documentation/block/stat.rst); reads and writes in flight come after."""


@pytest.mark.parametrize(
    ("message", "event"),
    [
        (
            {"ev": "kmsg", "at": 1.5, "level": 3, "seq": 42, "text": "usb 1-1: USB disconnect"},
            ev.KernelMessage(at=1.5, text="usb 1-1: USB disconnect", level=3, seq=42),
        ),
        ({"ev": "kmsg.lost", "at": 1.5, "count": 12}, ev.LogLost(at=1.5, count=12)),
        (
            {"ev": "sample", "at": 2.0, "disks": {"sda": [7, f"{STAT} 2 3 "]}, "cpu": "cpu 10 0 20 60 5 1 4 0 0 0"},
            ev.Sampled(at=2.0, disks={"sda": Counters(7, 2048 * 512, 4096 * 512, 10, 20, 2, 3, 77)}, cpu=(35, 100)),
        ),
        ({"ev": "sample", "at": 2.0, "disks": {}}, ev.Sampled(at=2.0, disks={})),
        (
            {"ev": "sample", "at": 2.0, "disks": {"sda": [7, "1 2 3 4 5 6 7 8 9 10 11 0 0"]}},  # before 4.18
            ev.Sampled(at=2.0, disks={"sda": Counters(7, 3 * 512, 7 * 512, 1, 5, 0, 0, 10)}),
        ),
        (
            {"ev": "dropped", "at": 3.0, "count": 9},
            ev.RigFault(at=3.0, summary="the agent had to drop 9 messages: the stream did not keep up"),
        ),
        (
            {"ev": "watcher.broken", "at": 3.0, "what": "uevents", "why": "ENOBUFS"},
            ev.RigFault(at=3.0, summary="the agent cannot read uevents any more: ENOBUFS"),
        ),
        ({"ev": "job.end", "at": 3.0, "job": "load1"}, None),
        ({"ev": "something new"}, None),
        ({}, None),
    ],
)
def test_each_message_becomes_its_event(disk_table: DiskTable, message: dict[str, Any], event: ev.Event | None) -> None:
    assert translate(message, disk_table) == event


def test_a_uevent_names_the_disks_it_is_about(disk_table: DiskTable) -> None:
    disk_table.attach(described(), 1.0)
    message = {
        "ev": "uevent",
        "at": 2.0,
        "action": "remove",
        "subsystem": "usb",
        "devpath": USB.removeprefix("/sys"),
        "devtype": "usb_device",
        "seqnum": 99,
    }
    event = translate(message, disk_table)
    assert isinstance(event, ev.Uevent)
    assert (event.action, event.seqnum, event.disks) == ("remove", 99, ("disk1",))


# --- keeping on listening ---------------------------------------------------------------------------------------------


def test_what_comes_before_listening_begins_is_not_lost(tmp_path: Path) -> None:
    early = {"ev": "disk.add", "at": 0.5, "disk": described()}
    with desk(tmp_path, early=[early]) as on_desk:
        assert on_desk.context.bench.disk_table.attached("disk1") is not None
        assert isinstance(on_desk.recorder.since(0)[0], ev.DiskAttached)


@pytest.mark.parametrize(
    "nonsense",
    [
        {"ev": "kmsg", "at": 1.0},
        {"ev": "sample", "at": 1.0, "disks": {"sda": [7, "1 2 three"]}},
        {"ev": "sample", "at": 1.0, "disks": {"sda": [7, "1 2 3"]}},
        {"ev": "sample", "at": 1.0, "disks": 5},
        {"ev": "disk.add", "at": 1.0, "disk": {}},
        {"ev": "disk.add", "at": 1.0},
        {"ev": "job.end"},
    ],
)
def test_nonsense_is_evidence_lost_and_listening_goes_on(tmp_path: Path, nonsense: dict[str, Any]) -> None:
    with desk(tmp_path) as on_desk:
        on_desk.report(nonsense)
        on_desk.report({"ev": "kmsg", "at": 2.0, "level": 6, "seq": 1, "text": "after"})
        assert on_desk.wait_for(ev.KernelMessage).text == "after"
        assert "cannot be understood" in on_desk.wait_for(ev.RigFault, since=0).summary


def test_a_damaged_line_is_evidence_lost(tmp_path: Path) -> None:
    with desk(tmp_path) as on_desk:
        on_desk.send(b'{"ev": "kmsg", "at": 2.0, "te\n')
        on_desk.send(b"\xff\xff\n")
        first = on_desk.wait_for(ev.RigFault, since=0)
        assert "from the agent could not be read" in first.summary
    faults = [event for event in on_desk.recorder.since(0) if isinstance(event, ev.RigFault)]
    assert sum(int(fault.summary.split()[0]) for fault in faults) == 2


def test_a_job_that_ends_is_told_to_who_expects_it_and_is_no_event(tmp_path: Path) -> None:
    ends: list[dict[str, Any]] = []
    with desk(tmp_path) as on_desk:
        on_desk.listener.expect("load1", ends.append)
        for job in ("load2", "load1", "load1"):
            on_desk.report({"ev": "job.end", "at": 1.0, "job": job, "status": 0})
        on_desk.report({"ev": "kmsg", "at": 2.0, "level": 6, "seq": 1, "text": "after"})
        on_desk.wait_for(ev.KernelMessage)
    assert [end["job"] for end in ends] == ["load1"]


def test_the_end_of_the_stream_is_put_on_record_and_ends_all_waiting(tmp_path: Path) -> None:
    with desk(tmp_path) as on_desk:
        on_desk.hang_up()
        lost = on_desk.wait_for(ev.AgentLost, since=0)
        assert "stream ended" in lost.why
        with pytest.raises(AgentGone, match="stream ended"):
            on_desk.context.wait_for(lambda event: False, 60.0)
        with pytest.raises(AgentGone):
            on_desk.context.pause(60.0)


def test_disks_are_waited_for_until_the_last_one_is_there(tmp_path: Path) -> None:
    names = ("disk1", "disk2")
    with desk(tmp_path) as on_desk:
        assert on_desk.context.wait_attached(names, 0.05) == names
        for number in (1, 2):
            on_desk.attach(number)
        begun = time.monotonic()
        assert on_desk.context.wait_attached(names, 60.0) == ()
        mark = on_desk.recorder.mark()
        on_desk.report({"ev": "disk.remove", "at": 2.0, "kname": "sd1"})
        assert on_desk.context.wait_for(lambda event: isinstance(event, ev.DiskDetached), 60.0, since=mark)
        assert on_desk.context.wait_attached(names, 0.05) == ("disk1",)
        assert time.monotonic() - begun < 60


class ComesJustAfterALook(DiskTable):
    """Disks are found by the kernel right after somebody looked and did not see them."""

    recorder: Recorder

    def attached(self, disk: str) -> ev.DiskAttached | None:
        seen = super().attached(disk)
        if seen is None:
            self.recorder.record(self.attach(described(), 1.0))
        return seen


def test_a_disk_that_comes_right_after_a_look_is_not_waited_for(tmp_path: Path) -> None:
    with desk(tmp_path) as on_desk:
        disk_table = ComesJustAfterALook({"disk1": "S-1"}, {})
        disk_table.recorder = on_desk.recorder
        on_desk.bench.disk_table = disk_table
        begun = time.monotonic()
        assert on_desk.context.wait_attached(("disk1",), PATIENCE) == ()
        assert time.monotonic() - begun < PATIENCE, "it was waited for until the deadline"
