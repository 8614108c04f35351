"""A scenario in which nobody looked at the DUT for a while is no PASS."""

from __future__ import annotations

import pytest
from stories import Bench, healthy

from plugpull.checks.record.coherent import coherent
from plugpull.checks.record.sample_holes import holes
from plugpull.checks.starved import lateness
from plugpull.history import events as ev

BEGIN = 11.05


def unseen(seconds: float, *, answers: bool = False) -> Bench:
    """The healthy story without samples for a while. With ``answers``, the agent answered meanwhile."""
    bench = healthy(until=40.0)
    bench.starved = ((BEGIN, BEGIN + seconds),)
    times = [BEGIN + 0.5 * step for step in range(1, int(2 * seconds))] if answers else []
    bench.add(*(ev.ClockMapped(at=at, controller=at + 600.0, error=0.002) for at in times))
    return bench


@pytest.mark.parametrize(("seconds", "found"), [(0.8, False), (3.0, False), (7.0, True), (25.0, True)])
def test_silence_is_a_doubt_if_it_is_longer_than_a_busy_host_causes(seconds: float, found: bool) -> None:
    bench = unseen(seconds)
    assert any("nothing was heard of the DUT for" in one for one in holes(bench.story())) is found
    assert any("nothing was heard of the DUT for" in one for one in bench.judge(coherent()).unknowns) is found


@pytest.mark.parametrize(("answers", "found"), [((0.9,), False), ((0.4, 1.4), True)])
def test_an_agent_that_answers_twice_without_a_sample_was_not_held_up(answers: tuple[float, ...], found: bool) -> None:
    bench = unseen(1.9)
    bench.add(*(ev.ClockMapped(at=BEGIN + at, controller=BEGIN + at + 600.0, error=0.002) for at in answers))
    assert any("and the agent answered meanwhile" in one for one in holes(bench.story())) is found


@pytest.mark.parametrize(("seconds", "found"), [(0.8, False), (1.5, False), (4.0, True)])
def test_a_hole_in_the_samples_of_an_agent_that_answers_is_a_doubt(seconds: float, found: bool) -> None:
    story = unseen(seconds, answers=True).story()
    assert any("the samples have a hole of" in one for one in holes(story)) is found


def test_a_dut_that_sleeps_on_request_and_one_that_is_lost_are_judged_elsewhere() -> None:
    bench = unseen(12.0)
    bench.add(ev.DutSuspended(at=BEGIN, until=BEGIN + 12.0, ok=True))
    assert list(holes(bench.story())) == []
    bench = unseen(12.0)
    bench.add(ev.AgentLost(at=BEGIN, why="it fell silent"))
    assert list(holes(bench.story())) == []


@pytest.mark.parametrize("asked", [True, False])
def test_a_dut_that_slept_on_request_does_not_count_as_slow_afterwards(asked: bool) -> None:
    """No sample was due while it slept. So a disk that leaves late after it gets no more time."""
    bench = unseen(2.0)
    if asked:
        bench.add(ev.DutSuspended(at=BEGIN, until=BEGIN + 2.0, ok=True))
    assert (lateness(bench.story(), BEGIN + 2.1, BEGIN + 3.7) == 0.0) is asked


@pytest.mark.parametrize(("answers", "seconds", "found"), [(5, 2.5, True), (1, 2.5, False), (5, 1.0, False)])
def test_samples_that_end_while_the_agent_goes_on_answering(answers: int, seconds: float, found: bool) -> None:
    bench = healthy(until=40.0)
    last = max(bench.story().sample_times)
    bench.drop(ev.ClockMapped)
    at = [last - 0.1, *(last + seconds * step / answers for step in range(1, answers + 1))]
    bench.add(*(ev.ClockMapped(at=one, controller=one + 600.0, error=0.002) for one in at))
    assert any("the samples have a hole of" in one for one in holes(bench.story())) is found
