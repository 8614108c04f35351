"""Steps on arrays that were taken and are not on record."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from plugpull.checks.limits import bench_kind
from plugpull.checks.raid.arrays import ArrayRecord
from plugpull.history.events import AgentLost, ArrayActed, ArrayAction, ArrayState, DutDied, ScenarioError
from plugpull.history.story import Story

AROUND = 5.0
"""Seconds by which a step may be on record later than the state that it led to: a busy host reads its answer late."""
_TAKES: tuple[ArrayAction, ...] = ("make", "remove_gone", "udev_remove", "fail", "stop", "assemble")
_GIVES: tuple[ArrayAction, ...] = ("make", "readd", "add", "assemble")


def missing_acts(story: Story, record: ArrayRecord) -> Iterator[str]:
    """A sentence for each step that is missing. How the array was made is asked elsewhere."""
    if not record.done("make"):
        return
    yield from _numbers(record)
    yield from _not_removed(record)
    yield from _not_assembled(record)
    yield from _not_added(record)
    yield from _not_erased(story, record)
    if bench_kind(story) in ("virtual", ""):  # udev of other DUTs removes and adds members itself
        yield from _by_nobody(record)


def _numbers(record: ArrayRecord) -> Iterator[str]:
    """The bench numbers what it does to an array, from 1 on. Older records have no numbers."""
    numbers = [act.number for act in record.acts if act.number]
    if sorted(numbers) != list(range(1, len(numbers) + 1)):
        yield f"what was done to {record.name} is on record with the numbers {', '.join(map(str, numbers))}"


def _not_removed(record: ArrayRecord) -> Iterator[str]:
    """A disk that was put back into an array whose missing members had not been removed from it: ``MadeArray.readd``
    begins with that."""
    for before, act in pairwise(record.acts):
        if act.action == "readd" and before.action not in ("remove_gone", "readd", "add"):
            what = f"{', '.join(act.disks)} was put back into {record.name}"
            yield f"{what} at {act.at or 0.0:.2f} s, and that the missing members had been removed is not on record"
            return


def _not_assembled(record: ArrayRecord) -> Iterator[str]:
    """Something that was done to an array that was stopped, and not assembled since."""
    for before, act in pairwise(record.acts):
        if before.action == "stop" and before.ok and act.action not in ("assemble", "erase", "make", "stop"):
            what = f"the step '{act.action}' of {record.name} at {act.at or 0.0:.2f} s"
            yield f"{what} came after it had been stopped, and that it was assembled again is not on record"
            return


def _not_added(record: ArrayRecord) -> Iterator[str]:
    """A disk that md did not take back, and that was not added as a new one: ``MadeArray.readd`` does so next."""
    acts = record.acts
    for act, after in zip(acts, [*acts[1:], None], strict=True):
        if (
            act.action == "readd"
            and not act.ok
            and (after is None or (after.action, after.disks) != ("add", act.disks))
        ):
            what = f"{', '.join(act.disks)} was not put back into {record.name} at {act.at or 0.0:.2f} s"
            yield f"{what}, and that it was added as a new member is not on record"
            return


def _not_erased(story: Story, record: ArrayRecord) -> Iterator[str]:
    """An array that was stopped for good, and whose superblocks would make later scenarios refuse its disks."""
    ended = story.ended is not None and not story.among(AgentLost, DutDied, ScenarioError)
    last = record.acts[-1]
    if ended and last.action == "stop" and last.ok:
        yield f"that the superblocks of {record.name} were erased is not on record"


def _by_nobody(record: ArrayRecord) -> Iterator[str]:
    """Members that appeared in the array or disappeared from it although nothing was done: md keeps a member whose disk
    is gone until it is asked to remove it (md.c, hot_remove_disk and remove_and_add_spares)."""
    for before, after in pairwise(record.running):
        if not before.values or not after.values or len(before.members) == len(after.members):
            continue
        fewer = len(after.members) < len(before.members)
        acts = [act for act in record.done(*(_TAKES if fewer else _GIVES)) if _between(act, before, after)]
        given = {disk for act in acts for disk in act.disks}
        # Which disk was removed is not on record with every step. Which one was put in is.
        changed = (set(after.members) - set(before.members)) & (set(record.made.members) - given)
        if acts and (fewer or not changed):
            continue
        changed = changed if acts else set(before.members) ^ set(after.members)
        what = "was removed from" if fewer else "was put into"
        at = after.at or 0.0
        yield f"{', '.join(sorted(changed))} {what} {record.name} by {at:.2f} s, and by what is not on record"
        return


def _between(act: ArrayActed, before: ArrayState, after: ArrayState) -> bool:
    begin, end = (act.at or 0.0) - act.seconds, act.at or 0.0
    return end >= (before.at or 0.0) - AROUND and begin <= (after.at or 0.0) + AROUND
