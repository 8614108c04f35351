"""Whether each disk came and went with everything that an emulated DUT's kernel announces and logs about it.

A disk is the last of a row of devices: its USB device, the interface, the SCSI host, the target and the SCSI device, or
the last two on a SCSI bus. Each of them is announced and removed, and each that has a driver is bound to it and unbound
(drivers/base/core.c, device_add; drivers/base/dd.c, driver_bound): of 1,850 attachments and 512 removals on healthy
benches none lacked a uevent. The disk driver logs its size and "Attached" for each attachment, and "Synchronizing SCSI
cache" for each removal of a disk with a write cache (drivers/scsi/sd.c): it did for 386 of 386 returns and 563 of 563
removals.

If the record has one of them for one disk, it must have it for all.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from math import inf

from plugpull.checks.limits import bench_kind
from plugpull.checks.starved import awake
from plugpull.history.events import (
    AgentLost,
    DiskAttached,
    DiskDetached,
    DiskProperties,
    DutDied,
    KernelMessage,
    Uevent,
)
from plugpull.history.story import NOT_THE_AGENT, Story

STAYED = 2.0
"""Seconds that a disk must stay for all that comes with it to be due."""
LATER = 4.0
"""Seconds after the removal of a disk within which the rest of its devices are gone: 1.1 s at most."""
BEFORE = 4.0
"""Seconds between the messages of a disk and the reading of its uevent: 3.24 s at most."""
SOON = 1.0
"""Seconds after that uevent in which such messages may still come: 0.02 s at most."""
_KINDS = {
    "USB device": re.compile(r"\d+-\d+(?:\.\d+)*$"),
    "USB interface": re.compile(r"\d+-[\d.]+:\d+\.\d+$"),
    "SCSI host": re.compile(r"host\d+$"),
    "SCSI target": re.compile(r"target\d+:\d+:\d+$"),
    "SCSI device": re.compile(r"\d+:\d+:\d+:\d+$"),
}
_DRIVEN = ("USB device", "USB interface", "SCSI device")
"""Those that have a driver."""
_ALWAYS = {"add": tuple(_KINDS), "bind": _DRIVEN, "remove": tuple(_KINDS), "unbind": _DRIVEN}
"""What is announced of which kinds of devices."""
_CAME = {"add": "add", "bind": "bind", "remove": "add", "unbind": "bind"}
"""What a kernel announces that announces these, too."""
_COMES = {
    "its size": re.compile(r"^sd \S+ \[(\w+)\] \d+ \d+-byte logical blocks"),
    '"Attached"': re.compile(r"^sd \S+ \[(\w+)\] Attached SCSI "),
}
_GOES = re.compile(r"^sd \S+ \[(\w+)\] Synchronizing SCSI cache$")
_CACHED = "write back"


def companions_missing(story: Story) -> Iterator[str]:
    """What is missing of a disk that came or went, a clause each. Other checks report an agent that was lost."""
    if bool(story.of(AgentLost)) or bool(story.of(DutDied)) or len(story.readies) != 1:
        return
    if bench_kind(story) == "virtual":
        yield from _unannounced(story)
        yield from _not_logged(story)
        yield from _not_flushed(story)


def _unannounced(story: Story) -> Iterator[str]:
    """Devices of a disk of which the record lacks a uevent that it has of others of their kind and bus."""
    times: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
    for event in story.of(Uevent):
        if event.at is not None and event.action in _ALWAYS:
            times[event.action, event.devpath].append(event.at)
    rows = {id(stay): list(_row(stay)) for stay in _stays(story)}
    known = {
        (stay.driver, action, kind)
        for stay in _stays(story)
        for action, came in _CAME.items()
        for kind, path in rows[id(stay)]
        if kind in _ALWAYS[action] and (came, path) in times
    }
    for stay in _stays(story):
        for action, (begin, end) in _due(story, stay).items():
            for kind, path in rows[id(stay)]:
                seen = any(begin <= at <= end for at in times.get((action, path), ()))
                if not seen and (stay.driver, action, kind) in known and kind in _ALWAYS[action]:
                    name = path.rpartition("/")[2]
                    yield f"there is no uevent '{action}' of the {kind} {name} of {stay.disk}"
                    return


def _due(story: Story, stay: DiskAttached) -> dict[str, tuple[float, float]]:
    """The times in which the uevents of a disk's devices must come, by action."""
    at, gone = stay.at or 0.0, story.detached_at(stay)
    own = [one for one in _stays(story) if one.disk == stay.disk]
    before = [left for one in own if one is not stay and (left := story.detached_at(one)) is not None and left <= at]
    after = min((one.at or inf for one in own if (one.at or 0.0) > (at if gone is None else gone)), default=inf)
    spans = {}
    if any(event.at is not None and event.at < at - BEFORE for event in story.of(Uevent)) and _stayed(story, stay):
        spans = dict.fromkeys(
            ("add", "bind"), (max(before, default=-inf) - BEFORE, at + LATER if gone is None else gone)
        )
    if gone is not None and (after < inf or awake(story, gone, story.heard_until or gone) > LATER):
        spans |= dict.fromkeys(("remove", "unbind"), (gone - BEFORE, after))
    return spans


