"""What current agents record all the time, and whether it is on record."""

from __future__ import annotations

from itertools import pairwise

from plugpull.checks.starved import granted, starved_within
from plugpull.history.events import Activity, AgentLost, DutDied
from plugpull.history.story import Story

INTERVAL = 2.0
"""Seconds between two samples of the DUT's tasks (``INTERVAL`` in ``dut/agent/tasks.py``)."""
HOLE = 4 * INTERVAL
"""Seconds without such a sample that are a gap, apart from starved time and by the share of CPU time that the host
granted: 6.9 s at most in 80 healthy scenarios on busy hosts. Unlike I/O, a look at tasks waits for one CPU only."""


def recorded(story: Story, what: str) -> bool:
    """Whether the DUT's agent records ``what`` (``DutReady.records``). Older agents did not."""
    readies = story.readies
    return bool(readies) and what in readies[-1].records


def tasks_not_watched(story: Story) -> str:
    """Why the activity of the DUT's tasks is not known, as a sentence; empty if it is, or if the agent is too old."""
    times = story.sample_times
    fell_silent = bool(story.of(AgentLost)) or bool(story.of(DutDied))
    if fell_silent or not recorded(story, "tasks") or len(times) < 2:
        return ""  # other checks report a DUT that fell silent
    looks = [event.at for event in story.of(Activity) if event.at is not None]
    for one, two in pairwise((times[0], *looks, times[-1])):
        if (two - one - starved_within(story, one, two)) * granted(story, one, two) > HOLE:
            return f"the tasks of the DUT were not sampled from {one:.2f} s to {two:.2f} s"
    return ""
