"""Steps on filesystems that failed, or took far too long, though no cut had anything to do with it; and those of which
the beginning or the end is missing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from plugpull.checks.limits import bench_kind
from plugpull.checks.starved import awake
from plugpull.history.events import (
    Acted,
    AgentLost,
    DutDied,
    Edge,
    FileRoundBegun,
    FilesystemChecked,
    ScenarioError,
    StepBegun,
)
from plugpull.history.story import Story

MOUNTED = {"virtual": 15.0, "": 15.0}
"""Seconds that a mount may take on an emulated bench, with the recovery of its journal: it took 2.7 s at most."""
REAL = 90.0
"""The same on a real bench."""
UNMOUNTED = 30.0
"""Seconds that an umount may take where no check asks about it. On emulated benches it took 1.6 s at most."""
MADE, CHECKED = 60.0, 60.0
"""Seconds that making and checking a filesystem may take on an emulated bench: 10.9 and 3.9 s at most."""
AROUND = 2.0
"""Seconds around a step in which a cut may have disturbed it."""
_CALLS = frozenset({"mount", "umount"})
"""Steps whose beginning is on record too. A step that is refused never begins."""


def step_doubts(story: Story) -> Iterator[str]:
    """A sentence for each."""
    offs = [edge.at for edge in story.of(Edge) if edge.state == "off" and edge.at is not None]
    in_rounds = {one.disk for one in story.of(FileRoundBegun)}
    for step in story.of(Acted):
        end = step.at or 0.0
        begin = end - step.seconds
        near = [at for at in offs if begin - AROUND <= at <= end + AROUND]
        yield from _slow(story, step) if all(at >= end - AROUND for at in near) else ()
        if near:
            continue
        if step.action == "mkfs" and not step.ok:
            yield f"no filesystem could be made on {step.disk}: {step.detail or '?'}"
        elif step.action == "mount" and not step.ok and step.disk not in in_rounds:
            yield f"the mount of {step.disk} failed: {step.detail or '?'}"
        elif step.action == "umount" and not step.ok and not _unmounted_later(story, step):
            yield f"the umount of {step.disk} failed: {step.detail or '?'}"
    for check in story.of(FilesystemChecked):
        took = awake(story, (check.at or 0.0) - check.seconds, check.at or 0.0)
        if took > CHECKED and bench_kind(story) in ("virtual", ""):
            yield f"the check of {check.disk} took {check.seconds:.1f} s"
    yield from _unpaired(story)


def _unmounted_later(story: Story, step: Acted) -> bool:
    later = (one for one in story.of(Acted) if one.disk == step.disk and (one.at or 0.0) > (step.at or 0.0))
    return any(one.action == "umount" and one.ok for one in later)


def _slow(story: Story, step: Acted) -> Iterator[str]:
    """A step that no cut fell into and that took far too long."""
    took, emulated = awake(story, (step.at or 0.0) - step.seconds, step.at or 0.0), bench_kind(story) in ("virtual", "")
    if step.action == "mount" and took > MOUNTED.get(bench_kind(story), REAL):
        yield f"mounting {step.disk} took {step.seconds:.1f} s"
    elif step.action == "umount" and step.ok and took > UNMOUNTED:
        yield f"unmounting {step.disk} took {step.seconds:.1f} s"
    elif step.action == "mkfs" and step.ok and took > MADE and emulated:
        yield f"making a filesystem on {step.disk} took {step.seconds:.1f} s"


def _unpaired(story: Story) -> Iterator[str]:
    """Mounts and umounts of which only the beginning or the end is on record. Older agents record no beginnings."""
    begun = story.of(StepBegun)
    if not begun or bool(story.of(AgentLost)) or bool(story.of(DutDied)) or bool(story.of(ScenarioError)):
        return
    began = Counter((one.disk, one.action) for one in begun)
    ended = Counter((step.disk, step.action) for step in story.of(Acted))
    done = Counter((step.disk, step.action) for step in story.of(Acted) if step.ok)
    fits = True
    for disk, action in sorted({*began, *(one for one in done if one[1] in _CALLS)}):
        which = (disk, action)
        if not done[which] <= began[which] <= ended[which]:
            fits = False
            what = f"{action} of {disk} began {began[which]} times and ended {ended[which]} times"
            yield f"the record contradicts itself: {what}"
    yield from _alternating(story) if fits else ()


def _alternating(story: Story) -> Iterator[str]:
    """Filesystems that were unmounted without a mount on record, or mounted while they were."""
    mounted: dict[str, bool] = {}
    for step in story.of(Acted):
        if step.action not in _CALLS or not step.ok:
            continue
        before, mounted[step.disk] = mounted.get(step.disk, False), step.action == "mount"
        if step.action == "umount" and not before:
            when = f"{step.at or 0.0:.2f} s"
            yield f"the filesystem on {step.disk} was unmounted at {when}, and its mount is not on record"
        elif step.action == "mount" and before:
            yield f"the filesystem on {step.disk} was mounted twice, and that it was unmounted is not on record"
