"""The slowest request of a load, as the load itself reports it: one request can hang while others are completed."""

from __future__ import annotations

from collections.abc import Iterator

from plugpull.checks.accusation import Accusation
from plugpull.checks.data.opinions import every_round
from plugpull.checks.evidence import cuts_of
from plugpull.checks.evidence import limit as limit_words
from plugpull.checks.record.watched import recorded
from plugpull.checks.stalls import stalls_of_device, stood_still
from plugpull.checks.starved import granted
from plugpull.checks.survivors.survivor import LONGEST
from plugpull.history.events import DiskRecovered, Judged, LoadBegun, LoadEnded
from plugpull.history.story import Story


def slow_requests(story: Story, limit: float) -> Iterator[Accusation | str]:
    """Disks that no cut concerns and that held a request up for longer than ``limit`` and than ``LONGEST`` seconds; and
    loads of which that is not on record. ``kept_pace`` judges those that it is asked about."""
    most = max(limit, LONGEST)
    paced = {disk for judged in story.of(Judged) for one in judged.checks for disk in _of_pace(one)}
    for load in story.of(LoadBegun):
        ended = story.load_end(load)
        if ended is None or ended.errno or ended.stuck or load.disk in paced or not _alone(story, load, ended):
            continue
        if ended.longest is None:
            if load.argv and ended.read_bytes + ended.written_bytes and recorded(story, "reports"):
                yield f"how long the slowest request of the load on {load.disk} took is not on record"
            continue
        begin, end = load.at or 0.0, ended.at or 0.0
        took = (ended.longest - stood_still(story, begin, end, load.disk)) * granted(story, begin, end) ** 2
        if took > most:
            what = f"a request of {load.disk} took {ended.longest:.2f} s {limit_words(most)}"
            yield Accusation(subject=load.disk, summary=what, at=ended.at)


def slow_writes(story: Story, limit: float) -> Iterator[Accusation]:
    """Disks that no cut concerns and that held up a stamped write for longer than ``limit`` seconds, by its ledger. It
    was 1.6 s at most in 230 sessions on emulated benches. ``array_survived`` judges arrays. A disk that stood still on
    request or was reset is not judged."""
    for judged in every_round(story):
        disk, begin, end = judged.round.disk, judged.round.begun.at or 0.0, judged.round.at or 0.0
        if not judged.slowest or judged.cuts or not story.attachments(disk) or stalls_of_device(story, disk):
            continue
        if cuts_of(story, disk) or any(event.disk == disk for event in story.of(DiskRecovered)):
            continue
        took = judged.slowest * granted(story, begin, end) ** 2
        if took > limit:
            what = f"a write of {disk} took {judged.slowest:.2f} s {limit_words(limit)}"
            yield Accusation(subject=disk, summary=what, at=begin)


def _of_pace(check: dict[str, object]) -> tuple[str, ...]:
    disks = check.get("disks") if check.get("check") == "kept_pace" else None
    return tuple(str(disk) for disk in disks) if isinstance(disks, list | tuple) else ()


def _alone(story: Story, load: LoadBegun, ended: LoadEnded) -> bool:
    """Whether a load ran on a disk, not an array, and that disk was there and uncut all the time."""
    begin, end = load.at or 0.0, ended.at or 0.0
    if not story.attachments(load.disk):
        return False
    for cut in cuts_of(story, load.disk):
        off, back = cut.off.commanded_at, cut.times(load.disk).returned_at
        if off is None or (off <= end and (back is None or back >= begin)):
            return False
    return True
