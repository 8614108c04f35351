"""Times in which a disk had requests and completed none, from the sampled counters."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from plugpull.checks.starved import awake
from plugpull.history.story import Story


class DiskPause(NamedTuple):
    """From ``begin`` to ``end``, DUT seconds. ``seconds`` of it count: the host did not starve the DUT in them."""

    begin: float
    end: float
    seconds: float


def pauses(story: Story, disk: str, begin: float, end: float, least: float) -> tuple[DiskPause, ...]:
    """The times within [begin, end] in which ``disk`` had a request in flight and completed none for at least ``least``
    counted seconds. They are known to within a sample on each side, and never too long."""
    found: list[DiskPause] = []
    since: float | None = None
    last, completed = begin, -1
    for one in story.readings(disk).between(begin, end):
        if one.counters.completed != completed or not one.counters.in_flight:
            found += _pause(story, since, last, least)
            since = one.at if one.counters.in_flight else None
        last, completed = one.at, one.counters.completed
    return (*found, *_pause(story, since, last, least))


def _pause(story: Story, since: float | None, last: float, least: float) -> Iterable[DiskPause]:
    if since is not None and last - since >= least:
        seconds = awake(story, since, last)
        if seconds >= least:
            yield DiskPause(since, last, seconds)


def common(each: Iterable[Iterable[DiskPause]]) -> tuple[DiskPause, ...]:
    """The pauses of the first disk in which all the others paused too; none for a single disk."""
    first, *others = (tuple(one) for one in each)
    if not others:
        return ()
    return tuple(one for one in first if all(any(overlap(one, two) for two in other) for other in others))


def overlap(one: DiskPause, two: DiskPause) -> bool:
    """Whether they have time in common."""
    return one.begin < two.end and two.begin < one.end
