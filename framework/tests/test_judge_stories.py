"""From a story to its verdict and sentence; from a run to its results; and what must never pass."""

from __future__ import annotations

import math
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from stories import BACK, CUT, RATE, SURVIVORS, VICTIM, encode, healthy, run_of

from plugpull.checks import Check, Judgement, kept_pace, kernel_clean, nothing_stuck, removed
from plugpull.finding import Finding
from plugpull.history import events as ev
from plugpull.history.reader import Story, read_history
from plugpull.judging.judge import judge_history, judge_story
from plugpull.judging.results import Measurement, Results, Verdict
from plugpull.judging.sentences import story_sentence
from plugpull.judging.sheet import Sheet


class Crashing(Check, frozen=True, tag="crashing"):
    """A check with a mistake in it."""

    def judge(self, story: Story) -> Judgement:
        raise ZeroDivisionError("by\nmistake")


def judged(directory: Path, content: bytes) -> Results:
    file = directory / "history.jsonl"
    file.write_bytes(content)
    return judge_history(read_history(file))


# --- one scenario ------------------------------------------------------------------------------------------


def test_a_healthy_story_passes_and_says_what_happened() -> None:
    result = judge_story(healthy().story())
    assert result.verdict is Verdict.PASS
    assert result.sentence == (
        "PASS: disk1.cable cut (data) while writing; gone after 0.07 s, back after 1.21 s, "
        "2 survivors kept pace, data intact, kernel log clean."
    )
    assert [check.verdict for check in result.checks if not check.standing] == [Verdict.PASS] * 5
    assert {check.verdict for check in result.checks if check.standing} == {Verdict.PASS}
    assert result.kernel == "6.12.1"
    assert result.seconds == 16.0
    assert len(result.survivors) == 2
    assert result.integrity.sectors_checked == 3 * 2048


def test_a_finding_fails_and_is_told() -> None:
    bench = healthy()
    bench.replace(ev.DiskAttached, lambda event: event.at == BACK, serial="X")
    result = judge_story(bench.story())
    assert result.verdict is Verdict.FAIL
    assert result.sentence == "FAIL: disk1 came back with serial X instead of S-disk1."


@pytest.mark.parametrize(
    "said",
    [
        "rcu: INFO: rcu_preempt self-detected stall on CPU",
        "BUG: kernel NULL pointer dereference, address: 0000000000000050",
    ],
)
def test_a_kernel_that_broke_is_told_before_what_came_of_it(said: str) -> None:
    bench = healthy()
    bench.replace(ev.DiskAttached, lambda event: event.at == BACK, serial="X")
    bench.add(ev.KernelMessage(at=BACK + 1, text=said, level=0))
    result = judge_story(bench.story())
    assert any("serial X" in finding.summary for finding in result.findings)
    assert result.sentence.startswith(f"FAIL: {said}")


@pytest.mark.parametrize(
    "headline", ["the guest reset itself without a word on its console", "the DUT hung: it is deaf"]
)
def test_a_death_is_told_before_what_came_of_it(headline: str) -> None:
    bench = healthy()
    bench.replace(ev.DiskAttached, lambda event: event.at == BACK, serial="X")
    bench.add(ev.DutDied(at=BACK + 1, headline=headline))
    result = judge_story(bench.story())
    assert any("serial X" in finding.summary for finding in result.findings)
    assert headline in result.sentence


def test_lost_data_is_told_first_and_lateness_last() -> None:
    late = Finding(check="returned", subject="disk1", summary="disk1 came back only after 6.3 s (limit 5 s)")
    gone = Finding(check="returned", subject="disk2", summary="disk2 did not come back")
    stood = Finding(check="kept_pace", subject="disk3", summary="disk3 stood still for 5.1 s")
    lost = Finding(check="data_intact", subject="disk3", summary="disk3 lost 4 KiB")
    broke = Finding(check="kernel_clean", subject="the kernel", summary="BUG: kernel NULL pointer dereference")
    assert first_told(late) == "disk1 came back only after 6.3 s (limit 5 s)."
    assert first_told(late, stood) == "disk3 stood still for 5.1 s (and 1 more finding)."
    assert first_told(late, gone, stood) == "disk2 did not come back (and 2 more findings)."
    assert first_told(late, gone, stood, lost) == "disk3 lost 4 KiB (and 3 more findings)."
    assert first_told(late, gone, stood, lost, broke).startswith("BUG: kernel NULL")


