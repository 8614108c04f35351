"""When the DUT slept: on request, or by what its kernel says alone."""

from __future__ import annotations

import math
from collections.abc import Iterator

from plugpull.history.story import Story
from plugpull.history.suspensions import suspensions
from plugpull.kernel.diagnosis.story_log import log_of

ENTRY, EXIT = "PM: suspend entry", "PM: suspend exit"
"""How the kernel's first and last line about a suspension begin (kernel/power/suspend.c, pm_suspend)."""
AROUND = 1.0
"""Seconds before a suspension on request in which the kernel may begin it."""


def slept_unasked(story: Story) -> tuple[tuple[float, float], ...]:
    """(begin, end) of each suspension that only the kernel log shows, DUT seconds. One without an end lasts."""
    return story.once(_slept_unasked)


def _slept_unasked(story: Story) -> tuple[tuple[float, float], ...]:
    asked = suspensions(story)
    return tuple(
        span
        for span in _by_the_log(story)
        if not any(begin - AROUND <= span[1] and span[0] <= end + AROUND for begin, end in asked)
    )


def _by_the_log(story: Story) -> Iterator[tuple[float, float]]:
    begun: float | None = None
    for line in log_of(story).own_timed:
        if line.body.startswith(ENTRY):
            begun = line.at if begun is None else begun
        elif line.body.startswith(EXIT) and begun is not None:
            yield begun, line.at
            begun = None
    if begun is not None:
        yield begun, math.inf
