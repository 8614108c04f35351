"""Whether the kernel had each disk empty its write cache before the machine slept, when its power may go."""

from __future__ import annotations

from collections.abc import Iterator

from plugpull.checks.base import Check, Judgement
from plugpull.checks.collector import Collector
from plugpull.checks.data.belief import WriteCache, belief_at
from plugpull.checks.evidence import cuts_of
from plugpull.history.events import DutSuspended
from plugpull.history.story import Story


class FlushedForSleep(Check, frozen=True, tag="flushed_for_sleep"):
    """Every disk with a write cache was flushed when the machine was suspended (drivers/scsi/sd.c,
    ``sd_suspend_common``), by the disk's own count. Only emulated disks with a cache count; one that was cut meanwhile
    may have been gone before its turn came."""

    def judge(self, story: Story) -> Judgement:
        said, flushed = Collector(self), 0
        for slept in (event for event in story.of(DutSuspended) if event.ok):
            for disk, many in slept.flushes.items():
                cache = belief_at(story, disk, slept.at or 0.0).write_cache
                if cache is not WriteCache.BACK or _was_cut(story, disk, slept):
                    continue
                flushed += many > 0
                if not many:
                    what = f"{disk} has a write cache, and was not flushed before the machine slept"
                    said.accuse(disk, what, slept.at)
            said.doubt(*_uncounted(story, slept))
        return said.judgement(f"{flushed} flushed before the machine slept" if flushed and said.clean else "")


def _uncounted(story: Story, slept: DutSuspended) -> Iterator[str]:
    """Emulated disks with a cache of which the record does not say how often they were flushed, though it does so of
    others. Earlier versions counted none."""
    for table in story.rig.get("disk", ()) if slept.flushes else ():
        disk = str(table.get("name"))
        if table.get("cache") and disk not in slept.flushes and story.attachment_at(disk, slept.at or 0.0) is not None:
            yield f"how often {disk} was flushed before the machine slept is not on record"


def _was_cut(story: Story, disk: str, slept: DutSuspended) -> bool:
    """Whether the disk was cut before the machine was awake again, and not back before it slept."""
    offs = ((cut.off.commanded_at, cut.on.commanded_at) for cut in cuts_of(story, disk))
    return any(off is None or (off <= slept.until and (on is None or on >= (slept.at or 0.0))) for off, on in offs)
