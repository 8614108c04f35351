"""What a pulled plug leaves behind in speed: the same measurement before a cut and after it."""

from __future__ import annotations

from collections.abc import Iterable

from plugpull.checks.base import Check, Disks, Judgement, disk_names
from plugpull.checks.claims import Claim
from plugpull.checks.collector import Collector
from plugpull.history.story import Story
from plugpull.judging.results import Conclusion
from plugpull.studies.changes import Compared, NamedRepeats, compared
from plugpull.studies.figures import doubts, figure
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
                pairs.append((NamedRepeats("before", sums[0]), NamedRepeats("after", sums[1])))
                who.append((name, disks))
        for (name, disks), each in zip(who, compared(pairs), strict=True):
            _conclude(series.mode, name, ", ".join(disks), each, said)

    def _sums(self, name: str, disks: tuple[str, ...], part: Series, when: str, said: Collector) -> list[float]:
        """The sums of the rates of these disks, by round; empty if they are not a result."""
        if not disks:
            return []
        readings = [one for one in part.readings if not one.spoilt and set(disks) <= one.disks]
        sums = [sum(one.rates[disk] for disk in disks) for one in readings]
        wrong = list(doubts(f"the {part.mode} rate of the {name} {when} the cut", sums, part.repeats, spoilt_of(part)))
        said.doubt(*wrong)
        if sums:
            counting = max(one.counting for one in readings)
            said.measure(
                figure(f"{part.mode} {when} the cut", ", ".join(disks), sums, part.parameters, counting=counting)
            )
        return [] if wrong else sums


def recovery_cost(victims: Disks, survivors: Disks) -> RecoveryCost:
    """The rates before and after a cut must be known. Measure ``all_at_once(rig.disks)`` before it and after it."""
    return RecoveryCost(disk_names(victims), disk_names(survivors))


def _conclude(mode: str, name: str, disks: str, each: Compared, said: Collector) -> None:
    said.doubt(each.doubt(f"the rate of the {name} changed"))
    if each.found.answer not in ("different", "alike"):
        return
    different = each.found.answer == "different"
    what = "differs from that before" if different else "is the same as before"
    said.conclude(
        Conclusion(
            kind="difference" if different else "no-difference",
            subject=disks,
            text=f"The {mode} rate of the {name} ({disks}) after the cut {what}: {each.change}.",
            value=round(each.found.change, 4),
            evidence=each.evidence(),
        )
    )
