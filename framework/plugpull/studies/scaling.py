"""More and more disks at once: knee, ceiling and collapse, and the groups of disks that share a bottleneck."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import fsum
from statistics import fmean

from plugpull.checks.base import Check, Disks, Judgement, disk_names
from plugpull.checks.claims import Claim
from plugpull.checks.collector import Collector
from plugpull.history.story import Story
from plugpull.judging.results import Conclusion
from plugpull.measure import scaling as statistics
from plugpull.measure.estimate import Estimate, estimate
from plugpull.measure.hinge import count_at
from plugpull.measure.sharing import Group, groups
from plugpull.studies.capacity import impossible
from plugpull.studies.expected import below_expectation
from plugpull.studies.figures import doubts, figure, interval, rate
from plugpull.studies.measured import Series, claims_of, missing_of, series_of, spoilt_of
from plugpull.studies.places import explained, parts_of

WIDE = 0.10
"""If the interval of the share that disks reach together is wider than this, more repeats are needed."""
EQUAL = 1.10
"""The shares of disks are equal if the largest is at most so many times the smallest."""


class Scales(Check, frozen=True, tag="scaling"):
    """How the rate grows with the number of ``disks`` at once is known, and what they share. ``alone`` has the figures
    of the single disks."""

    disks: tuple[str, ...]

    def judge(self, story: Story) -> Judgement:
        said = Collector(self, self.disks)
        if len(self.disks) < 2:
            said.doubt("a scaling curve needs at least two disks")
            return said.judgement()
        said.doubt(missing_of(story))
        found = [group.disks for series in series_of(story) for group in self._groups(series) or ()]
        parts = tuple(disks for disks in dict.fromkeys(found) if len(disks) < len(self.disks))
        for series in series_of(story):
            for disks in self._sets():
                self._rates(story, series, disks, said)
            repeats = self._repeats(series)
            if len(repeats) > 1:
                self._curve(story, series, repeats, parts, said)
            self._shared(story, series, said)
        return said.judgement("; ".join(dict.fromkeys(_short(one) for one in said.conclusions)))

    def claims(self, story: Story) -> Iterable[Claim]:
        return claims_of(story)

    def _sets(self) -> Iterator[tuple[str, ...]]:
        yield from ((disk,) for disk in self.disks)
        yield from (self.disks[:count] for count in range(2, len(self.disks) + 1))

    def _rates(self, story: Story, series: Series, disks: tuple[str, ...], said: Collector) -> None:
        samples = [one.total for one in series.of(disks).values()]
        who = f"{disks[0]} alone" if len(disks) == 1 else f"{len(disks)} disks at once"
        said.doubt(*doubts(f"the {series.mode} rate of {who}", samples, series.repeats, spoilt_of(series, disks)))
        if samples and len(disks) > 1:
            parameters = {"disks": len(disks), **series.parameters}
            said.measure(figure(f"{series.mode} together", ", ".join(disks), samples, parameters))
            impossible(story, disks, series.mode, estimate(samples), said)
            for part in parts_of(story):
                if set(part.disks) == set(disks):
                    below_expectation(story, part.name, series.mode, estimate(samples), said)

    # --- the curve ----------------------------------------------------------------------------------------------

    def _repeats(self, series: Series) -> list[statistics.Repeat]:
        """The rounds in which everything was measured."""
        alone = [series.alone(disk) for disk in self.disks]
        sums = [
            {number: one.total for number, one in series.of(self.disks[:count]).items()}
            for count in range(2, len(self.disks) + 1)
        ]
        rounds = set.intersection(*(set(one) for one in (*alone, *sums)))
        return [
            statistics.Repeat(tuple(one[number] for one in alone), (alone[0][number], *(one[number] for one in sums)))
            for number in sorted(rounds)
        ]

    def _curve(
        self,
        story: Story,
        series: Series,
        repeats: list[statistics.Repeat],
        parts: tuple[tuple[str, ...], ...],
        said: Collector,
    ) -> None:
        """The knee and the ceiling of all disks; if only parts of them share a bottleneck, those of each part."""
        found = statistics.scaling(repeats)
        share = found.share
        said.measure(
            figure(f"{series.mode} share", ", ".join(self.disks), share.samples, series.parameters, "of the sum alone")
        )
        if found.answer == "unclear" and share.half > WIDE / 2:
            said.doubt(f"it cannot be said whether the disks limit each other when they {series.mode}: {_share(share)}")
        if found.collapse is not None:
            said.conclude(self._collapse(series, found.collapse))
        for disks in parts:
            self._part(story, series, disks, said)
        if parts or found.knee is None or found.ceiling is None:
            return
        part, _ = explained(story, self.disks)
        subject = str(part) if part is not None else ", ".join(self.disks)
        evidence = tuple(
            f"{count} disk{'s' * (count > 1)}: {interval(estimate([one.together[count - 1] for one in repeats]))}"
            for count in range(1, len(self.disks) + 1)
        )
        said.conclude(self._knee(series, subject, found.knee, evidence))
        said.conclude(
            Conclusion(
                kind="ceiling",
                subject=subject,
                text=f"All disks together {series.mode} at most {interval(found.ceiling)}; {self._equal(series)}. "
                f"One by one they reach {rate(fmean(fsum(one.alone) for one in repeats))} in sum.",
                value=round(found.ceiling.mean, 3),
                unit="B/s",
                evidence=(*evidence, _share(share)),
            )
        )

    def _part(self, story: Story, series: Series, disks: tuple[str, ...], said: Collector) -> None:
        """The ceiling of some disks while all work, and the knee: how many of them it takes to reach it."""
        alone, together = [series.alone(disk) for disk in disks], series.of(self.disks)
        rounds = sorted(set(together).intersection(*alone))
        if len(rounds) < 2:
            return
        sums = [fsum(together[number].rates[disk] for disk in disks) for number in rounds]
        shares = [[one[number] for one in alone] for number in rounds]
        share = estimate([total / fsum(each) for total, each in zip(sums, shares, strict=True)])
        if not statistics.is_limited(share):
            return
        knee = estimate([count_at(total, each) for total, each in zip(sums, shares, strict=True)])
        part, exactly = explained(story, disks)
        subject = str(part) if part is not None and exactly else ", ".join(disks)
        said.conclude(self._knee(series, subject, knee, (_share(share),)))
        said.conclude(
            Conclusion(
                kind="ceiling",
                subject=subject,
                text=f"{', '.join(disks)} together {series.mode} at most {interval(estimate(sums))} while all disks "
                f"work. One by one they reach {rate(fmean(map(fsum, shares)))} in sum.",
                value=round(fmean(sums), 3),
                unit="B/s",
                evidence=(_share(share),),
            )
        )

    def _knee(self, series: Series, subject: str, knee: Estimate, evidence: tuple[str, ...]) -> Conclusion:
        bounds = "" if knee.low is None else f" ({knee.low:.2f} to {knee.high:.2f}, {knee.n} repeats)"
        return Conclusion(
            kind="knee",
            subject=subject,
            text=f"{subject}: the {series.mode} rate grows with each disk up to {knee.mean:.2f} disks{bounds}; more "
            "disks add nothing.",
            value=round(knee.mean, 4),
            unit="disks",
            evidence=evidence,
        )

    def _collapse(self, series: Series, found: statistics.Collapse) -> Conclusion:
        return Conclusion(
            kind="collapse",
            subject=", ".join(self.disks[: found.disks]),
            text=f"The {series.mode} rate collapses with {found.disks} disks at once: from {rate(found.before.mean)} "
            f"to {rate(found.after.mean)} ({found.change:+.0%}).",
            value=found.disks,
            unit="disks",
            evidence=(interval(found.before), interval(found.after)),
        )

    def _equal(self, series: Series) -> str:
        """Whether the disks have equal shares of the ceiling."""
        readings = list(series.of(self.disks).values())
        shares = {disk: sum(one.rates[disk] for one in readings) / len(readings) for disk in self.disks}
        lowest, highest = min(shares.values()), max(shares.values())
        if lowest > 0 and highest / lowest <= EQUAL:
            return f"each has an equal share of about {rate(sum(shares.values()) / len(shares))}"
        return f"their shares range from {rate(lowest)} to {rate(highest)}"

    # --- what they share ----------------------------------------------------------------------------------------

    def _groups(self, series: Series) -> tuple[Group, ...] | None:
        """The groups that share a bottleneck; ``None`` if it was not measured what happens without each disk."""
        alone = {disk: list(series.alone(disk).values()) for disk in self.disks}
        together = series.of(self.disks)
        without = {out: series.of(disk for disk in self.disks if disk != out) for out in self.disks}
        enough = [len(one) > 1 for one in (*alone.values(), together, *without.values())]
        if not all(enough):
            return None
        return groups(
            alone,
            {disk: [one.rates[disk] for one in together.values()] for disk in self.disks},
            {
                out: {disk: [one.rates[disk] for one in readings.values()] for disk in self.disks if disk != out}
                for out, readings in without.items()
            },
        )

    def _shared(self, story: Story, series: Series, said: Collector) -> None:
        found = self._groups(series)
        if found is None:
            return
        for group in found:
            said.conclude(_shared(story, series, group))
        repeats = self._repeats(series)
        if not found and len(repeats) > 1:
            curve = statistics.scaling(repeats)
            if curve.answer == "free":
                said.conclude(self._free(series, curve.share))

    def _free(self, series: Series, share: Estimate) -> Conclusion:
        return Conclusion(
            kind="no-bottleneck",
            subject=", ".join(self.disks),
            text=f"All {len(self.disks)} disks {series.mode} at once as fast as one by one: no shared bottleneck.",
            value=round(share.mean, 4),
            unit="of the sum alone",
            evidence=(_share(share),),
        )


def scaling(disks: Disks) -> Scales:
    """How the rate grows with the number of disks must be known: ``rig.measure(scaling_design(disks))`` measures it."""
    return Scales(disk_names(disks))


def _shared(story: Story, series: Series, group: Group) -> Conclusion:
    part, exactly = explained(story, group.disks)
    names = ", ".join(group.disks)
    if part is None:
        where = "the rig file has no part that they share"
    elif exactly:
        where = f"they are the disks below {part}, as the rig file has it"
    else:
        others = ", ".join(disk for disk in part.disks if disk not in group.disks)
        where = f"the rig file does not explain that: {part} has them all, but {others} below it is not slowed"
    return Conclusion(
        kind="shared-bottleneck",
        subject=names,
        text=f"{names} share a bottleneck: together they {series.mode} {interval(group.ceiling)}, one by one "
        f"{rate(group.demand)} in sum, and each gets faster when another one is left out; {where}.",
        value=round(group.ceiling.mean, 3),
        unit="B/s",
        evidence=(f"together: {interval(group.ceiling)}", f"sum of each alone: {rate(group.demand)}"),
    )


def _share(share: Estimate) -> str:
    bounds = "" if share.low is None or share.high is None else f" ({share.low:.0%} to {share.high:.0%})"
    return f"together they reach {share.mean:.0%}{bounds} of the sum of each alone"


def _short(one: Conclusion) -> str:
    value = rate(one.value or 0.0) if one.unit == "B/s" else f"{one.value:g} {one.unit}"
    return f"{one.kind} {value}"
