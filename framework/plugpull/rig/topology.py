"""What is plugged in where on a rig, and what a cut at each point takes away.

Pure functions of the rig file. A rig from ``load_rig`` has no loops and no dangling references. For other rigs,
``Topology`` raises ``UsageError`` when it finds one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from plugpull.errors import UsageError
from plugpull.rig.model import Controller, DeclaredSwitch, Disk, Hub, Mechanism, Rig

Device = Controller | Hub | Disk

_CUTS_VBUS = (Mechanism.VBUS, Mechanism.DATA_VBUS, Mechanism.MAINS)


@dataclass(frozen=True)
class DevicePath:
    """Where a device is plugged in: the controller's name, and the ports of the controller and of each hub."""

    controller: str
    ports: tuple[int, ...]

    def __str__(self) -> str:
        return f"{self.controller}/{'.'.join(map(str, self.ports))}" if self.ports else self.controller


@dataclass(frozen=True)
class CutPoint:
    """A place in the rig that can be cut, such as ``disk3.cable``.

    ``port`` of ``switch`` cuts it; ``mechanism`` is what that interrupts. ``victims`` is its blast radius: the names of
    all disks that go away, in the order of the rig file. An outlet that feeds several devices cuts all of them: their
    cut points have the same blast radius, and ``shares_with`` names the other ones.
    """

    name: str
    outlet: str
    switch: str
    port: str
    mechanism: Mechanism
    victims: tuple[str, ...]
    unpowered: tuple[str, ...] = ()
    """The victims that lose power too, and so their volatile caches. If the rig file does not say whether a hub has a
    supply of its own, the disks that it feeds are included."""
    shares_with: tuple[str, ...] = ()

    @property
    def device(self) -> str:
        """The name of the device that is cut off: a disk, a hub or ``dut``."""
        return self.name.rpartition(".")[0]


