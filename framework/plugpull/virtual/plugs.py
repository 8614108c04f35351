"""Plugging and unplugging emulated USB devices: the QEMU side of every cable of the virtual bench."""

from __future__ import annotations

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
        self._uas: set[str] = set()

    def plugged(self, name: str) -> bool:
        return name in self._plugged

    def present(self) -> set[str]:
        """The devices QEMU itself says are there."""
        return {entry["name"] for entry in self._qmp.run("qom-list", path="/machine/peripheral")}

    # --- media --------------------------------------------------------------------------------------------------

    def insert(self, disk: Disk, firmware: Firmware) -> None:
        """Connect QEMU to a disk's firmware, through a throttle that carries the disk's rate."""
        name = disk.name
        self._qmp.run("object-add", qom_type="throttle-group", id=f"rate-{name}", limits=self._limits(disk.rate))
        self.connect(disk, firmware)

    def connect(self, disk: Disk, firmware: Firmware) -> None:
        self._qmp.run(
            "blockdev-add",
            driver="nbd",
            node_name=f"nbd-{disk.name}",
            server={"type": "unix", "path": str(firmware.socket)},
        )
        self._qmp.run(
            "blockdev-add",
            driver="throttle",
            node_name=f"medium-{disk.name}",
            throttle_group=f"rate-{disk.name}",
            file=f"nbd-{disk.name}",
        )

    def disconnect(self, disk: Disk) -> None:
        """Forget a firmware that lost its power. The device must be unplugged."""
        for node in (f"medium-{disk.name}", f"nbd-{disk.name}"):
            self._qmp.run("blockdev-del", node_name=node)

    @staticmethod
    def _limits(rate: int | None) -> dict[str, int]:
        return {"bps-total": rate or 0}

    def set_rate(self, disk: str, rate: int) -> None:
        """Change the most a disk transfers, in bytes per second, while it runs."""
        self._qmp.run("qom-set", path=f"/objects/rate-{disk}", property="limits", value={"bps-total": rate})

    # --- devices ------------------------------------------------------------------------------------------------

    def plug_hub(self, name: str, ports: int, bus: str, port: str) -> None:
        self._add(driver="usb-hub", id=name, ports=min(ports, FULL_SPEED_HUB_PORTS), bus=bus, port=port)
        self._plugged.add(name)

    def plug_disk(self, disk: Disk, serial: str, bus: str, port: str) -> None:
        """Raises RigError if QEMU refuses."""
        if disk.protocol == "uas":
            self._plug_uas(disk, serial, bus, port)
        else:
            self._add(
                driver="usb-storage", id=disk.name, drive=f"medium-{disk.name}", serial=serial, bus=bus, port=port
            )
        self._plugged.add(disk.name)

    def _plug_uas(self, disk: Disk, serial: str, bus: str, port: str) -> None:
        # The LUN has to be there before the device shows itself, or the kernel finds none.
        self._add(driver="usb-uas", id=disk.name, serial=serial, bus=bus, port=port, attached=False)
        lun = f"{disk.name}-lun0"
        self._add(
            driver="scsi-hd",
            id=lun,
            drive=f"medium-{disk.name}",
            serial=serial,
            bus=f"{disk.name}.0",
            scsi_id=0,
            lun=0,
        )
        self._attach(disk.name, True)
        self._uas.add(disk.name)

    def _attach(self, name: str, attached: bool) -> None:
        self._qmp.run("qom-set", path=f"/machine/peripheral/{name}", property="attached", value=attached)

    def _add(self, **arguments: Any) -> None:
        self._qmp.run("device_add", **arguments)

    def unplug(self, name: str) -> None:
        """Take a device out. What hangs below a hub goes with it; its remains are cleared away here."""
        if name in self._uas:
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
