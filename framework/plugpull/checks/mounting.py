"""Steps on filesystems that failed, or took far too long, though no cut had anything to do with it."""

from __future__ import annotations

from collections.abc import Iterator

from plugpull.checks.limits import bench_kind
from plugpull.checks.starved import awake
from plugpull.history.events import Acted, Edge
from plugpull.history.story import Story

MOUNTED = {"virtual": 15.0, "": 15.0}
"""Seconds that a mount may take on an emulated bench, with the recovery of its journal: it took 2.7 s at most."""
REAL = 90.0
"""The same on a real bench."""
UNMOUNTED = 30.0
"""Seconds that an umount may take where no check asks about it. On emulated benches it took 1.6 s at most."""
AROUND = 2.0
"""Seconds around a step in which a cut may have disturbed it."""


def step_doubts(story: Story) -> Iterator[str]:
    """A sentence for each."""
    offs = [edge.at for edge in story.of(Edge) if edge.state == "off" and edge.at is not None]
    for step in story.of(Acted):
        end = step.at or 0.0
        begin = end - step.seconds
        if any(begin - AROUND <= at <= end + AROUND for at in offs):
            continue
        if step.action == "mkfs" and not step.ok:
            yield f"no filesystem could be made on {step.disk}: {step.detail or '?'}"
        elif step.action == "mount" and awake(story, begin, end) > MOUNTED.get(bench_kind(story), REAL):
            yield f"mounting {step.disk} took {step.seconds:.1f} s"
        elif step.action == "umount" and step.ok and awake(story, begin, end) > UNMOUNTED:
            yield f"unmounting {step.disk} took {step.seconds:.1f} s"