class Topology:
    """The tree of controllers, hubs and disks of a rig."""

    def __init__(self, rig: Rig) -> None:
        self.rig = rig
        self._plugged: tuple[Hub | Disk, ...] = (*rig.hub, *rig.disk)
        self._devices: dict[str, Device] = {controller.name: controller for controller in rig.controller}
        self._devices.update((device.name, device) for device in self._plugged)
        self._switches: dict[str, DeclaredSwitch] = {switch.name: switch for switch in rig.switch}

    def device(self, name: str) -> Device:
        """The controller, hub or disk of that name. Raises ``UsageError`` if there is none."""
        try:
            return self._devices[name]
        except KeyError:
            raise UsageError(f'rig {self.rig.rig.name} has no controller, hub or disk named "{name}"') from None

    def children(self, name: str) -> tuple[str, ...]:
        """Names of what is plugged into a controller or hub, by port."""
        return self._children.get(name, ())

    def path_of(self, name: str) -> DevicePath:
        """The path to a device. Raises ``UsageError`` if there is no such device, or no controller above it."""
        ports: list[int] = []
        device = self.device(name)
        while not isinstance(device, Controller):
            holder, port = plugged(device)
            ports.append(port)
            if len(ports) > len(self._devices):
                raise UsageError(f'the hubs above "{name}" form a loop')
            device = self.device(holder)
        return DevicePath(device.name, tuple(reversed(ports)))

    def above(self, name: str) -> tuple[str, ...]:
        """Names of the hubs above a hub or disk, the nearest first, and of its controller. Raises ``UsageError`` as
        ``path_of`` does."""
        found: list[str] = []
        device = self.device(name)
        self.path_of(name)
        while not isinstance(device, Controller):
            holder, _ = plugged(device)
            found.append(holder)
            device = self.device(holder)
        return tuple(found)

    def disks_below(self, name: str) -> tuple[str, ...]:
        """Names of the disks at or below a device, in the order of the rig file."""
        self.device(name)
        return self._in_order(self._walk(name))

    def cut_points(self) -> dict[str, CutPoint]:
        """Every place that can be cut, by name, in the order of the rig file."""
        by_outlet: dict[str, list[CutPoint]] = {}
        points = tuple(self._cut_points())
        for point in points:
            by_outlet.setdefault(point.outlet, []).append(point)
        return {point.name: self._with_its_outlet(point, by_outlet[point.outlet]) for point in points}

    def blast_radius(self, point: str | CutPoint) -> tuple[str, ...]:
        """Names of the disks that go away with a cut. Raises ``UsageError`` for an unknown cut point."""
        return point.victims if isinstance(point, CutPoint) else self.cut_point(point).victims

    def cut_point(self, name: str) -> CutPoint:
        """The cut point of that name. Raises ``UsageError``, with the known ones, if there is none."""
        points = self.cut_points()
        if name not in points:
            known = ", ".join(points) or "none"
            raise UsageError(f'rig {self.rig.rig.name} has no cut point "{name}"', hint=f"it has {known}")
        return points[name]

    @cached_property
    def _children(self) -> dict[str, tuple[str, ...]]:
        by_holder: dict[str, list[tuple[int, str]]] = {}
        for device in self._plugged:
            holder, port = plugged(device)
            by_holder.setdefault(holder, []).append((port, device.name))
        return {holder: tuple(name for _, name in sorted(found)) for holder, found in by_holder.items()}

    def units_of(self, disk: str) -> tuple[str, ...]:
        """Names of the disks of the same device, this one included, by logical unit number."""
        at = plugged(self._disk(disk))
        units = [one for one in self.rig.disk if plugged(one) == at]
        return tuple(one.name for one in sorted(units, key=lambda one: one.lun))

    def _disk(self, name: str) -> Disk:
        found = self.device(name)
        assert isinstance(found, Disk)
        return found

    def _walk(self, name: str) -> Iterator[str]:
        seen: set[str] = set()
        todo = [name]
        while todo:
            here = todo.pop()
            if here not in seen:
                seen.add(here)
                yield here
                todo.extend(self.children(here))
                if isinstance(self._devices.get(here), Disk):
                    todo.extend(self.units_of(here))  # a cut takes the whole device

    def _cut_points(self) -> Iterator[CutPoint]:
        if self.rig.dut.power is not None:
            every = tuple(disk.name for disk in self.rig.disk)
            yield self._cut_point("dut.power", self.rig.dut.power, every)
        for device in self._plugged:
            victims = self.disks_below(device.name)
            if device.cable is not None:
                yield self._cut_point(f"{device.name}.cable", device.cable, victims)
            if device.power is not None:
                yield self._cut_point(f"{device.name}.power", device.power, victims)

    def _cut_point(self, name: str, outlet: str, victims: tuple[str, ...]) -> CutPoint:
        switch_name, _, port = outlet.partition(".")
        switch = self._switches.get(switch_name)
        if switch is None:
            raise UsageError(f'{name} is switched by "{switch_name}", and there is no such switch')
        unpowered = tuple(disk for disk in victims if self._loses_power(disk, name, switch.mechanism))
        return CutPoint(name, outlet, switch_name, port, switch.mechanism, victims, unpowered)

    def _with_its_outlet(self, point: CutPoint, of_outlet: list[CutPoint]) -> CutPoint:
        """The cut point with everything else that its outlet feeds."""
        if len(of_outlet) == 1:
            return point
        return replace(
            point,
            victims=self._in_order(disk for each in of_outlet for disk in each.victims),
            unpowered=self._in_order(disk for each in of_outlet for disk in each.unpowered),
            shares_with=tuple(each.name for each in of_outlet if each.name != point.name),
        )

    def _in_order(self, names: Iterable[str]) -> tuple[str, ...]:
        found = set(names)
        return tuple(disk.name for disk in self.rig.disk if disk.name in found)

    def _loses_power(self, disk_name: str, point: str, mechanism: Mechanism) -> bool:
        if any(point == f"{unit}.power" for unit in self.units_of(disk_name)):
            return True
        return not self._disk(disk_name).self_powered and mechanism in _CUTS_VBUS


