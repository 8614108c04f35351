"""Whether the record of the kernel log is complete. A log with a gap, or one that ends early, looks healthy.

Four sources show gaps: the sequence numbers of ``/dev/kmsg`` (Documentation/ABI/testing/dev-kmsg), which grow by one
until the DUT restarts; the agent, which reports records that were overwritten before it could read them; the
uevents, because the kernel logs each disk that is attached and each USB device that is removed; and the kernel, which
says that it dropped messages or stopped looking for faults.
"""

from __future__ import annotations

from collections.abc import Iterator

from plugpull.history.cut import Cut
from plugpull.history.events import DiskAttached, DiskDetached, DutReady, KernelMessage, LogLost
from plugpull.history.story import NOT_THE_AGENT, Story
from plugpull.kernel.diagnosis.arrivals import AFTER, is_announced, is_disconnected
from plugpull.kernel.diagnosis.scope import place_of
from plugpull.kernel.diagnosis.story_log import log_of

LISTED = 30.0
"""Seconds before a DUT is ready in which its agent lists the disks that are already attached."""

MARKS = 8
"""The most marks that the agent writes into the log to measure its clock. They are not recorded."""
BEGINNING = 0.5
"""Seconds after a DUT is ready in which records from before the marks may still arrive."""


def log_doubts(story: Story) -> tuple[str, ...]:
    """Why the kernel log of a story is not complete, one clause per reason."""
    return story.once(_log_doubts)


def _log_doubts(story: Story) -> tuple[str, ...]:
    doubts = (_lost(story), story.once(_missing_numbers), _admitted(story), *_silent(story))
    return tuple(doubt for doubt in doubts if doubt)


def _lost(story: Story) -> str:
    lost = sum(event.count for event in story.of(LogLost))
    return f"{lost} records of the kernel log were lost" if lost else ""


def _admitted(story: Story) -> str:
    """The kernel's own message that messages are missing, or that it reports no more faults of a kind. A console that
    was too slow loses nothing that the agent read."""
    read = {event.text for event in story.of(KernelMessage) if event.source not in NOT_THE_AGENT}
    lines = (line for line in log_of(story).own if line.event is not None and line.event.kind == "log.lost")
    return next((f"it says itself that it is not complete: {line.body}" for line in lines if line.text in read), "")


def _missing_numbers(story: Story) -> str:
    """The sequence numbers missing from the record, apart from those that the agent reported as lost."""
    last = first_hole = -1
    missing = 0
    ready: float | None = None
    seen: set[int] = set()
    holes: list[range] = []
    twice = 0
    for event in story.among(DutReady, LogLost, KernelMessage):
        if isinstance(event, DutReady):
            # Another boot, or the snapshot: the numbers start again.
            last, seen, holes, ready = -1, set(), [], event.at
        elif isinstance(event, LogLost):
            missing -= event.count
        if not isinstance(event, KernelMessage) or event.seq < 0 or event.source in NOT_THE_AGENT:
            continue
        twice += event.seq in seen
        late = event.seq < last and event.seq not in seen
        if late and not any(event.seq in hole for hole in holes):
            return f"the numbers of the kernel log fall from {last} back to {event.seq}, as in the log of another boot"
        missing -= late
        seen.add(event.seq)
        if 0 <= last < event.seq - 1:
            hole = range(last + 1, event.seq)
            holes.append(hole)
            if not (len(hole) <= MARKS and _just(event.at, ready)):
                missing += len(hole)
                first_hole = first_hole if first_hole >= 0 else last + 1
        last = max(last, event.seq)
    if missing > 0:
        return f"{missing} records of the kernel log are missing, the first is number {first_hole}"
    return f"{twice} records of the kernel log are in the record twice" if twice else ""


def _just(at: float | None, ready: float | None) -> bool:
    return at is not None and ready is not None and at - ready < BEGINNING


def _silent(story: Story) -> Iterator[str]:
    """Disks that came or went without a message in the log. ``kernel_clean`` judges a log without any line."""
    if not log_of(story).timed:
        return
    readies = [event.at for event in story.of(DutReady) if event.at is not None]
    for attached in story.of(DiskAttached):
        if not attached.disk or attached.at is None:
            continue
        if any(at - LISTED <= attached.at <= at for at in readies):
            continue  # attached before the agent started; the agent listed it
        if not is_announced(story, attached, _earlier_until(story, attached)):
            yield f"{attached.disk} was attached at {attached.at:.2f} s and the kernel log does not say so"
            return
    for cut in story.cut_records:
        for disk in cut.armed.victims:
            gone = gone_in_silence(story, cut, disk)
            if gone is not None:
                yield f"{disk} was removed at {gone:.2f} s and the kernel log does not say that it was disconnected"
                return


def _earlier_until(story: Story, attached: DiskAttached) -> float:
    """Until when lines about a disk that comes are about an earlier attachment of it: until that left. On a SCSI bus, a
    device can be found before the removal of the one before is read; there it is until its own lines have come."""
    at = attached.at or 0.0
    left = [one.at for one in story.of(DiskDetached) if one.disk == attached.disk and one.at is not None]
    last = max((gone for gone in left if gone < at), default=0.0)
    before = [one.at for one in story.attachments(attached.disk) if one.at is not None and one.at < at]
    if place_of(attached.sysfs).usb or not attached.sysfs or not before:
        return last
    return min(last, max(before) + AFTER)


def gone_in_silence(story: Story, cut: Cut, disk: str) -> float | None:
    """When a victim was removed, DUT seconds, if the kernel log has no disconnect message for it."""
    if not log_of(story).timed or cut.armed.mechanism == "logical" or cut.off.commanded_at is None:
        return None
    begin = cut.off.commanded_at - cut.error
    was, gone = story.attachment_at(disk, begin), cut.times(disk).removed_at
    return None if was is None or gone is None or is_disconnected(story, was, begin, gone) else gone


def numbers_whole(story: Story) -> bool:
    """Whether the record of the kernel log has no gap, by its numbers."""
    return not _lost(story) and not story.once(_missing_numbers)
