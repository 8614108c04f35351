"""How a disk is plugged and unplugged, by the version of QEMU. Only QEMU's answers are made up."""

from __future__ import annotations

from typing import Any, cast

import pytest
from rig_builder import a_rig

from plugpull.dut.scenario_context import LIFTED
from plugpull.virtual.plugs import Enclosure, Plugs
from plugpull.virtual.qmp import Qmp

RIG = a_rig().switch(ports=1).controller().disk("disk1", "usb.1", "PLUG-1", "16 MiB", scratch=True, cable="cables.1")


class Monitor:
    """A QEMU of a given major version that accepts every command."""

    def __init__(self, major: int) -> None:
        self._major = major
        self.done: list[tuple[str, object]] = []

    def run(self, command: str, timeout: float | None = None, exact: object = None, /, **arguments: Any) -> Any:
        if command == "query-version":
            return {"qemu": {"major": self._major, "minor": 0, "micro": 13}, "package": ""}
        self.done.append((command, arguments.get("driver", arguments.get("value", arguments.get("limits")))))
        return None

    def unplug(self, device: str, timeout: float = 10.0) -> None:
        self.done.append(("device_del", device))


@pytest.mark.parametrize(
    ("major", "done"),
    [
        (7, [("device_add", "usb-storage"), ("device_del", "disk1")]),
        (
            10,
            [
                ("device_add", "usb-bot"),
                ("device_add", "scsi-hd"),
                ("qom-set", True),
                ("qom-set", False),
                ("device_del", "disk1"),
            ],
        ),
    ],
)
def test_a_disk_is_detached_before_it_is_deleted_where_qemu_would_crash(
    major: int, done: list[tuple[str, object]]
) -> None:
    monitor = Monitor(major)
    plugs = Plugs(cast("Qmp", monitor))
    plugs.plug_disk(Enclosure(RIG.load().disk, "PLUG-1"), "usb.0", "1")
    plugs.unplug("disk1")
    assert monitor.done == done


def test_rates_are_raised_for_a_while_and_set_again_as_they_were_last_given() -> None:
    monitor = Monitor(7)
    plugs = Plugs(cast("Qmp", monitor))
    rates = {"slow": 1 << 20, "fast": 64 << 20, "free": 0}

    def set_since(mark: int) -> list[object]:
        return [value for _, value in monitor.done[mark:]]

    for name, rate in rates.items():
        plugs.share(name, rate)
    assert set_since(0) == [{"bps-total": 1 << 20}, {"bps-total": 64 << 20}, {"bps-total": 0}]
    plugs.lift_rates(LIFTED)
    assert set_since(3) == [{"bps-total": LIFTED}, {"bps-total": 64 << 20}, {"bps-total": 0}]
    plugs.lift_rates(LIFTED)
    assert len(monitor.done) == 6  # they are lifted already
    plugs.set_rate("slow", 1 << 19)  # a defect that slows the disk down
    assert set_since(6) == [{"bps-total": LIFTED}]
    plugs.lift_rates(None)
    assert set_since(7) == [{"bps-total": 1 << 19}, {"bps-total": 64 << 20}, {"bps-total": 0}]
