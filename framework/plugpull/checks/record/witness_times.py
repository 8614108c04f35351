"""Whether the kernel log, the samples and the uevents are stamped by one clock.

Each attachment of a disk is in all three. A busy agent reads uevents late, by up to 3.6 s in 4,427 attachments, but not
all of them: in each of 851 scenarios one was read within 0.7 s. Nothing can be read early.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from plugpull.history.events import DiskAttached
from plugpull.history.story import Story
from plugpull.kernel.diagnosis.arrivals import attached_times

APART = 1.5
"""Seconds between the stamps of one event by two witnesses that are of one clock."""
LATER = 0.5
"""The same for a log that is later than a uevent, which nothing explains: in 28 recorded runs it was always earlier."""
FEWEST = 2
"""Attachments needed to distinguish another clock from an uevent that was read late."""


def witnesses_apart(story: Story) -> tuple[str, ...]:
    """Which witness is stamped by another clock than the uevents, a sentence each."""
    return tuple(f"the record contradicts itself: {what}" for what in story.once(_apart))


def _apart(story: Story) -> tuple[str, ...]:
    return (*_log(story), *_samples(story))


def _log(story: Story) -> Iterator[str]:
    """The log against the uevents. The disk driver logs "Attached" as the uevent is sent."""
    known: defaultdict[str, list[float]] = defaultdict(list)
    for event in story.of(DiskAttached):
        if event.at is not None:
            known[event.kname].append(event.at)
    lines = attached_times(story)
    pairs = [
        (at, line)
        for kname, ats in known.items()
        if len(ats) == len(lines.get(kname, ()))
        for at, line in zip(sorted(ats), sorted(lines[kname]), strict=True)
    ]
    late = max((line - at for at, line in pairs), default=0.0)
    if late > LATER:
        yield f"the kernel log has a disk attached {late:.2f} s later than its uevent"
    elif len(pairs) >= FEWEST and late < -APART:
        yield f"the kernel log has every disk attached at least {-late:.2f} s earlier than its uevent"


def _samples(story: Story) -> Iterator[str]:
    """The samples against the uevents. A sample lists all attached disks."""
    first: dict[tuple[str, int], float] = {}
    begin = min(story.samples.span(), default=0.0)
    for key, stream in story.samples.streams.items():
        seen = next((at for row in stream.rows() if (at := story.samples.time(row)) is not None), None)
        if seen is not None:
            first[key] = seen
    offsets = []
    for event in story.of(DiskAttached):
        seen = first.get((event.kname, event.diskseq))
        if event.diskseq and event.at is not None and seen is not None and seen > begin:
            offsets.append(seen - event.at)
    if len(offsets) < FEWEST:
        return
    if min(offsets) > APART:
        yield f"the samples have every disk at least {min(offsets):.2f} s after its uevent"
    elif max(offsets) < -APART:
        yield f"the samples have every disk at least {-max(offsets):.2f} s before its uevent"
