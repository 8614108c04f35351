"""Interruptions at chosen moments: every port is on within 5 s, after SIGKILL by the next start.

`framework/benchmarks/interruptions.py` does the same at hundreds of random moments.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.interruptions import interrupt, off_in, possible, trials
from benchmarks.interruptions_bench import CHEAP, MEANS, Outcome, Trial
from plugpull.history import events as ev
from plugpull.history.recorder import Recorder

ALL = {(command, means) for command in CHEAP for means in MEANS if possible(command, means)}
PAIRS = (
    *(("cycle boards", means) for means in MEANS),
    *(("cycle files", means) for means in ("SIGTERM", "terminal")),
    *(("qualify boards", means) for means in ("SIGHUP", "SIGQUIT", "pipe", "kill")),
    ("qualify files", "SIGINT"),
)
"""A few of each: every one of them takes seconds."""


@pytest.mark.parametrize(("command", "means"), PAIRS)
def test_every_port_is_on_within_5_s_of_an_interruption(command: str, means: str) -> None:
    outcome = interrupt(Trial(command, means, 0.05, early=False))
    assert outcome.off, f"no port was off when it was interrupted:\n{outcome.said}"
    assert outcome.good, outcome


@pytest.mark.parametrize("moment", [0.1, 0.5])
def test_an_interruption_before_anything_is_off_leaves_everything_on(moment: float) -> None:
    outcome = interrupt(Trial("cycle boards", "SIGTERM", moment, early=True))
    assert outcome.good, outcome


def test_a_port_that_stays_off_is_noticed() -> None:
    trial = Trial("cycle boards", "SIGTERM", 0.0, early=False)
    assert not Outcome(trial, None, True, 0, "").good
    assert not Outcome(trial, 5.1, True, 0, "").good
    assert Outcome(trial, 4.9, True, 0, "").good


def test_the_ports_that_are_off_are_read_from_a_history(tmp_path: Path) -> None:
    (tmp_path / "runs" / "20310101T000000Z-r").mkdir(parents=True)
    with Recorder(tmp_path / "runs" / "20310101T000000Z-r" / "history.jsonl") as recorder:
        edges: tuple[tuple[str, ev.PortState, ev.EdgePhase], ...] = (
            ("1", "off", "acknowledged"),
            ("2", "off", "acknowledged"),
            ("3", "off", "commanded"),
            ("1", "on", "commanded"),
            ("2", "on", "acknowledged"),
        )
        for port, state, phase in edges:
            recorder.record(ev.Edge(at=1.0, cut=1, point="p", switch="s", port=port, state=state, phase=phase))
    assert off_in(tmp_path) == {"s.1"}


def test_every_command_meets_every_means() -> None:
    met = {(trial.command, trial.means) for trial in trials(len(ALL), seed=1)}
    assert met == ALL
    assert set(PAIRS) <= ALL
