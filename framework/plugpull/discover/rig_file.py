"""A draft of a rig file from what is plugged into a machine, as the kernel reports it.

In the draft no disk is scratch, and no cable goes through a switch: a person adds that.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from plugpull.dut.conversation.disk_table import DISK_TYPES
from plugpull.rig.toml_text import toml_key, toml_value
from plugpull.switches.host import Host

DEVICES = "/sys/bus/usb/devices"
HUB_CLASS = "09"  # USB class codes: bDeviceClass of a hub
MOST_PORTS = 15
"""Of a hub: a port has four bits in a route string (USB 3.2, 8.9)."""
LAST_UNIT = 15
"""The largest logical unit number of a rig file."""
_PLACE = re.compile(r"^([^/]+)/([0-9.]+):([0-9.]+)\Z")
_ROOT = re.compile(r"^usb(\d+)$")
_PORT = re.compile(r"^(?:usb\d+|\d+-([\d.]+))-port(\d+)$")
_BEHIND = re.compile(r"^(\d+)-([\d.]+)$")


@dataclass
class _Holder:
    """A controller, or a hub at ``ports`` of it ("1.2")."""

    controller: str
    ports: str
    count: int
    product: str
    peer: str = ""
    """Ports of the hub that is its other half, if they differ from its own."""
    name: str = ""


@dataclass
class UsbTree:
    """The controllers and hubs of a machine, by (controller, ports)."""

    holders: dict[tuple[str, str], _Holder] = field(default_factory=dict)

    def add(self, controller: str, ports: str, count: int, product: str) -> None:
        """Add a controller or hub. Both halves of a USB 3 hub often have the same ports: the larger count holds."""
        known = self.holders.get((controller, ports))
        if known is None:
            self.holders[controller, ports] = _Holder(controller, ports, count, product)
        else:
            known.count = max(known.count, count)


def usb_tree(machine: Host) -> UsbTree:
    """The USB controllers and hubs in the machine's sysfs."""
    tree = UsbTree()
    buses: dict[str, str] = {}
    devices = [(posixpath.basename(path), path) for path in machine.glob(f"{DEVICES}/*")]
    for name, path in devices:
        if root := _ROOT.match(name):
            controller = posixpath.basename(posixpath.dirname(machine.real_path(path)))
            buses[root.group(1)] = controller
            tree.add(controller, "", _number(machine, f"{path}/maxchild"), _text(machine, f"{path}/product"))
    for name, path in devices:
        behind = _BEHIND.match(name)
        if behind and behind.group(1) in buses and _text(machine, f"{path}/bDeviceClass") == HUB_CLASS:
            count = _number(machine, f"{path}/maxchild")
            tree.add(buses[behind.group(1)], behind.group(2), count, _text(machine, f"{path}/product"))
    for name, _ in devices:
        behind = _BEHIND.match(name)
        if behind and (hub := tree.holders.get((buses.get(behind.group(1), ""), behind.group(2)))) is not None:
            hub.peer = hub.peer or _other_half(machine, name, behind.group(2))
    return tree


def _other_half(machine: Host, name: str, ports: str) -> str:
    """The ports of the other half of a USB 3 hub, from the kernel's link between the two ports of its socket.

    Empty if there is no other half, or if it has the same ports.
    """
    above, _, port = name.rpartition("." if "." in name else "-")
    socket = f"{above}:1.0/{above}-port{port}" if "-" in above else f"{above}-0:1.0/usb{above}-port{port}"
    peer = f"{DEVICES}/{socket}/peer"
    found = _PORT.match(posixpath.basename(machine.real_path(peer))) if machine.glob(peer) else None
    if found is None:
        return ""
    there = ".".join(part for part in (found.group(1) or "", found.group(2)) if part)
    return there if there != ports else ""


def draft(
    name: str, dut: Mapping[str, object], tree: UsbTree, disks: Sequence[Mapping[str, Any]], switches: Iterable[str]
) -> str:
    """The rig file's text. All names that devices report are quoted.

    ``disks`` are as the agent lists them; ``dut`` are the keys of its table; ``switches`` are ``[[switch]]`` tables of
    the switches that were found.
    """
    placed = [(disk, found) for disk in disks if (found := _PLACE.match(str(disk["place"])))]
    used = {found.group(1) for _, found in placed}
    holders = [each for each in tree.holders.values() if each.controller in used]
    holders.sort(key=lambda each: (each.controller, each.ports.count("."), each.ports))
    _name(holders)
    parts = [_head(name, dut, bool(placed))]
    parts += [f'# found attached; write cable = "SWITCH.PORT" for what it cuts\n{table}' for table in switches]
    by_place = {(each.controller, each.ports): each for each in holders}
    parts += [_holder_table(each, by_place) for each in holders]
    serials = [serial for serial, _ in {(str(disk["serial"]), _device(disk)) for disk in disks}]
    for number, (disk, found) in enumerate(placed, start=1):
        parts.append(_disk_table(f"disk{number}", disk, found, by_place, serials))
    return "\n\n".join(parts) + "\n"


