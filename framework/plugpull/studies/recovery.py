"""What a pulled plug leaves behind in speed: the same measurement before a cut and after it."""

from __future__ import annotations

from collections.abc import Iterable

from plugpull.checks.base import Check, Disks, Judgement, disk_names
from plugpull.checks.claims import Claim
from plugpull.checks.collector import Collector
from plugpull.history.story import Story
from plugpull.judging.results import Conclusion
from plugpull.measure.compare import FLOOR, RelativeChange, compare_all
from plugpull.measure.estimate import estimate
from plugpull.studies.figures import doubts, figure, interval
from plugpull.studies.measured import Series, claims_of, missing_of, series_of, spoilt_of


class RecoveryCost(Check, frozen=True, tag="recovery_cost"):
    """The rates of ``victims`` and of ``survivors``, each in sum, are known before and after the cuts.

    A difference is a conclusion: how slow a disk may be afterwards is for ``kept_pace`` and the rig file to say."""

    victims: tuple[str, ...]
    survivors: tuple[str, ...]

    def judge(self, story: Story) -> Judgement:
        said = Collector(self, (*self.victims, *self.survivors))
        said.doubt(missing_of(story))
        cuts = [cut for cut in story.cut_records if cut.off.commanded_at is not None]
        if not cuts:
            said.doubt("nothing was cut between the measurements")
            return said.judgement()
        first = min(cut.off.commanded_at or 0.0 for cut in cuts)
        last = max(cut.restored_at or cut.off.commanded_at or 0.0 for cut in cuts)
        for series in series_of(story):
            self._series(series, first, last, said)
        return said.judgement(", ".join(f"{one.subject}: {one.kind}" for one in said.conclusions))

    def claims(self, story: Story) -> Iterable[Claim]:
        return claims_of(story)

    def _series(self, series: Series, first: float, last: float, said: Collector) -> None:
        before = Series(series.mode, tuple(one for one in series.readings if (one.event.at or 0.0) <= first))
        after = Series(series.mode, tuple(one for one in series.readings if one.event.begin >= last))
        pairs, who = [], []
        for name, disks in (("victim", self.victims), ("survivors", self.survivors)):
            sums = [self._sums(name, disks, part, when, said) for part, when in ((before, "before"), (after, "after"))]
            if all(sums):
                pairs.append((sums[0], sums[1]))
                who.append((name, disks))
        for (name, disks), (one, two), found in zip(who, pairs, compare_all(pairs), strict=True):
            _conclude(series.mode, name, ", ".join(disks), (one, two), found, said)

    def _sums(self, name: str, disks: tuple[str, ...], part: Series, when: str, said: Collector) -> list[float]:
        """The sums of the rates of these disks, by round; empty if they are not a result."""
        if not disks:
            return []
        readings = [one for one in part.readings if not one.spoilt and set(disks) <= one.disks]
        sums = [sum(one.rates[disk] for disk in disks) for one in readings]
        wrong = list(doubts(f"the {part.mode} rate of the {name} {when} the cut", sums, part.repeats, spoilt_of(part)))
        said.doubt(*wrong)
        if sums:
            said.measure(figure(f"{part.mode} {when} the cut", ", ".join(disks), sums, part.parameters))
        return [] if wrong else sums


def recovery_cost(victims: Disks, survivors: Disks) -> RecoveryCost:
    """The rates before and after a cut must be known. Measure ``all_at_once(rig.disks)`` before it and after it."""
    return RecoveryCost(disk_names(victims), disk_names(survivors))


def _conclude(
    mode: str, name: str, disks: str, sums: tuple[list[float], list[float]], found: RelativeChange, said: Collector
) -> None:
    bounds = "" if found.low is None else f" ({found.low:+.1%} to {found.high:+.1%})"
    if found.answer == "too few" and abs(found.change) >= FLOOR:
        few = f"{len(sums[0])} repeats are too few to say whether the rate of the {name} changed"
        said.doubt(f"{few}: {found.change:+.1%}{bounds}")
    if found.answer not in ("different", "alike"):
        return
    different = found.answer == "different"
    what = "differs from that before" if different else "is the same as before"
    text = f"The {mode} rate of the {name} ({disks}) after the cut {what}: {found.change:+.1%}{bounds}."
    said.conclude(
        Conclusion(
            kind="difference" if different else "no-difference",
            subject=disks,
            text=text,
            value=round(found.change, 4),
            evidence=(
                f"before: {interval(estimate(sums[0]))}",
                f"after: {interval(estimate(sums[1]))}",
                f"exact permutation test: p = {found.p:.4f}, corrected for the comparisons of this table",
            ),
        )
    )
