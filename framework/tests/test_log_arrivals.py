"""Comings and goings that only the kernel log has, and what it says of a disk that came back."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from msgspec.structs import replace
from stories import BACK, CUT, RESTORED, SURVIVORS, VICTIM, Bench, healthy

from plugpull.checks import same_properties
from plugpull.checks.record.coherent import coherent
from plugpull.checks.record.log_arrivals import arrivals_doubted, connected_early
from plugpull.checks.record.wiring import wiring_doubts
from plugpull.history import events as ev

PORT, OTHER = "1-1.1", "1-1.2"
"""The USB paths of the victim and of a survivor."""


def logged(*lines: tuple[float, str]) -> Bench:
    bench = healthy()
    bench.add(*(ev.KernelMessage(at=at, text=text) for at, text in lines))
    return bench


def new(number: int, path: str = PORT) -> str:
    return f"usb {path}: new high-speed USB device number {number} using xhci_hcd"


def gone(number: int, path: str = PORT) -> str:
    return f"usb {path}: USB disconnect, device number {number}"


# --- while the port is off ------------------------------------------------------------------------------------------


def test_a_disk_that_was_connected_before_its_port_was_on() -> None:
    bench = logged((RESTORED - 0.8, new(9)))
    said = f"{VICTIM} was connected 0.80 s before {VICTIM}.cable was switched on again"
    assert connected_early(bench.story(), VICTIM) == said
    assert said in wiring_doubts(bench.story())


@pytest.mark.parametrize(
    "lines",
    [
        ((RESTORED + 0.2, new(9)),),
        ((RESTORED - 0.8, new(9, OTHER)),),
        ((CUT - 3.0, new(9)),),
        ((RESTORED - 0.8, new(8)), (RESTORED - 0.5, gone(8)), (RESTORED + 0.2, new(9))),
    ],
    ids=["after it", "another port", "before the cut", "it did not stay"],
)
def test_a_disk_that_was_connected_by_its_port(lines: tuple[tuple[float, str], ...]) -> None:
    assert connected_early(logged(*lines).story(), VICTIM) == ""


# --- on the way back ------------------------------------------------------------------------------------------------


def test_a_disk_that_came_went_and_came_again() -> None:
    bench = logged((RESTORED + 0.2, new(9)), (RESTORED + 0.5, gone(9)), (RESTORED + 0.7, new(10)))
    (doubt,) = coherent().judge(bench.story()).unknowns
    assert doubt.endswith(f"and back at {BACK:.2f} s: its contact or the disk is not stable")


def test_a_disconnect_of_the_first_attachment_that_is_logged_late() -> None:
    bench = logged((11.0, new(4)), (RESTORED + 0.1, gone(4)), (RESTORED + 0.3, new(5)))
    assert list(arrivals_doubted(bench.story())) == []


# --- survivors ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "how"),
    [
        ("[sdc] Stopping disk", "was shut down"),
        ("[sdc] Synchronizing SCSI cache", "was shut down"),
        ("[sdc] Attached SCSI disk", "came"),
        ("[sdc] Asking for cache data failed", "came"),
        ("[sdc] Disabling FUA", "came"),
    ],
)
def test_a_survivor_that_came_or_went_by_the_log_alone(text: str, how: str) -> None:
    bench = logged((CUT + 4.0, f"sd 2:0:0:0: {text}"))
    (said,) = arrivals_doubted(bench.story())
    assert said == f"{SURVIVORS[0]} {how} at {CUT + 4.0:.2f} s by the kernel log alone: sd 2:0:0:0: {text}"


def test_messages_of_disks_that_do_come_and_go() -> None:
    bench = logged(
        (10.45, "sd 2:0:0:0: [sdc] Disabling FUA"),
        (CUT + 0.1, "sd 1:0:0:0: [sdb] Synchronizing SCSI cache"),
        (BACK - 0.1, "sd 1:0:0:0: [sdb] Asking for cache data failed"),
        (CUT + 4.0, "sd 9:0:0:0: [sdx] Attached SCSI disk"),
    )
    assert list(arrivals_doubted(bench.story())) == []


# --- who came back --------------------------------------------------------------------------------------------------

DESCRIPTORS = (
    f"usb {PORT}: New USB device found, idVendor=46f4, idProduct=0001, bcdDevice= 1.00",
    f"usb {PORT}: Product: BRIDGE",
    f"usb {PORT}: SerialNumber: S-1",
    "scsi 1:0:0:0: Direct-Access     MAKER    MODEL            0001 PQ: 0 ANSI: 6",
)


def came_as(*after: str, before: Sequence[str] = DESCRIPTORS) -> Bench:
    first = [(10.2 + 0.01 * number, text) for number, text in enumerate(before)]
    bench = logged(*first, *((RESTORED + 0.3 + 0.01 * number, text) for number, text in enumerate(after)))
    at_lun = "/target1:0:0/1:0:0:0/block/"
    bench.events = [
        replace(event, sysfs=event.sysfs.replace("/block/", at_lun)) if isinstance(event, ev.DiskAttached) else event
        for event in bench.events
    ]
    return bench


@pytest.mark.parametrize(
    ("was", "now"),
    [
        ("idProduct=0001", "idProduct=0002"),
        ("bcdDevice= 1.00", "bcdDevice= 1.01"),
        ("BRIDGE", "LOADER"),
        ("S-1", "S-2"),
        ("0001 PQ", "0002 PQ"),
    ],
)
def test_a_disk_that_came_back_as_another_device(was: str, now: str) -> None:
    (finding,) = came_as(*(text.replace(was, now) for text in DESCRIPTORS)).judge(same_properties()).findings
    assert finding.subject == VICTIM
    assert finding.summary.startswith(f"{VICTIM} came back as another device: ")
    assert now.removesuffix(" PQ") in finding.summary


def test_a_disk_that_came_back_as_itself() -> None:
    assert came_as(*DESCRIPTORS).judge(same_properties()).findings == ()
    assert came_as().judge(same_properties()).findings == (), "the log of its return is not on record"


# --- in which words -------------------------------------------------------------------------------------------------

DESCRIPTION = (
    f"usb {PORT}: new high-speed USB device number 9 using xhci_hcd",
    f"usb {PORT}: New USB device strings: Mfr=1, Product=2, SerialNumber=3",
    "scsi 1:0:0:0: Direct-Access     MAKER    MODEL            0001 PQ: 0 ANSI: 6",
    "sd 1:0:0:0: [sdb] 4096-byte physical blocks",
    "sd 1:0:0:0: [sdb] Mode Sense: 63 00 00 08",
    "sd 1:0:0:0: [sdb] Write cache: enabled, read cache: enabled, doesn't support DPO or FUA",
    "sd 1:0:0:0: [sdb] Preferred minimum I/O size 512 bytes",
    "sd 1:0:0:0: [sdb] Optimal transfer size 65535 logical blocks",
    "sd 1:0:0:0: [sdb] Attached SCSI disk",
)


@pytest.mark.parametrize(
    ("was", "now"),
    [
        ("xhci_hcd", "ehci-pci"),
        ("SerialNumber=3", "SerialNumber=0"),
        ("ANSI: 6", "ANSI: 2"),
        ("4096-byte physical", "512-byte physical"),
        ("63 00 00 08", "63 00 10 08"),
        ("read cache: enabled", "read cache: disabled"),
        ("doesn't support", "supports"),
        ("size 512", "size 4096"),
        ("65535", "2048"),
        ("SCSI disk", "SCSI removable disk"),
    ],
)
def test_a_disk_that_the_kernel_described_otherwise(was: str, now: str) -> None:
    bench = came_as(*(text.replace(was, now) for text in DESCRIPTION), before=DESCRIPTION)
    (finding,) = bench.judge(same_properties()).findings
    assert finding.subject == VICTIM
    assert finding.summary.startswith(f"the kernel described {VICTIM} otherwise when it came back: ")
    assert now in finding.summary


def test_a_disk_that_was_described_in_the_same_words() -> None:
    assert came_as(*DESCRIPTION, before=DESCRIPTION).judge(same_properties()).findings == ()
    assert came_as(before=DESCRIPTION).judge(same_properties()).findings == (), "its return is not on record"


def test_what_was_logged_while_the_disk_was_cut_says_nothing_of_it() -> None:
    bench = came_as(*DESCRIPTION, before=DESCRIPTION)
    bench.add(ev.KernelMessage(at=CUT + 0.02, text="sd 1:0:0:0: [sdb] Mode Sense: 00 00 00 00"))
    assert bench.judge(same_properties()).findings == ()
