"""Whether a disk that came back got the lowest free kernel name and SCSI host number: what is free and not taken is
still held by something."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from plugpull.checks.accusation import Accusation
from plugpull.checks.limits import bench_kind
from plugpull.checks.raid.arrays import held_by_array
from plugpull.history.events import (
    Acted,
    DiskAttached,
    FileRoundBegun,
    LedgerBegun,
    LedgerEnded,
    LoadBegun,
    ProcessStuck,
    ReadBackBegun,
    ReadBackEnded,
)
from plugpull.history.story import Story

_HOST = re.compile(r"/host(\d+)/")
RETURNS = 5
"""The number of attachments below which rising host numbers may be accidental."""
HELD_ON = 1.0
"""An array must have ended at least so many seconds before the return of its member to have released its name ..."""
CLOSED = 0.15
"""... and any other user so many. Of 183 returns after a user had ended, some of them 0.17 s after it, none was under a
later name."""


def renamed(story: Story) -> Iterator[Accusation]:
    """Disks that came back with a later name although the old one was free. The kernel assigns the first free name, so
    something still holds the old one. Only for emulated DUTs: on others any program may have the old disk open."""
    if bench_kind(story) != "virtual":
        return
    for disk in dict.fromkeys(event.disk for event in story.all_attachments if event.disk):
        for was, now in pairwise(story.attachments(disk)):
            gone = story.detached_at(was)
            if gone is None or now.at is None or not _later(was.kname, now.kname):
                continue
            if not _taken(story, was, gone) and not _in_use(story, disk, gone, now.at):
                yield Accusation(
                    subject=disk,
                    summary=f"{disk} came back as {now.kname} though nothing held {was.kname} any more",
                    at=now.at,
                    evidence=(f"{was.kname} was taken off the kernel's list at {gone:.2f} s",),
                )


def numbers_rise(story: Story) -> Iterator[Accusation]:
    """Disks that got a higher SCSI host number with every return, although nothing else took the lower ones. Hosts get
    the lowest free number (drivers/scsi/hosts.c, scsi_host_alloc), so each removal left a host behind."""
    if bench_kind(story) != "virtual":
        return
    for disk in dict.fromkeys(event.disk for event in story.all_attachments if event.disk):
        hosts = [int(found[1]) for one in story.attachments(disk) if (found := _HOST.search(one.sysfs))]
        if len(hosts) >= RETURNS and all(two > one for one, two in pairwise(hosts)):
            others = {one.disk for one in story.all_attachments if one.disk != disk}
            if all(len(story.attachments(other)) < len(hosts) for other in others):
                yield Accusation(
                    subject=disk,
                    summary=f"{disk} got a higher SCSI host number with each of {len(hosts) - 1} returns",
                    at=story.attachments(disk)[-1].at,
                    evidence=(f"hosts {', '.join(map(str, hosts))}",),
                )


def _later(was: str, now: str) -> bool:
    return (len(was), was) < (len(now), now)


def _taken(story: Story, was: DiskAttached, gone: float) -> bool:
    """Whether another disk got the name, possibly well before it was announced."""
    return any(
        one.kname == was.kname and one.disk != was.disk and (one.at or 0.0) >= gone for one in story.all_attachments
    )


def _in_use(story: Story, disk: str, gone: float, back: float) -> bool:
    """Whether a process or an array of the run still had the disk open shortly before it came back."""
    if any(event.disk == disk for event in story.of(ProcessStuck)) or held_by_array(story, disk, back - HELD_ON, back):
        return True
    for load in story.of(LoadBegun):
        end = story.load_end(load)
        if load.disk == disk and (load.at or 0.0) < back and _late(end.at if end else None, gone, back):
            return True
    uses: list[LedgerBegun | ReadBackBegun] = [*story.of(LedgerBegun), *story.of(ReadBackBegun)]
    for begun in uses:
        ends = [event.at for event in _ends_of(story, begun)]
        if begun.disk == disk and (begun.at or 0.0) < back and _late(ends[0] if ends else None, gone, back):
            return True
    mounted = [event for event in story.of(Acted) if event.disk == disk and event.ok and (event.at or 0.0) < back]
    mounts = [event for event in mounted if event.action in ("mount", "umount")]
    if not mounts and any(one.disk == disk and (one.at or 0.0) < back for one in story.of(FileRoundBegun)):
        return True  # its mount is not on record
    return bool(mounts) and (mounts[-1].action == "mount" or _late(mounts[-1].at, gone, back))


def _ends_of(story: Story, begun: LedgerBegun | ReadBackBegun) -> list[LedgerEnded | ReadBackEnded]:
    if isinstance(begun, LedgerBegun):
        return [event for event in story.of(LedgerEnded) if (event.disk, event.job) == (begun.disk, begun.job)]
    return [event for event in story.of(ReadBackEnded) if (event.disk, event.job) == (begun.disk, begun.job)]


def _late(ended_at: float | None, gone: float, back: float) -> bool:
    return ended_at is None or (ended_at > gone and ended_at > back - CLOSED)
