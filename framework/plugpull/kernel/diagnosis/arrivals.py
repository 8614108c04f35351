"""Finds the lines of the kernel log that say that a disk came or went, around the time of its uevent."""

from __future__ import annotations

import re
from collections import defaultdict

from plugpull.history.events import DiskAttached
from plugpull.history.story import Story
from plugpull.kernel.diagnosis.scope import place_of
from plugpull.kernel.diagnosis.story_log import log_of

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
    at, place = attached.at or 0.0, place_of(attached.sysfs)
    for line in log_of(story).timed:
        if max(since, at - BEFORE) <= line.at <= at + AFTER and _COMES.search(line.body):
            names = line.names
            if attached.kname in names.blocks or place.address in names.addresses or place.usb in names.usb:
                return True
    return False


def is_disconnected(story: Story, was: DiskAttached, begin: float, gone: float) -> bool:
    """Whether the log says that this disk, or a hub above it, was disconnected between ``begin`` and ``gone``. Disks on
    other buses than USB count as disconnected: their drivers may log nothing."""
    place = place_of(was.sysfs)
    if not place.usb:
        return True
    for line in log_of(story).timed:
        if begin - BEFORE_REMOVAL <= line.at <= gone + AFTER:
            found = _DISCONNECTED.match(line.body)
            if found and found.group(1) in (place.usb, *place.hubs):
                return True
    return False
