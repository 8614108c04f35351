"""Whether each disk of the rig is as the rig file declares it, and attached only once."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Any

from plugpull.checks.accusation import Accusation
from plugpull.checks.base import Check, Judgement
from plugpull.checks.collector import Collector
from plugpull.checks.evidence import cuts_of
from plugpull.checks.limits import bench_kind
from plugpull.checks.record.on_record import missing_uevents
from plugpull.checks.victims.properties import UNBOUND
from plugpull.checks.victims.reconnected import asked_first
from plugpull.history.cut import Cut
from plugpull.history.events import DiskAttached, DiskProperties
from plugpull.history.reader import Story

EMULATED = {"scsi": "virtio_scsi"}
"""The driver of an emulated disk whose protocol does not name it."""
LONGEST_TIMEOUT = 60
"""Seconds. The default of the disk driver is 30 (SD_TIMEOUT in drivers/scsi/sd.h); 227 of 227 records have it."""
TOGETHER = 1.0
"""Seconds by which two attachments of one disk must overlap to count as two. Uevents are read a little late."""


class AsDeclared(Check, frozen=True, tag="as_declared"):
    """Each disk of the rig is first announced with the size in the rig file, and is never attached twice.

    An emulated disk has the driver of its protocol and the cache mode of its firmware. ``returned`` judges the
    properties of a disk after a cut.
    """

    def judge(self, story: Story) -> Judgement:
        said = Collector(self)
        said.take(*_sizes(story), *_twice(story), *_driven(story), *_timeouts(story))
        return said.judgement()


def as_declared() -> AsDeclared:
    """Each disk must be what the rig file declares."""
    return AsDeclared()


def _sizes(story: Story) -> Iterator[Accusation]:
    for disk in story.rig.get("disk", ()):
        name, size = str(disk.get("name")), disk.get("size")
        first = next(iter(story.attachments(name)), None)
        if first is not None and isinstance(size, int) and size > 0 and first.size != size:
            what = f"{name} was announced with {first.size} bytes, and the rig file says {size}"
            yield _accusation(name, what, first)


def _driven(story: Story) -> Iterator[Accusation]:
    """How the kernel drives an emulated disk. A disk with a defect may be driven otherwise."""
    if bench_kind(story) != "virtual":
        return
    faulty = {str(defect.get("disk", "")) for defect in story.rig.get("defect", ())}
    for disk in story.rig.get("disk", ()):
        name = str(disk.get("name"))
        seen = next((event for event in story.of(DiskProperties) if event.disk == name), None)
        if seen is None or name in faulty:
            continue
        for what, due in _due(disk).items():
            got = seen.values.get(what, due)
            if got != due and not (what == "driver" and got == UNBOUND):
                declared = f"but the rig file declares {_worded(what, due)}"
                summary = f"the kernel drives {name} as {_worded(what, got)}, {declared}"
                evidence = (f"{seen.at or 0:.2f} s: {seen.kname} {what} {got}",)
                yield Accusation(subject=name, summary=summary, at=seen.at, evidence=evidence)


def _timeouts(story: Story) -> Iterator[Accusation]:
    """Commands that the kernel would never abort: without a timeout, or with a very long one. The owner of a real DUT
    may choose such timeouts."""
    seen = (event for event in story.of(DiskProperties) if event.moment == "attached")
    for event in seen if bench_kind(story) == "virtual" else ():
        timeout = event.values.get("timeout", "")
        if timeout.isdecimal() and not 0 < int(timeout) <= LONGEST_TIMEOUT:
            what = f"the command timeout of {event.disk} is {timeout} s (1 to {LONGEST_TIMEOUT} s expected)"
            yield Accusation(subject=event.disk, summary=what, at=event.at)


def _due(disk: dict[str, Any]) -> dict[str, str]:
    """The properties that the rig file declares for an emulated disk."""
    through, fua, protocol = disk.get("write_through"), disk.get("fua"), disk.get("protocol")
    due = {"write_cache": "write through" if through else "write back"} if through is not None else {}
    due |= {"fua": "1" if fua else "0"} if fua is not None else {}
    return due | ({"driver": EMULATED.get(str(protocol), str(protocol))} if protocol else {})


def _worded(what: str, value: str) -> str:
    if what == "write_cache":
        return f"a disk that is {value}"
    if what == "fua":
        return "a disk with FUA" if value == "1" else "a disk without FUA"
    return f"a disk of {value}"


def _twice(story: Story) -> Iterator[Accusation | str]:
    """Disks that were announced again before they had left. Where uevents are missing, they may have left."""
    names = dict.fromkeys(one.disk for one in story.all_attachments if one.disk)
    for name in names:
        for one, two in combinations(story.attachments(name), 2):
            gone = story.detached_at(one)
            patience = max((asked_first(story, cut, name) for cut in _before(story, name, two)), default=0.0)
            both = gone is None or gone > (two.at or 0.0) + TOGETHER + patience
            if both and one.kname != two.kname:
                what = f"{name} is attached twice, as {one.kname} and {two.kname}"
                yield what if missing_uevents(story) else _accusation(name, what, two)


def _before(story: Story, disk: str, attached: DiskAttached) -> list[Cut]:
    """The last cut of ``disk`` before it was announced."""
    cuts = [cut for cut in cuts_of(story, disk) if (cut.off.commanded_at or 0.0) <= (attached.at or 0.0)]
    return cuts[-1:]


def _accusation(disk: str, summary: str, found: DiskAttached) -> Accusation:
    evidence = f"{found.kname}: serial {found.serial}, {found.size} bytes, at {found.place}"
    return Accusation(subject=disk, summary=summary, at=found.at, evidence=(evidence,))
