"""What `framework/benchmarks/deaths.py` counts as good, as a miss, and as a death that came too late."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from stories import Bench, encode, healthy, run_of

from benchmarks.deaths import KINDS, Death, Outcome, draw, judge, outcome
from benchmarks.deaths_plugin import ARMED, dying, following
from plugpull.history import events as ev
from plugpull.judging.judge import judge_story
from plugpull.judging.outcome import HISTORY_FILE, write_outcome
from plugpull.judging.results import ScenarioResult, Verdict

DEATH = Death(3, "quick", "test_x[fua]", "oops", "astray", 2500, 0)
OOPS = "BUG: kernel NULL pointer dereference, address: 0000000000000050"
ENDS = (ev.ScenarioBegun, ev.ScenarioEnded)
PLACE = "RIP: 0010:write_astray+0x5/0x10 [plugpull_dies]"


def judged(bench: Bench, death: Death = DEATH, after: str = "PASS") -> Outcome:
    story = bench.story()
    results = {dying(death.number, death.scenario): judge_story(story)}
    if after:
        results[following(death.number)] = ScenarioResult(id="next", verdict=Verdict(after), seconds=1.0, sentence="")
    return outcome(death, results, {dying(death.number, death.scenario): story}, Path("run"))


def armed(*, came: float, said: str = OOPS, looked: float = 25.0) -> Bench:
    """A scenario that is armed at 10 s, and whose last look at the DUT is at ``looked``."""
    bench = healthy()
    bench.add(ev.Note(at=10.0, text=f"{ARMED} astray 2500 0"))
    bench.add(ev.KernelMessage(at=came, text="plugpull_dies: astray"))
    for text in (said, PLACE):
        bench.add(ev.KernelMessage(at=came, text=text, level=0))
    bench.add(ev.DutState(at=looked, moment="end"))
    return bench


def test_a_death_that_is_named_is_good() -> None:
    found = judged(armed(came=12.5))
    assert found.good
    assert not found.late
    assert found.first
    assert (found.came, found.end) == (2.5, 15.0)


def test_a_death_without_its_headline_is_a_miss() -> None:
    found = judged(armed(came=12.5, said="general protection fault: 0000 [#1] PREEMPT SMP"))
    assert found.verdict == "FAIL"
    assert not found.good


def test_a_death_that_passes_is_a_miss() -> None:
    bench = healthy()
    bench.add(ev.Note(at=10.0, text=f"{ARMED} astray 2500 0"))
    found = judged(bench)
    assert found.verdict == "PASS"
    assert not found.good


@pytest.mark.parametrize("after", ["UNKNOWN", ""])
def test_a_next_scenario_that_does_not_pass_is_a_miss(after: str) -> None:
    assert not judged(armed(came=12.5), after=after).good


def test_a_death_after_the_last_look_proves_nothing() -> None:
    found = judged(armed(came=25.5))
    assert found.late


@pytest.mark.parametrize("looked", [True, False])
def test_a_death_that_never_said_so_came_after_the_last_look(looked: bool) -> None:
    """Its timer was late: the DUT lived longer than it was to. If it did not, it is dead."""
    bench = healthy()
    bench.add(ev.Note(at=10.0, text=f"{ARMED} reset 14000 0"))
    if looked:
        bench.add(ev.DutState(at=25.0, moment="end"))
    found = judged(bench, replace(DEATH, kind="reset", way="reset", after=14000))
    assert found.late is looked
    assert found.good is looked


def test_a_death_may_say_so_on_the_console_alone() -> None:
    bench = healthy()
    bench.add(ev.Note(at=10.0, text=f"{ARMED} reset 2500 0"))
    bench.add(ev.ConsoleLine(at=13.0, text="[   13.000000] plugpull_dies: reset"))
    assert judged(bench, replace(DEATH, kind="reset", way="reset")).came == 3.0


def test_every_moment_and_kind_is_drawn() -> None:
    seconds = {"quick": {"test_a": 10.0, "test_b": 20.0}}
    drawn = [draw(number, 1, seconds, "quick") for number in range(400)]
    assert {death.kind for death in drawn} == set(KINDS)
    for name, most in seconds["quick"].items():
        moments = [death.after / 1000 / most for death in drawn if death.scenario == name]
        assert min(moments) < 0.1
        assert max(moments) > 0.9
        assert max(moments) <= 1
    assert draw(5, 1, seconds, "quick") == drawn[5]
    assert replace(drawn[5], number=6) != draw(6, 1, seconds, "quick")


def test_names_keep_the_parameters_at_their_end() -> None:
    assert dying(3, "test_x[fua]") == "test_x-dies3[fua]"
    assert dying(3, "test_x") == "test_x-dies3"


def test_an_interrupted_run_says_nothing_about_what_it_had_no_time_for(tmp_path: Path) -> None:
    """The second death's scenario was interrupted, and what comes after it was never begun."""
    second = replace(DEATH, number=4)
    names = (dying(3, "test_x[fua]"), following(3), dying(4, "test_x[fua]"))
    scenarios = [armed(came=12.5).scenario(), healthy().scenario(), armed(came=12.5).scenario()]
    scenarios[2].insert(-1, ev.ScenarioError(at=20.0, fault="interrupt", summary="interrupted: SIGINT"))
    events = run_of(*scenarios)
    ids = iter(f"scenarios/test_a.py::{name}" for name in names for _ in range(2))
    named = [msgspec.structs.replace(e, id=next(ids)) if isinstance(e, ENDS) else e for e in events]
    assert isinstance(named[-1], ev.RunEnded)
    for interrupted, expected in (("SIGINT", [3]), ("", [3, 4])):
        named[-1] = ev.RunEnded(wall="2030-01-01T00:00:30+00:00", interrupted=interrupted)
        (tmp_path / HISTORY_FILE).write_bytes(encode(named))
        write_outcome(tmp_path)
        assert [one.death.number for one in judge((DEATH, second), tmp_path)] == expected
