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
from plugpull.history.events import DiskAttached, DiskMoved
from plugpull.history.story import Story
from plugpull.kernel.diagnosis.arrivals import BEFORE
from plugpull.kernel.diagnosis.scope import place_of
from plugpull.kernel.diagnosis.story_log import log_of

_FOUND = re.compile(r"^usb (\d+-[\d.]+): New USB device found, (idVendor=\w+, idProduct=\w+(?:, bcdDevice=[ \w.]+)?)$")
_PORTS = re.compile(r"^hub (\d+-[\d.]+):\d+\.\d+: (\d+ ports?) detected$")
_NEW = re.compile(r"^usb (\d+-[\d.]+): new (low-speed|full-speed|high-speed|SuperSpeed)\b")
_RESET = re.compile(r"^usb (\d+-[\d.]+): reset (low-speed|full-speed|high-speed|SuperSpeed)\b")
SPEEDS = {
    "low-speed": ("1.5",),
    "full-speed": ("12",),
    "high-speed": ("480",),
    "SuperSpeed": ("5000", "10000", "20000"),
}
"""The speeds in sysfs, Mb/s, of what the kernel logs (``usb_speed_string``, drivers/usb/common/common.c)."""
_INQUIRY = re.compile(r"^scsi (\d+:\d+:\d+:\d+): +(\S.*\S) +PQ: ")
_STRING = re.compile(r"^usb (\d+-[\d.]+): (Product|Manufacturer|SerialNumber): (.*)$")


def another_device(story: Story, disk: str) -> Iterator[Accusation]:
    """An accusation for each return of ``disk`` with other numbers or strings, or another answer to INQUIRY."""
    for was, now in pairwise(story.attachments(disk)):
        if was.scsi_type != now.scsi_type and was.place == now.place:
            what = f"{disk} came back as another device: of SCSI type {now.scsi_type} instead of {was.scsi_type}"
            yield Accusation(subject=disk, summary=what, at=now.at)
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


def another_hub(story: Story) -> Iterator[Accusation]:
    """An accusation for each hub above the rig's disks that came back with other numbers or other ports."""
    hubs = {hub for one in story.all_attachments if one.disk for hub in place_of(one.sysfs).hubs}
    last: dict[tuple[str, re.Pattern[str]], str] = {}
    for line in log_of(story).own_timed if not story.of(DiskMoved) else ():
        for pattern in (_FOUND, _PORTS):
            found = pattern.match(line.body)
            if found is None or found[1] not in hubs:
                continue
            was = last.setdefault((found[1], pattern), found[2])
            if was != found[2]:
                what = f"the hub at {found[1]} came back as another device: {found[2]} instead of {was}"
                yield Accusation(subject=found[1], summary=what, at=line.at, evidence=(line.text,))
            last[found[1], pattern] = found[2]


def other_speeds(story: Story) -> Iterator[str]:
    """Disks whose link had another speed when the kernel logged them than in their announcement, one clause each."""
    lines = [(line.at, found[1], found[2]) for line in log_of(story).own_timed if (found := _NEW.match(line.body))]
    for attached in story.all_attachments:
        path, at = place_of(attached.sysfs).usb, attached.at
        if not attached.disk or not attached.speed or not path or at is None:
            continue
        logged = [words for when, where, words in lines if where == path and at - BEFORE <= when <= at]
        if logged and attached.speed not in SPEEDS.get(logged[-1], (attached.speed,)):
            yield (
                f"{attached.disk} was announced at {at:.2f} s with {attached.speed} Mb/s, and the kernel logged a"
                f" {logged[-1]} device"
            )


def reset_otherwise(story: Story) -> Iterator[str]:
    """Disks that the kernel reset as devices of another speed than they were attached with, one clause each. A device
    that answers to a reset at another speed is not reset, but enumerated again (``hub_port_init``)."""
    for line in log_of(story).own_timed:
        if (found := _RESET.match(line.body)) is None:
            continue
        for one in story.all_attachments:
            gone = story.detached_at(one)
            there = one.at is not None and one.at < line.at and (gone is None or line.at < gone)
            if not there or not one.disk or not one.speed or place_of(one.sysfs).usb != found[1]:
                continue
            if one.speed not in SPEEDS[found[2]]:
                what = f"{one.disk} was attached with {one.speed} Mb/s"
                yield f"{what}, and reset as a {found[2]} device at {line.at:.2f} s"
                return


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
