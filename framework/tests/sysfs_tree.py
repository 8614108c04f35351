"""Makes sysfs trees with disks in them, laid out as kernels lay them out, for tests of the agent."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class Sysfs:
    """A sysfs tree with disks in it, laid out as the kernel does."""

    root: Path
    number: int = field(default=0)

    def write(self, path: Path, **attributes: str | bytes) -> Path:
        path.mkdir(parents=True, exist_ok=True)
        for name, value in attributes.items():
            (path / name).write_bytes(value if isinstance(value, bytes) else value.encode() + b"\n")
        return path

    def disk(self, kname: str, device: str, **attributes: str) -> Path:
        """A whole disk; ``device`` is the path of what it belongs to below ``devices``, empty for none."""
        self.number += 1
        files = {"dev": f"8:{self.number * 16}", "size": "32768", "ro": "0", "diskseq": str(self.number), **attributes}
        base = self.root / "devices" / (device or "virtual") / "block" / kname
        self.write(base, **files)
        if device:
            (base / "device").symlink_to(self.root / "devices" / device)
        (self.root / "block").mkdir(exist_ok=True)
        (self.root / "block" / kname).symlink_to(base)
        return base

    def driver(self, device: Path, name: str) -> None:
        (device / "driver").symlink_to(self.write(self.root / "bus" / "drivers" / name))

    def usb_disk(
        self, kname: str, usb: str, driver: str, serial: str | bytes, *, lun: int = 0, **attributes: str
    ) -> Path:
        """A disk behind the USB device whose path below ``devices`` is ``usb``."""
        device = self.write(self.root / "devices" / usb, serial=serial, speed="5000")
        interface = self.write(device / f"{device.name}:1.0")
        self.driver(interface, driver)
        scsi = f"{usb}/{interface.name}/host0/target0:0:0/0:0:0:{lun}"
        self.write(self.root / "devices" / scsi, vendor="QEMU    ", model="QEMU HARDDISK   ", type="0")
        return self.disk(kname, scsi, **attributes)
