"""Whether the record of the kernel's uevents is whole: of each USB device, and of each disk.

The kernel cannot add a device at a path that another one has (``kobject_add`` fails), so additions and removals of a
USB device take turns: 818 of 818 did. A disk is announced and removed by uevents of its block device, and comes back
only with its USB device: 537 of 537 did. If the record says otherwise, uevents are missing from it or are another
run's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from plugpull.checks.limits import bench_kind
from plugpull.history.events import AgentLost, DiskAttached, DiskDetached, DutDied, Uevent
from plugpull.history.story import Story
from plugpull.history.suspensions import suspensions

_UNIQUE = {
    ("usb", "usb_device"): "USB device",
    ("scsi", "scsi_host"): "SCSI host",
    ("scsi", "scsi_device"): "SCSI device",
    ("block", "disk"): "disk",
}
"""What is added and removed in turns, by (subsystem, devtype): 22,051 of 22,051 were, on emulated benches."""
_VIRTUAL = "/devices/virtual/"
"""Where device mappers and other block devices without hardware are: one of them was removed twice."""
STAYED = 5.0
"""Seconds that a disk must stay after a device above it was removed for the two to contradict each other."""
SETTLED = 3.0
"""Seconds after the announcement of a disk in which the kernel may announce changes of its parts."""
AWAKE = 2.0
"""Seconds after a suspension in which the resets of its devices may be announced as such changes: 0.4 s at most. A SCSI
device announces its own with its first command, however late that comes: 0.4 to 10.7 s."""
ON_A_BUS = "virtio_scsi"
"""The driver of disks of one SCSI host, which report a change when another one comes or goes."""
SAME = 1.0
"""Seconds between the announcement of a disk and the uevent that it is made of: in healthy records none."""


def uevents_doubted(story: Story) -> Iterator[str]:
    """Why the record of the uevents is not whole, a sentence each. Other checks report an agent that was lost."""
    if bool(story.of(AgentLost)) or bool(story.of(DutDied)) or len(story.readies) != 1:
        return
    yield from _turns(story)
    yield from _of_others(story)
    if bench_kind(story) == "virtual":
        yield from _blocks(story)
        yield from _places(story)
        yield from _above(story)
        yield from _changed(story)


def _of_others(story: Story) -> Iterator[str]:
    """Uevents that are said to be of a disk which was never at, above or below their path. 13,796 of 13,796 were of
    theirs."""
    paths: dict[str, set[str]] = {}
    for one in story.all_attachments:
        paths.setdefault(one.disk, set()).add(one.sysfs.removeprefix("/sys"))
    for event in story.of(Uevent):
        for disk in event.disks:
            known = paths.get(disk, set())
            if known and not any(_related(event.devpath, path) for path in known):
                yield f"the uevent of {event.devpath} at {event.at or 0.0:.2f} s is said to be of {disk}"
                return


def _related(devpath: str, path: str) -> bool:
    """Whether ``devpath`` is a device above the disk at ``path``, that disk, or a part of its SCSI device."""
    return (path + "/").startswith(devpath + "/") or devpath.startswith(path.partition("/block/")[0])


def _turns(story: Story) -> Iterator[str]:
    """Devices that were added or removed twice, and disks that came back without a USB device."""
    last: dict[str, Uevent] = {}
    events = [event for event in story.of(Uevent) if (event.subsystem, event.devtype) in _UNIQUE]
    moved = [event for event in events if event.action in ("add", "remove") and event.at is not None]
    moves = [event for event in moved if event.subsystem == "usb"]
    ordered = sorted(moved, key=lambda event: event.seqnum) if all(event.seqnum > 0 for event in moved) else moves
    for event in ordered:
        before = last.get(event.devpath)
        if before is not None and before.action == event.action and not event.devpath.startswith(_VIRTUAL):
            how = "came twice without having left" if event.action == "add" else "left twice without having come"
            what = _UNIQUE[event.subsystem, event.devtype]
            yield f"by its uevents, the {what} {_name(event)} {how} in between, at {event.at or 0.0:.2f} s"
        last[event.devpath] = event
    for attached in story.of(DiskAttached):
        path = attached.sysfs.removeprefix("/sys")
        own = [event for event in moves if path.startswith(event.devpath + "/") and event.at is not None]
        nearest = max((event.devpath for event in own), key=len, default="")
        until = [event for event in own if event.devpath == nearest and (event.at or 0.0) <= (attached.at or 0.0)]
        newest = max(until, key=lambda event: (event.at or 0.0, event.seqnum), default=None)
        if attached.disk and attached.at is not None and newest is not None and newest.action == "remove":
            yield (
                f"{attached.disk} was announced at {attached.at:.2f} s, and by the uevents its USB device had left at"
                f" {newest.at or 0.0:.2f} s and not come back"
            )


def _blocks(story: Story) -> Iterator[str]:
    """Disks that were announced or removed without the uevent that says so."""
    events = [event for event in story.of(Uevent) if (event.subsystem, event.devtype) == ("block", "disk")]
    if not events:
        return
    known: dict[tuple[str, str], list[float]] = {}
    for event in events:
        known.setdefault((event.action, _name(event)), []).append(event.at or 0.0)
    came = [("add", "announced", one) for one in story.of(DiskAttached)]
    went = [("remove", "removed", one) for one in story.of(DiskDetached)]
    changes: list[tuple[str, str, DiskAttached | DiskDetached]] = [*came, *went]
    for action, word, one in changes:
        if not one.disk or one.at is None:
            continue
        if not any(abs(at - one.at) <= SAME for at in known.get((action, one.kname), ())):
            yield f"{one.disk} was {word} at {one.at:.2f} s, and the uevent of that is not on record"


def _places(story: Story) -> Iterator[str]:
    """Disks that were announced at another place than their uevent names."""
    added = [event for event in story.of(Uevent) if event.action == "add" and event.devtype == "disk"]
    for one in story.of(DiskAttached):
        if not one.disk or one.at is None:
            continue
        paths = {
            event.devpath for event in added if _name(event) == one.kname and abs((event.at or 0.0) - one.at) <= SAME
        }
        path = one.sysfs.removeprefix("/sys")
        if paths and path.startswith("/devices/") and path not in paths:
            yield f"{one.disk} was announced at {one.at:.2f} s at {path}, and its uevent is of {min(paths)}"


def _above(story: Story) -> Iterator[str]:
    """Disks that stayed although, by the uevents, a device above them was removed."""
    removals = [event for event in story.of(Uevent) if event.action == "remove" and event.at is not None]
    for one in story.all_attachments:
        path, gone = one.sysfs.removeprefix("/sys"), story.detached_at(one)
        end = float("inf") if gone is None else gone - STAYED
        for event in removals if one.disk and one.at is not None else ():
            at = event.at or 0.0
            if path.startswith(event.devpath + "/") and (one.at or 0.0) + SAME < at < end and heard(story, at + STAYED):
                yield f"by the uevents, {event.devpath} left at {at:.2f} s, and {one.disk} below it did not"
                break


def _changed(story: Story) -> Iterator[str]:
    """Disks of which the kernel announced a change long after they had come: they are driven otherwise. None of 4,600
    changes of healthy emulated benches came then, but for those after a suspension."""
    asleep = suspensions(story)
    seen: set[tuple[str, float]] = set()
    for event in story.of(Uevent):
        at = event.at
        if event.action != "change" or event.subsystem not in ("usb", "scsi") or at is None:
            continue  # udev announces a change of a block device that was open for writing
        if _first_after_sleep(event, at, asleep, seen) or any(one - SAME <= at <= two + AWAKE for one, two in asleep):
            continue
        for one in story.all_attachments:
            path, gone = one.sysfs.removeprefix("/sys"), story.detached_at(one)
            there = one.disk and (one.at or 0.0) + SETTLED < at < (float("inf") if gone is None else gone - SAME)
            if there and one.driver != ON_A_BUS and (path + "/").startswith(event.devpath + "/"):
                yield f"the kernel announced at {at:.2f} s that {_name(event)} of {one.disk} had changed"
                return


def _first_after_sleep(
    event: Uevent, at: float, asleep: Sequence[tuple[float, float]], seen: set[tuple[str, float]]
) -> bool:
    """Whether this is the first change of a SCSI device after a suspension. ``seen`` are those that had theirs."""
    until = max((end for _, end in asleep if end <= at), default=None)
    if until is None or event.subsystem != "scsi" or (event.devpath, until) in seen:
        return False
    seen.add((event.devpath, until))
    return True


def heard(story: Story, at: float) -> bool:
    """Whether anything later than ``at`` is on record from the DUT."""
    return (story.heard_until or 0.0) > at


def _name(event: Uevent) -> str:
    return event.devpath.rpartition("/")[2]
