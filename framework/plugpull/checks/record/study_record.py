"""Do the measurements of a study fit each other and the loads that they were made of?

A study says what was measured in two places: the load and its measurement, the plan and its numbers, the bytes of a
task and its requests. In 3,620 measurements on healthy benches all of them were the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from plugpull.history.events import DriveCacheSwitched, FioFigures, FioRan, LoadBegun, Measured, PowerSampled
from plugpull.history.story import Story

BEGUN_LATE = 0.5
"""Seconds after the beginning of a measurement in which the record of its load may come."""
IMPOSSIBLE = 25_000.0
"""Watts that no outlet gives."""
FEWEST = 3
"""The number of measurements that show how long one lasts."""
ROUNDING = 0.1
"""Seconds by which a measurement may seem to begin before the end of the one before."""
ROUNDED = 1.1
"""The largest percentile divided by the longest request: fio puts its requests into bins. It was 1.006 at most."""


def study_doubts(story: Story) -> Iterator[str]:
    """Why the measurements prove nothing, a sentence each."""
    for one in story.of(Measured):
        yield from _other_load(story, one)
    yield from _plan(story)
    yield from _spans(story)
    yield from _caches(story)
    most = max((one.watts for one in story.of(PowerSampled) if one.watts is not None), default=0.0)
    if most > IMPOSSIBLE:
        yield f"a meter read {most:g} W"
    for ran in story.of(FioRan):
        for disk, figures in ran.figures.items():
            why = "" if figures.error else _impossible(figures) or _of_other_sizes(ran, figures)
            if why:
                yield f"the figures of '{ran.task}' on {disk} are impossible: {why}"


def _other_load(story: Story, one: Measured) -> Iterator[str]:
    for disk in one.disks:
        begun = [
            load for load in story.of(LoadBegun) if load.disk == disk and (load.at or 0.0) <= one.begin + BEGUN_LATE
        ]
        if not begun:
            continue
        load = begun[-1]
        if (load.mode, load.block, load.depth) != (one.mode, one.block, one.depth):
            measured = f"{one.mode} of {one.block} bytes, depth {one.depth}"
            ran = f"{load.mode} of {load.block} bytes, depth {load.depth}"
            yield f"measurement {one.number} is of {measured}, and {ran} ran on {disk}"


def _plan(story: Story) -> Iterator[str]:
    """Measurements that are in no round, and one whose plan is another than that of both beside it. A plan may grow
    while it is carried out."""
    made: list[Measured | FioRan] = [*story.of(Measured), *story.of(FioRan)]
    for one in made:
        if one.number < 1 or not 1 <= one.repeat <= one.repeats:
            yield f"a measurement is number {one.number} in round {one.repeat} of {one.repeats}"
            return
    series: tuple[tuple[Measured | FioRan, ...], ...] = (story.of(Measured), story.of(FioRan))
    for kind in series:
        for (one, two), (_, three) in pairwise(pairwise(kind)):
            plans = [(each.planned, each.repeats) for each in (one, two, three)]
            row = two.number == one.number + 1 and three.number == two.number + 1
            if row and plans[0] == plans[2] != plans[1]:
                yield f"measurement {two.number} is one of {two.planned}, and those beside it are of {one.planned}"
                return


def _spans(story: Story) -> Iterator[str]:
    """Measurements that began before the one before them was over, and one that lasted for less than half as long as
    each of the others. In 221 measurements of studies each lasted for as long as the others, within 13 %; on an
    overloaded host some last for twice as long."""
    made = story.of(Measured)
    if len(made) >= FEWEST:
        lasted, least = sorted((one.at or 0.0) - one.begin for one in made)[:2]
        if lasted < least / 2:
            short = next(one for one in made if (one.at or 0.0) - one.begin == lasted)
            yield f"measurement {short.number} lasted for {lasted:.2f} s, and the others for {least:.2f} s and more"
            return
    for one, two in pairwise(made):
        if two.begin < (one.at or 0.0) - ROUNDING:
            yield f"measurement {two.number} began at {two.begin:.2f} s, and the one before was over at {one.at:.2f} s"
            return


def _caches(story: Story) -> Iterator[str]:
    """Runs with the write caches of the drives on or off, by what is said of them, and otherwise by their switching."""
    last: dict[str, DriveCacheSwitched] = {}
    for event in story.among(DriveCacheSwitched, FioRan):
        if isinstance(event, DriveCacheSwitched):
            last[event.disk] = event
        if not isinstance(event, FioRan) or event.drive_cache is None:
            continue
        for disk in event.disks:
            was = last.get(disk)
            if was is not None and (not was.ok or was.on != event.drive_cache):
                how = "could not be switched" if not was.ok else f"was switched {'on' if was.on else 'off'}"
                words = "on" if event.drive_cache else "off"
                yield f"'{event.task}' ran on {disk} with its write cache {words}, and the cache {how}"
                return
    for disk, was in last.items():
        if not was.ok:
            yield f"the write cache of {disk} could not be switched {'on' if was.on else 'off'} in the end"


def switched(story: Story, disk: str) -> bool:
    """Whether the record has any switching of the cache of this disk."""
    return any(event.disk == disk for event in story.of(DriveCacheSwitched))


def _of_other_sizes(ran: FioRan, figures: FioFigures) -> str:
    """Why the bytes are not those of the requests; empty if they are. After a warm-up fio counts the bytes of requests
    that were in flight at its end, and not the requests."""
    if abs(figures.bytes - figures.requests * ran.block) <= ran.block * (ran.depth + 1):
        return ""
    return f"{figures.bytes} bytes in {figures.requests} requests of {ran.block} bytes"


def _impossible(figures: FioFigures) -> str:
    """Why fio cannot have reported these figures; empty if it can."""
    if min(figures.bytes, figures.requests) < 0:
        return "a count is negative"
    if bool(figures.bytes) != bool(figures.requests):
        return f"{figures.bytes} bytes in {figures.requests} requests"
    ranked = sorted((float(share), value) for share, value in figures.percentiles.items())
    if any(low > high for (_, low), (_, high) in pairwise(ranked)):
        return "a higher percentile is faster than a lower one"
    if ranked and figures.longest is not None and ranked[-1][1] > figures.longest * ROUNDED:
        return f"the slowest request took {figures.longest:g} s, and {100 - ranked[-1][0]:g} % took longer"
    return ""
