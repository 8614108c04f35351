"""A DUT that was asked to sleep is not asked anything, and is lost only if it does not wake."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from plugpull.dut import listener as listener_module
from plugpull.dut.bench import PostMortem
from plugpull.dut.conversation.clock import Exchange
from plugpull.dut.conversation.link import AgentGone
from plugpull.dut.listener import Listener
from plugpull.history import events as ev
from plugpull.history.recorder import Recorder

PATIENCE = 60.0
LONG = 1000.0


class Agent:
    """The link to an agent that answers while it is ``awake``; ``asked`` counts the questions."""

    def __init__(self) -> None:
        self.heard, self.unreadable, self.lost = time.monotonic(), 0, ""
        self.awake, self.asked = threading.Event(), 0
        self.under_way, self.answer = threading.Event(), threading.Event()
        self.awake.set()
        self.answer.set()
        self.clock = Mock(mapped=False)

    def map_clock(self, timeout: float) -> Exchange:
        self.asked += 1
        self.under_way.set()
        self.answer.wait(PATIENCE)
        if not self.awake.is_set():
            raise AgentGone("the agent did not answer with its time")
        now = self.heard = time.monotonic()
        return Exchange(sent=now, received=now, dut=now)

    def give_up(self, why: str) -> None:
        self.lost = why


@contextmanager
def listening(folder: Path, patch: pytest.MonkeyPatch) -> Iterator[tuple[Listener, Agent, Recorder]]:
    patch.setattr(listener_module, "MAPPING_INTERVAL", 0.01)
    with Recorder(folder / "history.jsonl") as recorder:
        listener, agent = Listener(recorder), Agent()
        bench: Any = Mock(
            link=agent, cpu_seconds=lambda: None, post_mortem=lambda within: PostMortem(), bring_back=PostMortem
        )
        listener.begin(bench)
        try:
            yield listener, agent, recorder
        finally:
            agent.answer.set()
            listener.end()


def wait_until(true: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.01)  # another thread makes it true


def test_an_agent_that_sleeps_is_asked_again_when_it_is_heard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listener_module, "SLEEPING", LONG)
    with listening(tmp_path, monkeypatch) as (listener, agent, _):
        wait_until(lambda: agent.asked > 1)
        listener.let_sleep(LONG)
        agent.awake.clear()
        time.sleep(0.3)  # for a question that is under way
        asked = agent.asked
        time.sleep(0.3)  # that nothing is asked can only be seen by looking
        assert agent.asked == asked
        agent.awake.set()
        agent.heard = time.monotonic() + 2 * LONG
        wait_until(lambda: agent.asked > asked)
        assert not listener.lost


def test_an_agent_that_does_not_wake_is_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listener_module, "SLEEPING", 0.2)
    with listening(tmp_path, monkeypatch) as (listener, agent, recorder):
        mark = recorder.mark()
        listener.let_sleep(LONG)
        agent.awake.clear()
        assert recorder.wait_for(lambda event: isinstance(event, ev.AgentLost), PATIENCE, since=mark)
    assert "did not answer with its time" in listener.lost


def test_a_question_that_was_under_way_may_stay_without_an_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listener_module, "SLEEPING", LONG)
    with listening(tmp_path, monkeypatch) as (listener, agent, _):
        agent.answer.clear()
        agent.under_way.clear()
        assert agent.under_way.wait(PATIENCE)
        listener.let_sleep(LONG)
        agent.awake.clear()
        agent.answer.set()
        time.sleep(0.2)  # it would be lost by now
        assert not listener.lost
        asked = agent.asked
        agent.awake.set()
        agent.heard = time.monotonic() + 2 * LONG
        wait_until(lambda: agent.asked > asked)
