"""What the kernel reports of a disk while it comes back: its cut explains errors of what left, not of what came.

An emulated plug has no contacts that bounce and no disk that spins up: in 28 recorded runs and in those of the stock
scenarios no error was logged between the new connection and the disk. On real benches both are usual, and nothing is
judged.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from plugpull.checks.accusation import Accusation
from plugpull.checks.contact import contacts
from plugpull.checks.dut.kernel_reports import by_the_host
from plugpull.checks.limits import bench_kind
from plugpull.history.cut import Cut
from plugpull.history.events import DiskAttached
from plugpull.history.story import Story
from plugpull.kernel.catalogue.uncatalogued import ERROR, harmless
from plugpull.kernel.diagnosis.expected import SETTLING, margin, usual
from plugpull.kernel.diagnosis.scope import place_of
from plugpull.kernel.diagnosis.story_log import TimedLine, log_of

KINDS = frozenset(
    {
        "block.error",
        "scsi.error",
        "scsi.offline",
        "scsi.reset",
        "uas.error",
        "usb.enumeration-error",
        "usb.link-error",
        "usb.overcurrent",
        "usb.reset",
    }
)
"""Kinds of messages about a connection, a device on it or its disk. Filesystems and arrays log errors of the disk that
left for long."""
SHOWN = 5
"""Kernel lines given as evidence at most."""
_CHANGED = re.compile(r"\bdetected capacity change\b")
"""A property, which ``log_properties.py`` judges."""
_NUMBERS = re.compile(r"[\da-f]*\d[\da-f]*")
_NEW = re.compile(r"^usb (\d+-[\d.]+): new (?:[\w-]+ )+USB device number ")


def came_in_trouble(story: Story, cut: Cut, now: DiskAttached) -> Iterator[Accusation | str]:
    """An accusation if the kernel logged errors of the new connection of a disk or of its probing. A doubt for each
    that the DUT's host explains, and for each uncatalogued error that was not logged when the disk first came."""
    found: list[TimedLine] = []
    for line in _lines(story, cut, now) if bench_kind(story) == "virtual" else ():
        if line.event is None:
            if line.level <= ERROR and not harmless(line.body) and _alike(line) not in story.once(_before_any_cut):
                yield f"the kernel logged an uncatalogued error as {now.disk} came back: {line.text}"
        elif line.event.kind in KINDS and not usual(line.body) and not _CHANGED.search(line.body):
            doubt = by_the_host(story, line.at, line.body, line.event.kind)
            if doubt:
                yield doubt
            else:
                found.append(line)
    if found:
        more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
        yield Accusation(
            subject=now.disk,
            summary=f"{now.disk} came back with errors: {found[0].text}{more}",
            at=found[0].at,
            evidence=tuple(line.text for line in found[:SHOWN]),
            kind=found[0].event.kind if found[0].event else "",
        )


def _lines(story: Story, cut: Cut, now: DiskAttached) -> Iterator[TimedLine]:
    """What was logged of the new device, from the moment its port was restored until the disk is up: of the port when
    the old device was gone, of the disk when the new one was connected."""
    place, on, left = place_of(now.sysfs), cut.on.commanded_at, cut.times(now.disk).removed_at
    if not place.usb or on is None or left is None or now.at is None or any(True for _ in contacts(story, cut)):
        return
    begin = max(on - cut.error - margin(story), left)
    end = min(now.at + SETTLING, cut.until - cut.error - margin(story))
    connected = False
    for line in log_of(story).own_between(begin, end):
        new = _NEW.match(line.body)
        connected = connected or (new is not None and new[1] == place.usb)
        names = line.names
        if place.usb in names.usb or (connected and (place.address in names.addresses or now.kname in names.blocks)):
            yield line


def _before_any_cut(story: Story) -> frozenset[str]:
    """What the kernel logged before the first cut was made, without its numbers."""
    first = min((cut.off.commanded_at for cut in story.cut_records if cut.off.commanded_at is not None), default=0.0)
    return frozenset(_alike(line) for line in log_of(story).timed if line.at < first)


def _alike(line: TimedLine) -> str:
    return _NUMBERS.sub("#", line.body)
