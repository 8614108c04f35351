"""Events that cannot be as they are on record: with words that their kind does not have, or times that cannot be."""

from __future__ import annotations

import re
from collections.abc import Iterator

from plugpull.history.events import (
    Acted,
    Activity,
    ArrayActed,
    Census,
    CutArmed,
    CutSwitched,
    DiskMoved,
    DiskProperties,
    DiskRecovered,
    DiskStalled,
    DriveCacheSwitched,
    DutReady,
    DutState,
    DutSuspended,
    Edge,
    FilesystemChecked,
    FioRan,
    KernelMessage,
    LedgerBegun,
    LoadBegun,
    Measured,
    Phase,
    TaskBlocked,
    TimersSet,
    Uevent,
)
from plugpull.history.open_values import closed_values
from plugpull.history.story import Story

ACTIONS = frozenset({"add", "remove", "change", "move", "online", "offline", "bind", "unbind"})
"""What a uevent can say (lib/kobject_uevent.c, kobject_actions)."""
OF_BLOCKS = frozenset({"add", "remove", "change"})
"""What it says of a block device, which no driver is bound to."""
LEVELS = range(8)
"""Those of syslog."""
MECHANISMS = frozenset({"data", "vbus", "data+vbus", "mains", "logical"})
"""What a switch can interrupt (``Mechanism`` in ``rig/model.py``)."""
WHOLE = 2.0
"""CPUs that a thread can take at most, by far: its time and the span in which it was counted are read one after the
other."""
STARTED = 2.0
"""Seconds by which a step may seem to have begun before the end of the one before it."""
EARLY = 0.1
"""Seconds by which something may be over before it began: both times are rounded."""
_PATHS = {
    ("usb", "usb_device"): re.compile(r"/(?:usb\d+|\d+-[\d.]+)$"),
    ("usb", "usb_interface"): re.compile(r"/\d+-[\d.]+:\d+\.\d+$"),
    ("scsi", "scsi_host"): re.compile(r"/host\d+$"),
    ("scsi", "scsi_target"): re.compile(r"/target\d+:\d+:\d+$"),
    ("scsi", "scsi_device"): re.compile(r"/\d+:\d+:\d+:\d+$"),
}
"""How the path of a device ends, by (subsystem, devtype) of its uevents (drivers/usb/core/usb.c and message.c;
drivers/scsi/hosts.c, scsi_scan.c and scsi_sysfs.c)."""
_WORDED = (
    *(Acted, ArrayActed, Census, CutSwitched, DiskProperties, DutReady, DutState, Edge, FioRan, LedgerBegun),
    *(LoadBegun, Measured, TimersSet),
)
"""Kinds of events with words that a check compares."""
_LASTING = (DiskMoved, DiskProperties, DiskRecovered, DiskStalled, DriveCacheSwitched, DutSuspended)
"""Kinds of events that last from ``at`` to ``until``."""


def impossible(story: Story) -> Iterator[str]:
    """What cannot be as it is on record, a clause each."""
    yield from _unknown_words(story)
    yield from _uevents(story)
    yield from _spans(story)
    yield from _stalls(story)
    yield from _durations(story)
    yield from _shares(story)
    for message in story.of(KernelMessage):
        if message.level not in LEVELS:
            yield f"a kernel message of {message.at or 0.0:.2f} s has level {message.level}"
            break


def _unknown_words(story: Story) -> Iterator[str]:
    """Words that the event's kind does not have: what it says is not known."""
    for kind in _WORDED:
        events = story.of(kind)
        for name, words in closed_values(kind).items() if events else ():
            odd = next((event for event in events if getattr(event, name) not in words), None)
            if odd is not None:
                what = f"the {name} of the {kind.__struct_config__.tag} of {odd.at or 0.0:.2f} s"
                yield f"{what} is '{getattr(odd, name)}'"
                return


