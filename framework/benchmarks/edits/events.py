"""The events of a recorded run as plain JSON objects: which of them, and what they show of the run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Event = dict[str, Any]
Which = Callable[[Event], bool]


def of(kind: str, **fields: Any) -> Which:
    """The events of a type whose fields have these values. A missing field counts as ``None``."""
    return lambda event: event["type"] == kind and all(event.get(name) == value for name, value in fields.items())


def either(*which: Which) -> Which:
    return lambda event: any(one(event) for one in which)


def time_of(event: Event) -> float | None:
    at = event.get("at")
    return at if isinstance(at, int | float) else None


def between(begin: float, end: float) -> Which:
    """The events with a time in [begin, end)."""
    return lambda event: (at := time_of(event)) is not None and begin <= at < end


def both(*which: Which) -> Which:
    return lambda event: all(one(event) for one in which)


@dataclass(frozen=True)
class Names:
    """What the kernel called one attachment of a disk."""

    kname: str
    diskseq: int
    usb: str
    """``2-2``, the port's path."""
    address: str
    """``1:0:0:0``, the SCSI address."""
    devpath: str
    """The USB device's path below ``/sys``."""


@dataclass(frozen=True)
class RecordedEvents:
    """The events of a whole run, from ``run.begin`` to ``run.end``."""

    events: tuple[Event, ...]

    def all(self, which: Which) -> list[Event]:
        return [event for event in self.events if which(event)]

    def first(self, which: Which) -> Event:
        return next(event for event in self.events if which(event))

    def last(self, which: Which) -> Event:
        return next(event for event in reversed(self.events) if which(event))

    @property
    def rig(self) -> dict[str, Any]:
        rig: dict[str, Any] = self.first(of("run.begin"))["rig"]
        return rig

    @property
    def disks(self) -> tuple[str, ...]:
        return tuple(disk["name"] for disk in self.rig["disk"])

    @property
    def victims(self) -> tuple[str, ...]:
        """All disks that any cut takes away."""
        return tuple(dict.fromkeys(disk for cut in self.all(of("cut.armed")) for disk in cut["victims"]))

    @property
    def victim(self) -> str:
        return self.victims[0]

    @property
    def survivors(self) -> tuple[str, ...]:
        return tuple(disk for disk in self.disks if disk not in self.victims)

    @property
    def survivor(self) -> str:
        return self.survivors[0]

    def edge(self, state: str, phase: str = "commanded", cut: int = 1) -> Event:
        return self.first(of("edge", state=state, phase=phase, cut=cut))

    @property
    def off_at(self) -> float:
        return float(self.edge("off")["at"])

    @property
    def on_at(self) -> float:
        return float(self.edge("on")["at"])

    def attached(self, disk: str, nth: int = 0) -> Event:
        return self.all(of("disk.attached", disk=disk))[nth]

    def detached(self, disk: str, nth: int = 0) -> Event:
        return self.all(of("disk.detached", disk=disk))[nth]

    def gone_at(self, disk: str) -> float:
        return float(self.detached(disk)["at"])

    @property
    def quiet_at(self) -> float:
        """Just after the first cut was made: its victims gone with their USB devices, its switch read back."""
        gone = of("uevent", action="remove", devtype="usb_device")
        done = either(of("disk.detached"), of("edge", state="off", cut=1), gone)
        return max(float(e["at"]) for e in self.all(done) if self.off_at <= e["at"] < self.off_at + 1.0) + 0.02

    def back_at(self, disk: str) -> float:
        return float(self.attached(disk, 1)["at"])

    @property
    def settled_at(self) -> float:
        return float(self.first(of("load.settled"))["at"])

    @property
    def judged_at(self) -> float:
        """When the scenario asked for its judgement; where it did not, when it was over."""
        asked = self.all(of("judge")) or self.all(either(of("residue"), of("scenario.end")))
        return float(asked[-1]["at"])

    @property
    def stop_at(self) -> float:
        """When the first load was asked to end."""
        return min(float(event["asked_at"]) for event in self.all(of("load.end")) if event.get("asked_at"))

    def names(self, disk: str, nth: int = 0) -> Names:
        event = self.attached(disk, nth)
        parts = event["sysfs"].split("/")
        usb = [part for part in parts if "-" in part and ":" not in part and part[0].isdigit()][-1]
        address = next(part for part in parts if part.count(":") == 3)
        return Names(event["kname"], event["diskseq"], usb, address, "/".join(parts[2 : parts.index(usb) + 1]))

    def declared(self, disk: str) -> dict[str, Any]:
        return next(one for one in self.rig["disk"] if one["name"] == disk)
