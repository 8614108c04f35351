"""A SCSI disk reports that it was reset, or that a disk of its host came or went: nobody is accused; anything else is a
finding."""

from __future__ import annotations

import msgspec
import pytest
from stories import BACK, CUT, GONE, RESTORED, VICTIM, Bench
from test_kernel_scope import warn
from watched import change, watched

from plugpull.checks import no_errors, same_properties
from plugpull.history import events as ev

CHANGED = (
    "LUN assignments on this target have changed. The Linux SCSI layer does not automatically remap LUN assignments."
)
DISKS = {"disk1": 1, "disk2": 2, "disk3": 3}


def shelf(host_of: dict[str, int]) -> Bench:
    """Three disks at the targets 1 to 3 of SCSI hosts."""
    bench = watched()
    change(bench, "attached", tuple(DISKS), {"failed_commands": "0x0"})
    change(bench, "end", tuple(DISKS), {"failed_commands": "0x0"})
    bench.events = [
        msgspec.structs.replace(event, sysfs=path(event.disk, host_of[event.disk], event.kname))
        if isinstance(event, ev.DiskAttached)
        else event
        for event in bench.events
    ]
    return bench


def path(disk: str, host: int, kname: str) -> str:
    function = f"/sys/devices/pci0000:00/0000:00:1{host}.0/virtio{host}/host{host}"
    address = f"{host}:0:{DISKS[disk]}:0"
    return f"{function}/target{address.rpartition(':')[0]}/{address}/block/{kname}"


TOGETHER = dict.fromkeys(DISKS, 0)


def findings(bench: Bench) -> list[str]:
    return [
        one.summary
        for check in (no_errors(("disk2", "disk3")), same_properties())
        for one in bench.judge(check).findings
    ]


def test_after_another_disk_of_the_host_went() -> None:
    bench = shelf(TOGETHER)
    bench.add(warn(f"sd 0:0:2:0: {CHANGED}", GONE + 0.1, 4))
    change(bench, "end", ("disk2",), {"failed_commands": "0x1"})
    assert findings(bench) == []


@pytest.mark.parametrize(
    ("hosts", "times"),
    [
        (TOGETHER | {"disk2": 1}, (GONE + 0.1,)),  # what went is on another host
        (TOGETHER, (CUT - 3.0, CUT - 2.0, CUT - 1.0)),  # after disk2, only one came and none went
    ],
)
def test_without_such_an_event(hosts: dict[str, int], times: tuple[float, ...]) -> None:
    bench = shelf(hosts)
    bench.add(*(warn(f"sd {hosts['disk2']}:0:2:0: {CHANGED}", at, 4) for at in times))
    change(bench, "end", ("disk2",), {"failed_commands": f"{2 if len(times) > 1 else 1:#x}"})
    said = findings(bench)
    assert any("LUN assignments" in one for one in said), said
    assert "1 command of disk2 failed though it never went" in said


def test_one_report_excuses_one_command() -> None:
    bench = shelf(TOGETHER)
    bench.add(warn(f"sd 0:0:2:0: {CHANGED}", GONE + 0.1, 4))
    change(bench, "end", ("disk2",), {"failed_commands": "0x3"})
    assert findings(bench) == ["2 commands of disk2 failed though it never went"]


@pytest.mark.parametrize(
    ("driver", "count", "many"), [("virtio_scsi", 1, 0), ("virtio_scsi", 2, 1), ("usb-storage", 1, 1)]
)
def test_a_disk_that_is_plugged_into_an_emulated_host_may_report_itself(driver: str, count: int, many: int) -> None:
    """As it is found after its return: once."""
    bench = shelf({"disk1": 1, "disk2": 0, "disk3": 0})
    bench.replace(ev.DiskAttached, lambda event: event.disk == VICTIM, driver=driver)
    bench.add(warn(f"sd 1:0:1:0: {CHANGED}", BACK - 0.08, 4))
    change(bench, "attached", (VICTIM,), {"failed_commands": f"{count:#x}"}, CUT)
    found = [one.summary for one in bench.judge(same_properties()).findings]
    assert found == ["1 command more to disk1 failed as it came back than the time before"] * many


POWERED = "Power-on or device reset occurred"


