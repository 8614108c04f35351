"""Controllers side by side: as many disks on each, and whether one is faster."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations

from plugpull.checks.base import Check, Disks, Judgement, disk_names
from plugpull.checks.claims import Claim
from plugpull.checks.collector import Collector
from plugpull.checks.victims.discovered import declared_place
from plugpull.history.story import Story
from plugpull.judging.results import Conclusion
from plugpull.measure.compare import FLOOR
from plugpull.measure.estimate import estimate
from plugpull.studies.agreement import disagreements
from plugpull.studies.capacity import impossible
from plugpull.studies.changes import Compared, NamedRepeats, compared
from plugpull.studies.figures import doubts, figure, rate
from plugpull.studies.measured import Series, claims_of, missing_of, series_of, spoilt_of


class Beside(Check, frozen=True, tag="beside"):
    """Whether the controllers of ``disks`` differ is known: a difference, or none that matters."""

    disks: tuple[str, ...]

    def judge(self, story: Story) -> Judgement:
        said = Collector(self, self.disks)
        said.doubt(missing_of(story), *disagreements(story))
        unshown = [clause for series in series_of(story) for clause in self._series(story, series, said)]
        return said.judgement(", ".join(dict.fromkeys([*(one.kind for one in said.conclusions), *unshown])))

    def claims(self, story: Story) -> Iterable[Claim]:
        return claims_of(story)

    def _series(self, story: Story, series: Series, said: Collector) -> list[str]:
        """Conclude what differs. Returns what was not shown to differ, a clause each."""
        places: list[NamedRepeats] = []
        groups = {reading.event.disks for reading in series.readings}
        for disks in sorted(groups, key=lambda group: self.disks.index(group[0])):
            place = declared_place(story.rig, disks[0])
            samples = [one.total for one in series.of(disks).values()]
            name = place[0] if place is not None else ", ".join(disks)
            wrong = list(doubts(f"the {series.mode} rate on {name}", samples, series.repeats, spoilt_of(series, disks)))
            said.doubt(*wrong)
            if samples:
                parameters: dict[str, str | float] = {"disks": len(disks), "on": name, **series.parameters}
                counting = series.counting(disks)
                said.measure(figure(f"{series.mode} beside", ", ".join(disks), samples, parameters, counting=counting))
                impossible(story, disks, series.mode, estimate(samples, counting=counting), said)
            if samples and not wrong:
                places.append(NamedRepeats(name, samples))
        table = compared(combinations(places, 2))
        for each in table:
            _conclude(series.mode, each, said)
        return [f"{series.mode}: {each.unshown}" for each in table if each.unshown]


def beside(disks: Disks) -> Beside:
    """Whether the controllers of the rig differ must be known: ``rig.measure(side_by_side(disks))`` measures it."""
    return Beside(disk_names(disks))


def _conclude(mode: str, each: Compared, said: Collector) -> None:
    one, two, samples = each.one.name, each.two.name, each.one.samples
    different = each.found.answer == "different"
    if different:
        text = (
            f"{two} and {one} differ: with the same number of disks, the {mode} rate on {two} is {each.change} against "
        )
        text += f"{rate(sum(samples) / len(samples))} on {one}."
    else:
        text = f"{one} and {two} {mode} alike: {each.change} is less than {FLOOR:.0%}."
    if different or each.found.answer == "alike":
        said.conclude(
            Conclusion(
                kind="difference" if different else "no-difference",
                subject=f"{one}, {two}",
                text=text,
                value=round(each.found.change, 4),
                evidence=each.evidence(),
            )
        )
    said.doubt(each.doubt(f"{one} and {two} differ when they {mode}"))
