"""Is each disk of the rig what the rig file declares, and there once?"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from plugpull.checks.base import Check, Judgement
from plugpull.errors import Finding
from plugpull.history.events import DiskAttached
from plugpull.history.reader import Story

TOGETHER = 1.0
"""Seconds for which two attachments of one disk have to overlap to be two: uevents are read a little late."""


class AsDeclared(Check, frozen=True, tag="as_declared"):
    """Each disk of the rig is first announced with the size that the rig file gives, and is never there twice.

    What a disk comes back as after a cut is for ``returned`` to judge.
    """

    def judge(self, story: Story) -> Judgement:
        findings = [*_sizes(story), *_twice(story)]
        return Judgement(findings=tuple(findings))


def as_declared() -> AsDeclared:
    """Each disk must be what the rig file declares."""
    return AsDeclared()


def _sizes(story: Story) -> Iterator[Finding]:
    for disk in story.rig.get("disk", ()):
        name, size = str(disk.get("name")), disk.get("size")
        first = next(iter(story.attachments(name)), None)
        if first is not None and isinstance(size, int) and size > 0 and first.size != size:
            what = f"{name} was announced with {first.size} bytes, and the rig file says {size}"
            yield _finding(name, what, first)


def _twice(story: Story) -> Iterator[Finding]:
    names = dict.fromkeys(one.disk for one in story.all_attachments if one.disk)
    for name in names:
        for one, two in combinations(story.attachments(name), 2):
            gone = story.detached_at(one)
            both = gone is None or gone > (two.at or 0.0) + TOGETHER
            if both and one.kname != two.kname:
                yield _finding(name, f"{name} is there twice, as {one.kname} and {two.kname}", two)


def _finding(disk: str, summary: str, found: DiskAttached) -> Finding:
    evidence = f"{found.kname}: serial {found.serial}, {found.size} bytes, at {found.place}"
    return Finding(check="as_declared", subject=disk, summary=summary, at=found.at, evidence=(evidence,))
