"""What the disks of an emulated SCSI bus report because something happened to them or to another disk of that bus.

A disk answers its next command with a unit attention (SPC-4, 5.14), the kernel logs that, counts the command as failed
and sends it again (drivers/scsi/scsi_error.c, ``scsi_report_sense``; scsi_lib.c, ``scsi_complete``). There are two:

- POWER ON, RESET, OR BUS DEVICE RESET OCCURRED: after a disk was plugged in, was reset on request, or was reset with
  its controller as the machine woke. So does a disk whose cable was off without the kernel noticing it.
- REPORTED LUNS DATA HAS CHANGED: after a disk of the bus came or went, itself included (QEMU's
  hw/scsi/virtio-scsi.c, ``virtio_scsi_hotplug`` and ``virtio_scsi_hotunplug``).

Each disk reports each of these at most once, perhaps much later: at its next command. A USB device has a bus of its
own.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from plugpull.history.cut import Cut, Switching
from plugpull.history.events import DiskProperties, DiskRecovered, DiskStalled
from plugpull.history.story import Story
from plugpull.history.suspensions import suspensions
from plugpull.kernel.diagnosis.scope import Scope, Stay
from plugpull.kernel.diagnosis.story_log import TimedLine, log_of

_CHANGED = re.compile(r"\bLUN assignments on this target have changed\b")
_POWERED = re.compile(r"\bPower-on or device reset occurred\b")
_INQUIRY = re.compile(r"^scsi (\d+:\d+:\d+:\d+): +\S.*\S +PQ: ")
HOTPLUG = "virtio_scsi"
"""The driver of disks that are plugged into an emulated SCSI host."""
COMING = 3.0
"""Seconds between a disk's first messages and its uevent, where the kernel did not log what it answered to INQUIRY."""
LATE = 0.5
"""Seconds by which a uevent may be read later than a kernel message that was logged at the same time."""
FOLLOWS = 10.0
"""Seconds after an edge in which a disk that comes or goes does so because of it."""


class Attention(NamedTuple):
    """An explained report of ``stay``."""

    stay: Stay
    line: TimedLine


def explained(story: Story, line: TimedLine) -> bool:
    """Whether a message is such a report, and something happened that no earlier report is about."""
    if not (_CHANGED.search(line.body) or _POWERED.search(line.body)):
        return False
    return any(report.line == line for report in story.once(_reports))


def attentions(story: Story, read: DiskProperties, since: float, until: float) -> int:
    """How many such reports the kernel logged between two times, DUT seconds, of the attachment whose properties were
    read."""
    begins = {one.at for one in story.attachments(read.disk) if (one.kname, one.diskseq) == (read.kname, read.diskseq)}
    return sum(
        one.stay.disk == read.disk and one.stay.begin in begins and since <= one.line.at <= until
        for one in story.once(_reports)
    )


def _reports(story: Story) -> tuple[Attention, ...]:
    """The reports that are explained, in order."""
    scope, seen = story.once(Scope), Counter[tuple[str, float, bool]]()
    found: list[Attention] = []
    for line in log_of(story).own_timed:
        changed = _CHANGED.search(line.body) is not None
        if not changed and not _POWERED.search(line.body):
            continue
        for stay in _stays(story, scope, line):
            causes = [*_own(story, stay), *(_changes(story, scope, stay) if changed else _resets(story, stay))]
            key = (stay.disk, stay.begin, changed)
            if seen[key] < sum(when <= line.at + LATE for when in causes):
                seen[key] += 1
                found.append(Attention(stay, line))
    return tuple(found)


def _stays(story: Story, scope: Scope, line: TimedLine) -> tuple[Stay, ...]:
    """The attachments that a message is about. Of those at one address, it is the one of the device that had answered
    to INQUIRY last; its uevent comes later."""
    for address in line.names.addresses:
        asked = max((at for at in _inquiries(story, address) if at <= line.at), default=None)
        if asked is not None:
            later = [stay for stay in scope.stays if stay.place.address == address and stay.begin >= asked]
            return tuple(sorted(later, key=lambda stay: stay.begin)[:1])
    return scope.about(line.names, line.at).stays


def _inquiries(story: Story, address: str) -> tuple[float, ...]:
    """When the kernel logged what a new device at this address answered to INQUIRY (``scsi_add_lun``)."""
    return tuple(at for at, where in story.once(_all_inquiries) if where == address)


def _all_inquiries(story: Story) -> tuple[tuple[float, str], ...]:
    lines = log_of(story).own_timed
    return tuple((line.at, found[1]) for line in lines if (found := _INQUIRY.match(line.body)))


def _came(story: Story, stay: Stay) -> float | None:
    """When the kernel found the device of this attachment, whose uevent may be read later; ``None`` if it did not log
    that."""
    times = _inquiries(story, stay.place.address)
    return max((at for at in times if stay.begin - FOLLOWS <= at <= stay.begin), default=None)


def _own(story: Story, stay: Stay) -> Iterator[float]:
    """What makes a disk report both: that it came, and that its cable was put back without the kernel having noticed
    that it was off. DUT times."""
    if any(one.at == stay.begin and one.driver == HOTPLUG for one in story.attachments(stay.disk)):
        came = _came(story, stay)
        yield stay.begin - COMING if came is None else came
        for cut in _cuts(story, stay.disk):
            if cut.on.commanded_at is not None and stay.begin <= cut.on.commanded_at < stay.end:
                yield cut.on.commanded_at


def _resets(story: Story, stay: Stay) -> Iterator[float]:
    """When the disk was reset while it was attached, DUT times."""
    yield from (begin for begin, _ in suspensions(story) if stay.begin <= begin)
    for event in story.of(DiskRecovered):
        if event.disk == stay.disk and stay.begin <= (event.at or 0.0):
            yield from [event.at or 0.0] * event.resets
    for stall in story.of(DiskStalled):
        if stall.disk == stay.disk:
            yield from (begin for begin, _ in stall.spans if stay.begin <= begin)


def _changes(story: Story, scope: Scope, stay: Stay) -> Iterator[float]:
    """When other disks of the host came or went after this one, DUT times: by the switches, and by uevents that follow
    no switch."""
    here = _came(story, stay) or stay.begin
    for other in scope.stays:
        if other.place.host != stay.place.host or other.disk == stay.disk:
            continue
        cuts = tuple(_cuts(story, other.disk))
        came = _came(story, other) or other.begin
        if came >= here and not _follows(other.begin, (cut.on for cut in cuts)):
            yield came
        if other.end >= here and not _follows(other.end, (cut.off for cut in cuts)):
            yield other.end
    mates = {one.disk for one in scope.stays if one.place.host == stay.place.host and one.disk != stay.disk}
    for disk in mates:
        for cut in _cuts(story, disk):
            for edge in (cut.off, cut.on):
                # The bus changes between the command and its acknowledgement.
                latest = edge.commanded_at if edge.acknowledged_at is None else edge.acknowledged_at
                if edge.commanded_at is not None and latest is not None and latest >= here:
                    yield edge.commanded_at


def _cuts(story: Story, disk: str) -> Iterator[Cut]:
    return (cut for cut in story.cut_records if disk in cut.armed.victims)


def _times(edges: Iterable[Switching]) -> tuple[float, ...]:
    return tuple(edge.commanded_at for edge in edges if edge.commanded_at is not None)


def _follows(at: float, edges: Iterable[Switching]) -> bool:
    return any(edge <= at <= edge + FOLLOWS for edge in _times(edges))
