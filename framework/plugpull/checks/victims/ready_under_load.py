"""Whether a disk takes longer to return while the other disks are busy."""

from __future__ import annotations

from collections.abc import Iterable
from statistics import median

from plugpull.checks.base import Check, Judgement, Named, disk_names
from plugpull.checks.claims import Claim, Evidence
from plugpull.checks.collector import Collector
from plugpull.checks.evidence import cuts_of, seconds
from plugpull.checks.limits import ready_under_load as limit_of
from plugpull.checks.repeats import repeated
from plugpull.checks.starved import awake
from plugpull.history.events import LoadBegun
from plugpull.history.reader import Story

SAMPLES = 3
"""Returns of each kind that are needed to distinguish a factor near 1 from chance."""
LEAST_SPARE = 0.3
"""Seconds by which returns differ on an idle emulated bench."""


class ReadyUnderLoad(Check, frozen=True, tag="ready_under_load"):
    """``disk`` was cut several times without load on other disks, and several times with load. Under load it may take
    ``factor`` times as long to return as idle, or ``spare`` seconds longer. The medians are compared.

    ``factor=None``: the disk's limit in the rig file, or the default of the kind of bench. Then at least three returns
    of each kind are needed.
    """

    disk: str
    factor: float | None = None
    spare: float = LEAST_SPARE

    def judge(self, story: Story) -> Judgement:
        said = Collector(self, self.disk)
        idle, busy, at = self._returns(story)
        needed = SAMPLES if self.factor is None else 1
        lacking = [name for name, times in (("idle", idle), ("under load", busy)) if not times]
        if lacking:
            missing = f"{self.disk} did not come back {' nor '.join(lacking)}: nothing to compare"
            said.doubt(missing)
            return said.judgement()
        if min(len(idle), len(busy)) < needed:
            counts = f"{len(idle)} idle and {len(busy)} under load"
            missing = f"{self.disk} came back {counts}, and {needed} of each are needed to compare"
            said.doubt(missing)
            return said.judgement()
        for load, times in (("none", idle), ("other disks", busy)):
            said.measure(repeated("returned after", self.disk, times, "s", better="down", parameters={"load": load}))
        return self._compare(story, idle, busy, at, said)

    def ratio(self, story: Story) -> float | None:
        """The ratio of the times under load and idle; ``None`` without three returns of each kind."""
        idle, busy, _ = self._returns(story)
        return median(busy) / median(idle) if min(len(idle), len(busy)) >= SAMPLES and median(idle) > 0 else None

    def claims(self, story: Story) -> Iterable[Claim]:
        for cut in cuts_of(story, self.disk):
            returned_at, restored_at = cut.times(self.disk).returned_at, cut.restored_at
            if returned_at is not None and restored_at is not None:
                what = f"{self.disk} came back under load as soon as idle"
                evidence = (Evidence.UEVENTS, Evidence.CLOCK)
                end, spare = max(restored_at, returned_at), self.spare
                yield Claim(what=what, evidence=evidence, begin=restored_at, end=end, disk=self.disk, limit=spare)

    def _returns(self, story: Story) -> tuple[list[float], list[float], float]:
        """The seconds of each return while the others were idle, those while they were busy, and the time of the
        slowest return under load."""
        idle: list[float] = []
        busy: list[tuple[float, float]] = []
        for cut in cuts_of(story, self.disk):
            returned_at, restored_at = cut.times(self.disk).returned_at, cut.restored_at
            if returned_at is None or restored_at is None or not cut.executed:
                continue
            took = awake(story, restored_at, returned_at)
            if _others_busy(story, self.disk, restored_at, returned_at):
                busy.append((took, returned_at))
            else:
                idle.append(took)
        return idle, [took for took, _ in busy], max(busy, default=(0.0, 0.0))[1]

    def _compare(self, story: Story, idle: list[float], busy: list[float], at: float, said: Collector) -> Judgement:
        # With a given factor, a single return is enough: then the slowest one counts.
        typical = median if self.factor is None else max
        usual, loaded = typical(idle), typical(busy)
        factor = limit_of(story, self.disk, self.factor)
        allowed = max(usual * factor, usual + self.spare)
        spread = max(max(idle) - min(idle), max(busy) - min(busy))
        smallest = round(max(0.0, allowed - usual) + spread / 2, 6)
        times = f"{len(idle)} and {len(busy)} times, spread {seconds(spread)}"
        worst = f"ready after {seconds(loaded)} under load, {seconds(usual)} idle"
        if loaded > allowed:
            what = f"{self.disk} was {worst} (limit {allowed:.2f} s)"
            said.accuse(self.disk, what, at)
        noticed = f"limit {allowed:.2f} s, would have noticed {seconds(smallest)} more; {times}"
        return said.judgement(
            f"{worst} ({noticed})",
            measured=round(loaded, 6),
            limit=round(allowed, 6),
            unit="s",
            smallest=smallest,
        )


def ready_under_load(disk: str | Named, factor: float | None = None, spare: float = LEAST_SPARE) -> ReadyUnderLoad:
    """``disk`` must come back under load in at most ``factor`` times its idle time, or ``spare`` seconds more."""
    (name,) = disk_names(disk)
    return ReadyUnderLoad(name, factor, spare)


def _others_busy(story: Story, disk: str, begin: float, end: float) -> bool:
    others = {load.disk for load in story.of(LoadBegun)} - {disk}
    return any(story.load_at(other, begin) and story.load_at(other, end) for other in others)
