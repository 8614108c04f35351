"""Which things on the DUT are at or below the rig: its hubs and disks, and whatever hangs off them.

On a real DUT somebody logs in, or plugs a keyboard into another port, while a scenario runs. That is not the rig's. A
place is a controller's address and a chain of ports: ``0000:00:14.0/1.2``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from plugpull.checks.limits import bench_kind
from plugpull.history.events import Uevent
from plugpull.history.story import Story

_BUS = re.compile(r"/([^/]+)/usb(\d+)(?:/|$)")
_USB_NAME = re.compile(r"^(?:usb(\d+)|(\d+)-(\d+(?:\.\d+)*))$")
_AT = re.compile(r" at (\S+)$")
_DISK = re.compile(r"^/dev/(sd[a-z]+)\d*\b")
_ON = re.compile(r" \(on ([^)]+)\)$")

Ports = tuple[str, ...]


class RigPlaces:
    """The places of a story's rig, worked out from its rig file and from where its disks were attached."""

    def __init__(self, story: Story) -> None:
        self._story = story
        self._virtual = bench_kind(story) in ("virtual", "")
        self._parts = _parts(story)
        self._addresses = self._controllers()
        self._buses = self._bus_numbers()
        self.known = bool(self._addresses)
        """False for a story that does not say where its rig is: then everything counts."""

    def _controllers(self) -> dict[str, str]:
        """Name of a controller in the rig file -> its address."""
        found = {}
        for attached in self._story.all_attachments:
            controller, ports = self._parts.get(attached.disk, ("", ()))
            address, _, chain = attached.place.partition("/")
            if controller and tuple(chain.partition(":")[0].split(".")) == ports:
                found[controller] = address
        return found

    def _bus_numbers(self) -> dict[str, str]:
        """Number of a USB bus -> the address of its controller."""
        paths = [attached.sysfs for attached in self._story.all_attachments]
        paths += [event.devpath for event in self._story.of(Uevent)]
        return {bus[2]: bus[1] for path in paths if (bus := _BUS.search(path))}

    def place_of_part(self, name: str) -> str:
        """Where a hub or disk of the rig is; empty if that is not known."""
        controller, ports = self._parts.get(name, ("", ()))
        address = self._addresses.get(controller, "")
        return f"{address}/{'.'.join(ports)}" if address else ""

    def place_of(self, kind: str, name: str) -> str:
        """Where a thing of a census is; empty for one without a place."""
        if kind == "usb device":
            found = _USB_NAME.match(name)
            address = self._buses.get(found.group(1) or found.group(2), "") if found else ""
            return f"{address}/{found.group(3) or ''}" if found and address else ""
        if kind == "block device":
            return name.partition(" (serial ")[0].rpartition(":")[0] if " (serial " in name else ""
        at = _AT.search(name)
        return at.group(1) if at else ""

    def has(self, kind: str, name: str) -> bool:
        """Is this thing of a census at or below the rig?"""
        if not self.known:
            return True
        if kind == "mount":
            return self._mounted(name)
        if kind in ("open file", "trace of a disk") or "removed, not freed" in name:
            return True
        place = self.place_of(kind, name)
        if kind in ("kernel thread", "xhci slot") or not place:
            return self._virtual and kind != "usb device"
        if self._virtual:
            return place.partition("/")[0] in self._addresses.values()
        return any(below(place, self.place_of_part(part)) for part in self._parts)

    def _mounted(self, name: str) -> bool:
        """``/dev/sdb1 on /mnt (ext4)``: by the disk that had this name in the story. What is mounted from an image is
        named after the image's disk if that is a whole device. An image in a file of a disk of the rig keeps the mount
        of that disk, which is named then."""
        if name.startswith("/dev/loop"):
            return False
        source = _DISK.match(name)
        if source is None:
            return self._virtual and name.startswith("/dev/")
        return any(event.disk for event in self._story.all_attachments if event.kname == source.group(1))


def below(place: str, above: str) -> bool:
    """Is ``place`` at or below ``above``?"""
    return bool(above) and (place == above or place.startswith((above + ".", above + ":")))


def _parts(story: Story) -> dict[str, tuple[str, Ports]]:
    """Hub or disk of the rig file -> (controller, ports on the way)."""
    tables: Iterable[dict[str, object]] = (*story.rig.get("hub", ()), *story.rig.get("disk", ()))
    at = {str(table.get("name")): str(table.get("at", "")) for table in tables}
    found = {}
    for name in at:
        ports: list[str] = []
        holder = name
        while holder in at and len(ports) <= len(at):
            holder, _, port = at[holder].partition(".")
            ports.insert(0, port)
        found[name] = (holder, tuple(ports))
    return found
