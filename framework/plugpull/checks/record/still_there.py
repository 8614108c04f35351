"""Removals that are on record although the disk was sampled on. A line of another record can say so; nobody left."""

from __future__ import annotations

from plugpull.history.samples import CounterStream
from plugpull.history.story import Story

LONG = 1.0
"""Seconds after its removal in which a disk may still be sampled: uevents are read late, by 0.01 s at most."""


def still_there(story: Story, kname: str, diskseq: int, gone: float) -> bool:
    """Whether this attachment was in two samples or more, long after it was removed by the record. ``coherent`` reports
    the contradiction."""
    stream = story.samples.streams.get((kname, diskseq)) or CounterStream((kname, diskseq))
    later = (story.samples.time(row) or 0.0 for row in stream.rows_after(gone + LONG, story.samples))
    return sum(at > gone + LONG for at in later) > 1
