"""What a message of a plain log is about if it names no USB device, SCSI unit, block device or array.

Errors of ATA ports, NVMe controllers, host adapters and the like belong into the story of a log too: otherwise it would
say that there were none.
"""

from __future__ import annotations

import re

from plugpull.kernel.diagnosis.device import Device
from plugpull.kernel.diagnosis.scope import Level

_KINDS = {
    "ata": "ATA port",
    "nvme": "NVMe controller",
    "thunderbolt": "Thunderbolt controller",
    "pci": "PCI device",
    "dm": "device mapper",
    "md": "array",
    "fs": "filesystem",
    "block": "block device",
    "scsi": "SCSI adapter",
    "storage": "disk",
    "hcd": "controller",
    "usb": "USB device",
    "hw": "hardware",
    "cpu": "CPU",
}
_DRIVER = re.compile(r"^([a-z][\w-]*)(?: \S+)?: ")


def hardware_of(kind: str, name: str, body: str) -> Device:
    """The thing that an error is about, by its kind and the name that the message has for it, which is not that of a
    device that a log's own lines identify."""
    what = _KINDS.get(kind.partition(".")[0], "hardware")
    if name.startswith("ata"):
        what, name = "ATA port", name.partition(".")[0]
    if what == "ATA port" and ":" in name:
        what = "ATA controller"
    if not name and what == "SCSI adapter" and (driver := _DRIVER.match(body)):
        name = driver.group(1)
    known = f"{what} {name}" if name else what
    return Device(known, known, Level.NOTHING)
