"""When the DUT slept on request."""

from __future__ import annotations

from plugpull.history.events import DutSuspended
from plugpull.history.story import Story


def suspensions(story: Story) -> tuple[tuple[float, float], ...]:
    """(begin, end) of each time in which the DUT's devices were suspended on request, DUT seconds."""
    return tuple((event.at or 0.0, event.until) for event in story.of(DutSuspended))


def asleep_within(story: Story, begin: float, end: float) -> float:
    """Seconds of [begin, end] in which it slept."""
    return sum(max(0.0, min(until, end) - max(at, begin)) for at, until in suspensions(story))
