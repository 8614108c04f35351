"""Whether the kernel let go of all of a disk that was cut: its USB device goes some time after its block device.

Meanwhile the hub's worker is busy, so that nothing on that hub is noticed (drivers/usb/core/hub.c, ``hub_event``).
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from plugpull.checks.accusation import Accusation
from plugpull.checks.evidence import limit, mates_of, seconds
from plugpull.checks.limits import EACH_MORE, bench_kind
from plugpull.checks.starved import Span, awake
from plugpull.history.cut import Cut
from plugpull.history.events import DiskAttached, DiskDetached, Edge, Uevent
from plugpull.history.story import Story
from plugpull.kernel.diagnosis.scope import place_of

WITHIN = 2.0
"""Seconds from the removal of the block device to that of the USB device on an emulated bench, plus ``EACH_MORE`` for
each further disk of the same cut. It took at most 0.45 s, without starved time, in 86 cuts of healthy disks on busy
hosts, and 3.7 s where usb-storage did not cut the pause after a reset short."""


def device_kept(story: Story, cut: Cut, disk: str, removed_at: float) -> Accusation | None:
    """An accusation if the USB device of a disk that was removed at this time went long after it. Nothing if its
    removal is not on record: what is left over is judged elsewhere."""
    gone = next((event for event in story.of(DiskDetached) if (event.disk, event.at) == (disk, removed_at)), None)
    was = next((one for one in story.attachments(disk) if gone and one.diskseq == gone.diskseq), None)
    if bench_kind(story) != "virtual" or was is None:
        return None
    at = _device_gone(story, was, removed_at)
    within = WITHIN + EACH_MORE * (len(mates_of(story, cut)) - 1)
    took = 0.0 if at is None else awake(story, removed_at, at)
    if took <= within:
        return None
    what = f"the kernel let go of the USB device of {disk} {seconds(took)} after the disk was removed {limit(within)}"
    return Accusation(subject=disk, summary=what, at=at)


def driver_kept(story: Story, disk: str) -> Iterator[Accusation]:
    """An accusation for each cut of a disk that its driver had taken and that was not attached yet, if its USB device
    went long after that. It took at most 0.44 s in 322 cuts that hit a disk while it was set up or removed."""
    names = {place_of(one.sysfs).usb for one in story.attachments(disk)} - {""}
    if bench_kind(story) != "virtual":
        return
    for cut in story.cut_records:
        edges = [edge for edge in story.of(Edge) if edge.cut == cut.armed.cut and edge.state == "off"]
        off = max((edge.at or 0.0 for edge in edges if edge.phase == "acknowledged"), default=None)
        first = min((edge.at or 0.0 for edge in edges), default=0.0)
        if disk not in cut.armed.victims or off is None or story.attachment_at(disk, first - cut.error) is not None:
            continue
        within = WITHIN + EACH_MORE * (len(mates_of(story, cut)) - 1)
        for usb in names:
            at = _gone_unattached(
                story, usb, first - cut.error, Span(off, _judged_until(story, cut, disk, off, within))
            )
            took = 0.0 if at is None else awake(story, off, at)
            if took > within:
                what = f"the kernel let go of the USB device of {disk} {seconds(took)} after it was cut {limit(within)}"
                yield Accusation(subject=disk, summary=f"{what}, while it was set up", at=at)


def _judged_until(story: Story, cut: Cut, disk: str, off: float, within: float) -> float:
    """Until when a removal belongs to this cut, DUT seconds: until the disk was cut again, if this cut was so short
    that the kernel may never have noticed it; otherwise infinity."""
    later = (one for one in story.cut_records if disk in one.armed.victims and one.off.commanded_at is not None)
    begins = ((one.off.commanded_at or 0.0) - one.error for one in later)
    again = min((begin for begin in begins if begin > off), default=math.inf)
    restored = math.inf if cut.on.commanded_at is None else cut.on.commanded_at
    return again if min(restored, again) - off < within else math.inf


def _gone_unattached(story: Story, usb: str, cut: float, judged: Span) -> float | None:
    """When a USB device with a driver at the time of a ``cut`` was removed in the time that is ``judged``; ``None`` if
    it had none, or if no such removal is on record."""
    here = [event for event in story.of(Uevent) if event.devpath.rpartition("/")[2].partition(":")[0] == usb]
    devices = [one for one in here if one.devtype == "usb_device" and one.action in ("add", "remove")]
    before = [event for event in devices if (event.at or 0.0) <= cut]
    after = [event for event in devices if judged.begin < (event.at or 0.0) <= judged.end]
    if not before or before[-1].action != "add" or not after or after[0].action != "remove":
        return None
    begin = before[-1].at or 0.0
    bound = any(
        (one.devtype, one.action) == ("usb_interface", "bind") and begin <= (one.at or 0.0) <= cut for one in here
    )
    return after[0].at if bound else None


def _device_gone(story: Story, was: DiskAttached, removed_at: float) -> float | None:
    """When the USB device of an attachment was removed; ``None`` if that is not on record before the next one is."""
    usb = place_of(was.sysfs).usb
    for event in story.of(Uevent) if usb else ():
        device = (event.subsystem, event.devtype) == ("usb", "usb_device") and event.action in ("add", "remove")
        if device and event.devpath.rpartition("/")[2] == usb and (event.at or 0.0) >= removed_at:
            return event.at if event.action == "remove" else None
    return None
