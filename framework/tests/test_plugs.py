"""How a disk is plugged and unplugged, by the version of QEMU. Only QEMU's answers are made up."""

from __future__ import annotations

from typing import Any, cast

import pytest
from rig_builder import a_rig

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
        self.done.append((command, arguments.get("driver", arguments.get("value"))))
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
