"""The check ``nothing_left``: what is left over on the DUT, and what is missing there."""

from __future__ import annotations

import pytest
from censuses import HOST, counted, judged
from msgspec.structs import replace
from stories import healthy

from plugpull.checks import nothing_left
from plugpull.checks.base import Judgement
from plugpull.checks.dut.residue import NothingLeft, left_over
from plugpull.history import events as ev


def test_a_dut_back_where_it_began() -> None:
    judgement = judged(nothing_left(), counted("begin"), counted("cycle", mount=("x",)), counted("end"))
    assert (judgement.findings, judgement.unknowns) == ((), ())
    assert judgement.worst == "nothing left over"


def test_a_disk_that_went_is_not_left_over() -> None:
    assert judged(nothing_left(), counted("begin"), counted("end", scsi_host=())).findings == ()


@pytest.mark.parametrize(
    ("kind", "names", "words"),
    [
        ("scsi host", (HOST, HOST), f"scsi host {HOST}"),
        ("usb device", ("1-1", "1-2", "usb1"), "usb device 1-2"),
        ("mount", ("/dev/sda on /mnt (ext4)",), "mount /dev/sda on /mnt (ext4)"),
        ("block device", ("md127",), "block device md127"),
        ("reference to a hub", ("usb1", "usb1"), "reference to a hub usb1, 2 times"),
        ("open file", ("/dev/sdb (deleted)", "/dev/sdb (deleted)"), "open file /dev/sdb (deleted), 2 times"),
    ],
)
def test_what_is_left_over_is_named(kind: str, names: tuple[str, ...], words: str) -> None:
    end = counted("end", 1000, **{kind.replace(" ", "_"): names})
    (finding,) = judged(nothing_left(), counted("begin"), end).findings
    assert (finding.subject, finding.summary) == (kind, f"left over on the DUT: {words}")


def test_a_dut_that_was_not_counted_is_unknown() -> None:
    assert judged(nothing_left(), counted("begin")).unknowns
    assert judged(nothing_left(), counted("end")).unknowns


def test_a_disk_with_another_serial_number_is_not_left_over() -> None:
    begin = counted("begin", block_device=("0000:00:10.0/1:0 (serial A)",))
    end = counted("end", block_device=("0000:00:10.0/1:0 (serial B)", "0000:00:10.0/2:0 (serial A)"))
    assert left_over(begin, end) == (("block device", "0000:00:10.0/2:0 (serial A)", 1),)


def test_left_over_counts() -> None:
    assert left_over(counted("begin"), counted("end", mount=("a", "b", "a"))) == (("mount", "a", 2), ("mount", "b", 1))


# --- of the rig, late, and missing ------------------------------------------------------------------------------


def on_bench(begin: ev.Census, *later: ev.Census, kind: str = "virtual") -> tuple[str, ...]:
    """What is said of these censuses in the story of a cut, taken at its beginning and its end."""
    bench = healthy()
    bench.events = [replace(event, kind=kind) if isinstance(event, ev.DutReady) else event for event in bench.events]
    bench.add(replace(begin, at=10.9), *later)
    judgement = bench.judge(nothing_left())
    assert judgement.unknowns == ()
    return tuple(finding.summary for finding in judgement.findings)


RIG_HOST = "usb-storage at 0000:00:05.0/1.1"
THINGS = {
    "scsi host": (RIG_HOST, "ahci at pci0000:00/0000:00:17.0/ata1"),
    "usb device": ("1-1", "1-1.1", "1-1.2", "1-1.3", "usb1"),
    "block device": ("0000:00:05.0/1.1:0 (serial S-disk1)", "0000:00:05.0/1.2:0 (serial S-disk2)"),
    "mount": ("tmpfs on /run (tmpfs)",),
}


def there(moment: ev.CensusMoment, at: float | None = None, **changed: tuple[str, ...]) -> ev.Census:
    at = 25.7 if at is None else at
    things = {**THINGS, **{kind.replace("_", " "): names for kind, names in changed.items()}}
    return ev.Census(at=at, moment=moment, things=things)


@pytest.mark.parametrize("kind", ["virtual", "local", "ssh"])
@pytest.mark.parametrize(
    "changed",
    [
        {"mount": (*THINGS["mount"], "tmpfs on /run/user/1000 (tmpfs)")},
        {"mount": (*THINGS["mount"], "/dev/loop3 on /snap/core/1 (squashfs)")},
        {"usb_device": (*THINGS["usb device"], "3-1")},
        {"scsi_host": (RIG_HOST,)},
    ],
)
def test_what_is_not_of_the_rig_is_no_finding(kind: str, changed: dict[str, tuple[str, ...]]) -> None:
    assert on_bench(there("begin"), there("end", None, **changed), kind=kind) == ()


