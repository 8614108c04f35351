"""What the disks of a SCSI host report when another disk of that host came or went.

Each of them answers its next command with the unit attention REPORTED LUNS DATA HAS CHANGED (SPC-4, REPORT LUNS; QEMU's
hw/scsi/virtio-scsi.c, ``virtio_scsi_hotplug``, where the disk that came may be one of them), and the kernel logs that
and sends the command again (drivers/scsi/scsi_error.c, ``scsi_report_sense``). A USB device has a host of its own.
"""

from __future__ import annotations

import re
from collections import Counter

from plugpull.history.story import Story
from plugpull.kernel.diagnosis.scope import Scope, Stay
from plugpull.kernel.diagnosis.story_log import TimedLine, log_of

_CHANGED = re.compile(r"\bLUN assignments on this target have changed\b")
HOTPLUG = "virtio_scsi"
"""The driver of disks that are plugged into an emulated SCSI host."""
COMING = 3.0
"""Seconds between a disk's first messages and its uevent."""
LATE = 0.5
"""Seconds by which a uevent may be read later than a kernel message that was logged at the same time."""


def announces_a_change(story: Story, line: TimedLine) -> bool:
    """Whether a message is such a report, and a disk of the same host came or went that no earlier report is about."""
    return _CHANGED.search(line.body) is not None and line in story.once(_announcements).values()


def changes_announced(story: Story, disk: str, since: float, until: float) -> int:
    """How many such messages the kernel logged about ``disk`` between two times, DUT seconds."""
    return sum(name == disk and since <= line.at <= until for (name, _), line in story.once(_announcements).items())


def _hotplugged(story: Story, stay: Stay) -> bool:
    """Whether the disk is plugged into an emulated SCSI host, whose event reaches the disk itself."""
    return any(one.at == stay.begin and one.driver == HOTPLUG for one in story.attachments(stay.disk))


def _announcements(story: Story) -> dict[tuple[str, int], TimedLine]:
    """The reports that are explained, by the name of the disk and a number. A disk reports each change once."""
    scope, seen = story.once(Scope), Counter[str]()
    found: dict[tuple[str, int], TimedLine] = {}
    for line in log_of(story).own_timed:
        about = scope.about(line.names, line.at) if _CHANGED.search(line.body) else None
        for stay in about.stays if about is not None else ():
            moments = [
                when
                for other in scope.stays
                if other.place.host == stay.place.host and other.disk != stay.disk
                for when in (other.begin, other.end)
                if stay.begin <= when <= line.at + LATE
            ]
            moments += [stay.begin] if abs(stay.begin - line.at) <= COMING and _hotplugged(story, stay) else []
            if seen[stay.disk] < len(moments):
                seen[stay.disk] += 1
                found[stay.disk, seen[stay.disk]] = line
    return found
