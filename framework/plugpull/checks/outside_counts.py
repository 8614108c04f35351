"""Whether an emulated disk itself was written as much as the kernel counted."""

from __future__ import annotations

from collections.abc import Iterator

from plugpull.checks.evidence import cuts_of
from plugpull.history.events import CountedOutside, DiskAttached, LoadBegun
from plugpull.history.story import Story

AGREE = 0.01
"""The share by which the two counts may differ."""
LITTLE = 256 << 10
"""Bytes by which they may differ in any case. In 554 of 558 comparisons on healthy benches they were equal; after
errors of transfers, which the kernel repeats, they differed by up to 16 KiB."""


def counted_otherwise(story: Story) -> Iterator[str]:
    """Disks whose emulation counted other bytes written than their kernel, a sentence each: writes that the kernel
    completed and that did not arrive, or the other way round. A disk that was plugged in again unnoticed begins to
    count again."""
    for outside in story.of(CountedOutside):
        stays = story.attachments(outside.disk)
        if outside.at is None or not stays or any(not _over(story, load, outside.at) for load in story.of(LoadBegun)):
            continue
        since = stays[-1].at or 0.0
        if any(cut.off.commanded_at is None or cut.off.commanded_at >= since for cut in cuts_of(story, outside.disk)):
            continue
        counted = _counted(story, stays[-1], outside.at)
        said = outside.written_bytes
        if counted and not counted[0] - _slack(said, counted[0]) <= said <= counted[1] + _slack(said, counted[1]):
            nearest = min(counted, key=lambda one: abs(said - one))
            yield f"the emulated {outside.disk} was written {said} bytes, and the kernel counted {nearest}"


def _counted(story: Story, stay: DiskAttached, at: float) -> tuple[int, int] | None:
    """What the kernel had counted in the last sample before ``at`` and in the first one after it, which may be more:
    an unmount writes in no time. ``None`` without a sample before it."""
    readings = story.readings(stay.disk)
    begun = len(readings.before(at))
    least = next((one.written for one in reversed(readings[:begun]) if one.diskseq == stay.diskseq), None)
    later = next((one.written for one in readings[begun:] if one.diskseq == stay.diskseq), least)
    return None if least is None or later is None else (least, later)


def _slack(said: int, counted: int) -> float:
    return max(LITTLE, AGREE * max(said, counted))


def not_counted(story: Story) -> Iterator[str]:
    """Disks that were there when the bench read the counts of the emulated disks, and whose count is not on record."""
    counts = [outside for outside in story.of(CountedOutside) if outside.at is not None]
    for disk in story.rig.get("disk", ()) if counts else ():
        stays = story.attachments(str(disk["name"]))
        there = stays and (stays[-1].at or 0.0) < (counts[0].at or 0.0) and story.detached_at(stays[-1]) is None
        if there and all(outside.disk != disk["name"] for outside in counts):
            yield f"what the emulated {disk['name']} itself counted is not on record"


def _over(story: Story, load: LoadBegun, at: float) -> bool:
    ended = story.load_end(load)
    return ended is not None and ended.at is not None and ended.at <= at
