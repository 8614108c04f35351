"""Whether what was announced came to pass on the record, and what came to pass had been announced.

Loads that ended were begun, measurements that were begun were made, copies were compared, and a disk that stood still
had its timeout shortened before and restored after it. The record of a scenario that stopped ends anywhere.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise

from plugpull.history.events import (
    AgentLost,
    DiskStalled,
    DutDied,
    FioRan,
    LoadBegun,
    LoadEnded,
    LoadSettled,
    Measured,
    Phase,
    RigFault,
    ScenarioError,
    TimersSet,
    Verified,
)
from plugpull.history.story import Story


def missing_counterparts(story: Story) -> Iterator[str]:
    """A sentence for each half of a pair that is not on record."""
    yield from _loads(story)
    if story.ended is None or story.among(ScenarioError, RigFault, AgentLost, DutDied):
        return
    yield from _measurements(story)
    yield from _comparisons(story)
    for stall in story.of(DiskStalled):
        yield from _timeout(story, stall)


def _loads(story: Story) -> Iterator[str]:
    """Loads that settled or ended and never began."""
    begun = {(load.disk, load.job) for load in story.of(LoadBegun)}
    for ended in story.of(LoadEnded):
        if (ended.disk, ended.job) not in begun:
            yield f"how the load {ended.job} on {ended.disk} was begun is not on record"
    loaded = {disk for disk, _ in begun} | {ended.disk for ended in story.of(LoadEnded)}
    for disk in dict.fromkeys(disk for settled in story.of(LoadSettled) for disk in settled.disks):
        if disk not in loaded:
            yield f"the load on {disk} settled, and how it was begun is not on record"


def _measurements(story: Story) -> Iterator[str]:
    """Measurements that were begun and are not on record, by the phases and by their numbers. Those of tasks are
    numbered from 1 on by each study of a scenario."""
    begun = sum(phase.name == "measure" for phase in story.of(Phase))
    made = (*story.of(Measured), *story.of(FioRan))
    if begun > len(made) > 0 or (begun and not made):
        yield f"{begun} measurements were begun, and {len(made)} are on record"
        return
    for kind in (story.of(Measured), story.of(FioRan)):
        numbers = (0, *(one.number for one in kind))
        for one, two in pairwise(numbers):
            if two not in (one + 1, 1):
                yield f"measurement {two} follows number {one}"
                return


def _comparisons(story: Story) -> Iterator[str]:
    """Copies of which it is not on record how they compare with their source."""
    copies = Counter(load.disk for load in story.of(LoadBegun) if load.argv[:1] == ("copy",) and load.mode == "write")
    compared = Counter(event.disk for event in story.of(Verified))
    for disk, count in copies.items():
        if compared[disk] < count:
            yield f"how the copy on {disk} compares with its source is not on record"


def _timeout(story: Story, stall: DiskStalled) -> Iterator[str]:
    """A disk that stood still without its timeout on record as shortened, or as restored although it stayed."""
    stay = story.attachment_at(stall.disk, stall.at or 0.0)
    if stay is None or not stay.sysfs or not stall.spans:
        return
    above = stay.sysfs.partition("/block/")[0] + "/"
    changes = [
        (event.at or 0.0, after)
        for event in story.of(TimersSet)
        if event.moment == "stalled"
        for path, _, after in event.changed
        if path.startswith(above)
    ]
    shortened = [at for at, after in changes if after == str(stall.timeout)]
    restored = [at for at, after in changes if after != str(stall.timeout)]
    if not any(at <= stall.spans[0][0] for at in shortened):
        yield f"that the timeout of {stall.disk} was shortened before it stood still is not on record"
    if story.detached_at(stay) is None and not any(at >= stall.spans[-1][1] for at in restored):
        yield f"that the timeout of {stall.disk} was restored after it had stood still is not on record"
