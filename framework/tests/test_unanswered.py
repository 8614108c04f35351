"""A DUT whose agent stops answering at the very end of a scenario, when its heartbeat is over."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import pytest
from desks import Desk, desk

from plugpull.draw import Draw
from plugpull.dut.bench import PostMortem
from plugpull.dut.conversation.link import AgentGone
from plugpull.errors import RigError
from plugpull.history import events as ev
from plugpull.scenario import ScenarioRig
from plugpull.streams import VICTIMS

WHY = "the agent did not answer 'jobs.alive' within 10 s"
HUNG = "the DUT hung: it answers neither its agent nor sysrq on its console"


def ended(on: Desk, patch: pytest.MonkeyPatch, error: RigError, found: PostMortem) -> int:
    """End a scenario whose agent answers like this. How often the DUT was examined."""
    examined: list[float] = []

    def refuse(*_: Any, **__: Any) -> NoReturn:
        raise error

    def examine(timeout: float) -> PostMortem:
        examined.append(timeout)
        return found

    patch.setattr(on.bench.link, "call", refuse)
    patch.setattr(on.bench, "post_mortem", examine)
    ScenarioRig(on.context, Draw(on.context.streams.of(VICTIMS), "test")).end()
    on.listener.end()
    return len(examined)


@pytest.fixture
def end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Desk, RigError, PostMortem], int]:
    return lambda on, error, found: ended(on, monkeypatch, error, found)


Ending = Callable[[Desk, RigError, PostMortem], int]


def test_a_dut_that_hung_as_the_scenario_ended_is_found_out(tmp_path: Path, end: Ending) -> None:
    with desk(tmp_path) as on:
        assert end(on, AgentGone(WHY), PostMortem(ev.DutDied(at=1.0, headline=HUNG))) == 1
        assert [died.headline for died in on.recorded(ev.DutDied)] == [HUNG]
        assert [lost.why for lost in on.recorded(ev.AgentLost)] == [f"the DUT died: {HUNG}"]


def test_an_agent_that_is_silent_on_a_living_kernel_is_missing_evidence(tmp_path: Path, end: Ending) -> None:
    with desk(tmp_path) as on:
        assert end(on, AgentGone(WHY), PostMortem(says="the kernel is alive")) == 1
        assert on.recorded(ev.DutDied) == []
        assert [lost.why for lost in on.recorded(ev.AgentLost)] == [f"{WHY}; the kernel is alive"]
        assert [fault.summary for fault in on.recorded(ev.RigFault)] == [WHY]


def test_an_agent_that_answers_with_an_error_is_there(tmp_path: Path, end: Ending) -> None:
    with desk(tmp_path) as on:
        assert end(on, RigError("the agent could not do 'census': no sysfs"), PostMortem()) == 0
        assert on.recorded(ev.AgentLost) == []
        assert [fault.summary for fault in on.recorded(ev.RigFault)] == ["the agent could not do 'census': no sysfs"]
