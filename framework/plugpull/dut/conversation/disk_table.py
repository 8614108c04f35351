"""Which of the DUT's disks is which disk of the rig."""

from __future__ import annotations

import threading
from collections.abc import Mapping

from plugpull.dut.conversation.link import Message
from plugpull.history import events as ev


class DiskTable:
    """The disks that the agent has announced: which kernel name belongs to which disk of the rig.

    A disk is recognised by its serial number. ``places`` is where the rig file says each disk is plugged in.
    ``sockets`` is where the run first saw each disk: a disk with the same serial number in another socket is another
    disk, or it was moved.
    """

    def __init__(
        self,
        serials: Mapping[str, str],
        places: Mapping[str, str],
        sockets: dict[str, tuple[str, ...]] | None = None,
    ) -> None:
        self.sockets = {} if sockets is None else sockets
        self._by_serial = {serial: disk for disk, serial in serials.items()}
        self.places = dict(places)
        self._attached: dict[str, ev.DiskAttached] = {}
        self._last: dict[str, ev.DiskAttached] = {}
        self._lock = threading.Lock()

    def attach(self, described: Message, at: float) -> ev.DiskAttached:
        disk = self._by_serial.get(described["serial"], "")
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
        )
        with self._lock:
            self._attached[event.kname] = event
            if disk:
                self._last[disk] = event
                if event.sockets:
                    self.sockets.setdefault(disk, event.sockets)
        return event

    def detach(self, kname: str, at: float) -> ev.DiskDetached:
        with self._lock:
            known = self._attached.pop(kname, None)
        return ev.DiskDetached(
            at=at, disk=known.disk if known else "", kname=kname, diskseq=known.diskseq if known else 0
        )

    def attached(self, disk: str) -> ev.DiskAttached | None:
        """The current attachment of a disk of the rig, None while it is away."""
        with self._lock:
            return next((event for event in self._attached.values() if event.disk == disk), None)

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
