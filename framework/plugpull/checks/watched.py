"""What an agent of today's version records all the time, and whether it did."""

from __future__ import annotations

from itertools import pairwise

from plugpull.checks.starved import awake
from plugpull.history.events import Activity, AgentLost, DutDied, DutReady
from plugpull.history.story import Story

INTERVAL = 2.0
"""Seconds between two looks at the tasks of the DUT (``INTERVAL`` in ``dut/agent/tasks.py``)."""
HOLE = 4 * INTERVAL
"""Seconds without a look that make a hole, apart from those in which the DUT was starved."""


def recorded(story: Story, what: str) -> bool:
    """Whether the DUT's agent was to record ``what`` (``DutReady.records``). Agents of older versions were not."""
    readies = [event for event in (*story.before, *story.events) if isinstance(event, DutReady)]
    return bool(readies) and what in readies[-1].records


def tasks_not_watched(story: Story) -> str:
    """Why it is not known what the tasks of the DUT did, as a sentence; empty if it is, or was not to be recorded."""
    times = story.sample_times
    fell_silent = bool(story.of(AgentLost)) or bool(story.of(DutDied))
    if fell_silent or not recorded(story, "tasks") or len(times) < 2:
        return ""  # that the DUT fell silent is said elsewhere
    looks = [event.at for event in story.of(Activity) if event.at is not None]
    for one, two in pairwise((times[0], *looks, times[-1])):
        if awake(story, one, two) > HOLE:
            return f"the tasks of the DUT were not looked at from {one:.2f} s to {two:.2f} s"
    return ""
