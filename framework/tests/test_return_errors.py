"""Errors of a disk while it comes back: on an emulated bench its cut explains those of what left only."""

from __future__ import annotations

import msgspec
import pytest
from stories import BACK, CUT, RESTORED, VICTIM, Bench
from test_kernel_scope import bench, warn

from plugpull.checks import returned
from plugpull.history import events as ev

CONNECTED = RESTORED + 0.2
NEW = ev.KernelMessage(at=CONNECTED, text="usb 1-1.1: new high-speed USB device number 9 using xhci_hcd")
DESCRIPTOR = "usb 1-1.1: device descriptor read/64, error -71"
FIRST_SECTOR = "I/O error, dev sdb, sector 0 op 0x0:(READ) flags 0x0 phys_seg 1 prio class 2"


def found(made: Bench) -> list[str]:
    return [finding.summary for finding in made.judge(returned(VICTIM)).findings]


@pytest.mark.parametrize(
    "text",
    [
        DESCRIPTOR,
        FIRST_SECTOR,
        "usb 1-1.1: reset high-speed USB device number 9 using xhci_hcd",
        "usb 1-1-port1: unable to enumerate USB device",
        "Buffer I/O error on dev sdb, logical block 0, async page read",
    ],
)
def test_errors_between_the_new_connection_and_the_disk(text: str) -> None:
    made = bench()
    made.add(NEW, warn(text, CONNECTED + 0.1))
    assert found(made) == [f"disk1 came back with errors: {text}"]


def test_a_quiet_return() -> None:
    made = bench()
    made.add(NEW, warn("sd 0:0:0:0: Power-on or device reset occurred", CONNECTED + 0.1, 4))
    made.add(warn("sdb: detected capacity change from 0 to 131072", CONNECTED + 0.2, 6))
    assert found(made) == []


@pytest.mark.parametrize("at", [CUT + 0.05, CUT + 1.0, RESTORED - 0.4, BACK + 1.2])
def test_errors_of_what_left_and_of_what_is_up_are_judged_elsewhere(at: float) -> None:
    made = bench()
    made.add(NEW, warn(DESCRIPTOR, at))
    assert found(made) == []


def test_a_disk_that_was_not_connected_yet_is_the_one_that_left() -> None:
    made = bench()
    made.add(NEW, warn(FIRST_SECTOR, CONNECTED - 0.1))
    assert found(made) == []


def test_a_real_plug_has_contacts() -> None:
    made = bench()
    made.add(NEW, warn(DESCRIPTOR, CONNECTED + 0.1))
    made.events = [
        msgspec.structs.replace(one, kind="ssh") if isinstance(one, ev.DutReady) else one for one in made.events
    ]
    assert not [summary for summary in found(made) if "with errors" in summary]


def test_a_dut_that_its_host_did_not_run() -> None:
    made = bench()
    made.add(NEW, warn("usb 1-1.1: device descriptor read/64, error -110", BACK + 0.6))
    assert len(found(made)) == 1
    made.starved = ((BACK - 2.4, BACK + 0.6),)
    judgement = made.judge(returned(VICTIM))
    assert not [finding for finding in judgement.findings if "with errors" in finding.summary]
    assert any("its host did not run it" in what for what in judgement.unknowns)


def test_an_uncatalogued_error_is_a_doubt_unless_the_disk_always_logs_it() -> None:
    text = "usb 1-1.1: config 1 has an invalid interface number: 1 but max is 0"
    made = bench()
    made.add(NEW, warn(text, CONNECTED + 0.1))
    judgement = made.judge(returned(VICTIM))
    assert judgement.findings == ()
    assert any("an uncatalogued error as disk1 came back" in what for what in judgement.unknowns)
    made.add(warn(text, 10.3))
    assert made.judge(returned(VICTIM)).unknowns == ()
