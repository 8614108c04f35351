"""What an agent tells, turned into events of the history and put into the rig's words."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from itertools import islice
from typing import Any

from msgspec.structs import replace

from plugpull.history import events as ev

Message = dict[str, Any]
MOST_TEXT = 16 << 10
"""Characters of one text of an agent that are kept."""
MOST_ITEMS = 4096
"""Things in one list or table of an agent that are kept."""


class Register:
    """Which of today's kernel names is which disk of the rig. Kept from the agent's own announcements.

    A disk is known by its serial number. ``places`` are where the rig file says each hangs. ``sockets`` are those each
    was in when the run first saw it: what has its serial number in another socket is another disk, or was plugged over.
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


def _counters(diskseq: int, text: str) -> tuple[int, int, int, int, int, int, int, int]:
    """``/sys/block/*/stat`` (Documentation/block/stat.rst: at least 11 numbers) followed by ``inflight`` (2)."""
    numbers = [int(word) for word in text.split()]
    reads, _, read_sectors, _, writes, _, written_sectors, _, _, busy_ms = numbers[:10]
    return (diskseq, read_sectors * 512, written_sectors * 512, reads, writes, numbers[-2], numbers[-1], busy_ms)


def _cpu(line: str) -> tuple[int, int]:
    """(busy, total) jiffies of the first line of ``/proc/stat`` (proc(5)); (0, 0) where it was not asked for."""
    fields = [int(word) for word in line.split()[1:9]]
    return (sum(fields) - fields[3] - fields[4], sum(fields)) if len(fields) == 8 else (0, 0)


def timers_set(message: Message, moment: str) -> ev.TimersSet:
    """The event for what the agent said of timers that it changed."""
    changed = tuple((path, before, after) for path, before, after in message["changed"])
    return ev.TimersSet(at=message["at"], moment=moment, changed=changed, failed=message["failed"])


def properties_of(message: Message, register: Register, moment: str) -> ev.DiskProperties | None:
    """The event for the properties of a disk; ``None`` for a disk that is not of the rig."""
    disk = register.name_of(message["kname"], message["diskseq"])
    if not disk:
        return None
    return ev.DiskProperties(
        at=message["at"],
        disk=disk,
        kname=message["kname"],
        diskseq=message["diskseq"],
        moment=moment,
        values=message["values"],
        until=message["until"],
    )


def _task_blocked(message: Message) -> ev.TaskBlocked:
    return ev.TaskBlocked(
        at=message["at"],
        pid=message["pid"],
        name=message["name"],
        kernel=message["kernel"],
        seconds=message["seconds"],
        since=message["since"],
        before=message["before"],
        ended=message["ended"],
        wchan=message["wchan"],
        stack=tuple(message["stack"]),
    )


def _activity(message: Message) -> ev.Activity:
    return ev.Activity(
        at=message["at"],
        seconds=message["seconds"],
        threads=message["threads"],
        hard=message["hard"],
        soft=message["soft"],
        interrupts=message["interrupts"],
    )


def bounded(value: Any) -> Any:
    """What an agent said with its texts and lists cut to lengths that no honest one reaches: a record of the kernel log
    is 8 KiB at most (include/linux/printk.h, PRINTK_MESSAGE_MAX), a stack a page."""
    if isinstance(value, str):
        return value if len(value) <= MOST_TEXT else f"{value[:MOST_TEXT]} [{len(value) - MOST_TEXT} more left out]"
    if isinstance(value, dict):
        return {bounded(key): bounded(one) for key, one in islice(value.items(), MOST_ITEMS)}
    if isinstance(value, list):
        return [bounded(one) for one in value[:MOST_ITEMS]]
    return value


def translate(message: Message, register: Register) -> ev.Event | None:
    """The event an agent's message stands for; None for what is no testimony (ends of jobs, loss of the link)."""
    event = _event(bounded(message), register)
    number = int(message.get("report", 0))
    return replace(event, report=number) if event is not None and number else event


def _event(message: Message, register: Register) -> ev.Event | None:
    kind, at = message.get("ev"), message.get("at")
    if kind == "sample":
        disks = {kname: _counters(diskseq, text) for kname, (diskseq, text) in message["disks"].items()}
        return ev.Sampled(at=at, disks=disks, cpu=_cpu(message.get("cpu", "")))
    if kind == "kmsg":
        return ev.KernelMessage(
            at=at,
            text=message["text"],
            level=message["level"],
            seq=message["seq"],
            facility=message.get("facility", 0),
        )
    if kind == "uevent":
        return ev.Uevent(
            at=at,
            action=message["action"],
            subsystem=message["subsystem"],
            devpath=message["devpath"],
            devtype=message["devtype"],
            seqnum=message["seqnum"],
            disks=register.below(message["devpath"]),
            others=message.get("others"),
        )
    if kind == "disk.add":
        return register.attach(message["disk"], float(at or 0.0))
    if kind == "disk.remove":
        return register.detach(message["kname"], float(at or 0.0))
    if kind == "kmsg.earlier":
        return ev.EarlierMessage(
            at=at, text=message["text"], level=message["level"], seq=message["seq"], facility=message["facility"]
        )
    if kind == "task.blocked":
        return _task_blocked(message)
    if kind == "activity":
        return _activity(message)
    if kind == "disk.properties":
        return properties_of(message, register, message["moment"])
    if kind == "timers":
        return timers_set(message, message["moment"])
    if kind == "kmsg.lost":
        return ev.LogLost(at=at, count=message["count"])
    if kind == "dropped":
        return ev.RigFault(
            at=at, summary=f"the agent had to drop {message['count']} messages: the stream did not keep up"
        )
    if kind == "watcher.broken":
        return ev.RigFault(at=at, summary=f"the agent cannot read {message['what']} any more: {message['why']}")
    return None
