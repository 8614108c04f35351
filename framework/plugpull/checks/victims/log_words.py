"""How the kernel described a disk while it set it up, and whether it did so in the same words when the disk came back.

Other numbers, strings and INQUIRY data are another device (``log_identity.py``), and another size, protection or write
cache a change of its own (``log_properties.py``). These are the rest of what the kernel logs of each disk at info and
notice level (drivers/scsi/sd.c, drivers/scsi/scsi_scan.c, drivers/usb/core/hub.c): in 1,006 attachments none of it ever
differed, except where a cut interrupted it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import pairwise

from plugpull.checks.accusation import Accusation
from plugpull.checks.record.study_record import switched
from plugpull.history.events import DiskAttached
from plugpull.history.story import Story
from plugpull.kernel.diagnosis.arrivals import BEFORE
from plugpull.kernel.diagnosis.scope import place_of
from plugpull.kernel.diagnosis.story_log import TimedLine, log_of

SET_UP = 2.0
"""Seconds after its announcement in which the kernel still describes a disk."""
UNSETTLED = 1.0
"""Seconds after a cut in which what is logged of a disk may have been asked before it."""
CACHES = "caches"
_SAID = {
    "modes": re.compile(r"^sd \S+: \[\w+\] (Mode Sense: .+)$"),
    CACHES: re.compile(r"^sd \S+: \[\w+\] (Write cache: .+)$"),
    "blocks": re.compile(r"^sd \S+: \[\w+\] (\d+-byte physical blocks)$"),
    "least": re.compile(r"^sd \S+: \[\w+\] (Preferred minimum I/O size .+)$"),
    "best": re.compile(r"^sd \S+: \[\w+\] (Optimal transfer size .+)$"),
    "kind": re.compile(r"^sd \S+: \[\w+\] (Attached SCSI .+)$"),
    "standard": re.compile(r"^scsi \S+: .* (PQ: \d+ ANSI: \d+.*)$"),
    "strings": re.compile(r"^usb \S+: (New USB device strings: .+)$"),
    "driver": re.compile(r"^usb \S+: new .*USB device number \d+ (using \S+)$"),
}
"""What the kernel says once of each disk that it sets up, by what it is about."""


def other_words(story: Story, disk: str) -> Iterator[Accusation]:
    """An accusation for each return of ``disk`` to its place that the kernel described otherwise than the time before.
    A disk whose caches a study switched may say so."""
    legal = {CACHES, "modes"} if switched(story, disk) else set[str]()
    for was, now in pairwise(story.attachments(disk)):
        if place_of(was.sysfs).usb != place_of(now.sysfs).usb:
            continue
        before, after = _description(story, was), _description(story, now)
        other = [
            f"{' and '.join(after[what])} instead of {' and '.join(before[what])}"
            for what in before
            if what not in legal and not after.get(what, {}).keys() <= before[what].keys()
        ]
        if other:
            words = f"the kernel described {disk} otherwise when it came back: {other[0]}"
            yield Accusation(subject=disk, summary=words, at=now.at, evidence=tuple(other[1:]))


def _description(story: Story, attached: DiskAttached) -> Mapping[str, dict[str, None]]:
    """What was logged while this disk was set up, by what it is about, in its order; without what a cut may have
    interrupted."""
    at, found = attached.at, dict[str, dict[str, None]]()
    if at is None:
        return found
    gone = [left for one in story.attachments(attached.disk) if (left := story.detached_at(one)) is not None]
    since = max((left for left in gone if left < at), default=at - BEFORE)
    until = min((left for left in gone if left > at), default=at + SET_UP)
    for line in log_of(story).own_between(since, min(until, at + SET_UP)):
        if _about(line, attached) and not _interrupted(story, attached.disk, line.at):
            for what, pattern in _SAID.items():
                if words := pattern.match(line.body):
                    found.setdefault(what, {})[words[1]] = None
    return found


def _about(line: TimedLine, attached: DiskAttached) -> bool:
    place = place_of(attached.sysfs)
    if line.body.startswith("usb "):
        return bool(place.usb) and place.usb in line.names.usb
    return attached.kname in line.names.blocks if line.body.startswith("sd ") else place.address in line.names.addresses


def _interrupted(story: Story, disk: str, at: float) -> bool:
    """Whether the disk was off then, or had been cut shortly before."""
    for cut in story.cut_records:
        off = cut.off.commanded_at
        if disk in cut.armed.victims and off is not None and (cut.off_at(at) or off <= at <= off + UNSETTLED):
            return True
    return False