def plugged(device: Hub | Disk) -> tuple[str, int]:
    """The name and the port of what a device is plugged into: ``("hub1", 2)``."""
    holder, _, port = device.at.partition(".")
    return holder, int(port)


def unit_identity(serial: str, lun: int = 0) -> str:
    """The identity of a disk, which stays over a replug: units of one device have its serial number in common."""
    return f"{serial}:{lun}" if lun else serial


def with_disks_at(rig: Rig, sockets: Mapping[str, str]) -> Rig:
    """The rig with these disks in other sockets, by name."""
    disks = tuple(disk.model_copy(update={"at": sockets.get(disk.name, disk.at)}) for disk in rig.disk)
    return rig.model_copy(update={"disk": disks})


def without_disks(rig: Rig, names: Collection[str]) -> Rig:
    """The rig without these disks, and without what is declared of them alone."""
    meters = (one.model_copy(update={"disks": tuple(d for d in one.disks if d not in names)}) for one in rig.meter)
    return rig.model_copy(
        update={
            "disk": tuple(disk for disk in rig.disk if disk.name not in names),
            "defect": tuple(defect for defect in rig.defect if defect.disk not in names),
            "meter": tuple(meter for meter in meters if meter.disks),
        }
    )


def free_sockets(rig: Rig) -> tuple[str, ...]:
    """The sockets of hubs and controllers that nothing is plugged into, such as ``hub1.3``, in the order of the rig
    file: those of hubs first."""
    devices: tuple[Hub | Disk, ...] = (*rig.hub, *rig.disk)
    taken = {device.at for device in devices} | {str(switch.control) for switch in rig.switch}
    holders: tuple[Hub | Controller, ...] = (*rig.hub, *rig.controller)
    every = (f"{holder.name}.{port}" for holder in holders for port in range(1, holder.ports + 1))
    return tuple(socket for socket in every if socket not in taken)


def sockets_elsewhere(rig: Rig, disks: Iterable[str], hub: str, *, another_controller: bool = False) -> dict[str, str]:
    """A free socket for each of these disks that is not below ``hub``, as far as there are any.

    With ``another_controller``, only sockets of other controllers. Disks that share a device are left out. A UAS disk
    goes into a controller's socket on a virtual rig, where hubs are of full speed; a disk that is not on USB stays on
    the controllers of its bus.
    """
    topology = Topology(rig)
    here, found = topology.path_of(hub), dict[str, str]()
    free = [socket for socket in free_sockets(rig) if not _is_below(topology.path_of(_holder(socket)), here)]
    if another_controller:
        free = [socket for socket in free if topology.path_of(_holder(socket)).controller != here.controller]
    controllers = {controller.name for controller in rig.controller}
    for name in disks:
        if len(topology.units_of(name)) > 1:
            continue
        disk = topology.device(name)
        direct = isinstance(disk, Disk) and disk.protocol == "uas" and rig.dut.kind == "virtual"
        fitting = (
            socket
            for socket in free
            if (not direct or _holder(socket) in controllers) and takes(rig, topology, socket, name)
        )
        socket = next(fitting, None)
        if socket is not None:
            free.remove(socket)
            found[name] = socket
    return found


def takes(rig: Rig, topology: Topology, socket: str, disk: str) -> bool:
    """Whether the controller that a socket belongs to is of the disk's own bus: SCSI disks do not fit into USB."""
    buses = {one.name: "scsi" if one.model == "virtio-scsi-pci" else "usb" for one in rig.controller}
    here = topology.path_of(disk).controller
    holder = _holder(socket)
    return buses[holder if holder in buses else topology.path_of(holder).controller] == buses[here]


def _holder(socket: str) -> str:
    return socket.rpartition(".")[0]


def _is_below(path: DevicePath, above: DevicePath) -> bool:
    return path.controller == above.controller and path.ports[: len(above.ports)] == above.ports
