"""Whether every attached disk can be read at the end of a scenario, and as soon as at its beginning.

The agent makes eight short reads of each disk at both moments, and more if they are slow. A disk that nobody uses may
be dead without anybody noticing, and a delay of each command hides behind large requests. The reads of an emulated disk
depend on how busy its host is, but a delay of each command lengthens the fastest of them too. So the fastest of each
moment counts. Of 426 healthy scenarios one had a disk without a fast read at the end, on a busy host: most reads of the
other disks were as slow then, and each of these had a fast one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median

from plugpull.checks.accusation import Accusation
from plugpull.checks.limits import bench_kind
from plugpull.checks.starved import awake
from plugpull.checks.victims.properties import undivided
from plugpull.history.events import DiskProperties
from plugpull.history.story import Story

TIMES, ERROR = "read_ms", "read_error"
FACTOR, MORE = 3.0, 15.0
"""A read may take so many times as long as at the beginning, and so many ms more."""
FEWEST = 4
"""Reads of each moment that are needed to compare them."""
WAITED = 5.0
"""Seconds that a disk must have had to answer. The agent waits for 8 s."""


def short_reads(story: Story) -> Iterator[Accusation | str]:
    """Accusations of disks that cannot be read at the end, or only late; and a doubt if they were not read."""
    first: dict[str, DiskProperties] = {}
    last: list[DiskProperties] = []
    for event in story.of(DiskProperties):
        if event.moment == "begin":
            first.setdefault(event.disk, event)
        elif event.moment == "end" and event.disk in first and undivided(story, event):
            last.append(event)
    for event in last:
        others = [(first[other.disk], other) for other in last if other.disk != event.disk]
        yield from _of_disk(story, first[event.disk], event, _as_slow(others))


def _as_slow(others: Sequence[tuple[DiskProperties, DiskProperties]]) -> float:
    """Milliseconds of the median of all reads of other disks at the end, if one of them at least was read as fast as
    at the beginning: then it is the host that was slow. Else 0."""
    times = [time for _, end in others for time in _times(end)]
    pairs = [(_fast(begin), _fast(end)) for begin, end in others]
    fast = any(was is not None and now is not None and now <= FACTOR * was + MORE for was, now in pairs)
    return median(times) if times and fast else 0.0


def _of_disk(story: Story, begin: DiskProperties, end: DiskProperties, host: float) -> Iterator[Accusation | str]:
    error, before, after = end.values.get(ERROR, ""), _fast(begin), _fast(end)
    disk, at = end.disk, end.at or 0.0
    evidence = tuple(
        f"{one.at or 0:.2f} s: reads of {one.kname} took {one.values.get(TIMES) or '-'} ms {one.values.get(ERROR, '')}"
        for one in (begin, end)
    )
    if error and not begin.values.get(ERROR) and awake(story, at, max(at, end.until or at)) > _needed(error):
        what = f"{disk} is attached and cannot be read at the end: {error}"
        yield Accusation(subject=disk, summary=what, at=at, evidence=evidence)
    elif before is not None and after is None:
        yield f"whether {disk} can be read at the end is not known: {error or 'it was not read'}"
    elif before is not None and after is not None and bench_kind(story) == "virtual":
        limit = FACTOR * before + MORE
        what = f"a short read of {disk} takes {after:.0f} ms at the end and {before:.0f} ms at the beginning"
        if after > limit and host > limit:
            yield f"{what}, and those of other disks took {host:.0f} ms meanwhile: whether it is slower is not known"
        elif after > limit:
            summary = f"{what}: slower (limit {limit:.0f} ms)"
            yield Accusation(subject=disk, summary=summary, at=at, evidence=evidence)


def _needed(error: str) -> float:
    """Seconds that the DUT must have run before this error counts."""
    return WAITED if error.startswith("no answer") else -1.0


def _fast(read: DiskProperties) -> float | None:
    """Milliseconds of the fastest read; ``None`` if there were too few."""
    times = _times(read)
    return times[0] if len(times) >= FEWEST else None


def _times(read: DiskProperties) -> list[float]:
    """Milliseconds of each read, the fastest first."""
    return sorted(float(word) for word in read.values.get(TIMES, "").split() if word.replace(".", "", 1).isdecimal())
