"""Plugging and unplugging of emulated devices: the QEMU side of every cable of the virtual bench."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from plugpull.errors import RigError
from plugpull.rig.model import Disk
from plugpull.virtual.firmware import Firmware
from plugpull.virtual.qmp import Qmp

FIRST_THAT_CRASHES = 10
"""A major version of QEMU, see ``Plugs._must_detach``."""


@dataclass(frozen=True)
class Enclosure:
    """A device as it is plugged in: its ``disks`` by logical unit number, from 0, with one serial number.

    The disks in ``writes_through`` report that they have no cache to flush. With ``cdrom`` it also shows a CD-ROM
    without a disc."""

    disks: tuple[Disk, ...]
    serial: str
    writes_through: frozenset[str] = frozenset()
    cdrom: bool = False


def _medium(disk: Disk, enclosure: Enclosure) -> dict[str, Any]:
    """The properties of a unit whose names QEMU writes with underscores, and those beside them."""
    medium: dict[str, Any] = {"drive": f"medium-{disk.name}", "serial": enclosure.serial}
    medium |= {"logical_block_size": disk.logical_block, "physical_block_size": disk.logical_block}
    return medium | {"write-cache": "off" if disk.name in enclosure.writes_through else "auto"}


class Plugs:
    """The devices of one guest. Devices, block nodes and throttle groups have the names of the rig file. ``plugged``
    are those that it was started with."""

    def __init__(self, qmp: Qmp, plugged: Iterable[str] = ()) -> None:
        self._qmp = qmp
        self._plugged = set(plugged)
        self._with_units: set[str] = set()
        self._shares: dict[str, tuple[str, ...]] = {}
        self._rates: dict[str, int] = {}
        self._lifted = 0
        self.port_power = False
        """If true, hubs report that they switch the power of each port, which uhubctl requires."""

    def plugged(self, name: str) -> bool:
        return name in self._plugged

    def present(self) -> set[str]:
        """The devices that QEMU itself lists."""
        return {entry["name"] for entry in self._qmp.run("qom-list", path="/machine/peripheral")}

    def counted(self) -> dict[str, tuple[int, int]]:
        """The bytes that each plugged disk has transferred since it was plugged in, by QEMU's own count: (read,
        written)."""
        found = {}
        for entry in self._qmp.run("query-blockstats", 10.0):
            name = str(entry.get("node-name", "")).removeprefix("medium-")
            if entry.get("qdev") and name in self._plugged:
                found[name] = int(entry["stats"]["rd_bytes"]), int(entry["stats"]["wr_bytes"])
        return found

    # --- media --------------------------------------------------------------------------------------------------

    def share(self, name: str, rate: int) -> None:
        """Create a rate limit in bytes per second that all disks inserted below ``name`` share."""
        self._rates[name] = rate
        self._qmp.run("object-add", qom_type="throttle-group", id=f"rate-{name}", limits=self._limits(rate))

    def insert(self, disk: Disk, firmware: Firmware, shares: Sequence[str] = ()) -> None:
        """Connect QEMU to a disk's firmware, through one throttle for the disk's rate and one for each of ``shares``.

        ``shares`` are names that were passed to ``share``.
        """
        self.share(disk.name, disk.rate or 0)
        self._shares[disk.name] = tuple(shares)
        self.connect(disk, firmware)

    def connect(self, disk: Disk, firmware: Firmware) -> None:
        node = f"nbd-{disk.name}"
        server = {"type": "unix", "path": str(firmware.socket)}
        self._qmp.run("blockdev-add", driver="nbd", node_name=node, server=server)
        for above, group in self._throttles(disk):
            self._qmp.run("blockdev-add", driver="throttle", node_name=above, throttle_group=f"rate-{group}", file=node)
            node = above

    def _throttles(self, disk: Disk) -> list[tuple[str, str]]:
        """The throttle nodes of a disk and their groups, from the firmware upwards."""
        shared = [(f"share{number}-{disk.name}", name) for number, name in enumerate(self._shares[disk.name])]
        return [*shared, (f"medium-{disk.name}", disk.name)]

    def disconnect(self, disk: Disk) -> None:
        """Remove the connection to a firmware that lost its power. The device must be unplugged."""
        for node, _ in reversed(self._throttles(disk)):
            self._qmp.run("blockdev-del", node_name=node)
        self._qmp.run("blockdev-del", node_name=f"nbd-{disk.name}")

    def _limits(self, rate: int) -> dict[str, int]:
        return {"bps-total": max(rate, self._lifted) if rate else rate}

    def set_rate(self, name: str, rate: int) -> None:
        """Change the rate limit of a disk or of a shared rate, in bytes per second, while they run."""
        self._rates[name] = rate
        self._limit(name, rate)

    def lift_rates(self, to: int | None) -> None:
        """Raise all rate limits to at least so many bytes per second, or set them again as they were last given."""
        lifted = to or 0
        if lifted != self._lifted:
            self._lifted = lifted
            for name, rate in self._rates.items():
                self._limit(name, rate)

    def _limit(self, name: str, rate: int) -> None:
        self._qmp.run("qom-set", path=f"/objects/rate-{name}", property="limits", value=self._limits(rate))

    # --- devices ------------------------------------------------------------------------------------------------

    def plug_hub(self, name: str, ports: int, bus: str, port: str) -> None:
        self._add(driver="usb-hub", id=name, ports=ports, port_power=self.port_power, bus=bus, port=port)
        self._plugged.add(name)

    def plug_disk(self, enclosure: Enclosure, bus: str, port: str) -> None:
        """Plug a device with its disks in. Raises RigError if QEMU refuses."""
        (first, *others), cdrom = enclosure.disks, enclosure.cdrom
        if first.protocol == "scsi":
            target, medium = int(port), _medium(first, enclosure)
            self._add(medium, driver="scsi-hd", id=first.name, bus=bus, scsi_id=target, lun=0, dpofua=first.fua)
            self._plugged.add(first.name)
            return
        plain = first.protocol == "usb-storage" and not first.fua and first.logical_block == 512
        if plain and not self._must_detach and not others and not cdrom and not enclosure.writes_through:
            self._add(_medium(first, enclosure), driver="usb-storage", id=first.name, bus=bus, port=port)
        else:
            self._plug_with_units(enclosure, bus, port)
        self._plugged.update(disk.name for disk in enclosure.disks)

    @cached_property
    def _must_detach(self) -> bool:
        """Whether a disk must be detached before it is deleted, which QEMU's usb-storage cannot be. Version 10 crashes
        otherwise if a request is under way: ``usb_msd_request_cancelled`` is called after its bus has lost the device
        (hw/usb/dev-storage.c)."""
        return int(self._qmp.run("query-version")["qemu"]["major"]) >= FIRST_THAT_CRASHES

    def _plug_with_units(self, enclosure: Enclosure, bus: str, port: str) -> None:
        """Plug a bridge and its logical units as devices of their own: for UAS, for several units, and for bulk-only
        units with settings that QEMU's usb-storage does not have."""
        bridge = enclosure.disks[0]
        driver = "usb-uas" if bridge.protocol == "uas" else "usb-bot"
        # The units must exist before the device is attached, or the kernel does not find them.
        self._add(driver=driver, id=bridge.name, serial=enclosure.serial, bus=bus, port=port, attached=False)
        for lun, disk in enumerate(enclosure.disks):
            name, medium = f"{bridge.name}-lun{lun}", _medium(disk, enclosure)
            self._add(medium, driver="scsi-hd", id=name, bus=f"{bridge.name}.0", scsi_id=0, lun=lun, dpofua=disk.fua)
        if enclosure.cdrom:
            lun = len(enclosure.disks)
            self._add(driver="scsi-cd", id=f"{bridge.name}-cd", bus=f"{bridge.name}.0", scsi_id=0, lun=lun)
        self._attach(bridge.name, True)
        self._with_units.add(bridge.name)

    def _attach(self, name: str, attached: bool) -> None:
        self._qmp.run("qom-set", path=f"/machine/peripheral/{name}", property="attached", value=attached)

    def _add(self, exact: Mapping[str, Any] | None = None, /, **arguments: Any) -> None:
        self._qmp.run("device_add", None, exact, **arguments)

    def unplug(self, name: str) -> None:
        """Unplug a device. Devices below a hub go with it, and their remains are removed here."""
        if name in self._with_units:
            # The data packets must be cancelled while the requests they belong to still exist: deleting the device
            # deletes the requests first, and QEMU then aborts in usb_uas_cancel_io (hw/usb/dev-uas.c, 7.2).
            self._attach(name, False)
        self._qmp.unplug(name)
        self._plugged.discard(name)

    def clear_away(self, name: str) -> None:
        """Delete a device whose hub is gone: it is detached, but QEMU still keeps its name."""
        if name in self._plugged:
            try:
                self._qmp.unplug(name)
            except RigError as error:
                if "not found" not in error.what:
                    raise
            self._plugged.discard(name)
