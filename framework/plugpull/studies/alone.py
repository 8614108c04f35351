"""Every disk alone: its baseline, and the disks that are unlike the others."""

from __future__ import annotations

from collections.abc import Iterable

from plugpull.checks.base import Check, Disks, Judgement, disk_names
from plugpull.checks.claims import Claim
from plugpull.checks.collector import Collector
from plugpull.history.story import Story
from plugpull.judging.results import Conclusion
from plugpull.measure.estimate import estimate
from plugpull.measure.outliers import outliers
from plugpull.studies.agreement import disagreements
from plugpull.studies.capacity import impossible
from plugpull.studies.expected import below_expectation
from plugpull.studies.figures import doubts, figure, interval, rate
from plugpull.studies.measured import Series, claims_of, missing_of, series_of, spoilt_of
from plugpull.studies.processors import processor_figures
from plugpull.studies.within import changing


class Alone(Check, frozen=True, tag="alone"):
    """The rate of each of ``disks`` by itself is known; disks unlike the others are named.

    An outlier is a conclusion, not a finding: only the rig file can say how fast a disk must be.
    """

    disks: tuple[str, ...]

    def judge(self, story: Story) -> Judgement:
        said = Collector(self, self.disks)
        said.doubt(missing_of(story), *disagreements(story))
        for series in series_of(story):
            self._series(story, series, said)
        named = [one.subject for one in said.conclusions if one.kind == "outlier"]
        return said.judgement(_worst(said, named))

    def _series(self, story: Story, series: Series, said: Collector) -> None:
        good, known = {}, {}
        for disk in self.disks:
            samples, counting = list(series.alone(disk).values()), series.counting((disk,))
            what = f"{series.mode} rate of {disk} alone"
            said.doubt(*doubts(f"the {what}", samples, series.repeats, spoilt_of(series, (disk,))))
            if samples:
                parameters = {"disks": 1, **series.parameters}
                said.measure(figure(f"{series.mode} alone", disk, samples, parameters, counting=counting))
                for cost in processor_figures(story, series.mode, disk, list(series.of((disk,)).values())):
                    said.measure(cost)
                known[disk] = estimate(samples, counting=counting)
                impossible(story, (disk,), series.mode, known[disk], said)
                below_expectation(story, disk, series.mode, known[disk], said)
            if len(samples) > 1:
                good[disk] = samples  # a repeat that is unlike the others does not count there
        changes = changing(series)
        said.doubt(changes)
        for one in outliers(good) if len(good) == len(self.disks) and not changes else ():
            said.conclude(
                Conclusion(
                    kind="outlier",
                    subject=one.name,
                    text=f"{one.name} is unlike the others: alone, its {series.mode} rate is {rate(one.value)}, "
                    f"{abs(one.change):.0%} {'below' if one.change < 0 else 'above'} the usual {rate(one.usual)}. "
                    "Leave it out of a series of comparisons, or find out why first.",
                    value=round(one.change, 4),
                    unit="of the usual rate",
                    evidence=tuple(f"{disk}: {interval(known[disk])}" for disk in good),
                )
            )

    def claims(self, story: Story) -> Iterable[Claim]:
        return claims_of(story)


def alone(disks: Disks) -> Alone:
    """The rate of each disk by itself must be known. Measure it with ``rig.measure(each_alone(disks))``."""
    return Alone(disk_names(disks))


def _worst(said: Collector, named: list[str]) -> str:
    if named:
        return f"{', '.join(dict.fromkeys(named))} unlike the others"
    values = [one.value for one in said.measurements if one.unit == "B/s"]
    return f"alone from {rate(min(values))} to {rate(max(values))}" if values else ""
