"""A SCSI disk reports that another one of its host came or went: nobody is accused; anything else is a finding."""

from __future__ import annotations

import msgspec
import pytest
from stories import BACK, CUT, GONE, VICTIM, Bench
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
