"""Judges a history: runs the checks on every scenario, and combines their judgements into verdicts.

A scenario is judged by the checks that it asked for and by those that stand for every scenario. The evidence must reach
as far as each check claims. Judging uses only the history, so the same file gives the same results anywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from msgspec.structs import replace

from plugpull.checks.base import Check, Judgement, check_name, decode_check
from plugpull.checks.dut.kernel_clean import KernelClean
from plugpull.checks.reach import clock_doubts, unreached
from plugpull.checks.record.lost_announcements import lost_announcements
from plugpull.checks.record.same_dut import same_dut
from plugpull.checks.record.wiring import wiring_doubts
from plugpull.checks.stalls import unrecorded
from plugpull.checks.standing import standing_checks
from plugpull.checks.survivors.untouched import Untouched, bystanders_of
from plugpull.checks.victims.other_units import written_units
from plugpull.finding import Finding
from plugpull.history.events import Healed, Judged, RigFault, ScenarioError
from plugpull.history.reader import History, Story
from plugpull.judging.bench_faults import Excuses, drop_explained
from plugpull.judging.coverage import coverage_of
from plugpull.judging.expected import expected_of, mark_expected, summed
from plugpull.judging.lasting import STILL_RUNNING, enter_set_aside, why_unended
from plugpull.judging.plan import plan_unknowns, skip_reason, skipped_outside
from plugpull.judging.results import (
    RESULTS_VERSION,
    DutInfo,
    Results,
    RunPart,
    ScenarioResult,
    Skipped,
    Verdict,
    cut_results,
)
from plugpull.judging.rig_disks import disks_of
from plugpull.judging.sentences import run_seconds, run_sentence, story_sentence
from plugpull.judging.sheet import Sheet, verdict_of
from plugpull.studies import STUDIES


def judge_story(story: Story, earlier: Story | None = None) -> ScenarioResult:
    """Judge one scenario. ``earlier`` is the scenario that ran before it on the same bench.

    Never raises: a check that crashes makes the verdict UNKNOWN.
    """
    sheet = _sheet(story, earlier)
    kernel = _ready(story).kernel
    findings = mark_expected(story, kernel, dict.fromkeys(sheet.findings))
    unknowns = tuple(dict.fromkeys(sheet.unknowns))
    verdict = verdict_of(findings, unknowns)
    ended = story.ended
    return ScenarioResult(
        id=story.id,
        verdict=verdict,
        seconds=ended.seconds if ended else _span(story),
        sentence=story_sentence(story, sheet, verdict, findings, unknowns),
        story=story.begun.story,
        row=story.begun.row,
        seed=story.begun.seed,
        kernel=kernel,
        cuts=cut_results(story),
        checks=tuple(sheet.checks),
        findings=findings,
        unknowns=unknowns,
        survivors=tuple(sheet.survivors.values()),
        integrity=sheet.integrity,
        split=ended.split if ended else {},
        measurements=tuple(sheet.measurements),
        conclusions=tuple(dict.fromkeys(sheet.conclusions)),
        expected=expected_of(story, kernel, findings),
    )


def _sheet(story: Story, earlier: Story | None) -> Sheet:
    """The judgements of all checks, of what lies between this scenario and the one before, and of how it stopped."""
    sheet = Sheet()
    asked = [data for judged in story.of(Judged) for data in judged.checks]
    for data in asked:
        name = str(data.get("check", "?"))
        if data.get("disks") == []:
            sheet.unknowns.append(f"{name} was asked about no disk")
        sheet.enter(name, _run(name, lambda data=data: decode_check(data), story))  # type: ignore[misc]
    for check in standing_checks(asked):
        sheet.enter(check_name(check), _run(check_name(check), lambda check=check: check, story), standing=True)  # type: ignore[misc]
    sheet.findings.extend(Untouched(bystanders_of(story)).judge(story).findings)
    if not any(data.get("check") == "other_units" for data in asked):
        sheet.findings.extend(written_units(story))
    _between(story, earlier, sheet)
    enter_set_aside(story, sheet)
    _stopped(story, sheet)
    if not asked:
        sheet.unknowns.append("nothing was judged")
    return sheet


def judge_history(history: History, judged: Mapping[int, ScenarioResult] = MappingProxyType({})) -> Results:
    """Judge a whole run. It passes only if it ended, nothing is missing from its history and every scenario passed.

    ``judged`` has scenarios that were judged before, by their index (``early.py``)."""
    scenarios, skipped = _sort_out(history, judged)
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
        sentence=run_sentence(history, scenarios, verdict, unknowns, len(skipped)),
        started=begun.wall if begun else "",
        seconds=run_seconds(history, scenarios),
        seed=begun.seed if begun else 0,
        scenarios=scenarios,
        complete=history.complete,
        edited=history.edited,
        skipped=skipped,
        unknowns=tuple(unknowns),
        coverage=coverage_of(history),
        controller=begun.controller if begun else {},
        measurements=tuple(one for each in scenarios for one in each.measurements if one.check in STUDIES),
        conclusions=tuple(one for each in scenarios for one in each.conclusions),
        parts=tuple(_part(name, part) for name, part in history.parts),
        disks=disks_of(history),
        expected=summed(one for each in scenarios for one in each.expected),
    )


# --- one scenario ------------------------------------------------------------------------------------------


def _run(name: str, make: Callable[[], Check], story: Story) -> Judgement:
    """The judgement of a check, with an unknown for each of its claims that the evidence does not support."""
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


def _between(story: Story, earlier: Story | None, sheet: Sheet) -> None:
    """Enter what the kernel logged between the end of the scenario and the next one, and whether the DUT changed."""
    aftermath = Story(story.begun, story.after, rig=story.rig)
    sheet.findings.extend(KernelClean().judge(aftermath).findings)
    judgement = same_dut(story, earlier)
    sheet.findings.extend(judgement.findings)
    sheet.unknowns.extend(judgement.unknowns)


def _stopped(story: Story, sheet: Sheet) -> None:
    """Enter the faults of the bench, the errors of the scenario, and the gaps in the record."""
    faults = story.of(RigFault)
    sheet.unknowns[:0] = [fault.summary for fault in faults]
    doubts = (*wiring_doubts(story), *clock_doubts(story))
    excuses = Excuses(doubts, unrecorded(story), lost_announcements(story), unnamed=not story.readies)
    drop_explained(sheet, faults, excuses)
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
        sheet.unknowns.append(why_unended(story))
    if story.lost_lines:
        sheet.unknowns.append(f"{story.lost_lines} lines of the history are damaged")
    sheet.unknowns += story.flaws


def _ready(story: Story) -> DutInfo:
    readies = story.readies
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
    return round(story.span[1] - story.span[0], 6) if story.span else 0.0


# --- the run -----------------------------------------------------------------------------------------------


def _sort_out(
    history: History, judged: Mapping[int, ScenarioResult]
) -> tuple[tuple[ScenarioResult, ...], tuple[Skipped, ...]]:
    """The scenarios that were run, and those that were skipped. A scenario with a finding was run."""
    scenarios, skipped = [], []
    for index, (story, earlier, part) in enumerate(history.in_turn()):
        result = judged[index] if index in judged else judge_story(story, earlier)
        result, reason = replace(result, part=part), skip_reason(story)
        if reason and not result.findings:
            skipped.append(Skipped(id=story.id, reason=reason))
        else:
            scenarios.append(result)
    return tuple(scenarios), (*skipped, *skipped_outside(history))


def _part(name: str, history: History) -> RunPart:
    begun = history.begun
    return RunPart(
        name=name,
        shard=begun.shard if begun else "",
        started=begun.wall if begun else "",
        seconds=run_seconds(history, ()),
        seed=begun.seed if begun else 0,
        scenarios=len(history.stories),
        complete=history.complete,
        controller=begun.controller if begun else {},
    )


def _run_unknowns(history: History, scenarios: tuple[ScenarioResult, ...]) -> list[str]:
    unknowns = []
    if not scenarios and not history.running:
        unknowns.append("no scenario was run")
    if history.running:
        unknowns.append(STILL_RUNNING)
    elif history.ended is None or history.torn:
        unknowns.append("the history ends before the run did")
    elif history.ended.interrupted:
        unknowns.append(f"the run was interrupted ({history.ended.interrupted})")
    if history.begun is None:
        unknowns.append("the beginning of the history is missing")
    if history.lost_lines:
        unknowns.append(f"{history.lost_lines} lines of the history are damaged")
    unknowns += history.flaws
    unknowns += [] if history.running else plan_unknowns(history)
    unknowns += [event.summary for event in history.stray if isinstance(event, RigFault)]
    return unknowns