def _name(holders: list[_Holder]) -> None:
    controllers = hubs = 0
    for each in holders:
        if each.ports:
            hubs += 1
            each.name = f"hub{hubs}"
        else:
            controllers += 1
            each.name = f"usb{controllers}"


def _head(name: str, dut: Mapping[str, object], any_disks: bool) -> str:
    lines = [
        "# A draft of what was found. Compare it with the bench, give each disk its cable and power outlets, and write",
        "# scratch = true for disks that may be erased. Then: plugpull rig check FILE",
    ]
    if not any_disks:
        lines.append("# No USB disk was found: plug them in and look again. A rig needs at least one [[disk]].")
    lines += ["", "[rig]", f"name = {toml_value(name)}", "", "[dut]"]
    return "\n".join([*lines, *(f"{toml_key(key)} = {toml_value(value)}" for key, value in dut.items())])


def _device(disk: Mapping[str, Any]) -> str:
    """The place of the device of a disk: its units have the serial number in common."""
    return str(disk["place"]).rpartition(":")[0] or str(disk["kname"])


def _holder_table(each: _Holder, by_place: Mapping[tuple[str, str], _Holder]) -> str:
    if not each.ports:
        lines = [
            "[[controller]]",
            f'name = "{each.name}"' + _comment(each.product),
            f"path = {toml_value(each.controller)}",
        ]
        return "\n".join([*lines, f"ports = {max(1, each.count)}"])
    above, _, port = each.ports.rpartition(".")
    lines = ["[[hub]]", f'name = "{each.name}"' + _comment(each.product)]
    half = by_place.get((each.controller, each.peer)) if each.peer else None
    if half is not None:
        lines.insert(0, f"# One hub with {half.name}, its other half for the other speed: a cable or outlet cuts both.")
    lines += [
        f'at = "{by_place[each.controller, above].name}.{port}"',
        f"ports = {min(MOST_PORTS, max(1, each.count))}",
    ]
    return "\n".join(lines)


def _disk_table(
    name: str,
    disk: Mapping[str, Any],
    found: re.Match[str],
    by_place: Mapping[tuple[str, str], _Holder],
    serials: Sequence[str],
) -> str:
    controller, ports, lun = found.groups()
    above, _, port = ports.rpartition(".")
    holder, serial = by_place.get((controller, above)), str(disk["serial"])
    size = disk["size"] if type(disk["size"]) is int else 0
    lines = [
        "[[disk]]",
        f'name = "{name}"' + _comment(f"{disk['model']}, {disk['kname']} today"),
        f'at = "{holder.name}.{port}"' if holder else "# at:" + _comment(str(disk["place"])),
        *([f"lun = {lun}  # a unit of a device, which a cut takes as a whole"] if lun not in ("", "0") else []),
        f"serial = {toml_value(serial)}",
        f"size = {size}" + _comment(f"{size / 1e9:.1f} GB"),
        f'protocol = "{"uas" if disk["driver"] == "uas" else "usb-storage"}"',
        "scratch = false",
    ]
    trouble = ""
    if holder is None:
        trouble = "its place could not be determined"
    elif size <= 0:
        trouble = "it has no size"
    elif not serial:
        trouble = "it has no serial number, and nothing may be written to a disk that cannot be identified"
    elif serials.count(serial) > 1:
        trouble = "another disk has the same serial number"
    elif int(disk.get("type", 0)) not in DISK_TYPES:
        trouble = "it is not a disk: a CD-ROM, or another unit that its device shows"
    elif not lun.isdecimal() or int(lun) > LAST_UNIT:
        trouble = f"its unit {lun} cannot be declared"
    if trouble:
        return "\n".join([f"# left out: {trouble}", *(f"# {line.removeprefix('# ')}" for line in lines)])
    return "\n".join(lines)


def _comment(text: str) -> str:
    kept = "".join(letter for letter in text if letter.isprintable()).strip(" ,")
    return f"  # {kept}" if kept else ""


def _text(machine: Host, path: str) -> str:
    return machine.read_text(path).strip() if machine.glob(path) else ""


def _number(machine: Host, path: str) -> int:
    text = _text(machine, path)
    return int(text) if text.isdecimal() else 0
