"""From a history to verdicts: runs the checks each scenario asked for and those that stand for every scenario, asks
whether the evidence reaches as far as they claim, and says in one sentence what came of it.

Depends on nothing but the history, so judging is repeatable: the same file gives the same results, anywhere.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from msgspec.structs import replace

from plugpull.checks.base import Check, Judgement, check_name, decode_check
from plugpull.checks.evidence import seconds
from plugpull.checks.kernel_clean import DIED, HUNG, KernelClean
from plugpull.checks.reach import clock_doubts, unreached
from plugpull.checks.same_dut import same_dut
from plugpull.checks.standing import standing_checks
from plugpull.checks.untouched import Untouched, bystanders_of
from plugpull.checks.wiring import wiring_doubts
from plugpull.finding import Finding
from plugpull.history.cut import Cut
from plugpull.history.events import DutDied, DutReady, Healed, Judged, RigFault, ScenarioError
from plugpull.history.reader import History, Story
from plugpull.integrity.oracle.statistics import loss_bound
from plugpull.judging.coverage import coverage_of
from plugpull.judging.plan import plan_unknowns, skip_reason, skipped_outside
from plugpull.judging.results import (
    RESULTS_VERSION,
    CheckResult,
    DutInfo,
    Integrity,
    Measurement,
    Results,
    ScenarioResult,
    Skipped,
    Survivor,
    Verdict,
    cut_results,
)
from plugpull.kernel.catalogue.classify import classify
from plugpull.kernel.catalogue.entry import Severity

_BRACKETS = re.compile(r" \([^()]*\)")


@dataclass
class _Sheet:
    """What is gathered about one scenario."""

    checks: list[CheckResult] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    unknowns: list[str] = field(default_factory=list)
    survivors: dict[str, Survivor] = field(default_factory=dict)
    integrity: Integrity = field(default_factory=Integrity)
    measurements: list[Measurement] = field(default_factory=list)

    def enter(self, name: str, judgement: Judgement, *, standing: bool = False) -> None:
        verdict = verdict_of(judgement.findings, judgement.unknowns)
        worst = judgement.worst
        self.checks.append(
            CheckResult(
                check=name,
                verdict=verdict,
                subject=judgement.subject,
                worst=worst,
                standing=standing,
                measured=judgement.measured,
                limit=judgement.limit,
                unit=judgement.unit,
                smallest=judgement.smallest,
            )
        )
        self.findings.extend(judgement.findings)
        self.unknowns.extend(judgement.unknowns)
        self.measurements.extend(one if one.check else one.by(name) for one in judgement.measurements)
        for survivor in judgement.survivors:
            self.survivors.setdefault(survivor.disk, survivor)
        if judgement.integrity is not None:
            self.integrity = _sum(self.integrity, judgement.integrity)


def verdict_of(findings: Iterable[Finding], unknowns: Iterable[str]) -> Verdict:
    """A finding stands whatever else is not known; without one, a single unknown is enough not to pass."""
    if any(True for _ in findings):
        return Verdict.FAIL
    return Verdict.UNKNOWN if any(True for _ in unknowns) else Verdict.PASS


def judge_story(story: Story, earlier: Story | None = None) -> ScenarioResult:
    """Judges one scenario, ``earlier`` being the one that was run before it on the same bench.

    Never raises: a check that crashes makes the verdict UNKNOWN.
    """
    sheet = _Sheet()
    asked = [data for judged in story.of(Judged) for data in judged.checks]
    for data in asked:
        name = str(data.get("check", "?"))
        if data.get("disks") == []:
            sheet.unknowns.append(f"{name} was asked about no disk")
        sheet.enter(name, _run(name, lambda data=data: decode_check(data), story))  # type: ignore[misc]
    for check in standing_checks(asked):
        sheet.enter(check_name(check), _run(check_name(check), lambda check=check: check, story), standing=True)  # type: ignore[misc]
    sheet.findings.extend(Untouched(bystanders_of(story)).judge(story).findings)
    _between(story, earlier, sheet)
    _stopped(story, sheet)
    if not asked:
        sheet.unknowns.append("nothing was judged")
    findings, unknowns = tuple(dict.fromkeys(sheet.findings)), tuple(dict.fromkeys(sheet.unknowns))
    verdict = verdict_of(findings, unknowns)
    ended = story.ended
    return ScenarioResult(
        id=story.id,
        verdict=verdict,
        seconds=ended.seconds if ended else _span(story),
        sentence=_sentence(story, sheet, verdict, findings, unknowns),
        story=story.begun.story,
        row=story.begun.row,
        seed=story.begun.seed,
        kernel=_ready(story).kernel,
        cuts=cut_results(story),
        checks=tuple(sheet.checks),
        findings=findings,
        unknowns=unknowns,
        survivors=tuple(sheet.survivors.values()),
        integrity=sheet.integrity,
        split=ended.split if ended else {},
        measurements=tuple(sheet.measurements),
    )


def judge_history(history: History) -> Results:
    """Judges a whole run. It passes only if it came to its end, nothing of it is missing and every scenario passed."""
    scenarios, skipped = _sort_out(history)
    begun = history.begun
    unknowns = _run_unknowns(history, scenarios)
    verdicts = [scenario.verdict for scenario in scenarios]
    if Verdict.FAIL in verdicts:
        verdict = Verdict.FAIL
    elif Verdict.UNKNOWN in verdicts or unknowns:
        verdict = Verdict.UNKNOWN
    else:
        verdict = Verdict.PASS
    ready = next((_ready(story) for story in history.stories if _ready(story).kernel), DutInfo())
    return Results(
        schema=RESULTS_VERSION,
        plugpull=begun.plugpull if begun else "",
        rig=begun.rig_name if begun else "",
        dut=ready,
        verdict=verdict,
        sentence=_run_sentence(history, scenarios, verdict, unknowns, len(skipped)),
        started=begun.wall if begun else "",
        seconds=_run_seconds(history, scenarios),
        seed=begun.seed if begun else 0,
        scenarios=scenarios,
        complete=history.complete,
        edited=history.edited,
        skipped=skipped,
        unknowns=tuple(unknowns),
        coverage=coverage_of(history),
        controller=begun.controller if begun else {},
    )


# --- one scenario ------------------------------------------------------------------------------------------


def _run(name: str, make: Callable[[], Check], story: Story) -> Judgement:
    """The check's own judgement, and what it claims without the evidence for it."""
    try:
        check = make()
        judgement = check.judge(story)
        missing = unreached(story, check.claims(story))
    except Exception as error:
        why = " ".join(f"{type(error).__name__}: {error}".split())
        return Judgement(unknowns=(f"the check {name} crashed: {why}",))
    if not missing:
        return judgement
    return replace(judgement, unknowns=(*judgement.unknowns, *missing), worst="")


