"""Whether the kernel let go of all of a disk that was cut: its USB device goes some time after its block device.

Meanwhile the hub's worker is busy, so that nothing on that hub is noticed (drivers/usb/core/hub.c, ``hub_event``).
"""

from __future__ import annotations

from plugpull.checks.accusation import Accusation
from plugpull.checks.evidence import limit, mates_of, seconds
from plugpull.checks.limits import EACH_MORE, bench_kind
from plugpull.checks.starved import awake
from plugpull.history.cut import Cut
from plugpull.history.events import DiskAttached, DiskDetached, Uevent
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


def _device_gone(story: Story, was: DiskAttached, removed_at: float) -> float | None:
    """When the USB device of an attachment was removed; ``None`` if that is not on record before the next one is."""
    usb = place_of(was.sysfs).usb
    for event in story.of(Uevent) if usb else ():
        device = (event.subsystem, event.devtype) == ("usb", "usb_device") and event.action in ("add", "remove")
        if device and event.devpath.rpartition("/")[2] == usb and (event.at or 0.0) >= removed_at:
            return event.at if event.action == "remove" else None
    return None
