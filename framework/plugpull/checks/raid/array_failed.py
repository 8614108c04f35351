"""Whether an array failed cleanly when more members were missing than its level covers."""

from __future__ import annotations

from collections.abc import Iterator

from plugpull.checks.accusation import Accusation
from plugpull.checks.base import Check, Disks, Judgement, Named, disk_names
from plugpull.checks.collector import Collector
from plugpull.checks.evidence import limit, seconds
from plugpull.checks.raid.array_survived import compared, refused
from plugpull.checks.raid.arrays import ArrayRecord, arrays_of, may_fail_from
from plugpull.checks.raid.members import usable
from plugpull.checks.starved import awake
from plugpull.history.events import LoadBegun
from plugpull.history.reader import Story

ERROR_WITHIN = 30.0
"""Seconds after the loss of one member too many in which whoever writes must have an error. A request to a disk that is
gone fails at once; md tries each member, and updates its superblocks before it answers."""


class ArrayFailed(Check, frozen=True, tag="array_failed"):
    """More members of an array were missing than its level covers. The load on it had an error within ``within``
    seconds and could be ended, and the array could be stopped. A ``check`` after a RAID 5 or 6 was assembled again and
    in sync found no mismatch."""

    arrays: tuple[str, ...]
    within: float = ERROR_WITHIN

    def judge(self, story: Story) -> Judgement:
        said = Collector(self, self.arrays)
        took: list[float] = []
        for name in self.arrays:
            record = arrays_of(story).get(name)
            if record is None:
                said.doubt(f"no array {name} is on record")
            elif record.overwhelmed_at is None:
                said.doubt(f"{name} never had more members missing than its level covers")
            else:
                for found in self._loads(story, record, record.overwhelmed_at):
                    if isinstance(found, float):
                        took.append(found)
                    else:
                        said.take(found)
                said.take(*_stopped(record), *_assembled(story, record), *compared(record), *refused(record, "add"))
        if not took and said.clean:
            said.doubt(f"nothing was written to {', '.join(self.arrays)} when it failed")
        slowest = max(took, default=None)
        worst = "" if slowest is None else f"its users had their error after {seconds(slowest)} {limit(self.within)}"
        return said.timed(worst if said.clean else "", slowest, self.within)

    def _loads(self, story: Story, record: ArrayRecord, at: float) -> Iterator[Accusation | str | float]:
        """Per load that ran when the array failed, the seconds until its error, or what is wrong with it."""
        for load in story.of(LoadBegun):
            if load.disk != record.name or load.at is None or load.at > at:
                continue
            ended = story.load_end(load)
            if ended is None or ended.at is None:
                yield f"how the load on {record.name} ended was not recorded"
            elif ended.at >= at or (ended.errno and ended.at >= may_fail_from(story, record.name)):
                # Requests to disks without power fail before the kernel has removed the disks.
                name = record.name
                took = awake(story, at, ended.at)
                if ended.stuck:
                    yield _accusation(name, f"the load on {name} could not be ended after it had failed", ended.at)
                elif not ended.errno and (not ended.asked or took > self.within):
                    what = f"the load on {name} had no error in {seconds(took)} after one member too many was gone"
                    yield _accusation(name, what, ended.at)
                elif ended.errno and took > self.within:
                    yield _accusation(name, f"the load on {name} had its error only after {seconds(took)}", ended.at)
                elif ended.errno:
                    yield took
                else:
                    yield f"the load on {name} was asked to end {seconds(took)} after it had failed"


def array_failed(arrays: Disks | Named, within: float = ERROR_WITHIN) -> ArrayFailed:
    """Each array lost more members than its level covers: its users must have had an error ``within`` seconds, and it
    could be stopped."""
    return ArrayFailed(disk_names(arrays), within)


def _stopped(record: ArrayRecord) -> Iterator[Accusation | str]:
    stops = record.done("stop")
    if not stops:
        yield f"nobody tried to stop {record.name}"
    for stop in stops:
        if not stop.ok:
            what = f"{record.name} could not be stopped after it had failed: {stop.detail or '?'}"
            yield _accusation(record.name, what, stop.at)


def _assembled(story: Story, record: ArrayRecord) -> Iterator[Accusation]:
    """Members that are missing in the end, although the array was assembled with them and their disks stayed. One that
    the array had gone on without is stale, and md leaves it out."""
    done = [act for act in record.done("assemble") if act.ok]
    last = record.last
    if not done or last is None or (last.at or 0.0) < (done[-1].at or 0.0):
        return
    gone = {one.disk for one in record.absences if one.gone >= (done[-1].at or 0.0)}
    before = [usable(state) for state in record.running if (state.at or 0.0) < (done[-1].at or 0.0) - done[-1].seconds]
    stale = {disk for disk in done[-1].disks for there in before if there and disk not in there}
    missing = [disk for disk in done[-1].disks if disk not in usable(last) and disk not in gone | stale]
    if missing:
        what = f"{record.name} was assembled with {', '.join(missing)}, and did without in the end"
        yield _accusation(record.name, what, last.at)


def _accusation(array: str, what: str, at: float | None) -> Accusation:
    return Accusation(subject=array, summary=what, at=at)
