"""What is never cut: the disks of the DUT's own system, and a switch's own control path."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from shelves import shelf

from plugpull.dut.real.safety import refuse_own_control, refuse_system_disks, usb_place_of
from plugpull.errors import UsageError
from plugpull.rig.load import load_rig
from plugpull.rig.model import Rig
from plugpull.switches.host_local import LocalHost


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return load_rig(shelf(tmp_path))


def found(kname: str, place: str, serial: str = "OS") -> dict[str, Any]:
    return {"kname": kname, "place": place, "serial": serial}


def test_a_disk_of_the_system_s_own_is_no_disk_of_the_rig(rig: Rig) -> None:
    with pytest.raises(UsageError, match=r"disk1 \(serial S-1\) is a disk that the DUT's own system runs from"):
        refuse_system_disks(rig, [found("sda", "pci0000:00/0000:00:17.0/ata1", "S-1")], {"sda"})


@pytest.mark.parametrize("place", ["0000:00:14.0/2.4:0", "0000:00:14.0/2.1:0", "0000:00:14.0/2.1.3:0"])
def test_a_cut_that_would_take_the_system_away_is_refused(rig: Rig, place: str) -> None:
    with pytest.raises(UsageError, match=r"cutting hub1\.power would take sdx away") as caught:
        refuse_system_disks(rig, [found("sdx", place)], {"sdx"})
    assert caught.value.hint


@pytest.mark.parametrize(
    "place", ["0000:00:14.0/3:0", "0000:00:14.0/21:0", "0000:00:15.0/2.4:0", "pci0000:00/0000:00:17.0/ata1"]
)
def test_a_system_that_no_cut_reaches_is_fine(rig: Rig, place: str) -> None:
    refuse_system_disks(rig, [found("sdx", place), found("sda", "0000:00:14.0/1:0", "S-1")], {"sdx"})


class SysfsHost(LocalHost):
    """A machine with another sysfs and /dev than this one."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def glob(self, pattern: str) -> tuple[str, ...]:
        return tuple(path.removeprefix(str(self._root)) for path in super().glob(f"{self._root}{pattern}"))

    def real_path(self, path: str) -> str:
        return os.path.realpath(f"{self._root}{path}").removeprefix(str(self._root))


@pytest.fixture
def machine(tmp_path: Path) -> SysfsHost:
    """A USB serial adapter at port 2.1 of the controller, and a HID device at 3."""
    root = tmp_path / "machine"
    usb = "devices/pci0000:00/0000:00:14.0/usb1"
    nodes = {
        "class/tty/ttyUSB0": f"{usb}/1-2/1-2.1/1-2.1:1.0/ttyUSB0/tty/ttyUSB0",
        "class/hidraw/hidraw0": f"{usb}/1-3/1-3:1.0/0003:16C0:05DF.0001/hidraw/hidraw0",
    }
    for link, target in nodes.items():
        node = root / "sys" / target
        node.mkdir(parents=True)
        (node / "device").symlink_to(node.parent.parent)
        (root / "sys" / link).parent.mkdir(parents=True)
        (root / "sys" / link).symlink_to(node)
    (root / "dev" / "serial" / "by-id").mkdir(parents=True)
    (root / "dev" / "ttyUSB0").touch()
    (root / "dev" / "serial" / "by-id" / "usb-relay").symlink_to(root / "dev" / "ttyUSB0")
    for folder, link, target in (
        ("bus/usb/devices", "1-2.1", f"{usb}/1-2/1-2.1"),
        ("dev/char", "189:4", f"{usb}/1-2/1-2.1"),
    ):
        (root / "sys" / folder).mkdir(parents=True)
        (root / "sys" / folder / link).symlink_to(root / "sys" / target)
    return SysfsHost(root)


BELOW = ["/dev/ttyUSB0", "/dev/serial/by-id/usb-relay", "1-2.1:1.0", "hub 1-2.1", "/dev/bus/usb/001/005:0"]


@pytest.mark.parametrize("place", BELOW)
def test_a_switch_that_would_cut_its_own_control_cable_is_refused(rig: Rig, machine: SysfsHost, place: str) -> None:
    assert usb_place_of(machine, place) == "0000:00:14.0/2.1:0"
    with pytest.raises(UsageError, match=r"would cut its own control path: .* below hub1\.power") as caught:
        refuse_own_control(rig, "relay", machine, place)
    assert caught.value.hint


@pytest.mark.parametrize("place", ["/dev/hidraw0", "/dev/ttyS0", "", "serial 01:02", "http://pdu/1", "9-9"])
def test_a_switch_that_is_controlled_from_elsewhere_is_fine(rig: Rig, machine: SysfsHost, place: str) -> None:
    refuse_own_control(rig, "relay", machine, place)


def test_a_switch_may_hang_off_what_another_one_cuts(rig: Rig, machine: SysfsHost) -> None:
    refuse_own_control(rig, "other", machine, "/dev/ttyUSB0")


@pytest.mark.parametrize("scratch", [True, False])
def test_a_mounted_disk_is_not_taken_away_unless_it_is_scratch(tmp_path: Path, scratch: bool) -> None:
    rig = load_rig(shelf(tmp_path, scratch=scratch))
    there = found("sdb", "0000:00:14.0/2.1:0", "S-1")
    if scratch:
        refuse_system_disks(rig, [there], (), {"sdb": "/srv"})
    else:
        with pytest.raises(UsageError, match=r"cutting hub1\.power would take sdb away, which is mounted at /srv"):
            refuse_system_disks(rig, [there], (), {"sdb": "/srv"})
    refuse_system_disks(rig, [there], (), {})
