"""Plugging and unplugging emulated USB devices: the QEMU side of every cable of the virtual bench."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from plugpull.errors import RigError
from plugpull.rig.model import Disk
from plugpull.virtual.firmware import Firmware
from plugpull.virtual.qmp import Qmp

FULL_SPEED_HUB_PORTS = 8
"""The most ports QEMU's usb-hub has (hw/usb/dev-hub.c)."""


class Plugs:
    """Devices of one guest by their names in the rig. Devices, block nodes and throttle groups are named after them."""

    def __init__(self, qmp: Qmp) -> None:
        self._qmp = qmp
        self._plugged: set[str] = set()
        self._with_units: set[str] = set()
        self._shares: dict[str, tuple[str, ...]] = {}
        self.port_power = False
        """Hubs switch the power of each port, which is what uhubctl looks for."""

    def plugged(self, name: str) -> bool:
        return name in self._plugged

    def present(self) -> set[str]:
        """The devices QEMU itself says are there."""
        return {entry["name"] for entry in self._qmp.run("qom-list", path="/machine/peripheral")}

    # --- media --------------------------------------------------------------------------------------------------

    def share(self, name: str, rate: int) -> None:
        """Make a rate, bytes per second, that all disks which are inserted below ``name`` have together."""
        self._qmp.run("object-add", qom_type="throttle-group", id=f"rate-{name}", limits=self._limits(rate))

    def insert(self, disk: Disk, firmware: Firmware, shares: Sequence[str] = ()) -> None:
        """Connect QEMU to a disk's firmware, through a throttle that carries the disk's rate and one for each rate
        that it shares with others, by the names they were made with."""
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
        """The throttle nodes of a disk and the groups they are in, from the firmware upwards."""
        shared = [(f"share{number}-{disk.name}", name) for number, name in enumerate(self._shares[disk.name])]
        return [*shared, (f"medium-{disk.name}", disk.name)]

    def disconnect(self, disk: Disk) -> None:
        """Forget a firmware that lost its power. The device must be unplugged."""
        for node, _ in reversed(self._throttles(disk)):
            self._qmp.run("blockdev-del", node_name=node)
        self._qmp.run("blockdev-del", node_name=f"nbd-{disk.name}")

    @staticmethod
    def _limits(rate: int) -> dict[str, int]:
        return {"bps-total": rate}

    def set_rate(self, name: str, rate: int) -> None:
        """Change the most a disk transfers, or those that share a rate, in bytes per second, while they run."""
        self._qmp.run("qom-set", path=f"/objects/rate-{name}", property="limits", value=self._limits(rate))

    # --- devices ------------------------------------------------------------------------------------------------

    def plug_hub(self, name: str, ports: int, bus: str, port: str) -> None:
        count = min(ports, FULL_SPEED_HUB_PORTS)
        self._add(driver="usb-hub", id=name, ports=count, port_power=self.port_power, bus=bus, port=port)
        self._plugged.add(name)

    def plug_disk(self, disk: Disk, serial: str, bus: str, port: str, *, writes_through: bool = False) -> None:
        """``writes_through``: the disk says that it has no cache which would have to be flushed. Raises RigError if
        QEMU refuses."""
        medium: dict[str, Any] = {"drive": f"medium-{disk.name}", "serial": serial}
        medium |= {"logical_block_size": disk.logical_block, "physical_block_size": disk.logical_block}
        medium |= {"write-cache": "off" if writes_through else "auto"}
        if disk.protocol == "uas" or disk.fua or writes_through or disk.logical_block != 512:
            self._plug_with_unit(disk, medium, bus, port)
        else:
            self._add(medium, driver="usb-storage", id=disk.name, bus=bus, port=port)
        self._plugged.add(disk.name)

    def _plug_with_unit(self, disk: Disk, medium: dict[str, Any], bus: str, port: str) -> None:
        """A bridge and its logical unit as devices of their own: UAS, or bulk-only where the unit has to be told
        something that QEMU's usb-storage cannot be told."""
        driver = "usb-uas" if disk.protocol == "uas" else "usb-bot"
        # The LUN has to be there before the device shows itself, or the kernel finds none.
        self._add(driver=driver, id=disk.name, serial=medium["serial"], bus=bus, port=port, attached=False)
        lun = f"{disk.name}-lun0"
        self._add(medium, driver="scsi-hd", id=lun, bus=f"{disk.name}.0", scsi_id=0, lun=0, dpofua=disk.fua)
        self._attach(disk.name, True)
        self._with_units.add(disk.name)

    def _attach(self, name: str, attached: bool) -> None:
        self._qmp.run("qom-set", path=f"/machine/peripheral/{name}", property="attached", value=attached)

    def _add(self, exact: Mapping[str, Any] | None = None, /, **arguments: Any) -> None:
        self._qmp.run("device_add", None, exact, **arguments)

    def unplug(self, name: str) -> None:
        """Take a device out. What hangs below a hub goes with it; its remains are cleared away here."""
        if name in self._with_units:
            # The data packets have to be called back while the requests they belong to still exist: deleting the
            # device deletes the requests first, and QEMU then aborts in usb_uas_cancel_io (hw/usb/dev-uas.c, 7.2).
            self._attach(name, False)
        self._qmp.unplug(name)
        self._plugged.discard(name)

    def clear_away(self, name: str) -> None:
        """A device whose hub is gone: detached already, but QEMU still holds it by its name."""
        if name in self._plugged:
            try:
                self._qmp.unplug(name)
            except RigError as error:
                if "not found" not in error.what:
                    raise
            self._plugged.discard(name)
