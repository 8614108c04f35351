"""Which of the DUT's disks is which disk of the rig."""

from __future__ import annotations

import threading
from collections.abc import Mapping

from plugpull.dut.conversation.link import Message
from plugpull.history import events as ev

DISK_TYPES = frozenset({0, 14, 20})
"""SCSI peripheral device types of disks (SPC-4, 6.4.2): direct access, simplified direct access, host-managed zones."""


def unit_of(place: str) -> str:
    """The logical unit number at the end of a place, such as ``0000:00:05.0/1.2:0``; empty if it has none."""
    return place.rpartition(":")[2] if "/" in place and ":" in place.rpartition("/")[2] else ""


class DiskTable:
    """The disks that the agent has announced: which kernel name belongs to which disk of the rig.

    A disk is recognised by its serial number, and by its logical unit number within its device. ``places`` is where the
    rig file says each disk is plugged in. ``sockets`` is where the run first saw each disk: a disk with the same serial
    number in another socket is another disk, or it was moved.
    """

    def __init__(
        self,
        serials: Mapping[str, str],
        places: Mapping[str, str],
        sockets: dict[str, tuple[str, ...]] | None = None,
    ) -> None:
        self.sockets = {} if sockets is None else sockets
        self._serials = dict(serials)
        self.places = dict(places)
        self._attached: dict[str, ev.DiskAttached] = {}
        self._last: dict[str, ev.DiskAttached] = {}
        self._lock = threading.Lock()

    def attach(self, described: Message, at: float) -> ev.DiskAttached:
        disk = self._recognised(described)
        event = ev.DiskAttached(
            at=at,
            disk=disk,
            kname=described["kname"],
            diskseq=described["diskseq"],
            devt=described["devt"],
            serial=described["serial"],
            place=described["place"],
            size=described["size"],
            driver=described["driver"],
            speed=described["speed"],
            model=described["model"],
            sysfs=described["sysfs"],
            sockets=tuple(described.get("sockets", ())),
            scsi_type=int(described.get("type", 0)),
        )
        with self._lock:
            self._attached[event.kname] = event
            if disk:
                self._last[disk] = event
                if event.sockets:
                    self.sockets.setdefault(disk, event.sockets)
        return event

    def _recognised(self, described: Message) -> str:
        """The rig's disk with this serial number and logical unit number; empty if there is none. Another kind of unit,
        such as a CD-ROM that a stick shows beside its disk, is not a disk."""
        if int(described.get("type", 0)) not in DISK_TYPES:
            return ""
        unit = unit_of(str(described["place"]))
        named = (disk for disk, serial in self._serials.items() if serial == described["serial"])
        declared = ((disk, unit_of(self.places.get(disk, ""))) for disk in named)
        return next((disk for disk, own in declared if unit == own or "" in (unit, own)), "")

    def detach(self, kname: str, at: float) -> ev.DiskDetached:
        with self._lock:
            known = self._attached.pop(kname, None)
        return ev.DiskDetached(
            at=at, disk=known.disk if known else "", kname=kname, diskseq=known.diskseq if known else 0
        )

    def move(self, places: Mapping[str, str]) -> None:
        """These disks are plugged in elsewhere from now on. Their sockets are learned again where they appear."""
        with self._lock:
            self.places.update(places)
            for disk in places:
                self.sockets.pop(disk, None)

    def attached(self, disk: str) -> ev.DiskAttached | None:
        """The current attachment of a disk of the rig, None while it is away."""
        with self._lock:
            return next((event for event in self._attached.values() if event.disk == disk), None)

    def beside(self, disk: str) -> tuple[ev.DiskAttached, ...]:
        """What the device of a disk shows now in addition to disks of the rig."""
        here = self.attached(disk)
        device = here.place.rpartition(":")[0] if here is not None else ""
        with self._lock:
            others = [one for one in self._attached.values() if not one.disk and unit_of(one.place)]
        return tuple(one for one in others if device and one.place.rpartition(":")[0] == device)

    def name_of(self, kname: str, diskseq: int) -> str:
        """The rig's disk that has this kernel name now or had it last; empty if there is none."""
        with self._lock:
            known = self._attached.get(kname)
            if known is not None and known.diskseq == diskseq:
                return known.disk
            last = (e.disk for e in self._last.values() if (e.kname, e.diskseq) == (kname, diskseq))
            return next(last, "")

    def below(self, devpath: str) -> tuple[str, ...]:
        """The rig's disks that hang, or hung when they were last seen, at or below a sysfs path (without ``/sys``)."""
        path = "/sys" + devpath
        with self._lock:
            found = [e.disk for e in self._last.values() if e.sysfs == path or e.sysfs.startswith(path + "/")]
        return tuple(sorted(found))
