"""What the kernel logged of a disk when it came, and whether it came back as the same device.

``announce_device`` in drivers/usb/core/hub.c logs the vendor, product and release numbers and the strings of each new
device, and ``scsi_add_lun`` in drivers/scsi/scsi_scan.c what it answered to INQUIRY. Another answer is another device,
or one with another firmware.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from plugpull.checks.accusation import Accusation
from plugpull.history.events import DiskAttached
from plugpull.history.story import Story
from plugpull.kernel.diagnosis.arrivals import BEFORE
from plugpull.kernel.diagnosis.scope import place_of
from plugpull.kernel.diagnosis.story_log import log_of

_FOUND = re.compile(r"^usb (\d+-[\d.]+): New USB device found, (idVendor=\w+, idProduct=\w+(?:, bcdDevice=[ \w.]+)?)$")
_INQUIRY = re.compile(r"^scsi (\d+:\d+:\d+:\d+): +(\S.*\S) +PQ: ")
_STRING = re.compile(r"^usb (\d+-[\d.]+): (Product|Manufacturer|SerialNumber): (.*)$")


def another_device(story: Story, disk: str) -> Iterator[Accusation]:
    """An accusation for each return of ``disk`` with other numbers or strings, or another answer to INQUIRY."""
    for was, now in pairwise(story.attachments(disk)):
        before, after = _descriptors(story, was), _descriptors(story, now)
        for name in before:
            if name in after and before[name] != after[name]:
                yield Accusation(
                    subject=disk,
                    summary=f"{disk} came back as another device: {after[name]} instead of {before[name]}",
                    at=now.at,
                    evidence=(f"before: {', '.join(before.values())}", f"after: {', '.join(after.values())}"),
                )
                break


def _descriptors(story: Story, attached: DiskAttached) -> dict[str, str]:
    """What was logged of the device at this disk's port since it was last removed, by name; nothing if it was attached
    before its log was read."""
    place, at = place_of(attached.sysfs), attached.at
    path = place.usb
    found: dict[str, str] = {}
    if not path or at is None:
        return found
    removals = [story.detached_at(one) for one in story.attachments(attached.disk)]
    since = max((gone for gone in removals if gone is not None and gone < at), default=at - BEFORE)
    for line in log_of(story).own_between(since, at):
        if (number := _FOUND.match(line.body)) and number[1] == path:
            found = {"number": number[2]}
        elif (string := _STRING.match(line.body)) and string[1] == path:
            found[string[2]] = f"{string[2]} {string[3]}"
        elif (inquiry := _INQUIRY.match(line.body)) and inquiry[1] == place.address:
            found["inquiry"] = inquiry[2]
    return found
