"""Whether the kernel gave a disk another name than it had to, because it had not released the old one."""

from __future__ import annotations

from plugpull.checks.raid.arrays import held_by_array
from plugpull.history.events import Acted, DiskAttached, FileRoundBegun, LedgerBegun, LedgerEnded, LoadBegun
from plugpull.history.story import Story

PROBING = 5.0
"""Seconds between the assignment of a kernel name and the announcement of the disk."""
LET_GO = 0.5
"""Seconds after a disk's last user ended within which the kernel may still hold its name."""


def renamed(story: Story, was: DiskAttached, now: DiskAttached) -> bool:
    """Whether the kernel did not release the old name. sd takes the lowest free index (drivers/scsi/sd.c, sd_probe), so
    a later name is wrong if no other disk had the old one and no user held the disk."""
    at = now.at or 0.0
    if (len(now.kname), now.kname) <= (len(was.kname), was.kname) or story.disk_at(was.kname, at) is not None:
        return False
    # Disks are probed in parallel, get their names then, and are announced a little later.
    given = (one.at for one in story.all_attachments if one.kname == was.kname and one.at is not None)
    if any(at <= other <= at + PROBING for other in given):
        return False
    return not _held(story, was.disk, at)


def _held(story: Story, disk: str, at: float) -> bool:
    """Whether somebody may still have had the old disk open: a load, an array, or a filesystem on it."""
    if held_by_array(story, disk, at - LET_GO, at):
        return True
    for load in story.of(LoadBegun):
        if load.disk == disk and load.at is not None and load.at <= at:
            ended = story.load_end(load)
            if ended is None or ended.at is None or ended.at > at - LET_GO:
                return True
    steps = [event for event in story.of(Acted) if event.disk == disk and event.at is not None and event.at <= at]
    mounted = [event.action for event in steps if event.action in ("mount", "umount")]
    if not mounted and any(one.disk == disk and (one.at or 0.0) <= at for one in story.of(FileRoundBegun)):
        return True  # its mount is not on record
    return mounted[-1:] == ["mount"] or _stamped(story, disk, at)


def _stamped(story: Story, disk: str, at: float) -> bool:
    begins = [event.at for event in story.of(LedgerBegun) if event.disk == disk and (event.at or 0.0) <= at]
    ends = [event.at for event in story.of(LedgerEnded) if event.disk == disk and (event.at or 0.0) <= at - LET_GO]
    return len(begins) > len(ends)
