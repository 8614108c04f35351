"""Controllers side by side: as many disks on each, and whether one is faster."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations

from plugpull.checks.base import Check, Disks, Judgement, disk_names
from plugpull.checks.claims import Claim
from plugpull.checks.collector import Collector
from plugpull.checks.discovered import declared_place
from plugpull.history.story import Story
from plugpull.judging.results import Conclusion
from plugpull.measure.compare import FLOOR, RelativeChange, compare_all
from plugpull.measure.estimate import estimate
from plugpull.studies.capacity import impossible
from plugpull.studies.figures import doubts, figure, interval, rate
from plugpull.studies.measured import Series, claims_of, missing_of, series_of, spoilt_of


class Beside(Check, frozen=True, tag="beside"):
    """Whether the controllers of ``disks`` differ is known: a difference, or none that matters."""

    disks: tuple[str, ...]

    def judge(self, story: Story) -> Judgement:
        said = Collector(self, self.disks)
        said.doubt(missing_of(story))
        for series in series_of(story):
            self._series(story, series, said)
        return said.judgement(", ".join(dict.fromkeys(one.kind for one in said.conclusions)))

    def claims(self, story: Story) -> Iterable[Claim]:
        return claims_of(story)

    def _series(self, story: Story, series: Series, said: Collector) -> None:
        places: dict[str, list[float]] = {}
        groups = {reading.event.disks for reading in series.readings}
        for disks in sorted(groups, key=lambda group: self.disks.index(group[0])):
            place = declared_place(story.rig, disks[0])
            samples = [one.total for one in series.of(disks).values()]
            name = place[0] if place is not None else ", ".join(disks)
            wrong = list(doubts(f"the {series.mode} rate on {name}", samples, series.repeats, spoilt_of(series, disks)))
            said.doubt(*wrong)
            if samples:
                parameters: dict[str, str | float] = {"disks": len(disks), "on": name, **series.parameters}
                said.measure(figure(f"{series.mode} beside", ", ".join(disks), samples, parameters))
                impossible(story, disks, series.mode, estimate(samples), said)
            if samples and not wrong:
                places[name] = samples
        pairs = list(combinations(places, 2))
        found = compare_all([(places[one], places[two]) for one, two in pairs])
        for (one, two), difference in zip(pairs, found, strict=True):
            _conclude(series, (one, two), (places[one], places[two]), difference, said)


def beside(disks: Disks) -> Beside:
    """Whether the controllers of the rig differ must be known: ``rig.measure(side_by_side(disks))`` measures it."""
    return Beside(disk_names(disks))


def _conclude(
    series: Series,
    names: tuple[str, str],
    samples: tuple[list[float], list[float]],
    found: RelativeChange,
    said: Collector,
) -> None:
    one, two = names
    bounds = "" if found.low is None else f" ({found.low:+.1%} to {found.high:+.1%})"
    evidence = (
        f"{one}: {interval(estimate(samples[0]))}",
        f"{two}: {interval(estimate(samples[1]))}",
        f"exact permutation test: p = {found.p:.4f}, corrected for the comparisons of this table",
    )
    if found.answer == "different":
        text = f"{two} and {one} differ: with the same number of disks, the {series.mode} rate on {two} is "
        text += f"{found.change:+.1%}{bounds} against {rate(sum(samples[0]) / len(samples[0]))} on {one}."
        said.conclude(
            Conclusion(
                kind="difference", subject=f"{one}, {two}", text=text, value=round(found.change, 4), evidence=evidence
            )
        )
    elif found.answer == "alike":
        text = f"{one} and {two} {series.mode} alike: {found.change:+.1%}{bounds} is less than {FLOOR:.0%}."
        said.conclude(
            Conclusion(
                kind="no-difference",
                subject=f"{one}, {two}",
                text=text,
                value=round(found.change, 4),
                evidence=evidence,
            )
        )
    elif found.answer == "too few" and abs(found.change) >= FLOOR:
        said.doubt(
            f"{len(samples[0])} repeats are too few to say whether {one} and {two} differ when they {series.mode}: "
            f"{found.change:+.1%}{bounds}"
        )
