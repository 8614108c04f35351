"""Compares runs of the same scenarios: verdicts, findings, kernel events and recovery times."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from plugpull.finding import Finding
from plugpull.history.cut import DiskTimes
from plugpull.history.reader import History
from plugpull.history.story import Story
from plugpull.judging.outcome import judge_run
from plugpull.judging.plan import judged_stories
from plugpull.judging.results import CutResult, ResultPart, Results, ScenarioResult, Verdict
from plugpull.kernel.diagnosis.error_story import story_of_history
from plugpull.kernel.diagnosis.scope import Level
from plugpull.report.bisecting import bisection

COMPARE_VERSION = 1

_VARIES = re.compile(r"0x[\da-f]+|\bsd[a-z]+|\d+(?:\.\d+)?")
"""The parts in which two wordings of the same finding may differ."""


class ComparedRun(ResultPart, frozen=True, kw_only=True):
    """One of the runs. ``name`` is short and unique."""

    name: str
    directory: str
    kernel: str
    verdict: str
    seed: int


class SequenceDifference(ResultPart, frozen=True, kw_only=True):
    """Kinds of kernel events about a disk, in order, with repeats folded; one tuple per run."""

    disk: str
    kinds: tuple[tuple[str, ...], ...]


class RecoveryTimes(ResultPart, frozen=True, kw_only=True):
    """The time that a disk took in each run, seconds (``None``: it did not happen), and its ratio to the first run.

    ``what`` is ``removed`` (since the cut was commanded), or ``returned`` or ``first I/O`` (since power was commanded
    on again).
    """

    cut: int
    point: str
    disk: str
    what: str
    seconds: tuple[float | None, ...]
    ratios: tuple[float | None, ...]


class ScenarioComparison(ResultPart, frozen=True, kw_only=True):
    """One scenario in all runs. ``verdicts`` is empty text for a run without it; ``only`` are the findings of each run
    that not all others have. ``bisect`` are two commands that find the commit, if it passed on one kernel and failed on
    another."""

    id: str
    verdicts: tuple[str, ...]
    only: tuple[tuple[Finding, ...], ...] = ()
    sequences: tuple[SequenceDifference, ...] = ()
    times: tuple[RecoveryTimes, ...] = ()
    bisect: tuple[str, ...] = ()

    @property
    def differs(self) -> bool:
        """True if verdicts or findings differ. Sequences and times differ a little between any two runs."""
        return len(set(self.verdicts)) > 1 or any(self.only)


class Comparison(ResultPart, frozen=True, kw_only=True):
    schema: int
    runs: tuple[ComparedRun, ...]
    scenarios: tuple[ScenarioComparison, ...]

    @property
    def differs(self) -> bool:
        return any(scenario.differs for scenario in self.scenarios)


@dataclass(frozen=True)
class _Read:
    directory: Path
    history: History
    results: Results

    def scenarios(self) -> dict[tuple[str, int], tuple[ScenarioResult, Story]]:
        """By id and repetition of that id."""
        seen: Counter[str] = Counter()
        found = {}
        stories = judged_stories(self.history, self.results)
        for result, story in zip(self.results.scenarios, stories, strict=True):
            found[result.id, seen[result.id]] = (result, story)
            seen[result.id] += 1
        return found


def compare(directories: Sequence[Path]) -> Comparison:
    """Judge the runs in these directories again and compare them with the first. Raises UsageError for a directory
    without a run."""
    read = [_Read(directory, *judge_run(directory)) for directory in directories]
    each = [one.scenarios() for one in read]
    keys = dict.fromkeys(key for scenarios in each for key in scenarios)
    compared = tuple(_scenario(key[0], [scenarios.get(key) for scenarios in each]) for key in keys)
    return Comparison(schema=COMPARE_VERSION, runs=_runs(read), scenarios=compared)


def _runs(read: Sequence[_Read]) -> tuple[ComparedRun, ...]:
    kernels = [one.results.dut.kernel for one in read]
    told_apart = all(kernels) and len(set(kernels)) == len(kernels)
    return tuple(
        ComparedRun(
            name=kernel if told_apart else one.directory.resolve().name,
            directory=str(one.directory.resolve()),
            kernel=kernel,
            verdict=one.results.verdict.value,
            seed=one.results.seed,
        )
        for one, kernel in zip(read, kernels, strict=True)
    )


def _scenario(name: str, pairs: Sequence[tuple[ScenarioResult, Story] | None]) -> ScenarioComparison:
    verdicts = tuple(pair[0].verdict.value if pair else "" for pair in pairs)
    if not all(pairs):
        return ScenarioComparison(id=name, verdicts=verdicts, only=tuple(() for _ in pairs))
    here = [pair for pair in pairs if pair is not None]
    return ScenarioComparison(
        id=name,
        verdicts=verdicts,
        only=_only([result.findings for result, _ in here]),
        sequences=_sequences([story for _, story in here]),
        times=_times([result.cuts for result, _ in here]),
        bisect=_bisection([result for result, _ in here]),
    )


def _bisection(results: Sequence[ScenarioResult]) -> tuple[str, ...]:
    """Commands that find the commit between a kernel on which it passed and one on which it failed."""
    good = [one.kernel for one in results if one.verdict is Verdict.PASS and one.kernel]
    bad = [one for one in results if one.verdict is Verdict.FAIL and one.kernel and one.kernel not in good]
    return bisection(bad[0].id, good[-1], bad[0].kernel) if good and bad else ()


def _only(findings: Sequence[tuple[Finding, ...]]) -> tuple[tuple[Finding, ...], ...]:
    keys = [{_key(finding) for finding in each} for each in findings]
    common = set.intersection(*keys)
    return tuple(tuple(finding for finding in each if _key(finding) not in common) for each in findings)


def _key(finding: Finding) -> tuple[str, str, str]:
    return finding.check, finding.subject, _VARIES.sub("N", finding.summary)


# --- what the kernels said --------------------------------------------------------------------------------------


def _sequences(stories: Sequence[Story]) -> tuple[SequenceDifference, ...]:
    each = [_kinds(story) for story in stories]
    disks = dict.fromkeys(disk for kinds in each for disk in kinds)
    rows = ((disk, tuple(kinds.get(disk, ()) for kinds in each)) for disk in disks)
    return tuple(SequenceDifference(disk=disk, kinds=row) for disk, row in rows if len(set(row)) > 1)


def _kinds(story: Story) -> dict[str, tuple[str, ...]]:
    devices = story_of_history(story).devices
    return {one.device.key: tuple(step.kind for step in one.steps) for one in devices if one.device.level is Level.DISK}


# --- how long it took -------------------------------------------------------------------------------------------


def _times(cuts: Sequence[tuple[CutResult, ...]]) -> tuple[RecoveryTimes, ...]:
    """One row per cut that all runs have in common; cuts of different points are not comparable."""
    rows: list[RecoveryTimes] = []
    for number, same in enumerate(zip(*cuts, strict=False), 1):
        if len({cut.point for cut in same}) > 1:
            continue
        for disk in same[0].victims:
            rows += _rows(number, disk, same)
    return tuple(rows)


def _rows(number: int, disk: str, cuts: Sequence[CutResult]) -> list[RecoveryTimes]:
    rows = []
    each = [(cut, next((one for one in cut.disks if one.disk == disk), DiskTimes(disk=disk))) for cut in cuts]
    for what, seconds in (
        ("removed", tuple(_minus(times.removed_at, cut.commanded_at) for cut, times in each)),
        ("returned", tuple(_minus(times.returned_at, cut.restored_at) for cut, times in each)),
        ("first I/O", tuple(_minus(times.first_io_at, cut.restored_at) for cut, times in each)),
    ):
        if any(one is not None for one in seconds):
            ratios = tuple(_ratio(one, seconds[0]) for one in seconds[1:])
            point = cuts[0].point
            rows.append(RecoveryTimes(cut=number, point=point, disk=disk, what=what, seconds=seconds, ratios=ratios))
    return rows


def _minus(later: float | None, earlier: float | None) -> float | None:
    return None if later is None or earlier is None else round(later - earlier, 6)


def _ratio(one: float | None, base: float | None) -> float | None:
    return round(one / base, 3) if one is not None and base is not None and base > 0 else None