def _uevents(story: Story) -> Iterator[str]:
    """Uevents of an action that the kernel does not have, of a disk that the rig does not have, or of another kind of
    device than the one at their path."""
    known = {str(disk.get("name")) for disk in story.rig.get("disk", ())}
    for event in story.of(Uevent):
        at = f"at {event.at or 0.0:.2f} s"
        if event.action not in ACTIONS:
            yield f"a uevent says '{event.action}' {at}"
            return
        strange = [disk for disk in event.disks if disk not in known]
        if strange and known:
            yield f"a uevent is of {strange[0] or 'no disk'} {at}, and the rig has no such disk"
            return
        if event.subsystem == "block" and event.action not in OF_BLOCKS:
            yield f"a uevent says '{event.action}' of a block device {at}"
            return
        if "/block/" in event.devpath and event.subsystem in ("scsi", "usb"):
            yield f"a uevent of {event.subsystem} {at} is at {event.devpath}"
            return
        ends = _PATHS.get((event.subsystem, event.devtype))
        other = next((kind for kind, path in _PATHS.items() if path.search(event.devpath)), None)
        if (ends is not None and not ends.search(event.devpath)) or (
            ends is None and other is not None and event.devtype and event.devtype != other[1]
        ):
            yield f"a uevent of {event.subsystem} {event.devtype} {at} is at {event.devpath}"
            return


def _spans(story: Story) -> Iterator[str]:
    """What was over before it began, or after the scenario; and cuts of a mechanism that no switch has."""
    end = story.ended.at if story.ended is not None else None
    for kind in _LASTING:
        for event in story.of(kind):
            until: float | None = getattr(event, "until", None)
            if event.at is not None and until is not None and until < event.at - EARLY:
                what = kind.__struct_config__.tag
                yield f"a {what} began at {event.at:.2f} s and was over at {until:.2f} s"
                return
            if end is not None and until is not None and until > end + STARTED:
                yield f"a {kind.__struct_config__.tag} was over at {until:.2f} s, and the scenario at {end:.2f} s"
                return
    for cut in story.of(CutArmed):
        if cut.mechanism not in MECHANISMS:
            yield f"{cut.point} was cut by '{cut.mechanism}'"
            return


def _stalls(story: Story) -> Iterator[str]:
    """Disks that stood still at no time, or at times that are not those of the event."""
    for event in story.of(DiskStalled):
        edges = [at for span in event.spans for at in span]
        if not edges:
            yield f"when {event.disk} stood still is not on record"
        elif edges != sorted(edges) or edges[0] < (event.at or 0.0) - EARLY or edges[-1] > event.until + STARTED:
            spans = ", ".join(f"{begin:.2f} to {end:.2f} s" for begin, end in event.spans)
            yield f"{event.disk} stood still from {event.at or 0.0:.2f} to {event.until:.2f} s, and {spans}"


def _durations(story: Story) -> Iterator[str]:
    """Steps that took longer than the time since the step before them. The bench takes one after the other."""
    before = None
    for event in story.among(ArrayActed, FilesystemChecked, Phase):
        if isinstance(event, FilesystemChecked | ArrayActed) and event.at is not None and before is not None:
            begin = event.at - event.seconds
            if begin < before - STARTED or event.seconds < 0:
                what = event.__struct_config__.tag
                took = f"a {what} of {event.at:.2f} s took {event.seconds:.2f} s"
                yield f"{took}, and the step before was at {before:.2f} s"
                return
        before = event.at


def _shares(story: Story) -> Iterator[str]:
    """Threads that took more than a CPU, and tasks that were blocked before or after they were seen so."""
    cpus = max((ready.cpus for ready in story.readies), default=0)
    for event in story.of(Activity):
        most = max(event.threads.values(), default=0.0)
        if most > WHOLE or (cpus and max(event.hard, event.soft) > cpus * WHOLE) or min(event.hard, event.soft) < 0:
            yield f"the DUT spent {max(most, event.hard, event.soft):.1f} CPUs on one thing by {event.at or 0.0:.2f} s"
            break
    for task in story.of(TaskBlocked):
        if task.at is not None and not -EARLY <= task.since <= task.at + EARLY:
            yield f"{task.name} ({task.pid}) was blocked since {task.since:.2f} s when it was {task.at:.2f} s"
            break
