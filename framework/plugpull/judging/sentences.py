"""Verdicts as sentences."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from datetime import datetime

from plugpull.checks.dut.kernel_clean import DIED, HUNG
from plugpull.checks.evidence import seconds
from plugpull.checks.victims.returned import LATE
from plugpull.finding import Finding
from plugpull.history.cut import Cut
from plugpull.history.events import DutDied, RigFault, ScenarioError
from plugpull.history.reader import History, Story
from plugpull.judging.results import ScenarioResult, Verdict
from plugpull.judging.sheet import Sheet
from plugpull.kernel.catalogue.classify import classify
from plugpull.kernel.catalogue.entry import Severity

NAMED = 3
"""Kinds of cuts that a sentence names."""
_BRACKETS = re.compile(r" \([^()]*\)")


def story_sentence(
    story: Story, sheet: Sheet, verdict: Verdict, findings: tuple[Finding, ...], unknowns: tuple[str, ...]
) -> str:
    """The verdict of one scenario in one sentence."""
    if verdict is Verdict.FAIL:
        bench = [said for said in (*(fault.summary for fault in story.of(RigFault)), *_stops(story)) if said]
        if story.of(DutDied):
            bench = [said for said in bench if not said.startswith(OF_A_DEATH)]
        also = f" The bench failed too: {_first(bench[0], len(bench) - 1, 'fault')}" if bench else ""
        found = _first(_lead(findings).summary, len(findings) - 1, "finding")
        return f"FAIL: {found}{_expected(findings)}{also}"
    if verdict is Verdict.UNKNOWN:
        return f"UNKNOWN: {_first(unknowns[0], len(unknowns) - 1, 'reason')}"
    cuts = _cuts_words(story)
    said = list(
        dict.fromkeys(_BRACKETS.sub("", check.worst) for check in sheet.checks if check.worst and not check.standing)
    )
    parts = [part for part in (cuts, ", ".join(said)) if part]
    count = len(sheet.measurements)
    measured = f"{count} value{'s' * (count != 1)} measured" if count else "no findings"
    return f"PASS: {'; '.join(parts) or measured}."


OF_A_DEATH = ("the DUT died: ", "the agent ", "the agent's ", "the stream to the agent ", "the stream from the agent ")
"""How a fault of the bench begins that only follows from the death of the DUT (``dut/conversation/link.py``,
``dut/listener.py``)."""


def _lead(findings: Sequence[Finding]) -> Finding:
    """The finding that a sentence begins with: one that was not expected, if there is one. What explains the others
    comes before them, and then the order is that of the checks."""
    return min(
        [finding for finding in findings if not finding.expected] or findings,
        key=lambda finding: (not _broke(finding), finding.check not in _OF_DATA, LATE in finding.summary),
    )


_OF_DATA = {"array_survived", "data_intact", "files_kept", "kept_while_powered", "legs_hold", "nothing_lost"}
"""The checks whose findings say that data is lost or wrong. That comes before anything about time."""


def _broke(finding: Finding) -> bool:
    """Whether it says that the kernel died or broke."""
    if finding.check != "kernel_clean":
        return False
    known = classify(finding.summary)
    return finding.summary.startswith((DIED, HUNG)) or (known is not None and known.severity is Severity.FATAL)


def _expected(findings: Sequence[Finding]) -> str:
    """What is said of findings that this kernel is known to cause."""
    names = dict.fromkeys(finding.expected for finding in findings if finding.expected)
    if not names:
        return ""
    count = sum(bool(finding.expected) for finding in findings)
    new = len(findings) - count
    what = f"{count} of {len(findings)} findings" if new else "Each finding" if count > 1 else "This"
    return f" {what} {'are' if new and count > 1 else 'is'} expected of this kernel ({', '.join(names)})."


def only_expected(scenario: ScenarioResult) -> bool:
    """Whether a scenario failed, and each of its findings was expected."""
    return scenario.verdict is Verdict.FAIL and all(finding.expected for finding in scenario.findings)


def _stops(story: Story) -> list[str]:
    """The errors that stopped the scenario early, apart from its own assertions."""
    return [error.summary for error in story.of(ScenarioError) if error.fault != "assertion" and error.summary]


def _first(text: str, others: int, noun: str) -> str:
    more = f" (and {others} more {noun}{'s' * (others != 1)})" if others else ""
    return f"{text.rstrip('.')}{more}."


def _cuts_words(story: Story) -> str:
    """What was cut, how often, and what went on meanwhile: three kinds of cuts at most."""
    alike = Counter(_cut_words(story, cut) for cut in story.cut_records)
    said = [f"{cut} cut {f'{times} times ' if times > 1 else ''}{how}" for (cut, how), times in alike.items()]
    others = sum(list(alike.values())[NAMED:])
    return ", ".join(said[:NAMED]) + (f" and {others} more" if others else "")


def _cut_words(story: Story, cut: Cut) -> tuple[str, str]:
    """The cut point, and how it was cut."""
    at = cut.off.commanded_at or 0.0
    loads = (story.load_over(disk, at) for disk in cut.armed.victims)
    doing = {_doing(load.mode) for load in loads if load is not None}
    doing |= {"writing files" for disk in cut.armed.victims if story.files_over(disk, at) is not None}
    kept = "for good " if cut.armed.permanent else ""
    return cut.armed.point, f"{kept}({cut.armed.mechanism}) while {' and '.join(sorted(doing)) or 'idle'}"


def _doing(mode: str) -> str:
    if "read" in mode:
        return "reading"
    return "writing" if "write" in mode else "reading and writing"


def run_sentence(
    history: History, scenarios: tuple[ScenarioResult, ...], verdict: Verdict, unknowns: list[str], skipped: int
) -> str:
    """The verdict of a run in one sentence."""
    cuts = [cut for story in history.stories for cut in story.cut_records]
    executed = f"{sum(cut.executed for cut in cuts)} of {len(cuts)} cuts executed"
    executed += f", {skipped} skipped" if skipped else ""
    count = len(scenarios)
    if verdict is Verdict.PASS:
        took = seconds(run_seconds(history, scenarios))
        return f"PASS: {count} scenario{'s' * (count != 1)} passed in {took}, {executed}."
    bad = [scenario for scenario in scenarios if scenario.verdict is verdict]
    what = "failed" if verdict is Verdict.FAIL else "could not be judged"
    known = sum(map(only_expected, bad))
    known_words = f" ({known} of them only as expected of this kernel)" if known else ""
    bad = sorted(bad, key=only_expected)
    numbers = f"{len(bad)} of {count} scenarios {what}{known_words}, {executed}" if bad else executed
    reason = bad[0].sentence.partition(": ")[2] if bad else f"{unknowns[0]}."
    return f"{verdict}: {numbers}; {'first: ' if len(bad) > 1 else ''}{reason}"


def run_seconds(history: History, scenarios: tuple[ScenarioResult, ...]) -> float:
    """How long a run took, from its beginning to its end; the sum of its scenarios if that is not on record."""
    if history.begun is not None and history.ended is not None:
        try:
            begun, ended = (datetime.fromisoformat(wall) for wall in (history.begun.wall, history.ended.wall))
            return round((ended - begun).total_seconds(), 6)
        except (TypeError, ValueError):
            pass  # a run with an unreadable wall time can still be judged
    return round(sum(scenario.seconds for scenario in scenarios), 6)
