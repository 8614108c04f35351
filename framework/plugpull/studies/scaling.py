"""More and more disks at once: knee, ceiling and collapse, and the groups of disks that share a bottleneck."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from plugpull.checks.base import Check, Disks, Judgement, disk_names
from plugpull.checks.claims import Claim
from plugpull.checks.collector import Collector
from plugpull.history.story import Story
from plugpull.judging.results import Conclusion
from plugpull.measure import scaling as statistics
from plugpull.measure.estimate import Estimate, estimate
from plugpull.measure.limits import SharedLimit
from plugpull.studies.agreement import disagreements
from plugpull.studies.bottlenecks import conclude_limit, limits_of, share_in_words
from plugpull.studies.capacity import impossible
from plugpull.studies.expected import below_expectation
from plugpull.studies.figures import doubts, figure, interval, rate
from plugpull.studies.measured import Series, claims_of, missing_of, series_of, spoilt_of
from plugpull.studies.places import parts_of
from plugpull.studies.processors import busy_share
from plugpull.studies.within import changing

WIDE = 0.10
"""If the interval of the share that disks reach together is wider than this, more repeats are needed."""


SATURATED = 0.9
"""With this share of the DUT's processors in use, they may be what limits the disks."""


class Scales(Check, frozen=True, tag="scaling"):
    """How the rate grows with the number of ``disks`` at once is known, and what they share. ``alone`` has the figures
    of the single disks."""

    disks: tuple[str, ...]

    def judge(self, story: Story) -> Judgement:
        said = Collector(self, self.disks)
        if len(self.disks) < 2:
            said.doubt("a scaling curve needs at least two disks")
            return said.judgement()
        said.doubt(missing_of(story), *disagreements(story))
        known: list[tuple[str, ...]] = []
        for series in series_of(story):
            for disks in self._sets():
                self._rates(story, series, disks, said)
            repeats = self._repeats(series)
            changes = changing(series)
            said.doubt(changes)
            if len(repeats) > 1 and not changes:
                limits = self._curve(story, series, repeats, known, said)
                known += [limit.disks for limit in limits]  # writing first: of it, most is known
        return said.judgement("; ".join(dict.fromkeys(_short(one) for one in said.conclusions)))

    def claims(self, story: Story) -> Iterable[Claim]:
        return claims_of(story)

    def _sets(self) -> Iterator[tuple[str, ...]]:
        yield from ((disk,) for disk in self.disks)
        yield from (self.disks[:count] for count in range(2, len(self.disks) + 1))

    def _rates(self, story: Story, series: Series, disks: tuple[str, ...], said: Collector) -> None:
        samples, counting = [one.total for one in series.of(disks).values()], series.counting(disks)
        who = f"{disks[0]} alone" if len(disks) == 1 else f"{len(disks)} disks at once"
        said.doubt(*doubts(f"the {series.mode} rate of {who}", samples, series.repeats, spoilt_of(series, disks)))
        if samples and len(disks) > 1:
            parameters = {"disks": len(disks), **series.parameters}
            found = estimate(samples, counting=counting)
            said.measure(figure(f"{series.mode} together", ", ".join(disks), samples, parameters, counting=counting))
            impossible(story, disks, series.mode, found, said)
            for part in parts_of(story):
                if set(part.disks) == set(disks):
                    below_expectation(story, part.name, series.mode, found, said)

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
        known: list[tuple[str, ...]],
        said: Collector,
    ) -> tuple[SharedLimit, ...]:
        """The collapse of all disks, and knee, ceiling and shared bottleneck of those that share a limit."""
        found = statistics.scaling(repeats)
        share = found.share
        said.measure(
            figure(f"{series.mode} share", ", ".join(self.disks), share.samples, series.parameters, "of the sum alone")
        )
        if found.collapse is not None:
            said.conclude(self._collapse(series, found.collapse))
        parts = [part.disks for part in parts_of(story)]
        limits, described = limits_of(series, self.disks, parts, known, found)
        if not limits and found.answer == "unclear" and share.half > WIDE / 2:
            why = f"it cannot be said whether the disks limit each other when they {series.mode}"
            said.doubt(f"{why}: {share_in_words(share)}")
        tried = self._each_left_out(series)
        named = {one.subject for one in said.conclusions if one.kind == "shared-bottleneck"}
        sure = tuple(limit for limit in limits if not self._doubted(story, series, limit, said))
        for limit in sure:
            collapsed = found.collapse is not None and len(limit.disks) >= found.collapse.disks
            # A limit that only reading reaches shows with more and more disks. What writing showed is not said again.
            shared = tried or (described and ", ".join(limit.disks) not in named)
            conclude_limit(story, series, limit, self.disks, said, shared=shared, collapsed=collapsed)
        if tried and not limits and found.answer == "free":
            said.conclude(self._free(series, share))
        return sure

    def _doubted(self, story: Story, series: Series, limit: SharedLimit, said: Collector) -> bool:
        """Whether nothing is concluded from a limit: the DUT's processors were busy all the time while these disks
        worked, or others may share it instead."""
        if limit.instead:
            said.doubt(
                f"{', '.join(limit.disks)} slow each other down when they {series.mode}, but it cannot be said what "
                f"shares a limit: these alone, or {', '.join(limit.instead)} with unequal shares"
            )
            return True
        working = [one for one in series.readings if not one.spoilt and set(limit.disks) <= one.disks]
        busy = busy_share(story, working)
        if busy < SATURATED:
            return False
        said.doubt(
            f"{', '.join(limit.disks)} together {series.mode} at most {interval(limit.ceiling)}, but the DUT's "
            f"processors were {busy:.0%} busy then: they may be the limit, not what the disks share"
        )
        return True

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

    def _each_left_out(self, series: Series) -> bool:
        """Whether it was measured, twice at least, what happens without each disk."""
        without = [series.of(disk for disk in self.disks if disk != out) for out in self.disks]
        return all(len(one) > 1 for one in (series.of(self.disks), *without))

    def _free(self, series: Series, share: Estimate) -> Conclusion:
        return Conclusion(
            kind="no-bottleneck",
            subject=", ".join(self.disks),
            text=f"All {len(self.disks)} disks {series.mode} at once as fast as one by one: no shared bottleneck.",
            value=round(share.mean, 4),
            unit="of the sum alone",
            evidence=(share_in_words(share),),
        )


def scaling(disks: Disks) -> Scales:
    """How the rate grows with the number of disks must be known: ``rig.measure(scaling_design(disks))`` measures it."""
    return Scales(disk_names(disks))


def _short(one: Conclusion) -> str:
    value = rate(one.value or 0.0) if one.unit == "B/s" else f"{one.value:g} {one.unit}"
    return f"{one.kind} {value}"
