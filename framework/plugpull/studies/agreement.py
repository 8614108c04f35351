"""Whether fio, the kernel's counters and the emulated disk itself counted the same bytes."""

from __future__ import annotations

from collections.abc import Iterator

from plugpull.history.events import CountedOutside, LoadBegun, LoadEnded
from plugpull.history.readings import Readings
from plugpull.history.story import Story

AGREE = 0.01
"""The share by which two counts of the same bytes may differ. In all measuring scenarios that were compared, on
emulated benches, fio and the kernel counted exactly the same bytes written, and QEMU's own count of three disks was the
same, too."""
SCAN = 256 << 10
"""Bytes that others may read for each load: 128 KiB, the kernel's look for partitions, in those scenarios."""
LITTLE = 16 << 10
"""Bytes by which they may differ in any case: of an emulated disk, 1 KiB is read before the kernel counts."""
AROUND = 0.3
"""Seconds before and after a load in which samples still belong to it."""
MEASURES = "--name=measure"
"""The loads that have a disk to themselves (``measuring_arguments``)."""


def disagreements(story: Story) -> Iterator[str]:
    """Counts of the same bytes that differ by more than 1 %, a sentence each: then one of them is not the truth, and no
    rate is known."""
    for disk in dict.fromkeys(load.disk for load in story.of(LoadBegun)):
        yield from _fio(story, disk)
    for outside in story.of(CountedOutside):
        yield from _emulated(story, outside)


def _fio(story: Story, disk: str) -> Iterator[str]:
    """fio against the kernel, over all loads of a disk that had no others and was not plugged in again."""
    loads = [load for load in story.of(LoadBegun) if load.disk == disk]
    ends = [story.load_end(load) for load in loads]
    found = [end for end in ends if end is not None and end.read_bytes + end.written_bytes > 0]
    if len(found) < len(loads) or any(MEASURES not in load.argv for load in loads):
        return
    inside = _during(story, loads, found)
    if not _one_attachment(inside):
        return
    first, last = inside[0], inside[-1]
    said, counted = sum(end.written_bytes for end in found), last.written - first.written
    if _differ(said, counted):
        yield f"fio says that it wrote {said} bytes to {disk}, and the kernel counted {counted}"
    said, counted = sum(end.read_bytes for end in found), last.read - first.read
    if _differ(said, counted, SCAN * len(loads)):
        yield f"fio says that it read {said} bytes of {disk}, and the kernel counted {counted}"


def _emulated(story: Story, outside: CountedOutside) -> Iterator[str]:
    """The kernel against the emulated disk, since it was last plugged in. A load that still runs moves both."""
    attached = story.attachments(outside.disk)
    if outside.at is None or not attached:
        return
    own = [one for one in story.readings(outside.disk).before(outside.at) if one.diskseq == attached[-1].diskseq]
    if not own or any(end is None or (end.at or 0.0) > own[-1].at for end in map(story.load_end, story.of(LoadBegun))):
        return
    for verb, said, counted in (
        ("written", outside.written_bytes, own[-1].written),
        ("read", outside.read_bytes, own[-1].read),
    ):
        if _differ(said, counted):
            yield f"the emulated {outside.disk} was {verb} {said} bytes, and the kernel counted {counted}"


def _during(story: Story, loads: list[LoadBegun], ends: list[LoadEnded]) -> Readings:
    begin = min(load.at or 0.0 for load in loads)
    return story.readings(loads[0].disk).between(begin - AROUND, max(end.at or 0.0 for end in ends) + AROUND)


def _one_attachment(readings: Readings) -> bool:
    return len(readings) > 1 and readings[0].diskseq == readings[-1].diskseq


def _differ(said: int, counted: int, more: int = 0) -> bool:
    """Whether two counts differ. The second may have ``more`` of what others moved."""
    spare = max(LITTLE, AGREE * max(said, counted))
    return said - counted > spare or counted - said > spare + more
