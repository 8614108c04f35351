"""Arrays of levels, numbers of members and chunks: their rates, and those far below what their members promise."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import fmean

from plugpull.checks.base import Check, Disks, Judgement, disk_names
from plugpull.checks.claims import Claim
from plugpull.checks.collector import Collector
from plugpull.history.events import ArrayMade
from plugpull.history.story import Story
from plugpull.judging.results import Conclusion
from plugpull.measure.estimate import Estimate, estimate
from plugpull.studies.expected import array_below_expectation
from plugpull.studies.figures import doubts, figure, interval, rate
from plugpull.studies.measured import Series, claims_of, missing_of, series_of
from plugpull.studies.stripes import stripe_knee
from plugpull.studies.tasks import named, names_of, rates_of, repeats_of, task_claims, task_doubts, tasks_of, why_not

FAR_BELOW = 0.5
"""An array is below expectation if its whole interval is below this share of what its members and their shared ceiling
allow."""


class ArrayRates(Check, frozen=True, tag="array_rates"):
    """How fast arrays of ``disks`` are is known, and those that are far below what their members allow are named."""

    disks: tuple[str, ...]

    def judge(self, story: Story) -> Judgement:
        said = Collector(self, self.disks)
        said.doubt(missing_of(story), *task_doubts(story))
        for made in arrays_of(story):
            for name in names_of(story, made.array):
                self._array(story, made, name, said)
        slow = [one.subject for one in said.conclusions]
        self._stripes(story, said)
        return said.judgement(f"below expectation: {', '.join(dict.fromkeys(slow))}" if slow else _range(said))

    def claims(self, story: Story) -> Iterable[Claim]:
        return (*claims_of(story), *task_claims(story))

    def _array(self, story: Story, made: ArrayMade, name: str, said: Collector) -> None:
        samples = rates_of(named(story, name, made.array))
        subject = f"{made.level} of {', '.join(made.members)}"
        planned = repeats_of(story, name, made.array)
        what = f"the rate of the {name} on the {called(made)}"
        wrong = list(doubts(what, samples, planned, why_not(story, name, made.array)))
        said.doubt(*wrong)
        if not samples:
            return
        event = next(one.event for one in tasks_of(story) if one.event.task == name and made.array in one.event.disks)
        mode = event.mode
        parameters: dict[str, str | float] = {
            "level": made.level,
            "members": len(made.members),
            "chunk": made.chunk,
            "block": event.block,
            "depth": event.depth,
        }
        said.measure(figure(f"{mode} array", subject, samples, parameters))
        array_below_expectation(story, made, subject, mode, estimate(samples), said)
        expected = expected_rate(series_of(story), mode, made)
        found = estimate(samples)
        if not wrong and expected is not None and found.high is not None and found.high < FAR_BELOW * expected:
            said.conclude(_below(made, mode, subject, found, expected))

    def _stripes(self, story: Story, said: Collector) -> None:
        """The knee of RAID 0 of more and more disks, of each chunk."""
        rates: dict[tuple[str, int], dict[int, list[float]]] = {}
        largest: tuple[str, ...] = ()
        for made in arrays_of(story):
            for name in names_of(story, made.array) if made.level == "raid0" else ():
                events = [one.event for one in tasks_of(story) if one.event.task == name]
                written = next(event.mode for event in events if made.array in event.disks)
                found = rates.setdefault((written, made.chunk), {})
                found[len(made.members)] = rates_of(named(story, name, made.array))
                largest = max(largest, made.members, key=len)
        for (mode, chunk), by_count in sorted(rates.items(), key=lambda one: (one[0][0] == "read", one[0][1])):
            for series in (one for one in series_of(story) if one.mode == mode):
                alone = [list(series.alone(disk).values()) for disk in largest]
                stripe_knee(mode, chunk, alone, {count: each for count, each in by_count.items() if each}, said)


def array_rates(disks: Disks) -> ArrayRates:
    """How fast arrays of these disks are must be known. Measure them with ``rig.run_tasks(array_tasks(array, cell))``,
    and their members before with ``rig.measure(array_baseline(disks))``."""
    return ArrayRates(disk_names(disks))


def arrays_of(story: Story) -> tuple[ArrayMade, ...]:
    """The arrays of a story, each once: one that is assembled again is the same."""
    return tuple({made.array: made for made in story.of(ArrayMade)}.values())


def called(made: ArrayMade) -> str:
    """An array in words: "raid5 of 4 disks, 64 KiB chunks"."""
    chunk = f", {made.chunk >> 10} KiB chunks" if made.chunk else ""
    return f"{made.level} of {len(made.members)} disks{chunk}"


def expected_rate(every: Sequence[Series], mode: str, made: ArrayMade) -> float | None:
    """What an array's members allow, bytes per second of data; ``None`` if they were not measured.

    Each member transfers its share of what all of them do at once, and no more than the slowest of them does alone.
    Copies and parity are written too; a RAID 1 or 10 is expected to read no faster than it writes, although it may.
    """
    series = next((one for one in every if one.mode == mode), None)
    if series is None:
        return None
    alone = [list(series.alone(disk).values()) for disk in made.members]
    together = [one.total for one in series.of(made.members).values()]
    if not all(alone) or not together:
        return None
    share = min(*map(fmean, alone), fmean(together) / len(made.members))
    return share * data_members(made.level, len(made.members))


def data_members(level: str, count: int) -> float:
    """Members' worth of data that is transferred at once."""
    whole = {"raid0": count, "raid1": 1, "raid10": count / 2, "raid5": count - 1, "raid6": count - 2}
    return float(whole.get(level, 1))


def _below(made: ArrayMade, mode: str, subject: str, found: Estimate, expected: float) -> Conclusion:
    return Conclusion(
        kind="below-expectation",
        subject=subject,
        text=f"The {called(made)} {mode}s {interval(found)}, far below the {rate(expected)} that its members allow, by "
        "what each of them does alone and all at once.",
        value=round(found.mean / expected - 1, 4),
        unit="of the expected rate",
        evidence=(f"measured: {interval(found)}", f"expected: {rate(expected)}"),
    )


def _range(said: Collector) -> str:
    values = [one.value for one in said.measurements]
    return f"arrays from {rate(min(values))} to {rate(max(values))}" if values else ""