def _between(story: Story, earlier: Story | None, sheet: _Sheet) -> None:
    """What happened after the scenario was over, before the next one, and whether the DUT is still the same."""
    aftermath = Story(story.begun, story.after, rig=story.rig)
    sheet.findings.extend(KernelClean().judge(aftermath).findings)
    judgement = same_dut(story, earlier)
    sheet.findings.extend(judgement.findings)
    sheet.unknowns.extend(judgement.unknowns)


def _stopped(story: Story, sheet: _Sheet) -> None:
    """What the bench and the scenario itself said went wrong, and what is missing of the record."""
    faults = story.of(RigFault)
    sheet.unknowns[:0] = [fault.summary for fault in faults]
    _void(sheet, faults, (*wiring_doubts(story), *clock_doubts(story)))
    for error in story.of(ScenarioError):
        if error.fault == "assertion":
            evidence = tuple(error.traceback.splitlines()[-12:])
            finding = Finding(check="scenario", subject=story.id, summary=error.summary, at=error.at, evidence=evidence)
            sheet.findings.append(finding)
        else:
            sheet.unknowns.insert(0, error.summary or f"the scenario stopped ({error.fault})")
    sheet.unknowns += [
        f"power could not be restored on {', '.join(heal.ports) or 'some port'}: {heal.detail or 'no reason given'}"
        for heal in story.of(Healed)
        if not heal.ok
    ]
    if story.ended is None:
        sheet.unknowns.append("the history ends before the scenario did")
    if story.lost_lines:
        sheet.unknowns.append(f"{story.lost_lines} lines of the history are damaged")
    sheet.unknowns += story.flaws


