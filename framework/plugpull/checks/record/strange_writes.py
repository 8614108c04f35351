"""Disks that were written while nothing on record wrote to them: while they were read only, copied from, or at rest."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from itertools import pairwise

from plugpull.history.events import (
    Acted,
    ArrayActed,
    FileRoundBegun,
    FioRan,
    LedgerBegun,
    LedgerEnded,
    LoadBegun,
    Phase,
)
from plugpull.history.readings import Readings
from plugpull.history.story import Story

FILLING = frozenset({"fill", "load"})
"""Phases in which disks are written although no load is on record yet."""
OTHERWISE = frozenset({"array", "mkfs", "scan", "soak"})
"""Phases in which more than loads may write."""
EARLY = 20.0
"""Seconds by which stamps may be written before their beginning is on record."""
LATE = 1.0
"""Seconds after the end of a writer in which its last writes may still be counted."""


def strange_writes(story: Story) -> Iterator[str]:
    """A sentence for each disk that was written by nobody. Other units beside one: ``victims/other_units.py``."""
    otherwise = any(phase.name in OTHERWISE for phase in story.of(Phase))
    if otherwise or story.among(FioRan, ArrayActed, FileRoundBegun):
        return
    made = {event.disk for event in story.of(Acted)}
    buffered = {load.disk for load in story.of(LoadBegun) if load.argv and "--direct=1" not in load.argv}
    scratch = (str(disk.get("name")) for disk in story.rig.get("disk", ()) if disk.get("scratch") is True)
    for disk in scratch:
        uses = sorted(_uses(story, disk)) if disk not in made | buffered else [(float("-inf"), float("inf"))]
        readings = story.readings(disk)
        stays = dict.fromkeys(part.stream.key for part in readings.parts)
        written = sum(_between(readings.of(stay), uses) for stay in stays)
        if written:
            yield f"{written} bytes were written to {disk} while nothing on record wrote to it"


def _between(readings: Readings, uses: list[tuple[float, float]]) -> int:
    """Bytes written to one attachment outside its uses, which are in order."""
    at, numbers, total, free = readings.at, readings.column(1), 0, float("-inf")
    for begin, end in (*uses, (float("inf"), float("inf"))):
        first, last = bisect_left(at, free), bisect_right(at, begin) - 1
        if begin > free and last > first:
            total += max(0, numbers[last] - numbers[first])
        free = max(free, end)
    return total


def _uses(story: Story, disk: str) -> Iterator[tuple[float, float]]:
    """The (begin, end) of what may write to a disk, DUT seconds."""
    for load in story.of(LoadBegun):
        if load.disk == disk and ("write" in load.mode or "rw" in load.mode):
            ended = story.load_end(load)
            end = float("inf") if ended is None or ended.at is None else ended.at
            yield (load.at or 0.0) - LATE, end + LATE
    ends = {one.job: one.at for one in story.of(LedgerEnded) if one.at is not None}
    for begun in story.of(LedgerBegun):
        if begun.disk == disk:
            yield (begun.at or 0.0) - EARLY, ends.get(begun.job, float("inf")) + LATE
    for phase, following in pairwise((*story.of(Phase), None)):
        if phase is not None and phase.name in FILLING:
            until = float("inf") if following is None else following.at or 0.0
            yield phase.at or 0.0, until + LATE