def test_on_a_real_dut_another_port_of_the_same_controller_is_not_of_the_rig() -> None:
    end = there("end", usb_device=(*THINGS["usb device"], "1-7"), mount=(*THINGS["mount"], "/dev/sdz1 on /mnt (vfat)"))
    assert on_bench(there("begin"), end, kind="ssh") == ()
    assert on_bench(there("begin"), end) == ("left over on the DUT: usb device 1-7",)


@pytest.mark.parametrize("kind", ["virtual", "ssh"])
@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"usb_device": (*THINGS["usb device"], "1-1.4")}, "left over on the DUT: usb device 1-1.4"),
        ({"usb_device": ("1-1", "1-1.1", "1-1.2", "usb1")}, "missing on the DUT at the end: usb device 1-1.3"),
        ({"scsi_host": THINGS["scsi host"][1:]}, f"missing on the DUT at the end: scsi host {RIG_HOST}"),
        (
            {"block_device": THINGS["block device"][:1]},
            "missing on the DUT at the end: block device 0000:00:05.0/1.2:0 (serial S-disk2)",
        ),
        ({"mount": ("/dev/sdb on /mnt (ext4)",)}, "left over on the DUT: mount /dev/sdb on /mnt (ext4)"),
        ({"trace_of_a_disk": ("backing device 8:16",)}, "left over on the DUT: trace of a disk backing device 8:16"),
    ],
)
def test_what_is_left_or_missing_of_the_rig(kind: str, changed: dict[str, tuple[str, ...]], said: str) -> None:
    assert on_bench(there("begin"), there("end", None, **changed), kind=kind) == (said,)


def test_no_hub_is_missing_above_a_device_that_is_there() -> None:
    bench = healthy()
    bench.add(there("begin", 10.9), there("end", 25.8, usb_device=("1-1.1", "1-1.2", "1-1.3", "usb1")))
    judgement = bench.judge(nothing_left())
    assert judgement.findings == ()
    assert "missing on the DUT at the end: usb device 1-1, with a device below it" in judgement.unknowns


OF_DISKS = {
    "kernel_thread": ("usb-storage", "usb-storage", "scsi_tmf"),
    "xhci_slot": ("at 0000:00:05.0/1", "at 0000:00:05.0/1.2"),
    "reference_to_a_hub": ("1-1", "usb1", "usb1"),
}


@pytest.mark.parametrize("kind", OF_DISKS)
def test_what_belongs_to_a_host_that_is_there_is_missing(kind: str) -> None:
    begin, name = there("begin", None, **OF_DISKS), OF_DISKS[kind][-1]
    assert on_bench(begin, there("end", None, **OF_DISKS)) == ()
    fewer = there("end", None, **OF_DISKS | {kind: OF_DISKS[kind][:-1]})
    assert on_bench(begin, fewer) == (f"missing on the DUT at the end: {kind.replace('_', ' ')} {name}",)
    assert on_bench(begin, fewer, kind="ssh") == ()


def test_what_belongs_to_a_host_that_is_missing_is_named_with_it() -> None:
    hosts = {"scsi_host": (RIG_HOST, RIG_HOST)}
    begin = there("begin", None, **OF_DISKS, **hosts)
    end = there("end", None, **OF_DISKS | {"kernel_thread": OF_DISKS["kernel_thread"][1:]}, scsi_host=(RIG_HOST,))
    assert on_bench(begin, end) == (f"missing on the DUT at the end: scsi host {RIG_HOST}",)


def test_what_a_cut_took_for_good_is_not_missing() -> None:
    bench = healthy()
    bench.replace(ev.CutArmed, permanent=True)
    end = there("end", usb_device=("1-1", "1-1.2", "1-1.3", "usb1"), scsi_host=THINGS["scsi host"][1:])
    bench.add(there("begin", 10.9), end)
    assert bench.judge(nothing_left()).findings == ()
    bench.add(there("end", 25.8, usb_device=("1-1", "1-1.2", "usb1")))
    (finding,) = bench.judge(nothing_left()).findings
    assert finding.summary == "missing on the DUT at the end: usb device 1-1.3"


def test_what_takes_its_time_to_go_is_late() -> None:
    twice = (RIG_HOST, *THINGS["scsi host"])
    settling = [there("settling", at, scsi_host=twice) for at in (20.0, 24.5)]
    (said,) = on_bench(there("begin"), *settling, there("end", 25.0))
    assert said == f"scsi host {RIG_HOST} took 4.50 s to go (limit 2 s)"
    soon = [there("settling", at, scsi_host=twice) for at in (20.0, 21.5)]
    assert on_bench(there("begin"), *soon, there("end", 21.75)) == ()


def test_nothing_counted_at_all_is_unknown_only_where_it_was_asked_for() -> None:
    assert healthy().judge(nothing_left()).unknowns
    standing = NothingLeft(required=False)
    assert healthy().judge(standing) == Judgement(subject="")
    bench = healthy()
    bench.add(there("begin", 10.9))
    assert bench.judge(standing).unknowns
