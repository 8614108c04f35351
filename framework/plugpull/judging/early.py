"""Judges the turns of a soak while its history is read, and lets go of what only their judgement needs.

A soak has thousands of scenarios. All of them together would fill the memory, so each is judged as soon as it is read.
"""

from __future__ import annotations

import gc
from collections.abc import Sequence

from plugpull.history.events import (
    Activity,
    Census,
    ClockMapped,
    DiskProperties,
    Event,
    FileLedgerPart,
    FileScanPart,
    KernelMessage,
    LedgerPart,
    ReadBackPart,
    Sampled,
    TimersSet,
    Uevent,
)
from plugpull.history.reader import Story
from plugpull.history.tape import others_of, tape_of
from plugpull.judging.judge import judge_story
from plugpull.judging.results import ScenarioResult, Verdict

WHOLE = 60
"""So many turns are kept as they are, from the beginning of the run; and so many later ones that did not pass."""
COLLECT_EVERY = 100
BULKY = (
    Activity,
    Census,
    ClockMapped,
    DiskProperties,
    FileLedgerPart,
    FileScanPart,
    KernelMessage,
    LedgerPart,
    ReadBackPart,
    Sampled,
    TimersSet,
    Uevent,
)
"""Most of a history, and nothing that the results of the run are made of once its scenarios are judged."""


class EarlyJudge:
    """Takes each scenario of a run in turn and returns what is to be kept of it. ``results`` has the results of those
    that were judged, by their index."""

    def __init__(self) -> None:
        self.results: dict[int, ScenarioResult] = {}
        self._count = 0
        self._whole = 0
        self._before: Story | None = None

    def __call__(self, story: Story) -> Story:
        """Judge a scenario of a long run, and return it without its bulk if it passed."""
        index, self._count = self._count, self._count + 1
        kept = story
        if index >= WHOLE:
            result = self.results[index] = judge_story(story, self._before)
            self._whole += result.verdict is not Verdict.PASS
            if result.verdict is Verdict.PASS or self._whole > WHOLE:
                kept = without_bulk(story)
            if index % COLLECT_EVERY == 0:
                gc.collect()  # the collector is off while a history is read
        self._before = story  # the next one is compared with all of it
        return kept


def without_bulk(story: Story) -> Story:
    """The scenario without most of its events. Its cuts stay as they are."""
    events: Sequence[Event] = [event for event in others_of(story.events) if not isinstance(event, BULKY)]
    less = Story(story.begun, tape_of(events), story.before, story.rig, story.lost_lines, story.after, story.flaws)
    less.__dict__["cut_records"] = story.cut_records
    return less
