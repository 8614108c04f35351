"""Small synchronous writes: how long they take, the tail too, and when a disk pauses."""

from __future__ import annotations

from collections.abc import Iterable

from plugpull.checks.base import Check, Disks, Judgement, disk_names
from plugpull.checks.claims import Claim
from plugpull.checks.collector import Collector
from plugpull.history.events import FioFigures
from plugpull.history.story import Story
from plugpull.judging.results import Conclusion
from plugpull.measure.steady import LEAST
from plugpull.studies.figures import figure, time
from plugpull.studies.pauses import DiskPause, common, overlap, pauses
from plugpull.studies.task_names import SMALL_SYNC
from plugpull.studies.tasks import named, repeats_of, task_claims, task_doubts, tasks_of, why_not

BEYOND = 10
"""A percentile needs so many requests that took longer: of 1,000 requests, 10 are beyond the 99th."""
PAUSE = 0.5
"""Seconds without a completed request that are a pause."""
UNLIKE = 20.0
"""And so many times as long as half of the requests take."""
SEVERAL = 2
"""Rounds in which a disk must pause: a single pause may be the bench's."""


class Latency(Check, frozen=True, tag="latency"):
    """How long small synchronous writes to each of ``disks`` take is known, and whether it pauses."""

    disks: tuple[str, ...]

    def judge(self, story: Story) -> Judgement:
        said = Collector(self, self.disks)
        said.doubt(*task_doubts(story))
        found = {disk: self._pauses(story, disk) for disk in self.disks}
        every = {disk: tuple(one for each in rounds for one in each) for disk, rounds in found.items()}
        at_once = common(every.values())
        if at_once:
            said.doubt(
                f"all disks paused at once, {at_once[0].begin:.1f} s: it was the bench, or something that they share"
            )
        for disk in self.disks:
            rounds = named(story, SMALL_SYNC, disk)
            self._times(story, disk, rounds, said)
            own = [[one for one in each if not any(overlap(one, two) for two in at_once)] for each in found[disk]]
            if sum(map(bool, own)) >= SEVERAL:
                said.conclude(_pausing(disk, rounds, [one for each in own for one in each]))
        paused = [one.subject for one in said.conclusions]
        return said.judgement(f"pauses on {', '.join(paused)}" if paused else _slowest(said))

    def claims(self, story: Story) -> Iterable[Claim]:
        return task_claims(story)

    def _times(self, story: Story, disk: str, rounds: dict[int, FioFigures], said: Collector) -> None:
        """The percentiles that enough requests of every round support, and the slowest request of all."""
        planned = repeats_of(story, SMALL_SYNC, disk)
        if len(rounds) < min(planned, LEAST) or not rounds:
            why = why_not(story, SMALL_SYNC, disk)
            said.doubt(
                f"only {len(rounds)} of {planned} measurements of small synchronous writes to {disk} count"
                + (f": {why[0]}" if why else "")
            )
            return
        each = [one for _, one in sorted(rounds.items())]
        parameters: dict[str, str | float] = {"block": 4096, "depth": 1, "requests": sum(one.requests for one in each)}
        supported = [key for key in each[0].percentiles if all(_supports(one, key) for one in each)]
        for key in sorted(supported, key=float):
            samples = [one.percentiles[key] for one in each]
            said.measure(figure(f"synchronous write p{float(key):g}", disk, samples, parameters, "s"))
        longest = [one.longest for one in each if one.longest is not None]
        if longest:
            said.measure(figure("synchronous write slowest", disk, longest, parameters, "s"))

    def _pauses(self, story: Story, disk: str) -> list[tuple[DiskPause, ...]]:
        """The pauses of each round that counts."""
        found = []
        for one in tasks_of(story):
            figures = one.figures(disk) if one.event.task == SMALL_SYNC else None
            if figures is not None:
                least = max(PAUSE, UNLIKE * _median(figures))
                found.append(pauses(story, disk, one.event.begin, one.event.at or one.event.begin, least))
        return found


def latency(disks: Disks) -> Latency:
    """How long small synchronous writes take must be known: ``rig.run_tasks(latency_design(disks))`` measures it."""
    return Latency(disk_names(disks))


def _supports(figures: FioFigures, percentile: str) -> bool:
    beyond = figures.requests * (100 - float(percentile)) / 100
    return percentile in figures.percentiles and beyond >= BEYOND - 1e-6


def _median(figures: FioFigures) -> float:
    return next((value for key, value in figures.percentiles.items() if float(key) == 50), 0.0)


def _pausing(disk: str, rounds: dict[int, FioFigures], found: list[DiskPause]) -> Conclusion:
    longest = max(one.seconds for one in found)
    usual = sorted(_median(one) for one in rounds.values())[len(rounds) // 2]
    total = sum(one.seconds for one in rounds.values())
    count = "1 pause" if len(found) == 1 else f"{len(found)} pauses"
    return Conclusion(
        kind="pause",
        subject=disk,
        text=f"{disk} pauses at small synchronous writes: {count} of up to {time(longest)} in {time(total)}, "
        f"although half of its writes take {time(usual)} at most.",
        value=round(longest, 3),
        unit="s",
        evidence=tuple(f"{one.begin:.1f} s: no request completed for {time(one.seconds)}" for one in found),
    )


def _slowest(said: Collector) -> str:
    values = [one.value for one in said.measurements if one.name == "synchronous write p99"]
    return f"99 of 100 synchronous writes within {time(max(values))}" if values else ""