def hotplugged(*lines: tuple[str, str, float]) -> Bench:
    """The shelf on an emulated bus. The kernel logs when each device was found, 1.4 s before its uevent is read."""
    bench = shelf(TOGETHER)
    bench.replace(ev.DiskAttached, lambda event: True, driver="virtio_scsi")
    for attached in [event for event in bench.events if isinstance(event, ev.DiskAttached)]:
        address = f"0:0:{DISKS[attached.disk]}:0"
        bench.add(
            warn(f"scsi {address}: Direct-Access     QEMU     QEMU HARDDISK    2.5+ PQ: 0", at(attached) - 1.4, 5)
        )
        bench.add(warn(f"sd {address}: {POWERED}", at(attached) - 1.3, 4))
    bench.add(*(warn(f"sd {address}: {text}", when, 4) for address, text, when in lines))
    change(bench, "attached", tuple(DISKS), {"failed_commands": "0x2"})
    change(bench, "end", tuple(DISKS), {"failed_commands": "0x2"})
    return bench


def at(attached: ev.DiskAttached) -> float:
    assert attached.at is not None
    return attached.at


@pytest.mark.parametrize(("reported", "count", "many"), [(1, 3, 0), (1, 4, 1), (0, 2, 0), (0, 3, 1), (2, 4, 1)])
def test_what_a_disk_reports_as_it_is_found_is_counted_by_the_log(reported: int, count: int, many: int) -> None:
    """That it was powered on is among its failed commands each time; that the units changed only now and then."""
    bench = hotplugged(*(("0:0:1:0", CHANGED, BACK - 1.2 + 0.1 * number) for number in range(reported)))
    bench.events = [
        event
        for event in bench.events  # the cut is long over, so that its edges explain no further report
        if not (isinstance(event, ev.DiskProperties) and event.disk != VICTIM)
    ]
    change(bench, "attached", (VICTIM,), {"failed_commands": f"{count:#x}"}, CUT)
    change(bench, "end", (VICTIM,), {"failed_commands": f"{count:#x}"}, CUT)
    found = [one.summary for one in bench.judge(same_properties()).findings]
    assert found == ["1 command more to disk1 failed as it came back than the time before"] * many


def test_a_disk_whose_uevent_is_read_late_reports_its_own_return_and_not_that_of_the_one_before() -> None:
    """Its messages come within seconds of the removal of the device before, at the same address."""
    assert findings(hotplugged()) == []


@pytest.mark.parametrize(("lines", "count", "many"), [(2, "0x4", 0), (2, "0x5", 1), (4, "0x6", 0), (5, "0x7", 2)])
def test_each_edge_of_another_disk_is_reported_once(lines: int, count: str, many: int) -> None:
    """Long before the uevents say that the other disk went or came. That it came itself, and disk3 after it, it may
    report as late."""
    when = (CUT + 0.1, BACK - 1.5, BACK - 1.0, BACK - 0.9, BACK - 0.8)
    bench = hotplugged(*(("0:0:2:0", CHANGED, moment) for moment in when[:lines]))
    change(bench, "end", ("disk2",), {"failed_commands": count})
    assert len(findings(bench)) == many, findings(bench)


@pytest.mark.parametrize(("asleep", "many"), [(True, 0), (False, 2)])
def test_a_disk_that_was_reset_as_the_machine_woke_says_so_at_its_next_command(asleep: bool, many: int) -> None:
    bench = hotplugged(("0:0:2:0", POWERED, 25.0))
    change(bench, "end", ("disk2",), {"failed_commands": "0x3"})
    if asleep:
        bench.add(ev.DutSuspended(at=11.5, until=12.5, ok=True))
    assert len(findings(bench)) == many, findings(bench)


@pytest.mark.parametrize(("resets", "many"), [(2, 0), (1, 2), (0, 2)])
def test_a_disk_says_once_for_each_reset_that_it_was_reset(resets: int, many: int) -> None:
    bench = hotplugged(("0:0:2:0", POWERED, 24.0), ("0:0:2:0", POWERED, 25.0))
    change(bench, "end", ("disk2",), {"failed_commands": "0x4"})
    if resets:
        bench.add(ev.DiskRecovered(at=13.0, disk="disk2", until=13.5, resets=resets))
    assert len(findings(bench)) == many, findings(bench)


@pytest.mark.parametrize(("later", "explained"), [(0.005, True), (0.05, False)])
def test_a_disk_that_is_found_while_another_is_switched_on_reports_that_one_too(later: float, explained: bool) -> None:
    """Between the command to the other one's switch and its acknowledgement, 10 ms later."""
    found = RESTORED + later
    bench = hotplugged(*(("0:0:2:0", CHANGED, found + 0.1 * number) for number in (1, 2)))
    bench.replace(ev.DiskAttached, lambda event: event.disk == "disk2", at=found + 1.4)
    bench.add(warn("scsi 0:0:2:0: Direct-Access     QEMU     QEMU HARDDISK    2.5+ PQ: 0", found, 5))
    said = [one.summary for one in bench.judge(no_errors(("disk2",))).findings]
    assert any("LUN assignments" in one for one in said) is not explained
