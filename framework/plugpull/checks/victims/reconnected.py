"""A SuperSpeed port that something is plugged into again before the kernel has noticed that it was empty.

Its link is up again, so the kernel first asks the device that it knows whether it is still there, by reading its
descriptor (``hub_port_connect_change`` in drivers/usb/core/hub.c). If another device, or the same one after a loss of
its address, sits there now, nobody answers, and the disk is removed only when that request has timed out. Whatever was
plugged in there instead is found after that.
"""

from __future__ import annotations

from plugpull.checks.starved import awake
from plugpull.history.cut import Cut
from plugpull.history.events import DiskAttached, DiskMoved
from plugpull.history.reader import Story

LONG_ENOUGH = 0.5
"""Seconds. If a cut lasts for less, the kernel may notice it only after the restoring edge."""
CONTROL = 5.0
"""Seconds until a control transfer fails (include/linux/usb.h, USB_CTRL_GET_TIMEOUT)."""
SUPER = 5000
"""The speed from which on a link comes up by itself, Mb/s."""


def asked_first(story: Story, cut: Cut, disk: str) -> float:
    """Seconds that the kernel may take longer to remove ``disk``, and to announce it again, because it asks the device
    at its port first; 0 if it has no reason to."""
    begin, restored = cut.off.commanded_at, cut.restored_at
    if begin is None or restored is None or awake(story, begin, restored) >= LONG_ENOUGH:
        return 0.0
    removed_at, was = cut.times(disk).removed_at, story.attachment_at(disk, begin - cut.error)
    if was is not None and _super(was) and (removed_at is None or removed_at > restored - cut.error):
        return CONTROL
    moves = [
        one for one in story.of(DiskMoved) if one.disk == disk and begin - cut.error <= (one.at or 0.0) <= restored
    ]
    return asked_before(story, moves[-1]) if moves else 0.0


def asked_before(story: Story, move: DiskMoved) -> float:
    """Seconds that the kernel may take longer to find a disk that was moved, because another one was still on its list
    in that socket, which it asks first: until that one was removed. 0 if there was none."""
    before = (one for one in story.all_attachments if one.place == move.place and one.disk != move.disk)
    there = (one for one in before if _super(one) and (one.at or 0.0) < (move.at or 0.0))
    left = ((story.detached_at(one) or 0.0) - move.until for one in there)
    return max(0.0, min(CONTROL, max(left, default=0.0)))


def _super(one: DiskAttached) -> bool:
    return one.speed.isdecimal() and int(one.speed) >= SUPER
