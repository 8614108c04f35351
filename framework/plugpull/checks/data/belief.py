"""The kernel's view of a disk: its write cache and its logical block size.

It is taken from the kernel's own messages, or from sysfs if they are not on record.

``sd`` prints both each time it attaches a disk (sd_read_capacity and sd_read_cache_type in drivers/scsi/sd.c)::

    sd 0:0:0:0: [sdb] 65536 512-byte logical blocks: (33.6 MB/32.0 MiB)
    sd 0:0:0:0: [sdb] Write cache: enabled, read cache: enabled, doesn't support DPO or FUA
    sd 0:0:0:0: [sdb] Assuming drive cache: write through
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from enum import StrEnum

from plugpull.history.events import DiskAttached, DiskProperties, KernelMessage
from plugpull.history.story import Story

_DISK = r"\[(?P<kname>sd[a-z]+)\] "
_BLOCKS = re.compile(_DISK + r"\d+ (?P<size>\d+)-byte logical blocks")
_ASSUMED = re.compile(_DISK + r"Assuming drive cache: write (?P<kind>through|back)")


class WriteCache(StrEnum):
    """``ASSUMED_THROUGH``: the disk did not report its cache, and the kernel assumed write-through. Then the kernel
    sends no flushes, and the disk has promised nothing."""

    BACK = "write-back"
    THROUGH = "write-through"
    ASSUMED_THROUGH = "assumed write-through"
    UNKNOWN = ""


@dataclass(frozen=True)
class Belief:
    """``fua``: the kernel sends FUA instead of a flush. ``logical_block`` is in bytes, 0 if not on record."""

    write_cache: WriteCache = WriteCache.UNKNOWN
    fua: bool = False
    logical_block: int = 0

    @property
    def flushes_are_sent(self) -> bool:
        """Whether a flush of an application reaches the disk, if known."""
        return self.write_cache not in (WriteCache.THROUGH, WriteCache.ASSUMED_THROUGH)


def belief_at(story: Story, disk: str, at: float) -> Belief:
    """The kernel's view of ``disk`` at ``at`` (DUT seconds), from the last messages before."""
    attachment = story.attachment_at(disk, at)
    if attachment is None:
        return Belief()
    cache, fua, block = WriteCache.UNKNOWN, False, 0
    for message in story.of(KernelMessage):
        if message.at is None or message.at > at or f"[{attachment.kname}]" not in message.text:
            continue
        if "Attached SCSI" in message.text and message.at < _begin(attachment.at) - 1.0:
            cache, fua, block = (
                WriteCache.UNKNOWN,
                False,
                0,
            )  # it is about another attachment with the same name
        if (said := _BLOCKS.search(message.text)) is not None:
            block = int(said["size"])
        elif (said := _ASSUMED.search(message.text)) is not None:
            cache = WriteCache.ASSUMED_THROUGH if said["kind"] == "through" else WriteCache.BACK
        elif "Write cache: " in message.text:
            cache = WriteCache.BACK if "Write cache: enabled" in message.text else WriteCache.THROUGH
            fua = "supports DPO and FUA" in message.text
    return _by_sysfs(story, attachment, Belief(cache, fua, block))


def _by_sysfs(story: Story, attachment: DiskAttached, said: Belief) -> Belief:
    """The properties from sysfs that the log does not have. sysfs does not show whether a write-through disk reported
    that itself."""
    for event in story.of(DiskProperties):
        if (event.kname, event.diskseq, event.moment) == (attachment.kname, attachment.diskseq, "attached"):
            if said.write_cache is WriteCache.UNKNOWN:
                known = {"write back": WriteCache.BACK, "write through": WriteCache.ASSUMED_THROUGH}
                cache = known.get(event.values.get("write_cache", ""), WriteCache.UNKNOWN)
                said = replace(said, write_cache=cache, fua=event.values.get("fua") == "1")
            block = event.values.get("logical_block_size", "")
            if not said.logical_block and block.isdecimal():
                said = replace(said, logical_block=int(block))
    return said


def _begin(at: float | None) -> float:
    return float("-inf") if at is None else at
