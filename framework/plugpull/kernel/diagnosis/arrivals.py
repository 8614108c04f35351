"""Finds the lines of the kernel log that say that a disk came or went, around the time of its uevent."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict

from plugpull.history.events import DiskAttached
from plugpull.history.story import Story
from plugpull.kernel.diagnosis.scope import place_of
from plugpull.kernel.diagnosis.story_log import TimedLine, log_of

BEFORE = 10.0
"""Seconds before a disk is announced in which its messages are looked for: the kernel logs it while it is probed."""
AFTER = 3.0
"""Seconds after an uevent in which the message may still come: the two are stamped by different clocks."""
BEFORE_REMOVAL = 0.5
"""Seconds before a cut from which on a disconnect may be its own: the clocks are mapped with an error."""

_ATTACHED = re.compile(r"^sd \S+: \[(\w+)\] Attached SCSI ")
_DISCONNECTED = re.compile(r"^usb (\d+-[\d.]+): USB disconnect")
_COMES = re.compile(
    r"\bnew (?:[\w-]+ )+USB device|[Nn]ew USB device found|USB Mass Storage device detected|^scsi host\d+: "
    r"|^scsi \S+: +(?:Direct-Access|Optical|CD-ROM|Enclosure|RBC|Simplified)"
    r"|\blogical blocks: |\] Attached SCSI |Attached scsi generic |hardware sectors"
)
"""Messages of the USB core, its storage drivers and the disk driver about a disk that comes. Other messages that name
the disk prove nothing: some are printed for a while after it has gone."""


def attached_times(story: Story) -> dict[str, list[float]]:
    """When the disk driver logged "Attached", DUT seconds, by kernel name."""
    return story.once(_attached_times)


def _attached_times(story: Story) -> dict[str, list[float]]:
    found: defaultdict[str, list[float]] = defaultdict(list)
    for line in log_of(story).timed:
        attached = _ATTACHED.match(line.body)
        if attached:
            found[attached.group(1)].append(line.at)
    return dict(found)


def is_announced(story: Story, attached: DiskAttached, since: float) -> bool:
    """Whether the log says that this disk came. Lines before ``since`` are about an earlier attachment."""
    at, place, lines = attached.at or 0.0, place_of(attached.sysfs), story.once(_coming_lines)
    first, last = bisect_left(lines, max(since, at - BEFORE), key=_time), bisect_right(lines, at + AFTER, key=_time)
    for line in lines[first:last]:
        names = line.names
        if attached.kname in names.blocks or place.address in names.addresses or place.usb in names.usb:
            return True
    return False


def _coming_lines(story: Story) -> list[TimedLine]:
    """The messages about disks that come, in order of time."""
    return sorted((line for line in log_of(story).timed if _COMES.search(line.body)), key=_time)


def _time(line: TimedLine) -> float:
    return line.at


def is_disconnected(story: Story, was: DiskAttached, begin: float, gone: float) -> bool:
    """Whether the log says that this disk, or a hub above it, was disconnected between ``begin`` and ``gone``. Disks on
    other buses than USB count as disconnected: their drivers may log nothing."""
    place = place_of(was.sysfs)
    if not place.usb:
        return True
    known = story.once(_disconnects)
    for path in (place.usb, *place.hubs):
        times = known.get(path, [])
        if bisect_left(times, begin - BEFORE_REMOVAL) < bisect_right(times, gone + AFTER):
            return True
    return False


def _disconnects(story: Story) -> dict[str, list[float]]:
    """When the log says that each USB device was disconnected, DUT seconds in order, by its path."""
    found: defaultdict[str, list[float]] = defaultdict(list)
    for line in sorted(log_of(story).timed, key=_time):
        gone = _DISCONNECTED.match(line.body)
        if gone:
            found[gone.group(1)].append(line.at)
    return dict(found)
