"""The last look at the DUT of a scenario: it waits for what passes, and records what stays."""

from __future__ import annotations

from itertools import chain, repeat
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from desks import desk

from plugpull import scenario
from plugpull.draw import Draw
from plugpull.dut.ending import wait_back
from plugpull.dut.scenario_context import ScenarioContext
from plugpull.history import events as ev
from plugpull.scenario import ScenarioRig
from plugpull.streams import VICTIMS


def state(held: int) -> dict[str, Any]:
    return {
        "at": 1.0,
        "boot_id": "b",
        "kernel": "6.1",
        "taint": 0,
        "modules": {"uas": held},
        "memory": {},
        "interrupts": {},
        "pressure": {},
    }


def recorded_at_the_end(
    tmp_path: Path,
    patch: pytest.MonkeyPatch,
    *held: int,
    fault: ev.ErrorFault | None = None,
    asked: list[str] | None = None,
) -> list[int]:
    """The references to a driver that are on record, if the DUT says ``held`` one after the other at the end of a
    scenario, which stopped by ``fault``. ``asked`` gets what the agent was asked."""
    answers = chain(held, repeat(held[-1]))

    def call(method: str, *_: Any, **__: Any) -> Any:
        if asked is not None:
            asked.append(method)
        return {
            "state": lambda: state(next(answers)),
            "census": lambda: {"things": {}, "at": 1.0, "slab": 0},
            "grace": lambda: {"asked": False},
            "timers.restore": lambda: {"at": 1.0, "changed": [], "failed": []},
        }.get(method, list)()

    with desk(tmp_path) as on:
        patch.setattr(on.bench.link, "call", call)
        patch.setattr(on.context, "pause", lambda seconds: None)
        rig = ScenarioRig(on.context, Draw(on.context.streams.of(VICTIMS), "test"))
        patch.setattr(rig, "_state_before", rig._state("begin"))
        if fault is not None:
            on.context.recorder.record(ev.ScenarioError(at=1.0, fault=fault, summary="it stopped"))
        rig.end()
        on.listener.end()
        return [one.modules["uas"] for one in on.recorded(ev.DutState)]


def test_a_driver_that_is_held_while_a_disk_is_set_up_is_let_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert recorded_at_the_end(tmp_path, monkeypatch, 0, 1, 1, 0, 7) == [0]


def test_a_driver_that_stays_held_is_recorded_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scenario, "GONE_WITHIN", 0.0)
    assert recorded_at_the_end(tmp_path, monkeypatch, 0, 1) == [1]


@pytest.mark.parametrize(("fault", "released"), [("interrupt", True), ("assertion", False), (None, False)])
def test_what_an_interruption_left_is_released_before_the_last_census(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: ev.ErrorFault | None, released: bool
) -> None:
    """An array that was being made, for example. What other scenarios leave is not tidied away before it is seen."""
    asked: list[str] = []
    recorded_at_the_end(tmp_path, monkeypatch, 0, fault=fault, asked=asked)
    assert ("release" in asked) is released
    if released:
        assert asked.index("jobs.stop") < asked.index("release") < asked.index("census")


@pytest.mark.parametrize("faulty", ["", "disk2"])
def test_the_disks_of_a_permanent_cut_are_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, faulty: str
) -> None:
    """Those that have their power again, apart from one with a defect, which need not come back."""
    waited: list[tuple[str, ...]] = []
    with desk(tmp_path) as on:
        defects = (SimpleNamespace(disk=faulty),) if faulty else ()
        context = SimpleNamespace(
            rig=SimpleNamespace(defect=defects), wait_attached=lambda disks, within: waited.append(disks)
        )
        wait_back(cast("ScenarioContext", context), {"disk2", "disk1"})
        rig = ScenarioRig(on.context, Draw(on.context.streams.of(VICTIMS), "test"))
        seen: list[frozenset[str]] = []

        def ending(_: ScenarioContext, back: frozenset[str]) -> int:
            seen.append(back)
            return 0

        monkeypatch.setattr(rig.breaker, "heal", lambda: frozenset({"disk3"}))
        restored = {"at": 1.0, "changed": [], "failed": []}
        monkeypatch.setattr(on.bench.link, "call", lambda what, *_, **__: restored if what == "timers.restore" else [])
        monkeypatch.setattr(scenario, "record_end", ending)
        monkeypatch.setattr(rig, "_record_what_is_left", lambda: None)
        monkeypatch.setattr(rig, "_record_state_at_the_end", lambda: None)
        rig.end()
        on.listener.end()
    assert waited == [("disk1",) if faulty else ("disk1", "disk2")]
    assert seen == [frozenset({"disk3"})]
