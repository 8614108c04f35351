"""A guest whose clock runs at the wrong speed is not saved: everything it records would be at the wrong time."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from plugpull.dut.conversation.clock import Exchange
from plugpull.errors import RigError
from plugpull.virtual import snapshot


class Link:
    """A double of an agent's link: its clock runs at ``rate``, and a request lasts ``lasts`` seconds."""

    def __init__(self, rate: float, lasts: float = 0.0) -> None:
        self.rate, self.lasts = rate, lasts

    def call(self, op: str, timeout: float) -> dict[str, Any]:
        return {"op": op, "timeout": timeout}

    def map_clock(self) -> Exchange:
        sent = time.monotonic()
        return Exchange(sent, sent + self.lasts, 1000.0 + (sent + self.lasts / 2) * self.rate)

    def close(self) -> None:
        pass


class Machine:
    def __init__(self) -> None:
        self.channels: dict[str, Any] = {}
        self.frozen: list[Path] = []

    def freeze(self, state: Path) -> None:
        self.frozen.append(state)

    def close(self) -> None:
        pass


@pytest.mark.parametrize("rate", [0.5, 0.99, 1.0, 1.01, 2.5])
def test_the_rate_of_a_clock_is_measured(rate: float) -> None:
    assert snapshot.clock_rate(cast("Any", Link(rate)), over=0.05) == pytest.approx(rate, abs=1e-6)


def test_a_slow_answer_is_no_evidence_against_a_clock() -> None:
    assert snapshot.clock_rate(cast("Any", Link(1.01, lasts=0.1)), over=0.05) == 1.0


def booted(rates: list[float], machines: list[Machine]) -> Any:
    remaining: Iterator[float] = iter(rates)

    def start(patience: float) -> tuple[Machine, None, Link]:
        machines.append(Machine())
        return machines[-1], None, Link(next(remaining))

    return start


def test_a_guest_whose_clock_runs_away_is_booted_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot, "clock_rate", lambda link: link.rate)
    machines: list[Machine] = []
    said: list[str] = []
    snapshot.freeze_guest(booted([2.5, 0.9, 1.001], machines), Path("state"), said.append)
    assert [machine.frozen for machine in machines] == [[], [], [Path("state")]]
    measuring = "measuring its clock"
    assert said == [
        measuring,
        "its clock runs at 250% of the speed it should have; booting again",
        measuring,
        "its clock runs at 90% of the speed it should have; booting again",
        measuring,
        "saving it for later runs",
    ]


def test_a_host_on_which_no_clock_keeps_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot, "clock_rate", lambda link: link.rate)
    machines: list[Machine] = []
    with pytest.raises(RigError, match="ran at the wrong speed after each of 4 boots") as caught:
        snapshot.freeze_guest(booted([2.5] * 9, machines), Path("state"), lambda _: None)
    assert "less to do" in caught.value.hint
    assert len(machines) == 4
    assert not any(machine.frozen for machine in machines)
