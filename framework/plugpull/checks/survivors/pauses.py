"""How long survivors pause when all is well, and how long their stalls may have been at most."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from plugpull.checks.evidence import limit, seconds
from plugpull.checks.stalls import stood_still
from plugpull.checks.survivors.slowness import PaceLimits
from plugpull.checks.survivors.survivor import Watched
from plugpull.checks.survivors.track import Stall, Track
from plugpull.history.reader import Story

BASELINES = 4.0
"""Times the disk needs for its requests in flight, which a baseline must be long to show how long the disk pauses."""


def interval_of(line: Track) -> float:
    """The usual time between two samples."""
    return line.line.usual_step


def usual_pause(seen: Watched, stalls: Iterable[Stall], pause: float) -> float:
    """How long the disk stands still in between when all is well: ``pause``, or as long as it did before the first
    cut. In 1,091 judgements of healthy disks no other stall was longer, but for one of 0.35 s."""
    if seen.cut - seen.settled < BASELINES * pause:
        return pause
    before = (one.seconds for one in stalls if one.began + one.seconds <= seen.cut)
    return min(pause, max(before, default=0.0) + 2 * interval_of(seen.line))


def nearly_too_long(
    story: Story, seen: Watched, stalls: Sequence[Stall], most: float, limits: PaceLimits
) -> Iterator[str]:
    """Stalls that were too long if they lasted as long as is most likely: what the samples show of each may be shorter
    by up to two of their intervals, and is by one on average. What stood still on request is on record."""
    interval = interval_of(seen.line)
    asked = (stood_still(story, one.began, one.began + one.seconds + interval) for one in stalls)
    likely = [one.seconds + interval for one, on_request in zip(stalls, asked, strict=True) if not on_request]
    if likely and max(likely) > most:
        span = f"{seconds(max(likely) - interval)} to {seconds(max(likely) + interval)}"
        yield f"{seen.disk} stood still for {span} {limit(limits.max_stall)}"
    elif sum(likely) > limits.all_stalls:
        what = f"{seen.disk} stood still for about {seconds(sum(likely))} in {len(likely)} stalls"
        yield f"{what} {limit(limits.all_stalls)}"
