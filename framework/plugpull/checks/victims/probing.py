"""Whether the kernel takes longer to probe a disk after a return than at first.

The limit of ``returned`` must allow slow hubs and slow disks. The kernel's own work between the announcements of the
USB device and of the disk is the same each time, so its duration is compared with the first one. In 304 returns on
healthy emulated benches it took at most 0.94 s longer than at first, and 0.66 s longer if only one disk was cut.
"""

from __future__ import annotations

from plugpull.checks.accusation import Accusation
from plugpull.checks.evidence import here_by, limit, mates_of, seconds
from plugpull.checks.limits import EACH_MORE, bench_kind
from plugpull.checks.starved import awake
from plugpull.history.cut import Cut
from plugpull.history.events import DiskAttached, DiskDetached, Uevent
from plugpull.history.story import Story
from plugpull.kernel.diagnosis.scope import place_of

MORE = 1.5
"""Seconds by which it may take longer, plus ``EACH_MORE`` for each further disk of the same cut. Only emulated benches
are judged, because real disks differ in their time to spin up."""


def slow_probe(story: Story, cut: Cut, now: DiskAttached) -> Accusation | None:
    """An accusation if probing took much longer than at the disk's first attachment in the story."""
    first = next((one for one in story.all_attachments if one.disk == now.disk), None)
    if bench_kind(story) != "virtual" or first is None or first is now or first.driver != now.driver:
        return None
    span_then, span_now = _probing(story, first), _probing(story, now)
    if span_then is None or span_now is None:
        return None
    # What the host took away counts in the disk's favour: all of the first span, and only what is left of this one.
    before, after = span_then[1] - span_then[0], awake(story, *span_now)
    within = MORE + EACH_MORE * (len(mates_of(story, cut)) - 1)
    if after - before <= within:
        return None
    what = f"{now.disk} came back and took {seconds(after)} from its USB device to its disk"
    more = f", {seconds(after - before)} longer than at first {limit(within)}"
    return Accusation(subject=now.disk, summary=what + more, at=now.at)


def _probing(story: Story, attached: DiskAttached) -> tuple[float, float] | None:
    """DUT times of the USB device's uevent and of the disk's; ``None`` if there is none on record. One from before the
    disk last left is an earlier device's."""
    name, here = place_of(attached.sysfs).usb, here_by(story, attached)
    gone = (one.at for one in story.of(DiskDetached) if one.disk == attached.disk and one.at is not None)
    left = max((at for at in gone if at < here), default=float("-inf"))
    added = [
        event.at
        for event in story.of(Uevent)
        if (event.action, event.subsystem, event.devtype) == ("add", "usb", "usb_device")
        and event.devpath.rpartition("/")[2] == name
        and event.at is not None
        and left < event.at <= here
    ]
    return (max(added), here) if added else None
