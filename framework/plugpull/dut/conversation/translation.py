"""Translates the agent's messages into events of the history, with the rig file's names of disks."""

from __future__ import annotations

from itertools import islice
from typing import Any

from msgspec.structs import replace

from plugpull.dut.conversation.disk_table import DiskTable
from plugpull.dut.conversation.link import Message
from plugpull.history import events as ev
from plugpull.history.counters import counters_of

MOST_TEXT = 16 << 10
"""Characters of one text of an agent that are kept."""
MOST_ITEMS = 4096
"""Things in one list or table of an agent that are kept."""


def _cpu(line: str) -> tuple[int, int]:
    """(busy, total) jiffies of the first line of ``/proc/stat`` (proc(5)); (0, 0) where it was not asked for."""
    fields = [int(word) for word in line.split()[1:9]]
    return (sum(fields) - fields[3] - fields[4], sum(fields)) if len(fields) == 8 else (0, 0)


def timers_set(message: Message, moment: ev.TimersMoment) -> ev.TimersSet:
    """The event for what the agent said of timers that it changed."""
    changed = tuple((path, before, after) for path, before, after in message["changed"])
    return ev.TimersSet(at=message["at"], moment=moment, changed=changed, failed=message["failed"])


def properties_of(message: Message, disk_table: DiskTable, moment: ev.PropertiesMoment) -> ev.DiskProperties | None:
    """The event for the properties of a disk; ``None`` for a disk that is not of the rig."""
    disk = disk_table.name_of(message["kname"], message["diskseq"])
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


def translate(message: Message, disk_table: DiskTable) -> ev.Event | None:
    """The event for a message of the agent; None if it is not recorded (the end of a job, the loss of the link)."""
    event = _event(bounded(message), disk_table)
    number = int(message.get("report", 0))
    return replace(event, report=number) if event is not None and number else event


def _event(message: Message, disk_table: DiskTable) -> ev.Event | None:
    kind, at = message.get("ev"), message.get("at")
    if kind == "sample":
        disks = {kname: counters_of(diskseq, text) for kname, (diskseq, text) in message["disks"].items()}
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
            disks=disk_table.below(message["devpath"]),
            others=message.get("others"),
        )
    if kind == "disk.add":
        return disk_table.attach(message["disk"], float(at or 0.0))
    if kind == "disk.remove":
        return disk_table.detach(message["kname"], float(at or 0.0))
    if kind == "kmsg.earlier":
        return ev.EarlierMessage(
            at=at, text=message["text"], level=message["level"], seq=message["seq"], facility=message["facility"]
        )
    if kind == "task.blocked":
        return _task_blocked(message)
    if kind == "activity":
        return _activity(message)
    if kind == "disk.properties":
        return properties_of(message, disk_table, message["moment"])
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
