"""Devices with several logical units: disks that go together, and a false CD-ROM that is not a disk."""

from __future__ import annotations

import pytest
from desks import described
from rig_builder import a_rig
from rig_texts import mistakes
from stories import BACK, CUT, LAST, VICTIM, Bench, healthy

from plugpull.checks import other_units, returned, undisturbed
from plugpull.checks.survivors.strangers import strangers
from plugpull.checks.victims.other_units import written_units
from plugpull.dut.conversation.disk_table import DiskTable
from plugpull.history import events as ev
from plugpull.history.counters import Counters
from plugpull.rig.topology import Topology, sockets_elsewhere
from plugpull.targets.disk import RigDisk

TOWER = (
    a_rig()
    .switch(ports=2)
    .switch("mains", ports=1, mechanism="mains")
    .controller(ports=4)
    .disk("bay1", "usb.1", "T", cable="cables.1", power="mains.1")
    .disk("bay2", "usb.1", "T", lun=1, cable="cables.1")
    .disk("bay3", "usb.1", "T", lun=2)
    .disk("plain", "usb.2", "P", cable="cables.2")
)


def test_a_cut_takes_every_unit_of_the_device() -> None:
    points = Topology(TOWER.load()).cut_points()
    tower = ("bay1", "bay2", "bay3")
    assert {name: point.victims for name, point in points.items()} == {
        "bay1.cable": tower,
        "bay1.power": tower,
        "bay2.cable": tower,
        "plain.cable": ("plain",),
    }
    assert points["bay1.power"].unpowered == tower
    assert sockets_elsewhere(TOWER.hub("hub1", "usb.3").load(), ["bay1", "plain"], "hub1") == {"plain": "usb.4"}


def test_units_of_one_device_are_alike() -> None:
    text = TOWER.text
    assert mistakes(text.replace('"T"\nsize = "64 MiB"\nlun = 2', '^"U"\nsize = "64 MiB"\nlun = 2')) == [
        'it is a logical unit of the device of bay1, which has the serial "T"'
    ]
    twice = text.replace(
        'at = "usb.1"\nserial = "T"\nsize = "64 MiB"\nlun = 2', 'at = ^"usb.1"\nserial = "T"\nsize = "64 MiB"\nlun = 1'
    )
    assert mistakes(twice) == ['port 1 of "usb" is already used by bay2 at line 28']
    assert mistakes(text.replace("lun = 2", "lun = ^3")) == [
        "the logical units of an emulated device are numbered from 0 without a gap, not 3"
    ]


def test_a_disk_is_recognised_by_its_unit() -> None:
    places = {"bay1": "0000:00:05.0/1:0", "bay2": "0000:00:05.0/1:1"}
    table = DiskTable({"bay1": "T", "bay2": "T"}, places)
    assert table.attach(described("T", "sdb", place="0000:00:05.0/1:1"), 1.0).disk == "bay2"
    assert table.attach(described("T", "sda", place="0000:00:05.0/1:0"), 1.0).disk == "bay1"
    assert table.attach(described("T", "sdc", place="0000:00:05.0/1:2"), 1.0).disk == ""
    assert [one.kname for one in table.beside("bay1")] == ["sdc"]


def test_a_cdrom_is_not_taken_for_a_disk() -> None:
    table = DiskTable({"stick": "T"}, {"stick": "0000:00:05.0/1:0"})
    assert table.attach(described("T", "sr0", place="0000:00:05.0/1:0", type=5), 1.0).disk == ""
    assert table.attached("stick") is None


def with_cdrom(*times: float) -> Bench:
    """The victim's device shows a CD-ROM, which is announced at these times."""
    bench = healthy()
    for number, at in enumerate(times):
        cdrom = {"kname": "sr0", "place": "0000:00:05.0/1.1:1", "scsi_type": 5}
        known = {"diskseq": 50 + number, "devt": "11:0", "serial": f"S-{VICTIM}", "size": 2048}
        bench.add(ev.DiskAttached(at=at, disk="", **cdrom, **known))  # type: ignore[arg-type]
    if times and times[0] < CUT:
        bench.add(ev.DiskDetached(at=CUT + 0.05, disk="", kname="sr0", diskseq=50))
    return bench


def test_a_cdrom_that_goes_and_comes_with_its_disk_is_reported() -> None:
    bench = with_cdrom(10.4, BACK + 0.1)
    judgement = bench.judge(other_units(VICTIM))
    assert (judgement.findings, judgement.unknowns) == ((), ())
    assert judgement.worst == "disk1 also shows a CD-ROM, sr0"
    assert bench.judge(returned(VICTIM)).findings == ()


