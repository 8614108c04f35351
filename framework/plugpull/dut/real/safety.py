"""What may never be cut: the disks that the DUT's own system runs from, and a switch's own control path."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from plugpull.dut.agent.disks import usb_place
from plugpull.errors import RigError, UsageError
from plugpull.rig.model import Rig
from plugpull.rig.topology import CutPoint, Topology
from plugpull.switches.host import Host

_USB_NAME = re.compile(r"^(?:hub )?(\d+-[\d.]+)(?::[\d.]+)?$")
"""A USB device as the kernel names it, 1-1.2, or one of its interfaces, 1-1.2:1.0, as hidapi on libusb does."""
_USB_NODE = re.compile(r"^/dev/bus/usb/(\d{3})/(\d{3})(?::\d+)?$")
"""A device's node in usbfs, perhaps with the number of an interface."""
_USB_MAJOR = 189
"""Documentation/admin-guide/devices.txt; 128 minor numbers for each bus (drivers/usb/core/usb.c)."""


def refuse_system_disks(
    rig: Rig, disks: Iterable[Mapping[str, Any]], system: Collection[str], used: Mapping[str, str] | None = None
) -> None:
    """``disks`` are what the agent lists, ``system`` the kernel names of those the DUT's system lives on, ``used``
    those that anything is mounted from, and where.

    Raises UsageError for a rig that could write to one of the first or take it away, or could take away one of the
    others: a mounted disk is in use, unless the rig file declares it as scratch.
    """
    disks = list(disks)
    lived_on = [disk for disk in disks if disk["kname"] in system]
    for declared in rig.disk:
        if any(found["serial"] == declared.serial for found in lived_on):
            raise UsageError(
                f"{declared.name} (serial {declared.serial}) is a disk that the DUT's own system runs from",
                hint="take it out of the rig file",
            )
    scratch = {declared.serial for declared in rig.disk if declared.scratch}
    mounted = [disk for disk in disks if disk["kname"] in (used or {}) and disk["serial"] not in scratch]
    topology = Topology(rig)
    for point in topology.cut_points().values():
        for found in lived_on:
            if is_below(rig, topology, point, str(found["place"])):
                raise UsageError(
                    f"cutting {point.name} would take {found['kname']} away, which the DUT's own system runs from",
                    hint="plug the system's disk in elsewhere",
                )
        for found in mounted:
            if is_below(rig, topology, point, str(found["place"])):
                kname = found["kname"]
                raise UsageError(
                    f"cutting {point.name} would take {kname} away, which is mounted at {(used or {})[kname]}",
                    hint=f"unmount it, plug it in elsewhere, or declare it with scratch = true "
                    f"(serial {found['serial']}) if it may be erased",
                )


def refuse_own_control(rig: Rig, switch: str, host: Host, place: str) -> None:
    """``place`` is where the switch was reached on ``host``, the DUT. Raises UsageError if the switch can cut the USB
    device behind it: it could turn itself off, and never on again."""
    control = usb_place_of(host, place)
    if not control:
        return
    topology = Topology(rig)
    for point in topology.cut_points().values():
        if point.switch == switch and is_below(rig, topology, point, control):
            raise UsageError(
                f"switch {switch} would cut its own control path: it is plugged in at {control.rpartition(':')[0]}, "
                f"below {point.name}",
                hint="plug the control cable of the switch in elsewhere",
            )


def is_below(rig: Rig, topology: Topology, point: CutPoint, place: str) -> bool:
    """Whether a cut at ``point`` takes away what is at ``place`` (such as ``0000:00:14.0/1.2:0``). False for the DUT's
    own power, which takes everything."""
    if point.device == "dut":
        return False
    paths = {controller.name: controller.path for controller in rig.controller}
    where = topology.path_of(point.device)
    top = f"{paths[where.controller]}/{'.'.join(map(str, where.ports))}"
    return place.startswith((f"{top}.", f"{top}:"))


def usb_place_of(host: Host, place: str) -> str:
    """Where the USB device behind a device file (``/dev/ttyUSB0``, ``/dev/serial/by-id/...``, ``/dev/hidraw3``) or of a
    USB name (``1-1.2``) is plugged in, as disks' places are written; empty if there is none to be found."""
    name = _USB_NAME.match(place)
    try:
        if name is not None:
            return usb_place(host.real_path(f"/sys/bus/usb/devices/{name.group(1)}")) or ""
        node_of = _USB_NODE.match(place)
        if node_of is not None:
            minor = (int(node_of.group(1)) - 1) * 128 + int(node_of.group(2)) - 1
            return usb_place(host.real_path(f"/sys/dev/char/{_USB_MAJOR}:{minor}")) or ""
        if not place.startswith("/dev/"):
            return ""
        node = os.path.basename(host.real_path(place))
        for found in host.glob(f"/sys/class/*/{node}"):
            there = usb_place(host.real_path(f"{found}/device"))
            if there:
                return there
    except RigError:
        pass  # a switch that cannot be looked up is still checked by what the rig file says of its control cable
    return ""
