"""Which report of the kernel, and which port, the hints are about."""

from __future__ import annotations

import pytest
from device_logs import LEFT, OOPS, accused, disk, read

from plugpull.kernel.diagnosis.error_story import KERNEL

WIFI = "[   22.000000] WARNING: CPU: 0 PID: 412 at net/wireless/nl80211.c:8093 nl80211_get_reg_do+0x1f0/0x240"


def test_the_worst_report_is_named_and_not_the_first() -> None:
    hint = accused([WIFI], OOPS)["kernel"]
    assert hint.confidence == "probably"
    assert hint.evidence[0].startswith("BUG: kernel NULL pointer dereference")
    assert hint.evidence[0].endswith(" (and 1 more report)")


def test_the_hardware_is_no_excuse_for_the_kernel() -> None:
    said = ["[   10.000000] mce: [Hardware Error]: CPU 2: Machine Check: 0 Bank 4: e600000000020408"]
    assert set(accused(said, OOPS)) == {"hardware", "kernel"}


# --- reports that come later are reports of their own -------------------------------------------------------------

STALL = "rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:"
KILLED = "stress-ng-vm invoked oom-killer: gfp_mask=0x1100cca(GFP_HIGHUSER_MOVABLE), order=0"
HUNG = "INFO: task {}:410 blocked for more than 120 seconds."


def reported(*lines: str) -> list[str]:
    return [one.kind for one in read(list(lines)).happenings if KERNEL in one.devices]


@pytest.mark.parametrize(
    ("stall", "oops"),
    [
        ("[ 2112.000000] ", "[13012.000000] "),
        ("Nov 28 10:00:01 nas kernel: ", "Nov 28 13:10:02 nas kernel: "),
        ("Nov 28 23:59:50 nas kernel: ", "Nov 29 00:00:20 nas kernel: "),
    ],
    ids=["stamps", "clock", "midnight"],
)
def test_an_oops_long_after_a_stall_is_another_report(stall: str, oops: str) -> None:
    lines = [f"{oops}{line.partition('] ')[2]}" for line in OOPS]
    assert reported(f"{stall}{STALL}", *lines) == ["fatal.lockup", "fatal.oops"]


def test_an_oops_right_after_a_stall_is_part_of_its_report() -> None:
    assert reported(f"[   59.000000] {STALL}", *OOPS) == ["fatal.lockup"]


def test_an_oops_is_not_part_of_the_report_that_memory_ran_out() -> None:
    assert reported(f"[   59.000000] {KILLED}", *OOPS) == ["warn.memory", "fatal.oops"]


def test_each_task_that_hangs_has_its_report() -> None:
    tasks = [f"[  300.00000{number}] {HUNG.format(task)}" for number, task in enumerate(("jbd2/sdb1-8", "rsync"))]
    assert reported(*tasks) == ["fatal.hung-task"] * 2


# --- a disk that says that it failed --------------------------------------------------------------------------------


@pytest.mark.parametrize(("times", "sure"), [(1, "possibly"), (2, "probably")])
def test_a_hardware_error_is_the_disks_or_its_bridges(times: int, sure: str) -> None:
    said = [
        f"[   2{number}.000000] sd 2:0:0:0: [sdb] tag#0 Sense Key : Hardware Error [current] "
        for number in range(times)
    ]
    hint = accused(disk("b", 2, "1-1"), said)["disk or bridge"]
    assert (hint.subject, hint.confidence) == ("sdb", sure)
    assert "Hardware Error" in hint.evidence[0]


def test_a_medium_error_is_no_hardware_error() -> None:
    said = ["[   20.000000] sd 2:0:0:0: [sdb] tag#0 Sense Key : Medium Error [current] "]
    assert set(accused(disk("b", 2, "1-1"), said)) == {"medium"}


# --- the power of a port, and what devices ask of a controller ----------------------------------------------------

TOO_MUCH = "[   30.000000] usb usb2-port1: over-current change #1"


def test_too_much_current_and_a_device_that_is_gone_is_the_port() -> None:
    hint = accused(disk("b", 2, "2-1"), [TOO_MUCH, LEFT.format(30.009, "2-1")])["power supply or port"]
    assert (hint.subject, hint.confidence) == ("usb 2-1", "probably")
    assert hint.evidence[1] == "the device disconnected 0.01 s later"


@pytest.mark.parametrize("after", [[], [LEFT.format(90.0, "2-1")], [LEFT.format(30.009, "2-2")]])
def test_too_much_current_alone_is_usual(after: list[str]) -> None:
    assert "power supply or port" not in accused(disk("b", 2, "2-1"), disk("c", 3, "2-2"), [TOO_MUCH, *after])


@pytest.mark.parametrize(
    "message",
    [
        "xhci_hcd 0000:00:14.0: Not enough bandwidth for new device state.",
        "xhci_hcd 0000:00:14.0: WARN: buffer overrun event for slot 5 ep 2 on endpoint",
        "xhci_hcd 0000:00:14.0: WARN Wrong bounce buffer write length: 8 != 512",
    ],
)
def test_a_device_that_wants_too_much_is_not_the_controllers_fault(message: str) -> None:
    lines = [f"[   {at}.000000] {message}" for at in (20, 25)]
    assert accused(disk("b", 2, "1-1"), lines) == {}