@pytest.mark.parametrize(("values", "said"), [(0, "no findings"), (1, "1 value measured"), (3, "3 values measured")])
def test_a_scenario_without_cuts_and_claims_says_what_it_measured(values: int, said: str) -> None:
    bench = healthy()
    bench.drop(ev.CutArmed)
    one = Measurement(name="write rate", subject="disk1", unit="B/s", value=1.0)
    sheet = Sheet(measurements=[one] * values)
    assert story_sentence(bench.story(), sheet, Verdict.PASS, (), ()) == f"PASS: {said}."


def first_told(*findings: Finding) -> str:
    sentence = story_sentence(healthy().story(), Sheet(), Verdict.FAIL, findings, ())
    return sentence.removeprefix("FAIL: ")


def test_a_bench_that_lost_a_dead_dut_has_not_failed() -> None:
    bench = healthy()
    bench.add(ev.DutDied(at=BACK + 1, headline="the DUT hung: it is deaf"))
    bench.add(ev.ScenarioError(at=BACK + 2, fault="rig", summary="the DUT died: the DUT hung: it is deaf"))
    bench.add(ev.RigFault(at=BACK + 2, summary="the agent's stream ended"))
    bench.add(ev.RigFault(at=BACK + 2, summary="the stream from the agent broke: [Errno 104] Connection reset by peer"))
    assert "The bench failed too" not in judge_story(bench.story()).sentence
    bench.add(ev.RigFault(at=BACK + 2, summary="the switch vanished"))
    assert judge_story(bench.story()).sentence.endswith("The bench failed too: the switch vanished.")


def test_a_bench_that_lost_a_living_dut_has_failed() -> None:
    bench = healthy()
    bench.replace(ev.DiskAttached, lambda event: event.at == BACK, serial="X")
    bench.add(ev.ScenarioError(at=BACK + 2, fault="rig", summary="the agent did not answer 'fio' within 30 s"))
    assert "The bench failed too: the agent did not answer" in judge_story(bench.story()).sentence


def test_findings_outrank_unknowns() -> None:
    bench = healthy()
    bench.replace(ev.DiskAttached, lambda event: event.at == BACK, serial="X")
    bench.add(ev.RigFault(summary="the camera fell over"))
    result = judge_story(bench.story())
    assert result.verdict is Verdict.FAIL
    assert result.unknowns == ("the camera fell over",)


@pytest.mark.parametrize(
    ("event", "said"),
    [
        (ev.RigFault(at=20.0, summary="the switch vanished"), "the switch vanished"),
        (ev.ScenarioError(at=20.0, fault="rig", summary="no such port"), "no such port"),
        (ev.ScenarioError(at=20.0, fault="framework", summary="TypeError: x"), "TypeError: x"),
        (ev.ScenarioError(at=20.0, fault="interrupt", summary=""), "the scenario stopped (interrupt)"),
        (
            ev.Healed(at=20.0, ports=("cables.1",), ok=False, detail="no answer"),
            "power could not be restored on cables.1",
        ),
    ],
)
def test_what_the_bench_did_wrong_is_unknown(event: ev.Event, said: str) -> None:
    bench = healthy()
    bench.add(event)
    result = judge_story(bench.story())
    assert result.verdict is Verdict.UNKNOWN
    assert result.sentence.startswith(f"UNKNOWN: {said}")


def test_what_the_bench_did_to_a_disk_is_not_held_against_it() -> None:
    bench = healthy()
    bench.replace(ev.DiskAttached, lambda event: event.at == BACK, serial="X")
    finding = judge_story(bench.story()).findings[0]
    bench.add(ev.RigFault(summary="its firmware fell over", subject=finding.subject))
    result = judge_story(bench.story())
    assert result.verdict is Verdict.UNKNOWN
    assert result.findings == ()
    assert result.unknowns[0] == "its firmware fell over"
    held = f"not a finding against {finding.subject}, for which the bench failed: {finding.summary}"
    assert held in result.unknowns


