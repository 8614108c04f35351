"""When a disk stood still on request: what it did not answer then, and was given up, is nobody's fault."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from plugpull.history.events import DiskProperties, DiskStalled, Judged, TimersSet
from plugpull.history.story import Story

BULK_RESET = 6.0
"""Seconds that usb-storage waits in its reset of a device (drivers/usb/storage/transport.c, usb_stor_reset_common). It
does that when an abort was not enough: when a command was given up again."""
UNDER_WAY = 16
"""The most requests that an emulated disk works on at once (``Firmware.power_on``)."""


def stalls_of(story: Story, disk: str) -> tuple[DiskStalled, ...]:
    return tuple(event for event in story.of(DiskStalled) if event.disk == disk)


def stood_still(story: Story, begin: float, end: float, disk: str = "") -> float:
    """Seconds of [begin, end] in which this disk, or any, stood still on request."""
    spans = (span for event in story.of(DiskStalled) if disk in ("", event.disk) for span in _spans(event))
    return sum(max(0.0, min(end, until) - max(begin, since)) for since, until in spans)


def stalls_of_device(story: Story, disk: str) -> tuple[DiskStalled, ...]:
    """The stalls of a disk, and of the other units of its device: the kernel sends them nothing while it recovers one
    of them, because they share a SCSI host (drivers/scsi/scsi_lib.c, scsi_host_queue_ready)."""
    places = {str(one.get("name")): one.get("at") for one in story.rig.get("disk", ())}
    units = {name for name, at in places.items() if at and at == places.get(disk)} | {disk}
    return tuple(event for event in story.of(DiskStalled) if event.disk in units)


def _spans(event: DiskStalled) -> Iterator[tuple[float, float]]:
    """When a disk stood still. If it is said to have done so after the kernel had recovered it, one of both is wrong,
    and it may have stood still whenever the record says so."""
    yield from event.spans
    if event.at is not None and any(end > event.until for _, end in event.spans):
        yield event.at, event.until


def answering_since(story: Story, disk: str, begin: float, end: float) -> float:
    """When a disk or another unit of its device answered again that stood still in [begin, end]; ``begin`` if none
    did."""
    stalls = stalls_of_device(story, disk)
    ends = [until for event in stalls for since, until in _spans(event) if since < end and until > begin]
    return min(end, max(ends, default=begin))


def pause_of(story: Story, stall: DiskStalled) -> float:
    """Seconds that the driver waits on purpose before a disk that stood still works again."""
    drivers = [one.values.get("driver") for one in story.of(DiskProperties) if one.disk == stall.disk]
    return BULK_RESET if "usb-storage" in drivers and (stall.given_up or 0) > 1 else 0.0


def pauses(story: Story, disk: str, begin: float, end: float) -> float:
    """The same for all stalls of its device that were over in [begin, end]."""
    stalls = stalls_of_device(story, disk)
    return sum(pause_of(story, one) for one in stalls if one.spans and begin <= one.spans[-1][1] <= end)


def given_up(story: Story, disk: str, begin: float, end: float) -> int:
    """How many commands the kernel gave up meanwhile because the disk stood still."""
    return sum(event.given_up or 0 for event in stalls_of(story, disk) if begin <= (event.at or 0.0) <= end)


def none_given_up(story: Story, disk: str, begin: float, end: float) -> bool:
    """Whether the disk stood still meanwhile, and the kernel is said to have given up none of its commands."""
    stalls = [one for one in stalls_of(story, disk) if begin <= (one.at or 0.0) <= end]
    return bool(stalls) and all(one.given_up == 0 for one in stalls)


def forgotten(story: Story, disk: str, begin: float, end: float) -> int:
    """How many other commands may have failed at most because the disk forgot them when it answered again, as emulated
    disks with a cache or a latency do. The kernel sends them again."""
    traits: dict[str, Any] = next((one for one in story.rig.get("disk", ()) if one.get("name") == disk), {})
    forgets = bool(traits.get("cache") or traits.get("latency"))
    many = sum(len(event.spans) for event in stalls_of(story, disk) if begin <= (event.at or 0.0) <= end)
    return UNDER_WAY * many if forgets else 0


def disturbances(story: Story, disk: str) -> list[float]:
    """When other disks began to stand still and when they answered again, DUT seconds: edges for a survivor."""
    return [
        at
        for event in story.of(DiskStalled)
        if event.disk != disk and event.spans
        for at in (event.spans[0][0], event.spans[-1][1])
    ]


def unrecorded(story: Story) -> tuple[str, ...]:
    """The disks that stood still on request and of which it is not on record when: findings that this would explain
    accuse nobody."""
    return story.once(_unrecorded)


def _unrecorded(story: Story) -> tuple[str, ...]:
    known = Counter(event.disk for event in story.of(DiskStalled) if event.spans)
    named = [event.disk for event in story.of(DiskStalled) if not event.spans]
    # The timeout of the disk is changed twice: before it stands still, and when it was recovered.
    changed = Counter(_timers_changed(story))
    named += [disk for disk, count in changed.items() if count > 2 * known[disk]]
    asked = (check for judged in story.of(Judged) for check in judged.checks if check.get("check") == "recovered")
    named += [str(disk) for check in asked for disk in check.get("disks", ()) if not known[str(disk)]]
    return tuple(dict.fromkeys(named))


def _timers_changed(story: Story) -> Iterator[str]:
    """The disk of each change of a timeout for a stall."""
    for event in story.of(TimersSet):
        for path in {path for path, *_ in event.changed} if event.moment == "stalled" else ():
            stays = (one for one in story.all_attachments if path.startswith(one.sysfs.partition("/block/")[0] + "/"))
            yield from {one.disk for one in stays if one.disk and one.sysfs}
