"""Is the record of the kernel log whole? A log that ends silently, or has a hole, looks like that of a healthy kernel.

Three witnesses: the sequence numbers of ``/dev/kmsg`` (Documentation/ABI/testing/dev-kmsg), which grow by one until
the DUT is started again; the agent, which reports records that were overwritten before it could read them; and the
uevents, since the kernel logs each disk that comes and each USB device that goes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property

from plugpull.history.cuts import Cut
from plugpull.history.events import DiskAttached, DiskDetached, DutReady, KernelMessage, LogLost
from plugpull.history.story import NOT_THE_AGENT, Story
from plugpull.kernel.catalogue.device_names import Names, names_in
from plugpull.kernel.catalogue.prefix import split_prefix
from plugpull.kernel.diagnosis.scope import place_of

BEFORE = 10.0
"""Seconds before a disk is announced in which its messages are looked for: the kernel logs it while it is probed."""
AFTER = 3.0
"""Seconds after an uevent in which the message may still come: the two are stamped by different clocks."""

LISTED = 30.0
"""Seconds before a DUT is ready in which its agent lists the disks that are there already."""

MARKS = 8
"""Marks that the agent writes into the log at most as it measures the log's clock, and does not record."""
BEGINNING = 0.5
"""Seconds after a DUT is ready in which records from before the marks may still arrive."""

_GONE = re.compile(r"^usb (\d+-[\d.]+): USB disconnect")
_COMES = re.compile(
    r"\bnew (?:[\w-]+ )+USB device|[Nn]ew USB device found|USB Mass Storage device detected|^scsi host\d+: "
    r"|^scsi \S+: +(?:Direct-Access|Optical|CD-ROM|Enclosure|RBC|Simplified)"
    r"|\blogical blocks: |\] Attached SCSI |Attached scsi generic |hardware sectors"
)
"""What the USB core, its storage drivers and the disk driver say of a disk that comes: a disk that goes is spoken of
for a while after it was taken off the list, so not every line that names it will do."""


class _Line:
    """One message, with what it names worked out once and only if asked for."""

    def __init__(self, message: KernelMessage) -> None:
        self.at = message.at or 0.0
        self._text = message.text

    @cached_property
    def body(self) -> str:
        return split_prefix(self._text)[1].strip()

    @cached_property
    def names(self) -> Names:
        return names_in(self.body)


def log_doubts(story: Story) -> tuple[str, ...]:
    """Why the kernel log of a story is not whole, a clause each."""
    return tuple(doubt for doubt in (_lost(story), _missing_numbers(story), *_silent(story)) if doubt)


def _lost(story: Story) -> str:
    lost = sum(event.count for event in story.of(LogLost))
    return f"{lost} records of the kernel log were lost" if lost else ""


def _missing_numbers(story: Story) -> str:
    """Sequence numbers that are not in the record, apart from those that the agent reported as lost."""
    last = first_hole = -1
    missing = 0
    ready: float | None = None
    seen: set[int] = set()
    holes: list[range] = []
    twice = 0
    for event in story.events:
        if isinstance(event, DutReady):
            # Another boot, or the snapshot: the numbers begin somewhere else.
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
    """Disks that came or went without a word in the log. A log without a single line is judged elsewhere."""
    lines = [_Line(event) for event in story.of(KernelMessage) if event.at is not None and event.facility == 0]
    if not lines:
        return
    readies = [event.at for event in story.of(DutReady) if event.at is not None]
    for attached in story.of(DiskAttached):
        if not attached.disk or attached.at is None:
            continue
        if any(at - LISTED <= attached.at <= at for at in readies):
            continue  # it was there before the agent, which listed it
        left = [one.at for one in story.of(DiskDetached) if one.disk == attached.disk and one.at is not None]
        last = max((at for at in left if at < attached.at), default=0.0)
        if not _announced(attached, last, lines):
            yield f"{attached.disk} was attached at {attached.at:.2f} s and the kernel log does not say so"
            return
    for cut in story.cut_records:
        for disk in cut.armed.victims:
            gone = _gone_in_silence(story, cut, disk, lines)
            if gone is not None:
                yield f"{disk} was removed at {gone:.2f} s and the kernel log does not say that it was disconnected"
                return


def gone_in_silence(story: Story, cut: Cut, disk: str) -> float | None:
    """When a victim was removed of which the kernel log does not say that it was disconnected, DUT seconds."""
    lines = [_Line(event) for event in story.of(KernelMessage) if event.at is not None and event.facility == 0]
    return _gone_in_silence(story, cut, disk, lines) if lines else None


def _gone_in_silence(story: Story, cut: Cut, disk: str, lines: list[_Line]) -> float | None:
    if cut.armed.mechanism == "logical" or cut.off.commanded_at is None:
        return None
    begin = cut.off.commanded_at - cut.error
    was, gone = story.attachment_at(disk, begin), cut.times(disk).removed_at
    return None if was is None or gone is None or _disconnected(was, begin, gone, lines) else gone


def numbers_whole(story: Story) -> bool:
    """Is every record of the kernel log there, as far as their numbers tell?"""
    return not _lost(story) and not _missing_numbers(story)


def _announced(attached: DiskAttached, gone: float, lines: list[_Line]) -> bool:
    at, place = attached.at or 0.0, place_of(attached.sysfs)
    for line in lines:
        if max(gone, at - BEFORE) <= line.at <= at + AFTER and _COMES.search(line.body):
            names = line.names
            if attached.kname in names.blocks or place.address in names.addresses or place.usb in names.usb:
                return True
    return False


def _disconnected(was: DiskAttached, begin: float, gone: float, lines: list[_Line]) -> bool:
    place = place_of(was.sysfs)
    if not place.usb:
        return True  # not on USB: other buses have other words for it, or none
    for line in lines:
        if begin - 0.5 <= line.at <= gone + AFTER:
            found = _GONE.match(line.body)
            if found and found.group(1) in (place.usb, *place.hubs):
                return True
    return False