CONFESSIONS = frozenset({"kernel_clean", "kernel_between", "scenario", "nothing_blocked", "cpus_answer", "state_kept"})
"""Checks whose findings stand whatever the bench did."""
TIMED = frozenset({"kept_pace", "ready_under_load", "discovered", "latency"})
"""Checks whose findings say that something took too long: a bench that failed meanwhile may be the cause."""


def _void(sheet: _Sheet, faults: Iterable[RigFault], doubts: Sequence[str]) -> None:
    """What the bench did to a disk is not the disk's doing, what a failing bench held up is not the DUT's, and what
    happened to a disk is nobody's where it is not known which disks were cut off, or when (``doubts``)."""
    kept = []
    for finding in sheet.findings:
        fault = next((fault for fault in faults if _explains(fault, finding)), None)
        if doubts and finding.check not in CONFESSIONS:
            sheet.unknowns.append(f"not held against {finding.subject or 'the DUT'}: {finding.summary}")
        elif fault is None:
            kept.append(finding)
        else:
            whose = finding.subject or "the DUT"
            sheet.unknowns.append(f"not held against {whose}, for which the bench failed: {finding.summary}")
    sheet.findings[:] = kept


def _explains(fault: RigFault, finding: Finding) -> bool:
    """Whether a fault of the bench may be why. The kernel's own confession stands whatever the bench did."""
    if finding.check in CONFESSIONS:
        return False
    named = finding.subject and re.search(rf"(?<![\w.-]){re.escape(finding.subject)}(?![\w-])", fault.summary)
    if fault.subject:
        return fault.subject == finding.subject
    return bool(named) or finding.check in TIMED


def _sentence(
    story: Story, sheet: _Sheet, verdict: Verdict, findings: tuple[Finding, ...], unknowns: tuple[str, ...]
) -> str:
    if verdict is Verdict.FAIL:
        bench = [said for said in (*(fault.summary for fault in story.of(RigFault)), *_stops(story)) if said]
        if story.of(DutDied):
            bench = [said for said in bench if not said.startswith(OF_A_DEATH)]
        also = f" The bench failed too: {_first(bench[0], len(bench) - 1, 'fault')}" if bench else ""
        return f"FAIL: {_first(_lead(findings).summary, len(findings) - 1, 'finding')}{also}"
    if verdict is Verdict.UNKNOWN:
        return f"UNKNOWN: {_first(unknowns[0], len(unknowns) - 1, 'reason')}"
    cuts = ", ".join(_cut_words(story, cut) for cut in story.cut_records[:3])
    if len(story.cut_records) > 3:
        cuts += f" and {len(story.cut_records) - 3} more"
    said = list(
        dict.fromkeys(_BRACKETS.sub("", check.worst) for check in sheet.checks if check.worst and not check.standing)
    )
    return f"PASS: {'; '.join(part for part in (cuts, ', '.join(said)) if part)}."


OF_A_DEATH = ("the DUT died: ", "the agent ", "the agent's ", "the stream to the agent ", "the stream from the agent ")
"""What the bench says of a DUT that died begins with one of these (``dut/conversation/link.py``, ``dut/listener.py``).
It did not fail."""


def _lead(findings: Sequence[Finding]) -> Finding:
    """What a sentence begins with: a kernel that died or broke explains the rest."""
    for finding in findings:
        if finding.check == "kernel_clean":
            known = classify(finding.summary)
            if finding.summary.startswith((DIED, HUNG)) or (known is not None and known.severity is Severity.FATAL):
                return finding
    return findings[0]


def _stops(story: Story) -> list[str]:
    """Why the scenario stopped early, where that was not its own assertion."""
    return [error.summary for error in story.of(ScenarioError) if error.fault != "assertion" and error.summary]


def _first(text: str, others: int, noun: str) -> str:
    more = f" (and {others} more {noun}{'s' * (others != 1)})" if others else ""
    return f"{text.rstrip('.')}{more}."


def _cut_words(story: Story, cut: Cut) -> str:
    modes = {
        load.mode
        for disk in cut.armed.victims
        if (load := story.load_at(disk, cut.off.commanded_at or 0.0)) is not None
    }
    doing = " and ".join(sorted(_doing(mode) for mode in modes)) or "idle"
    kept = "for good " if cut.armed.permanent else ""
    return f"{cut.armed.point} cut {kept}({cut.armed.mechanism}) while {doing}"