def _row(stay: DiskAttached) -> Iterator[tuple[str, str]]:
    """(kind, path) of the devices that come and go with a disk, the highest first: from its USB device, or its SCSI
    target if it has none."""
    names = stay.sysfs.removeprefix("/sys").partition("/block/")[0].split("/")
    row = [
        (kind, "/".join(names[: number + 1]))
        for number, name in enumerate(names)
        for kind, named in _KINDS.items()
        if named.match(name)
    ]
    usb = [number for number, (kind, _) in enumerate(row) if kind == "USB device"]
    targets = [number for number, (kind, _) in enumerate(row) if kind == "SCSI target"]
    first = usb[-1] if usb else next(iter(targets), len(row))
    return iter(row[first:])


def _not_logged(story: Story) -> Iterator[str]:
    """Disks that came back without what the disk driver says of each disk."""
    lines = _said(story)
    for what, pattern in _COMES.items():
        said = [(at, found[1]) for at, text in lines if (found := pattern.match(text))]
        for stay in _stays(story):
            at, gone = stay.at or 0.0, story.detached_at(stay) or inf
            before = _left_before(story, stay)
            if before is None or not said or not _stayed(story, stay):
                continue
            if not any(name == stay.kname and before - BEFORE <= one <= gone for one, name in said):
                yield f"{stay.disk} was announced at {at:.2f} s, and the kernel log does not say {what}"
                return


def _not_flushed(story: Story) -> Iterator[str]:
    """Disks with a write cache that left without what the disk driver says when it flushes it."""
    lines, until = _said(story), story.heard_until or 0.0
    said = [(at, found[1]) for at, text in lines if (found := _GOES.match(text))]
    caches = {(read.kname, read.diskseq): read.values.get("write_cache") for read in story.of(DiskProperties)}
    for gone in story.of(DiskDetached) if lines else ():
        if gone.at is None or not gone.disk or gone.at + SOON > until:
            continue
        flushed = any(name == gone.kname and gone.at - BEFORE <= at <= gone.at + SOON for at, name in said)
        if caches.get((gone.kname, gone.diskseq)) == _CACHED and not flushed:
            yield f"{gone.disk} left at {gone.at:.2f} s, and the kernel log does not say that its cache was flushed"
            return


def _said(story: Story) -> list[tuple[float, str]]:
    """The kernel's own messages, with their times."""
    return [
        (event.at, event.text)
        for event in story.of(KernelMessage)
        if event.at is not None and event.facility == 0 and event.source not in NOT_THE_AGENT
    ]


def _stays(story: Story) -> Iterable[DiskAttached]:
    return [one for one in story.all_attachments if one.disk and one.diskseq and one.at is not None and one.sysfs]


def _left_before(story: Story, stay: DiskAttached) -> float | None:
    """When the disk's attachment before this one ended; ``None`` if there is none."""
    gone = [story.detached_at(one) for one in story.attachments(stay.disk) if (one.at or 0.0) < (stay.at or 0.0)]
    left = [at for at in gone if at is not None and at <= (stay.at or 0.0)]
    return max(left, default=None)


def _stayed(story: Story, stay: DiskAttached) -> bool:
    end = story.detached_at(stay) or story.heard_until or 0.0
    return awake(story, stay.at or 0.0, end) > STAYED
