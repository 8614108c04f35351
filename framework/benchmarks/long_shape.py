"""How long a long history is to be, and its disks as the kernel knows them at one time."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

HZ = 10
RATE = 28_000_000
"""Bytes per second of each disk."""
BLOCK = 65536
SIZE = 64 << 30
HELD, ABSENT = 2.0, 4.2
"""Seconds from a cut until the cable is back, and from the cut until the disk is back."""
BEGIN = 30.0
SETTLED = 12.0
"""Seconds from the beginning until the loads are settled."""
KERNEL = "6.12.57"
LATE, LATE_EVERY = 0.06, 500
"""Seconds by which a sample is late on an emulated bench, and how often one is."""
GRANTED = 0.9
"""CPU seconds per second that the host of an emulated bench gives it."""


@dataclass(frozen=True)
class Shape:
    """What the history is to hold."""

    hours: float = 8.0
    disks: int = 8
    cuts: int = 100
    seed: int = 1
    virtual: bool = False
    """Whether it is of an emulated bench: disks with a rate, CPU time from the host, and samples that are late now and
    then."""

    @property
    def end(self) -> float:
        return BEGIN + self.hours * 3600

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f"disk{number}" for number in range(1, self.disks + 1))

    @property
    def victims(self) -> tuple[str, ...]:
        return self.names[: self.disks // 2]

    @property
    def survivors(self) -> tuple[str, ...]:
        return self.names[self.disks // 2 :]


@dataclass
class LongDisk:
    """A disk as the kernel knows it at one time."""

    name: str
    port: int
    diskseq: int = 0
    changes: deque[tuple[float, int, bool]] = field(default_factory=deque)
    """Of the kernel's list, to come: when, which attachment, and whether it is under load from then on."""
    sampled: int = 0
    loaded: bool = False
    moved: float = 4096.0

    def advance(self, at: float) -> None:
        """Make the changes up to ``at``."""
        while self.changes and self.changes[0][0] <= at:
            _, diskseq, self.loaded = self.changes.popleft()
            if diskseq and diskseq != self.sampled:
                self.moved = 4096.0
            self.sampled = diskseq

    @property
    def kname(self) -> str:
        return f"sd{chr(ord('a') + self.port - 1)}"

    @property
    def usb(self) -> str:
        return f"2-1.{self.port}"

    @property
    def devpath(self) -> str:
        return f"/devices/pci0000:00/0000:00:10.0/usb2/2-1/{self.usb}"

    @property
    def scsi(self) -> str:
        return f"{self.devpath}/{self.usb}:1.0/host{self.port}/target{self.port}:0:0/{self.port}:0:0:0"