def test_a_cdrom_that_stays_away() -> None:
    (finding,) = with_cdrom(10.4).judge(returned(VICTIM)).findings
    assert finding.summary == "disk1 came back without its other unit, sr0 at 0000:00:05.0/1.1:1"


def test_whether_a_cdrom_stays_away_is_not_said_without_evidence() -> None:
    bench = with_cdrom(10.4)
    bench.add(ev.AgentLost(at=BACK + 0.5, why="it fell silent"))
    assert not [one for one in bench.judge(returned(VICTIM)).findings if "without" in one.summary]


def test_a_cdrom_that_appears_after_the_return() -> None:
    (finding,) = with_cdrom(BACK + 0.1).judge(returned(VICTIM)).findings
    assert "came back with another unit, sr0" in finding.summary


def test_a_run_that_uses_the_cdrom_is_unknown() -> None:
    bench = with_cdrom(10.4, BACK + 0.1)
    load = ev.LoadBegun(at=LAST - 3, disk=VICTIM, job="j", mode="write", block=4096, depth=1, span=4096, kname="sr0")
    bench.add(load)
    assert "the run used sr0" in bench.judge(other_units(VICTIM)).unknowns[0]


def written(number: int, scsi_type: int) -> list[tuple[str, str, str]]:
    bench = with_cdrom(10.4, BACK + 0.1)
    bench.replace(ev.DiskAttached, lambda event: not event.disk, scsi_type=scsi_type)
    bench.add(ev.Sampled(at=LAST, disks={"sr0": Counters(51, 8192, number, 2, number >> 12, 0, 0, 0)}))
    return [(one.check, one.subject, one.summary) for one in written_units(bench.story())]


def test_a_unit_that_is_written_is_found_in_every_scenario(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel may read a CD-ROM, to look for partitions. On a real bench a disk that the rig file does not have may
    be somebody else's."""
    found = [("other_units", VICTIM, "4096 bytes were written to sr0, another unit of disk1")]
    assert (written(4096, 0), written(4096, 5), written(0, 5)) == (found, found, [])
    monkeypatch.setattr("plugpull.checks.victims.other_units.bench_kind", lambda story: "ssh")
    assert (written(4096, 0), written(4096, 5), written(0, 5)) == ([], found, [])


def test_a_disk_without_other_units_is_unknown() -> None:
    assert "no other unit beside disk1" in healthy().judge(other_units(VICTIM)).unknowns[0]


def test_the_stamps_of_units_differ() -> None:
    topology = Topology(TOWER.load())
    assert [RigDisk(name, topology).identity for name in ("bay1", "bay2", "plain")] == ["T", "T:1", "P"]


def test_a_cdrom_that_comes_back_is_not_a_stranger() -> None:
    bench = with_cdrom(10.4, BACK + 0.1)
    bench.add(ev.Census(at=11.0, moment="begin", things={}, slab={}))
    assert list(strangers(bench.story())) == []
    bench = with_cdrom(BACK + 0.1)
    bench.add(ev.Census(at=11.0, moment="begin", things={}, slab={}))
    assert "a disk that is not of the rig came" in next(iter(strangers(bench.story())))


def test_resets_that_were_asked_for_are_explained_and_a_removal_is_not() -> None:
    bench = healthy()
    reset = ev.KernelMessage(at=13.0, text="usb 1-1.2: reset high-speed USB device number 5 using xhci_hcd")
    bench.add(reset)
    assert bench.judge(undisturbed()).findings
    bench.add(ev.DiskRecovered(at=12.9, disk="disk2", until=13.2, resets=3))
    assert not bench.judge(undisturbed()).findings
    bench.detach("disk2", 13.1)
    assert "disk2 left at 13.1" in bench.judge(undisturbed()).findings[0].summary


@pytest.mark.parametrize("text", ["device descriptor read/64, error -71", "device not accepting address 5, error -71"])
def test_a_disk_that_does_not_answer_to_a_reset_is_a_finding(text: str) -> None:
    bench = healthy()
    bench.add(
        ev.DiskRecovered(at=12.9, disk="disk2", until=13.2, resets=3),
        ev.KernelMessage(at=13.0, text=f"usb 1-1.2: {text}", level=3),
    )
    (finding,) = bench.judge(undisturbed()).findings
    assert text in " ".join((finding.summary, *finding.evidence))
