"""How much longer does a disk take to come back while the others are busy?"""

from __future__ import annotations

from plugpull.checks.base import Check, Judgement, Named, disk_names
from plugpull.checks.evidence import cuts_of, seconds
from plugpull.errors import Finding
from plugpull.history.events import LoadBegun
from plugpull.history.reader import Story


class ReadyUnderLoad(Check, frozen=True, tag="ready_under_load"):
    """``disk`` was cut at least twice, once with no load on any other disk and once with some. Under load it may take
    ``factor`` times as long as idle to come back, and in any case ``spare`` seconds longer."""

    disk: str
    factor: float = 3.0
    spare: float = 1.0

    def judge(self, story: Story) -> Judgement:
        idle: list[float] = []
        busy: list[tuple[float, float]] = []
        for cut in cuts_of(story, self.disk):
            returned_at, restored_at = cut.times(self.disk).returned_at, cut.restored_at
            if returned_at is None or restored_at is None or not cut.executed:
                continue
            if _others_busy(story, self.disk, restored_at, returned_at):
                busy.append((max(0.0, returned_at - restored_at), returned_at))
            else:
                idle.append(max(0.0, returned_at - restored_at))
        if not idle or not busy:
            lacking = " nor ".join(name for name, times in (("idle", idle), ("under load", busy)) if not times)
            return Judgement(
                unknowns=(f"{self.disk} did not come back {lacking}: nothing to compare",), subject=self.disk
            )
        slowest, at = max(busy)
        worst = f"ready after {seconds(slowest)} under load, {seconds(max(idle))} idle"
        allowed = max(max(idle) * self.factor, max(idle) + self.spare)
        if slowest <= allowed:
            return Judgement(worst=worst, subject=self.disk)
        what = f"{self.disk} was {worst} (limit {allowed:.2f} s)"
        return Judgement(
            findings=(Finding(check="ready_under_load", subject=self.disk, summary=what, at=at),),
            worst=worst,
            subject=self.disk,
        )


def ready_under_load(disk: str | Named, factor: float = 3.0, spare: float = 1.0) -> ReadyUnderLoad:
    """``disk`` must come back under load in at most ``factor`` times its idle time, or ``spare`` seconds more."""
    (name,) = disk_names(disk)
    return ReadyUnderLoad(name, factor, spare)


def _others_busy(story: Story, disk: str, begin: float, end: float) -> bool:
    others = {load.disk for load in story.of(LoadBegun)} - {disk}
    return any(story.load_at(other, begin) and story.load_at(other, end) for other in others)