def test_an_assertion_in_the_scenario_is_a_finding() -> None:
    bench = healthy()
    bench.add(ev.ScenarioError(at=20.0, fault="assertion", summary="assert 1 == 2", traceback="a\nb"))
    result = judge_story(bench.story())
    assert result.verdict is Verdict.FAIL
    assert result.findings[0].check == "scenario"
    assert result.findings[0].evidence == ("a", "b")


def test_nothing_asked_is_nothing_known() -> None:
    assert judge_story(healthy(checks=()).story()).sentence == "UNKNOWN: nothing was judged."
    bench = healthy()
    story = bench.story()
    without = tuple(event for event in story.events if not isinstance(event, ev.Judged))
    assert judge_story(Story(story.begun, without)).unknowns == ("nothing was judged",)


def test_a_check_that_crashes_is_unknown_and_the_others_are_judged() -> None:
    result = judge_story(healthy(checks=(Crashing(), removed(VICTIM))).story())
    assert result.verdict is Verdict.UNKNOWN
    assert result.unknowns == ("the check crashing crashed: ZeroDivisionError: by mistake",)
    assert [check.verdict for check in result.checks if not check.standing] == [Verdict.UNKNOWN, Verdict.PASS]


def test_a_check_that_nobody_knows_is_unknown() -> None:
    story = healthy().story()
    asked = ev.Judged(checks=({"check": "tastes_good"}, {"check": "removed", "disks": 5}))
    result = judge_story(Story(story.begun, (*story.events, asked)))
    assert result.verdict is Verdict.UNKNOWN
    assert "there is no check 'tastes_good'" in result.unknowns[0]
    assert "ValidationError" in result.unknowns[1]


def test_a_dead_dut_fails_whatever_was_asked() -> None:
    for checks in ((), (removed(VICTIM),), (kernel_clean(),), (kernel_clean(), kept_pace(SURVIVORS), nothing_stuck())):
        bench = healthy(checks=checks, until=CUT + 1)
        bench.events = [event for event in bench.events if (event.at or 0) <= CUT + 1]
        bench.add(ev.DutDied(at=CUT + 1, headline="Kernel panic - not syncing: sysrq triggered crash"))
        bench.add(ev.AgentLost(at=CUT + 3, why="no answer", last_heard=CUT + 1))
        result = judge_story(bench.story())
        assert result.verdict is Verdict.FAIL
        assert "sysrq triggered crash" in result.sentence
        assert len(result.findings) == 1
        if kept_pace(SURVIVORS) in checks:
            assert {check.check: check.verdict for check in result.checks if not check.standing} == {
                "kernel_clean": Verdict.FAIL,
                "kept_pace": Verdict.UNKNOWN,
                "nothing_stuck": Verdict.UNKNOWN,
            }


def test_a_silent_agent_is_unknown() -> None:
    bench = healthy(until=CUT + 1)
    bench.events = [event for event in bench.events if (event.at or 0) <= CUT + 1]
    bench.add(ev.AgentLost(at=CUT + 3, why="no answer", last_heard=CUT + 1))
    result = judge_story(bench.story())
    assert result.verdict is Verdict.UNKNOWN
    verdicts = {check.check: check.verdict for check in result.checks if not check.standing}
    assert verdicts.pop("removed") is Verdict.PASS, "that was seen before"
    assert set(verdicts.values()) == {Verdict.UNKNOWN}


# --- a run -------------------------------------------------------------------------------------------------


def test_a_run_that_passes(tmp_path: Path) -> None:
    scenario = healthy().scenario()
    results = judged(tmp_path, encode(run_of(scenario, scenario)))
    assert results.verdict is Verdict.PASS
    assert results.complete
    assert results.sentence == "PASS: 2 scenarios passed in 30.00 s, 2 of 2 cuts executed."
    assert (results.rig, results.plugpull, results.seed) == ("made-up", "0.1.0", 7)
    assert results.dut.kernel == "6.12.1"


