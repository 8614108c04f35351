"""Whether an emulated disk itself was written and read as much as the kernel counted.

If one disk lacks as many bytes as another has too many, writes went to another disk than the kernel meant. Any other
difference is a contradiction of the record.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from plugpull.checks.accusation import Accusation
from plugpull.checks.evidence import cuts_of
from plugpull.checks.stalls import stalls_of
from plugpull.history.events import CountedOutside, DiskAttached, Healed, LoadBegun
from plugpull.history.readings import Reading
from plugpull.history.story import Story

REPEATED = 16 << 10
"""Bytes that a repeated transfer adds at most."""
LITTLE = 2 * REPEATED
"""Bytes by which the two counts may differ, apart from those of a disk that the kernel never wrote to. In 1,454 of
1,458 comparisons on healthy benches they were equal; after errors of transfers, which the kernel repeats, they differed
by up to 16 KiB."""
PROBED = 256 << 10
"""Bytes by which the two counts of what was read may differ: 64 KiB at most in 1,388 comparisons on healthy benches. A
disk is read while it is probed, before its counters begin."""
SENT_AGAIN = 8 << 20
"""Bytes that reach a disk twice at most when it stood still and its kernel reset it: a full queue of commands, which
the disk executes late and the kernel counts once."""


@dataclass(frozen=True)
class _Counts:
    """What a disk itself counted as written (``said``), and the kernel in the two samples around that time."""

    disk: str
    at: float
    said: int
    least: int
    most: int

    @property
    def nearest(self) -> int:
        return min((self.least, self.most), key=lambda one: abs(self.said - one))

    @property
    def surplus(self) -> int:
        """Bytes that reached the disk and that the kernel did not count for it; negative if it lacks some."""
        return self.said - max(self.least, min(self.said, self.most))

    @property
    def doubtful(self) -> bool:
        return abs(self.surplus) > (LITTLE if self.most else 0)


def counted_otherwise(story: Story) -> Iterator[str]:
    """Disks whose emulation counted other bytes written than their kernel, a sentence each: writes that the kernel
    completed and that did not arrive, or the other way round."""
    exchanged = {one.disk for group in _exchange(story) for one in group}
    for one in _counts(story):
        if one.doubtful and one.disk not in exchanged:
            yield f"the emulated {one.disk} was written {one.said} bytes, and the kernel counted {one.nearest}"


def read_otherwise(story: Story) -> Iterator[str]:
    """Disks whose emulation counted other bytes read than their kernel, a sentence each."""
    for outside, stay in _comparable(story):
        counted = _counted(story, stay, outside.at or 0.0, lambda reading: reading.read)
        if counted is None:
            continue
        least, most = counted
        most += SENT_AGAIN * len(stalls_of(story, outside.disk))
        nearest = max(least, min(outside.read_bytes, most))
        if abs(outside.read_bytes - nearest) > PROBED:
            what = f"the emulated {outside.disk} was read {outside.read_bytes} bytes"
            yield f"{what}, and the kernel counted {nearest}"


def written_elsewhere(story: Story) -> Iterator[Accusation]:
    """An accusation for each disk that lacks bytes which other disks have too many."""
    lacking, having = _exchange(story)
    names = ", ".join(one.disk for one in having)
    for one in lacking:
        what = f"{-one.surplus} bytes that the kernel had written to {one.disk} are not there, and {names} had"
        what = f"{what} {sum(other.surplus for other in having)} bytes too many: writes went to another disk"
        evidence = tuple(
            f"{each.disk} itself was written {each.said} bytes, and the kernel counted {each.nearest}"
            for each in (one, *having)
        )
        yield Accusation(subject=one.disk, summary=what, at=one.at, evidence=evidence)


def _exchange(story: Story) -> tuple[tuple[_Counts, ...], tuple[_Counts, ...]]:
    """The disks that lack bytes, and those that have as many too many; none if the sums differ. Counts that were
    entered for the wrong disk are a contradiction of the record."""
    counts = tuple(_counts(story))
    lacking = tuple(one for one in counts if one.surplus < -2 * REPEATED)
    having = tuple(one for one in counts if one.surplus > 2 * REPEATED)
    swapped = bool(lacking) and sorted(one.said for one in counts) == sorted(one.nearest for one in counts)
    if swapped or not lacking or not having or abs(sum(one.surplus for one in (*lacking, *having))) > REPEATED:
        return (), ()
    return lacking, having


def _counts(story: Story) -> Iterator[_Counts]:
    """Both counts of each disk that can be compared. A disk that was plugged in again unnoticed begins to count
    again."""
    for outside, stay in _comparable(story):
        counted = _counted(story, stay, outside.at or 0.0, lambda reading: reading.written)
        if counted:
            least, most = counted
            most += SENT_AGAIN * len(stalls_of(story, outside.disk))
            yield _Counts(outside.disk, outside.at or 0.0, outside.written_bytes, least, most)


def _comparable(story: Story) -> Iterator[tuple[CountedOutside, DiskAttached]]:
    """The counts that can be compared with the kernel's, each with the attachment that it is of."""
    for outside in story.of(CountedOutside):
        stays = story.attachments(outside.disk)
        if outside.at is None or not stays or any(not _over(story, load, outside.at) for load in story.of(LoadBegun)):
            continue
        since = stays[-1].at or 0.0
        offs = [cut.off.commanded_at for cut in cuts_of(story, outside.disk)]
        if not any(at is None or at >= since for at in offs):
            yield outside, stays[-1]


def _counted(story: Story, stay: DiskAttached, at: float, count: Callable[[Reading], int]) -> tuple[int, int] | None:
    """What the kernel had counted in the last sample before ``at`` and in the first one after it, which may be more:
    an unmount writes in no time. ``None`` without a sample before it."""
    readings = story.readings(stay.disk)
    begun = len(readings.before(at))
    least = next((count(one) for one in reversed(readings[:begun]) if one.diskseq == stay.diskseq), None)
    later = next((count(one) for one in readings[begun:] if one.diskseq == stay.diskseq), least)
    return None if least is None or later is None else (least, later)


def not_counted(story: Story) -> Iterator[str]:
    """Disks that were plugged in when the bench read the counts of emulated disks, and whose count is not on record:
    those that the kernel saw, and those that were cut for good and had just been restored."""
    restored = {
        disk
        for healed in story.of(Healed)
        for cut in story.cut_records
        for disk in (cut.armed.victims if healed.ok and cut.armed.permanent else ())
    }
    counts = [outside for outside in story.of(CountedOutside) if outside.at is not None]
    for disk in story.rig.get("disk", ()) if counts else ():
        stays = story.attachments(str(disk["name"]))
        there = stays and (stays[-1].at or 0.0) < (counts[0].at or 0.0) and story.detached_at(stays[-1]) is None
        if (there or disk["name"] in restored) and all(outside.disk != disk["name"] for outside in counts):
            yield f"what the emulated {disk['name']} itself counted is not on record"


def _over(story: Story, load: LoadBegun, at: float) -> bool:
    ended = story.load_end(load)
    return ended is not None and ended.at is not None and ended.at <= at
