"""Filesystems on a disk and on arrays: write, rewrite, read and seeks, as bonnie++ measures them."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from statistics import fmean
from typing import NamedTuple

from plugpull.checks.base import Check, Judgement
from plugpull.checks.claims import Claim
from plugpull.checks.collector import Collector
from plugpull.history.events import FioFigures
from plugpull.history.story import Story
from plugpull.judging.results import Conclusion
from plugpull.measure.compare import welch_test
from plugpull.measure.estimate import estimate
from plugpull.measure.scaling import DROP, SURE
from plugpull.studies.arrays import arrays_of, called
from plugpull.studies.figures import doubts, figure, interval, rate
from plugpull.studies.task_names import FILE_PHASES, REWRITE, SEEKS, on_filesystem
from plugpull.studies.tasks import named, repeats_of, task_claims, task_doubts, tasks_of, why_not


class FilesystemPlace(NamedTuple):
    """What a filesystem is on: ``name`` in the history, ``words`` for people, and the number of its disks."""

    name: str
    words: str
    disks: int


class FilesystemRates(Check, frozen=True, tag="filesystem_rates"):
    """How fast ``fstype`` is on a disk and on arrays is known, and the number of disks past which it collapses."""

    fstype: str

    def judge(self, story: Story) -> Judgement:
        said = Collector(self, self.fstype)
        said.doubt(*task_doubts(story))
        places = self._places(story)
        for phase in FILE_PHASES:
            good: dict[int, tuple[str, list[float]]] = {}
            for place in places:
                samples = self._phase(story, place, phase, said)
                if samples:
                    good[place.disks] = (place.words, samples)
            if phase != SEEKS:
                self._collapse(phase, good, said)
        fallen = [f"{one.kind} on {one.subject}" for one in said.conclusions]
        return said.judgement("; ".join(fallen) or _range(said))

    def claims(self, story: Story) -> Iterable[Claim]:
        return task_claims(story)

    def _places(self, story: Story) -> tuple[FilesystemPlace, ...]:
        """Where this filesystem was, by the number of disks."""
        made = {one.array: one for one in arrays_of(story)}
        wanted = {on_filesystem(self.fstype, phase) for phase in FILE_PHASES}
        names = dict.fromkeys(disk for one in tasks_of(story) if one.event.task in wanted for disk in one.event.disks)
        found = (
            FilesystemPlace(name, called(made[name]), len(made[name].members))
            if name in made
            else FilesystemPlace(name, name, 1)
            for name in names
        )
        return tuple(sorted(found, key=lambda place: place.disks))

    def _phase(self, story: Story, place: FilesystemPlace, phase: str, said: Collector) -> list[float]:
        """The repeats of a phase, if they can be compared."""
        task = on_filesystem(self.fstype, phase)
        rounds = [one for _, one in sorted(named(story, task, place.name).items())]
        samples = [amount_per_second(one, phase) for one in rounds]
        why = why_not(story, task, place.name)
        what = f"the {task} on {place.words}"
        say = seeks if phase == SEEKS else rate
        wrong = list(doubts(what, samples, repeats_of(story, task, place.name), why, say))
        said.doubt(*wrong)
        if samples:
            parameters: dict[str, str | float] = {"filesystem": self.fstype, "disks": place.disks, "on": place.words}
            unit = "seeks/s" if phase == SEEKS else "B/s"
            said.measure(figure(f"{phase} filesystem", f"{self.fstype} on {place.words}", samples, parameters, unit))
        return [] if wrong else samples

    def _collapse(self, phase: str, good: dict[int, tuple[str, list[float]]], said: Collector) -> None:
        """The first number of disks with which a phase is much slower than with fewer."""
        counts = sorted(good)
        for fewer, more in pairwise(counts):
            (_, before), (words, after) = good[fewer], good[more]
            if min(len(before), len(after)) < 2 or welch_test(before, after) >= SURE:
                continue
            change = fmean(after) / fmean(before) - 1
            if change <= -DROP:
                said.conclude(_collapsed(self.fstype, phase, (fewer, more), words, (before, after), change))
                return


def filesystem_rates(fstype: str) -> FilesystemRates:
    """How fast a filesystem is must be known: ``rig.run_tasks(filesystem_tasks(volume), ordered=True)`` measures it on
    what ``rig.filesystem`` gave."""
    return FilesystemRates(fstype)


def seeks(value: float) -> str:
    """Seeks per second, in words."""
    return f"{value:.3g} seeks/s"


def amount_per_second(figures: FioFigures, phase: str) -> float:
    """Bytes per second, of a rewrite those that were read and written again; of seeks their number."""
    if phase == SEEKS:
        return figures.requests / figures.seconds
    return figures.bytes / figures.seconds / (2 if phase == REWRITE else 1)


def _collapsed(
    fstype: str, phase: str, counts: tuple[int, int], words: str, each: tuple[list[float], list[float]], change: float
) -> Conclusion:
    fewer, more = counts
    before, after = map(estimate, each)
    return Conclusion(
        kind="collapse",
        subject=f"{fstype} on {words}",
        text=f"The {phase} rate of {fstype} drops with {more} disks: {interval(after)}, {change:+.0%} against "
        f"{interval(before)} with {fewer}.",
        value=round(change, 4),
        unit=f"of the rate with {fewer} disks",
        evidence=(f"{fewer}: {interval(before)}", f"{more}: {interval(after)}"),
    )


def _range(said: Collector) -> str:
    values = sorted({str(one.parameters["on"]) for one in said.measurements})
    return f"measured on {'; '.join(values)}" if values else ""
