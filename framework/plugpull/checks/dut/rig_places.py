"""Which things on the DUT are at or below the rig: its hubs and disks, and everything attached to them.

On a real DUT somebody may log in, or plug a keyboard into another port, while a scenario runs. That is not part of the
rig. A place is a controller's address and a chain of ports: ``0000:00:14.0/1.2``.
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
    """The places of a story's rig, from its rig file and the attachments of its disks."""

    def __init__(self, story: Story) -> None:
        self._story = story
        self._virtual = bench_kind(story) in ("virtual", "")
        self._parts = _parts(story)
        self._addresses = self._controllers()
        self._buses = self._bus_numbers()
        self.known = bool(self._addresses)
        """False if the places of the rig are not known: then everything counts."""

    def _controllers(self) -> dict[str, str]:
        """The address of each controller, by its name in the rig file."""
        found = {}
        for attached in self._story.all_attachments:
            controller, ports = self._parts.get(attached.disk, ("", ()))
            address, _, chain = attached.place.partition("/")
            if controller and tuple(chain.partition(":")[0].split(".")) == ports:
                found[controller] = address
        return found

    def _bus_numbers(self) -> dict[str, str]:
        """The address of the controller of each USB bus, by the number of the bus."""
        paths = [attached.sysfs for attached in self._story.all_attachments]
        paths += [event.devpath for event in self._story.of(Uevent)]
        return {bus[2]: bus[1] for path in paths if (bus := _BUS.search(path))}

    def place_of_part(self, name: str) -> str:
        """The place of a hub or disk of the rig; empty if not known."""
        controller, ports = self._parts.get(name, ("", ()))
        address = self._addresses.get(controller, "")
        return f"{address}/{'.'.join(ports)}" if address else ""

    def place_of(self, kind: str, name: str) -> str:
        """The place of a thing in a census; empty if it has none."""
        if kind in ("usb device", "reference to a hub"):
            found = _USB_NAME.match(name)
            address = self._buses.get(found.group(1) or found.group(2), "") if found else ""
            return f"{address}/{found.group(3) or ''}" if found and address else ""
        if kind == "block device":
            return name.partition(" (serial ")[0].rpartition(":")[0] if " (serial " in name else ""
        at = _AT.search(name)
        return at.group(1) if at else ""

    def has(self, kind: str, name: str) -> bool:
        """Whether this thing of a census is at or below the rig."""
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
        """The mount ``/dev/sdb1 on /mnt (ext4)`` belongs to the disk that had this name in the story. A mounted image
        has the name of its disk if it is a whole device. An image in a file keeps its own disk mounted, which is
        named."""
        if name.startswith("/dev/loop"):
            return False
        source = _DISK.match(name)
        if source is None:
            return self._virtual and name.startswith("/dev/")
        return any(event.disk for event in self._story.all_attachments if event.kname == source.group(1))


def below(place: str, above: str) -> bool:
    """Whether ``place`` is at or below ``above``."""
    return bool(above) and (place == above or place.startswith((above + ".", above + ":")))


def _parts(story: Story) -> dict[str, tuple[str, Ports]]:
    """The controller and the chain of ports of each hub and disk in the rig file."""
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
