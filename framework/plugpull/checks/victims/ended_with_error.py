"""Whether the users of a cut disk got an error and ended."""

from __future__ import annotations

from collections.abc import Iterable

from plugpull.checks.accusation import Accusation
from plugpull.checks.base import Check, Disks, Judgement, disk_names
from plugpull.checks.claims import Claim, Evidence
from plugpull.checks.collector import Collector
from plugpull.checks.evidence import cuts_of, limit, not_executed, seconds
from plugpull.checks.limits import ended_with_error as limit_of
from plugpull.checks.starved import awake, excused
from plugpull.checks.victims.failed_as import not_of_a_loss
from plugpull.history.cut import Cut
from plugpull.history.reader import Story


class EndedWithError(Check, frozen=True, tag="ended_with_error"):
    """The load on each of ``disks`` ended by itself, with an I/O error, ``within`` seconds of its first cut.

    ``None``: the disk's limit in the rig file, or the default of the kind of bench."""

    disks: tuple[str, ...]
    within: float | None = None

    def judge(self, story: Story) -> Judgement:
        said = Collector(self, self.disks)
        took: list[tuple[float, float]] = []
        for disk in self.disks:
            cuts = cuts_of(story, disk)
            verdict = self._one(story, cuts[0], disk) if cuts else f"{disk} was never cut"
            if isinstance(verdict, Accusation | str):
                said.take(verdict)
            else:
                took.append((verdict, limit_of(story, disk, self.within)))
        slowest, within = max(took, default=(None, None))
        worst = ""
        if slowest is not None and within is not None:
            worst = f"its load ended with an error after {seconds(slowest)} {limit(within)}"
        return said.timed(worst, slowest, within)

    def claims(self, story: Story) -> Iterable[Claim]:
        for disk in self.disks:
            cuts = cuts_of(story, disk)
            begin = cuts[0].off.commanded_at if cuts else None
            load = None if begin is None else story.load_at(disk, begin)
            ended = None if load is None else story.load_end(load)
            if begin is not None and ended is not None and ended.at is not None:
                what = f"the load on {disk} ended with an error in time"
                evidence, within = (Evidence.LOAD, Evidence.CLOCK), limit_of(story, disk, self.within)
                yield Claim(what=what, evidence=evidence, begin=begin, end=ended.at, disk=disk, limit=within)

    def _one(self, story: Story, cut: Cut, disk: str) -> Accusation | str | float:
        """The seconds it took, or an accusation, or the sentence of a doubt."""
        begin = cut.off.commanded_at
        doubt = not_executed(cut)
        if doubt or begin is None:
            return doubt
        load = story.load_at(disk, begin - cut.error) or story.load_at(disk, begin)
        if load is None:
            return f"{disk} had no load when {cut.armed.point} was cut"
        ended = story.load_end(load)
        if cut.times(disk).removed_at is None:
            return f"{disk} was never seen gone, so its load need not have ended"
        if ended is None or ended.at is None:
            return f"how the load on {disk} ended was not recorded"
        if ended.stuck:
            return self._accusation(disk, f"the load on {disk} could not be ended", ended.at)
        failed = ended.errno or (not ended.asked and ended.exit_status)
        if not failed:
            how = "went on until it was asked to stop" if ended.asked else "ended without an error"
            return self._accusation(disk, f"the load on {disk} {how} though the disk was gone", ended.at)
        if other := not_of_a_loss(story, ended):
            return other
        took, within = max(0.0, ended.at - begin), limit_of(story, disk, self.within)
        what = f"the load on {disk} ended with an error only after {seconds(took)} {limit(within)}"
        if awake(story, begin, ended.at) > within + cut.error:
            return self._accusation(disk, what, ended.at)
        if took > within + cut.error and not excused(story, begin, ended.at, within):
            return f"{what}, but the DUT was starved meanwhile"
        return took

    def _accusation(self, disk: str, summary: str, at: float | None) -> Accusation:
        return Accusation(subject=disk, summary=summary, at=at)


def ended_with_error(disks: Disks, within: float | None = None) -> EndedWithError:
    """The load on each of ``disks`` must end by itself, with an I/O error, ``within`` seconds of the cut."""
    return EndedWithError(disk_names(disks), within)
