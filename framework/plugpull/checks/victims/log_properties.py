"""Properties of a disk that the kernel logs as it learns them, and that must not change: size, protection, cache.

The disk driver logs them at info or notice level when a disk comes up, and again only after a change
(sd_print_capacity, sd_read_write_protect_flag, sd_read_cache_type in drivers/scsi/sd.c; set_capacity_and_notify in
block/genhd.c). A disk that is being removed or has not spun up cannot report its size and is logged with 0 blocks. One
that is cut before it was asked for its cache is assumed to have none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from plugpull.checks.accusation import Accusation
from plugpull.checks.record.study_record import switched
from plugpull.history.events import DriveCacheSwitched, FioRan
from plugpull.history.story import Story
from plugpull.kernel.catalogue.device_names import Names
from plugpull.kernel.diagnosis.expected import Expected
from plugpull.kernel.diagnosis.scope import COMING, Level, Scope
from plugpull.kernel.diagnosis.story_log import TimedLine, log_of

_PROTECTED = re.compile(r"\] Write Protect is (on|off)$")
_CACHE = re.compile(r"\] Write cache: (enabled|disabled)|\] (?:Assuming drive cache|Cache): write (back|through)")
_ASSUMED = re.compile(r"\] Assuming drive cache: write through$")
_CAPACITY = re.compile(r"^\w+: detected capacity change from (?=0 |\d+ to 0$)(\d+) to (\d+)$")
"""Changes from one size to another are errors, which are in the catalogue."""
_SIZE = re.compile(r"\] (\d+) (\d+)-byte (?:logical blocks: |hardware sectors)")

ASKED = 0.5
"""Seconds around a request to switch a cache in which the kernel reports the change: the request is timed on another
machine."""

_WORDS = {
    "enabled": "a write cache",
    "back": "a write cache",
    "disabled": "no write cache",
    "through": "no write cache",
}


def changes(story: Story, expected: Expected, scope: Scope) -> Iterator[Accusation]:
    """An accusation for each property of a disk of the rig that changed without a cut that explains it."""
    known: dict[tuple[str, str], str] = {}
    for message in log_of(story).own_timed:
        learnt = _reported_property(message.body)
        if learnt is None:
            continue
        about = scope.about(message.names, message.at)
        if about.level is not Level.DISK:
            continue
        what, value = learnt
        cut = expected.message(about, "", message.at)
        up = all(expected.coming_up(stay, message.at) for stay in about.stays)
        if what == "capacity":
            if not cut and not (up and value.startswith("from 0 ")):
                yield from (
                    _accusation(disk, f"the capacity of {disk} changed {value}", message) for disk in about.disks
                )
            continue
        if what == "size" and value.startswith("0 ") and (cut or up):
            continue
        disks = _sized(scope, message.names, message.at, about.disks) if what == "size" else about.disks
        for disk in disks:
            before = known.setdefault((disk, what), value)
            if before != value and _ASSUMED.search(message.body) and _off(story, disk, message.at):
                continue
            if before != value and not (what == "cache" and _asked(story, disk, value, message.at)):
                yield _accusation(disk, f"{disk} had {before} and has {value} since {message.at:.2f} s", message)
            known[disk, what] = value


def _asked(story: Story, disk: str, value: str, at: float) -> bool:
    """Whether the study of caches switched the cache of this disk just then, in this direction; or at times that are
    not on record."""
    if not switched(story, disk) and any(ran.drive_cache is False and disk in ran.disks for ran in story.of(FioRan)):
        return True
    return any(
        one.disk == disk
        and value == _WORDS["enabled" if one.on else "disabled"]
        and one.at is not None
        and one.at - ASKED <= at <= one.until + ASKED
        for one in story.of(DriveCacheSwitched)
    )


def _off(story: Story, disk: str, at: float) -> bool:
    return any(cut.off_at(at) for cut in story.cut_records if disk in cut.armed.victims)


def _sized(scope: Scope, names: Names, at: float, live: tuple[str, ...]) -> tuple[str, ...]:
    """The disks whose size a message reports. If no disk has the name yet, it is the next one to get it."""
    mine = [stay for stay in scope.stays if stay.kname in names.blocks]
    if any(stay.begin <= at < stay.end for stay in mine):
        return live
    coming = [stay for stay in mine if at < stay.begin <= at + COMING]
    coming = [stay for stay in coming if not stay.place.address or stay.place.address in names.addresses]
    return tuple(stay.disk for stay in sorted(coming, key=lambda stay: stay.begin)[:1] if stay.disk)


def _reported_property(body: str) -> tuple[str, str] | None:
    """The name of the property, and its value in words."""
    if found := _PROTECTED.search(body):
        return "protection", "write protection" if found.group(1) == "on" else "no write protection"
    if found := _CACHE.search(body):
        return "cache", _WORDS[found.group(1) or found.group(2)]
    if found := _CAPACITY.match(body):
        return "capacity", f"from {found.group(1)} to {found.group(2)} sectors"
    if found := _SIZE.search(body):
        return "size", f"{found.group(1)} blocks of {found.group(2)} bytes"
    return None


def _accusation(disk: str, summary: str, message: TimedLine) -> Accusation:
    return Accusation(subject=disk, summary=summary, at=message.at, evidence=(message.text,))