def _doing(mode: str) -> str:
    if "read" in mode:
        return "reading"
    return "writing" if "write" in mode else "reading and writing"


def _ready(story: Story) -> DutInfo:
    readies = [event for event in (*story.before, *story.events) if isinstance(event, DutReady)]
    if not readies:
        return DutInfo()
    last = readies[-1]
    return DutInfo(
        kernel=last.kernel,
        kind=last.kind,
        accel=last.accel,
        cpus=last.cpus,
        memory_bytes=last.memory_bytes,
        fio=last.fio,
        modules=last.modules,
    )


def _span(story: Story) -> float:
    times = [event.at for event in story.events if event.at is not None]
    return round(max(times) - min(times), 6) if times else 0.0


def _sum(one: Integrity, two: Integrity) -> Integrity:
    counts = {
        name: getattr(one, name) + getattr(two, name)
        for name in Integrity.__struct_fields__
        if isinstance(getattr(one, name), int)
    }
    bound = loss_bound(counts["trials_lost"], counts["trials"]) if counts["trials"] else None
    return Integrity(**counts, loss_bound=bound, disks=one.disks + two.disks)


# --- the run -----------------------------------------------------------------------------------------------


def _sort_out(history: History) -> tuple[tuple[ScenarioResult, ...], tuple[Skipped, ...]]:
    """The scenarios that were run, and those that were skipped. One in which something was found was run."""
    scenarios, skipped = [], []
    for story, earlier in zip(history.stories, (None, *history.stories), strict=False):
        result, reason = judge_story(story, earlier), skip_reason(story)
        if reason and not result.findings:
            skipped.append(Skipped(id=story.id, reason=reason))
        else:
            scenarios.append(result)
    return tuple(scenarios), (*skipped, *skipped_outside(history))


def _run_unknowns(history: History, scenarios: tuple[ScenarioResult, ...]) -> list[str]:
    unknowns = []
    if not scenarios:
        unknowns.append("no scenario was run")
    if history.ended is None or history.torn:
        unknowns.append("the history ends before the run did")
    elif history.ended.interrupted:
        unknowns.append(f"the run was interrupted ({history.ended.interrupted})")
    if history.begun is None:
        unknowns.append("the beginning of the history is missing")
    if history.lost_lines:
        unknowns.append(f"{history.lost_lines} lines of the history are damaged")
    unknowns += history.flaws
    unknowns += plan_unknowns(history)
    unknowns += [event.summary for event in history.stray if isinstance(event, RigFault)]
    return unknowns


def _run_sentence(
    history: History, scenarios: tuple[ScenarioResult, ...], verdict: Verdict, unknowns: list[str], skipped: int
) -> str:
    cuts = [cut for story in history.stories for cut in story.cut_records]
    executed = f"{sum(cut.executed for cut in cuts)} of {len(cuts)} cuts executed"
    executed += f", {skipped} skipped" if skipped else ""
    count = len(scenarios)
    if verdict is Verdict.PASS:
        took = seconds(_run_seconds(history, scenarios))
        return f"PASS: {count} scenario{'s' * (count != 1)} passed in {took}, {executed}."
    bad = [scenario for scenario in scenarios if scenario.verdict is verdict]
    what = "failed" if verdict is Verdict.FAIL else "could not be judged"
    numbers = f"{len(bad)} of {count} scenarios {what}, {executed}" if bad else executed
    reason = bad[0].sentence.partition(": ")[2] if bad else f"{unknowns[0]}."
    return f"{verdict}: {numbers}; {'first: ' if len(bad) > 1 else ''}{reason}"


def _run_seconds(history: History, scenarios: tuple[ScenarioResult, ...]) -> float:
    if history.begun is not None and history.ended is not None:
        try:
            begun, ended = (datetime.fromisoformat(wall) for wall in (history.begun.wall, history.ended.wall))
            return round((ended - begun).total_seconds(), 6)
        except (TypeError, ValueError):
            pass  # a wall time nobody can read does not make a run unjudgeable
    return round(sum(scenario.seconds for scenario in scenarios), 6)
