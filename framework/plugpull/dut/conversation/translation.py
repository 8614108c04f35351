"""Translates the agent's messages into events of the history, with the rig file's names of disks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import islice
from typing import Any

from msgspec.structs import replace

from plugpull.dut.conversation.disk_table import DiskTable
from plugpull.dut.conversation.link import Message
from plugpull.history import events as ev
from plugpull.history.counters import counters_of

MOST_TEXT = 16 << 10
"""Characters that are kept of one text of an agent."""
MOST_ITEMS = 4096
"""Items that are kept of one list or table of an agent."""


def _cpu(line: str) -> tuple[int, int]:
    """(busy, total) jiffies of the first line of ``/proc/stat`` (proc(5)); (0, 0) where it was not asked for."""
    fields = [int(word) for word in line.split()[1:9]]
    return (sum(fields) - fields[3] - fields[4], sum(fields)) if len(fields) == 8 else (0, 0)


def state_of(said: Message, moment: ev.StateMoment) -> ev.DutState:
    """The state of the DUT's kernel, as the agent read it."""
    return ev.DutState(
        at=said["at"],
        moment=moment,
        boot_id=said["boot_id"],
        kernel=said["kernel"],
        taint=said["taint"],
        modules=said["modules"],
        memory=said["memory"],
        interrupts=said["interrupts"],
        pressure=said["pressure"],
    )


def timers_set(message: Message, moment: ev.TimersMoment) -> ev.TimersSet:
    """The event for the timers that the agent reports as changed."""
    changed = tuple((path, before, after) for path, before, after in message["changed"])
    return ev.TimersSet(at=message["at"], moment=moment, changed=changed, failed=message["failed"])


def census_of(message: Message, moment: ev.CensusMoment) -> ev.Census:
    """The event for a census of what the kernel holds."""
    things = {kind: tuple(names) for kind, names in message["things"].items()}
    memory, exact = message.get("memory", {}), message.get("exact", False)
    return ev.Census(at=message["at"], moment=moment, things=things, slab=message["slab"], memory=memory, exact=exact)


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


def _task_blocked(message: Message, disk_table: DiskTable) -> ev.TaskBlocked:
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


def _activity(message: Message, disk_table: DiskTable) -> ev.Activity:
    return ev.Activity(
        at=message["at"],
        seconds=message["seconds"],
        threads=message["threads"],
        hard=message["hard"],
        soft=message["soft"],
        interrupts=message["interrupts"],
    )


def bounded(value: Any) -> Any:
    """An agent's message with its texts and lists cut to lengths that no correct agent reaches.

    A record of the kernel log is 8 KiB at most (include/linux/printk.h, PRINTK_MESSAGE_MAX), a stack a page."""
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
    translator = _TRANSLATORS.get(str(message.get("ev")))
    return None if translator is None else translator(message, disk_table)


def _sampled(message: Message, disk_table: DiskTable) -> ev.Sampled:
    disks = {kname: counters_of(diskseq, text) for kname, (diskseq, text) in message["disks"].items()}
    return ev.Sampled(at=message.get("at"), disks=disks, cpu=_cpu(message.get("cpu", "")))


def _kernel_message(message: Message, disk_table: DiskTable) -> ev.KernelMessage:
    return ev.KernelMessage(
        at=message.get("at"),
        text=message["text"],
        level=message["level"],
        seq=message["seq"],
        facility=message.get("facility", 0),
    )


def _earlier_message(message: Message, disk_table: DiskTable) -> ev.EarlierMessage:
    return ev.EarlierMessage(
        at=message.get("at"),
        text=message["text"],
        level=message["level"],
        seq=message["seq"],
        facility=message["facility"],
    )


def _uevent(message: Message, disk_table: DiskTable) -> ev.Uevent:
    return ev.Uevent(
        at=message.get("at"),
        action=message["action"],
        subsystem=message["subsystem"],
        devpath=message["devpath"],
        devtype=message["devtype"],
        seqnum=message["seqnum"],
        disks=disk_table.below(message["devpath"]),
        others=message.get("others"),
    )


def _attached(message: Message, disk_table: DiskTable) -> ev.DiskAttached:
    return disk_table.attach(message["disk"], float(message.get("at") or 0.0))


def _detached(message: Message, disk_table: DiskTable) -> ev.DiskDetached:
    return disk_table.detach(message["kname"], float(message.get("at") or 0.0))


def _properties(message: Message, disk_table: DiskTable) -> ev.DiskProperties | None:
    return properties_of(message, disk_table, message["moment"])


def _timers(message: Message, disk_table: DiskTable) -> ev.TimersSet:
    return timers_set(message, message["moment"])


def _step_begun(message: Message, disk_table: DiskTable) -> ev.StepBegun:
    return ev.StepBegun(at=message["at"], disk=message["disk"], action=message["step"])


def _array(message: Message, disk_table: DiskTable) -> ev.ArrayState:
    members = message["members"].items()
    return ev.ArrayState(
        at=message["at"],
        array=message["array"],
        kname=message["kname"],
        values=message["values"],
        members={disk_table.name_of(kname, seq) or kname: (slot, state) for kname, (seq, slot, state) in members},
    )


def _log_lost(message: Message, disk_table: DiskTable) -> ev.LogLost:
    return ev.LogLost(at=message.get("at"), count=message["count"])


def _dropped(message: Message, disk_table: DiskTable) -> ev.RigFault:
    summary = f"the agent had to drop {message['count']} messages: the stream did not keep up"
    return ev.RigFault(at=message.get("at"), summary=summary)


def _watcher_broken(message: Message, disk_table: DiskTable) -> ev.RigFault:
    summary = f"the agent cannot read {message['what']} any more: {message['why']}"
    return ev.RigFault(at=message.get("at"), summary=summary)


_TRANSLATORS: Mapping[str, Callable[[Message, DiskTable], ev.Event | None]] = {
    "sample": _sampled,
    "kmsg": _kernel_message,
    "kmsg.earlier": _earlier_message,
    "kmsg.lost": _log_lost,
    "uevent": _uevent,
    "disk.add": _attached,
    "disk.remove": _detached,
    "disk.properties": _properties,
    "task.blocked": _task_blocked,
    "activity": _activity,
    "timers": _timers,
    "array": _array,
    "step.begin": _step_begun,
    "dropped": _dropped,
    "watcher.broken": _watcher_broken,
}
"""What becomes an event, by the field ``ev`` of the agent's message."""
