"""Comings and goings of disks in the kernel log that fit neither the record of the disks nor that of the switches.

Some messages are printed once for each attachment: ``new ... USB device number`` (hub_port_init in
drivers/usb/core/hub.c), "Attached" and what ``sd_first_printk`` prints while a disk is probed for the first time;
"Synchronizing SCSI cache" and "Stopping disk" when it is shut down (drivers/scsi/sd.c).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from plugpull.checks.contact import contacts
from plugpull.checks.dut.complaints import explained_by_cuts
from plugpull.checks.evidence import cuts_of
from plugpull.history.events import DiskAttached, DiskDetached, Healed
from plugpull.history.story import Story
from plugpull.kernel.diagnosis.arrivals import BEFORE
from plugpull.kernel.diagnosis.expected import margin
from plugpull.kernel.diagnosis.scope import Level, place_of
from plugpull.kernel.diagnosis.story_log import TimedLine, log_of

SOON = 1.0
"""Seconds after the uevent of a disk in which its messages may still come: at most 0.02 s in 4,427 attachments."""
LEFT = 4.0
"""Seconds between the messages of a disk that goes and the reading of its uevent: at most 3.24 s, 1,897 times."""

_NEW = re.compile(r"^usb (\d+-[\d.]+): new (?:[\w-]+ )+USB device number (\d+)")
_GONE = re.compile(r"^usb (\d+-[\d.]+): USB disconnect, device number (\d+)")
_PROBED = re.compile(
    r"\] (?:Attached SCSI |Asking for cache data failed|Disabling FUA)|^scsi \S+: Direct-Access "
    r"|^usb \S+: (?:new (?:[\w-]+ )+USB device number|New USB device found)|: USB Mass Storage device detected"
)
_SHUT_DOWN = re.compile(r"\] (?:Synchronizing SCSI cache|Stopping disk)$")


@dataclass(frozen=True)
class UsbConnection:
    """The USB device at ``path`` got ``number`` at ``at`` and lost it at ``gone``, DUT seconds."""

    path: str
    number: str
    at: float
    gone: float | None


def arrivals_doubted(story: Story) -> Iterator[str]:
    """What the kernel log says of disks that came or went and nobody else, and what contradicts the switches."""
    for disk in dict.fromkeys(victim for cut in story.cut_records for victim in cut.armed.victims):
        yield from _flapped(story, disk)
    yield from _unrecorded(story)


def connections(story: Story) -> tuple[UsbConnection, ...]:
    """Every USB device that the kernel log says was connected, in order."""
    return story.once(_connections)


def _connections(story: Story) -> tuple[UsbConnection, ...]:
    lines = log_of(story).own_timed
    ends = [(line.at, found[1], found[2]) for line in lines if (found := _GONE.match(line.body))]
    made = []
    for line in lines:
        if found := _NEW.match(line.body):
            gone = (at for at, path, number in ends if (path, number) == (found[1], found[2]) and at >= line.at)
            made.append(UsbConnection(found[1], found[2], line.at, next(gone, None)))
    return tuple(made)


def connected_early(story: Story, disk: str) -> str:
    """A sentence if the kernel log says that a disk was connected before its port was switched on again; otherwise
    empty."""
    for cut in cuts_of(story, disk):
        times, on = cut.times(disk), cut.on.commanded_at
        if times.removed_at is None or times.returned_at is None or on is None:
            continue
        back = next((one for one in story.attachments(disk) if one.at == times.returned_at), None)
        path = place_of(back.sysfs).usb if back is not None else ""
        bounces = tuple(contacts(story, cut))
        for one in connections(story):
            early = (cut.off.commanded_at or 0.0) < one.at < on - cut.error - margin(story)
            stayed = one.gone is None or one.gone >= times.returned_at
            if one.path == path and early and stayed and not any(span.begin <= one.at for span in bounces):
                before = on - one.at
                return f"{disk} was connected {before:.2f} s before {cut.restored_point} was switched on again"
    return ""


def _flapped(story: Story, disk: str) -> Iterator[str]:
    """Disks that were connected and disconnected again before they were back."""
    for cut in cuts_of(story, disk):
        times, on = cut.times(disk), cut.on.commanded_at
        back = next((one for one in story.attachments(disk) if one.at == times.returned_at), None)
        if on is None or back is None or times.returned_at is None:
            continue
        path, bounces = place_of(back.sysfs).usb, tuple(contacts(story, cut))
        for one in connections(story):
            inside = one.path == path and on - cut.error <= one.at and (one.gone or cut.until) < times.returned_at
            if inside and not any(span.begin <= one.at for span in bounces):
                again = f"was connected at {one.at:.2f} s, disconnected again at {one.gone or 0.0:.2f} s"
                yield f"{disk} {again} and back at {times.returned_at:.2f} s: its contact or the disk is not stable"
                return


def _unrecorded(story: Story) -> Iterator[str]:
    """Disks of which only the kernel log says that they came or went."""
    expected, scope = explained_by_cuts(story)
    last = max((event.at or 0.0 for event in story.of(Healed) if event.ports), default=float("inf"))
    for line in log_of(story).own_timed:
        came, went = _PROBED.search(line.body), _SHUT_DOWN.search(line.body)
        if line.at > last or not (came or went):
            continue
        about = scope.about(line.names, line.at)
        if about.level is not Level.DISK or expected.message(about, "", line.at):
            continue
        for disk in about.disks:
            if not (_announced(story, disk, line) if came else _left(story, disk, line)):
                how = "came" if came else "was shut down"
                yield f"{disk} {how} at {line.at:.2f} s by the kernel log alone: {line.body}"
                return


def _announced(story: Story, disk: str, line: TimedLine) -> bool:
    return any(
        one.at is None or line.at - SOON <= one.at <= line.at + BEFORE
        for one in story.of(DiskAttached)
        if one.disk == disk
    )


def _left(story: Story, disk: str, line: TimedLine) -> bool:
    return any(one.at is None or abs(one.at - line.at) <= LEFT for one in story.of(DiskDetached) if one.disk == disk)
