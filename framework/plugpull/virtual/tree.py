"""Which devices of a virtual rig are connected and powered, by the outlets that are off."""

from __future__ import annotations

from collections.abc import Collection

from plugpull.rig.model import Disk, Hub, Rig
from plugpull.rig.topology import CutPoint, Topology


class DeviceTree:
    """The hubs and disks of a rig as they are plugged in. ``off`` are the outlets that are off, and may change."""

    def __init__(self, rig: Rig, off: Collection[str]) -> None:
        self._off = off
        self._rig = rig
        self._topology = Topology(rig)
        things: tuple[Hub | Disk, ...] = (*rig.hub, *rig.disk)
        self.outwards = sorted(things, key=lambda thing: len(self._topology.path_of(thing.name).ports))
        """Hubs and disks, those nearer to a controller first."""

    def socket(self, name: str) -> tuple[str, str]:
        """The controller's bus and the port of a device, as QEMU writes them."""
        path = self._topology.path_of(name)
        return f"{path.controller}.0", ".".join(map(str, path.ports))

    def place(self, disk: str, addresses: dict[str, str]) -> str:
        """Where a disk is plugged in, as the agent writes it: ``0000:00:10.0/1.2:0``."""
        path = self._topology.path_of(disk)
        unit = next(one.lun for one in self._rig.disk if one.name == disk)
        return f"{addresses[path.controller]}/{'.'.join(map(str, path.ports))}:{unit}"

    def units(self, disk: str) -> list[Disk]:
        """The disks of the same device, by logical unit number. QEMU knows the device by the name of the first."""
        named = {one.name: one for one in self._rig.disk}
        return [named[name] for name in self._topology.units_of(disk)]

    def device(self, name: str) -> str:
        """The name by which QEMU knows the device of a disk or a hub."""
        return name if any(hub.name == name for hub in self._rig.hub) else self._topology.units_of(name)[0]

    def points_at(self, outlet: str) -> list[CutPoint]:
        """The cut points that an outlet switches."""
        return [point for point in self._topology.cut_points().values() if point.outlet == outlet]

    def above(self, disk: str) -> list[str]:
        """The names of the controller and of the hubs above a disk."""
        hubs = [hub.name for hub in self._rig.hub if self.below(hub.name, disk)]
        return [self._topology.path_of(disk).controller, *hubs]

    def below(self, upper: str, lower: str) -> bool:
        """True if ``lower`` is ``upper`` or is connected below it."""
        up, low = self._topology.path_of(upper), self._topology.path_of(lower)
        return up.controller == low.controller and low.ports[: len(up.ports)] == up.ports

    def reachable(self, thing: Disk | Hub) -> bool:
        """True if no outlet of the device or of a hub above it is off."""
        above = [part for part in self.outwards if self.below(part.name, thing.name)]
        return not any(outlet in self._off for part in above for outlet in (part.cable, part.power))

    def loses_power(self, disk: Disk) -> bool:
        """True if an outlet that is off takes this disk's power and not only its data connection."""
        points = self._topology.cut_points().values()
        return any(point.outlet in self._off and disk.name in point.unpowered for point in points)