def test_a_run_is_as_bad_as_its_worst_scenario(tmp_path: Path) -> None:
    good, bad, odd = healthy(), healthy(), healthy()
    bad.replace(ev.DiskAttached, lambda event: event.at == BACK, serial="X")
    odd.drop(ev.Edge)
    assert judged(tmp_path, encode(run_of(good.scenario(), odd.scenario()))).verdict is Verdict.UNKNOWN
    results = judged(tmp_path, encode(run_of(odd.scenario(), bad.scenario(), good.scenario())))
    assert results.verdict is Verdict.FAIL
    assert results.sentence == (
        "FAIL: 1 of 3 scenarios failed, 2 of 3 cuts executed; disk1 came back with serial X instead of S-disk1."
    )


def test_a_run_without_scenarios_is_unknown(tmp_path: Path) -> None:
    results = judged(tmp_path, encode(run_of()))
    assert results.verdict is Verdict.UNKNOWN
    assert results.sentence == "UNKNOWN: 0 of 0 cuts executed; no scenario was run."


def test_an_interrupted_run_is_unknown_even_if_all_that_ran_passed(tmp_path: Path) -> None:
    events = run_of(healthy().scenario())
    events[-1] = ev.RunEnded(wall="2030-01-01T00:00:30+00:00", interrupted="SIGINT")
    results = judged(tmp_path, encode(events))
    assert results.verdict is Verdict.UNKNOWN
    assert "SIGINT" in results.sentence
    results = judged(tmp_path, encode(events[:-1]))
    assert results.verdict is Verdict.UNKNOWN
    assert not results.complete
    assert results.scenarios[0].verdict is Verdict.PASS


def test_a_damaged_line_makes_the_verdict_unknown(tmp_path: Path) -> None:
    lines = encode(run_of(healthy().scenario())).splitlines(keepends=True)
    results = judged(tmp_path, b"".join([*lines[:50], b"{damaged\n", *lines[50:]]))
    assert results.scenarios[0].verdict is Verdict.UNKNOWN
    assert results.verdict is Verdict.UNKNOWN


# --- properties --------------------------------------------------------------------------------------------

HEALTHY = encode(run_of(healthy().scenario()))
WHOLE_SCENARIO = HEALTHY.rindex(b'{"type":"run.end"') - 1
"""Position of the newline that ends the last line of the scenario."""
PROPERTY = settings(
    max_examples=60,
    deadline=None,
    database=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


@PROPERTY
@given(length=st.integers(min_value=0, max_value=len(HEALTHY) - 2))
@example(length=WHOLE_SCENARIO - 1)
@example(length=WHOLE_SCENARIO)
@example(length=len(HEALTHY) - 2)
def test_no_truncated_history_passes(tmp_path: Path, length: int) -> None:
    file = tmp_path / "history.jsonl"
    file.write_bytes(HEALTHY[:length])
    if length and b"\n" not in HEALTHY[:length]:
        return  # not even one line: there is nothing to judge
    results = judge_history(read_history(file))
    assert results.verdict is not Verdict.PASS
    assert not results.complete
    for scenario in results.scenarios:
        assert (scenario.verdict is Verdict.PASS) == (length >= WHOLE_SCENARIO)
        assert scenario.verdict is not Verdict.FAIL


@PROPERTY
@given(data=st.data())
def test_no_lost_line_makes_a_scenario_fail_or_crash(tmp_path: Path, data: st.DataObject) -> None:
    lines = HEALTHY.splitlines(keepends=True)
    position = data.draw(st.integers(min_value=0, max_value=len(lines) - 1))
    lines[position] = b"{" + lines[position]
    results = judged(tmp_path, b"".join(lines))
    assert results.verdict is not Verdict.PASS


def test_judging_is_repeatable_and_the_same_from_the_file(tmp_path: Path) -> None:
    bench = healthy(pace=lambda disk, at: RATE * (1 + 0.1 * math.sin(at)))
    file = tmp_path / "history.jsonl"
    file.write_bytes(encode(run_of(bench.scenario())))
    first, second = (msgspec.json.encode(judge_history(read_history(file))) for _ in range(2))
    assert first == second
    assert judge_story(bench.story()) == judge_history(read_history(file)).scenarios[0]
