"""A pytest plugin for ``deaths.py``: runs chosen scenarios in a guest that will die, and a healthy one after each.

The plan is a file that PLUGPULL_DEATHS names. The kernel itself waits for the moment (``plugpull_dies.c``), so that
the controller's timing does not matter, and no scenario is changed.
"""

from __future__ import annotations

import json
import os
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from plugpull.dut.real.dut_host import DutHost
from plugpull.history import events as ev
from plugpull.scenario import ScenarioRig

PLAN = "PLUGPULL_DEATHS"
NOW = "/sys/module/plugpull_dies/parameters/now"
ARMED = "deaths.py:"
"""The beginning of the note that is recorded when a death is armed."""
HEALTHY = "test_every_disk_is_found_at_its_place"


def dying(number: int, scenario: str) -> str:
    """The name of a scenario that is run in a guest that will die."""
    name, bracket, parameters = scenario.partition("[")
    return f"{name}-dies{number}{bracket}{parameters}"


def following(number: int) -> str:
    """The name of the scenario that is run after it."""
    return f"{HEALTHY}-after{number}"


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    found = {item.name: item for item in items if isinstance(item, pytest.Function)}
    chosen = []
    for death in _plan():
        chosen.append(_copy(found[death["scenario"]], dying(death["number"], death["scenario"])))
        chosen.append(_copy(found[HEALTHY], following(death["number"])))
    items[:] = chosen


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: Any, request: pytest.FixtureRequest) -> Generator[None, object, object]:
    """Arm the death as early as the agent can do it: before the disks are plugged in."""
    death = next((d for d in _plan() if dying(d["number"], d["scenario"]) == request.node.name), None)
    if fixturedef.argname != "rig" or death is None:
        return (yield)
    begin = ScenarioRig.begin

    def armed(rig: ScenarioRig) -> None:
        order = f"{death['way']} {death['after']} {death['cpu']}"
        DutHost(rig.context.bench.link).write_text(NOW, order)
        rig.context.recorder.record(ev.Note(at=rig.context.now(), text=f"{ARMED} {order}", subject="dut"))
        begin(rig)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ScenarioRig, "begin", armed)
        return (yield)


def _plan() -> list[dict[str, Any]]:
    plan: list[dict[str, Any]] = json.loads(Path(os.environ[PLAN]).read_text())
    return plan


def _copy(item: pytest.Function, name: str) -> pytest.Function:
    return pytest.Function.from_parent(
        item.parent,
        name=name,
        callspec=getattr(item, "callspec", None),
        callobj=item.obj,
        fixtureinfo=item._fixtureinfo,
        originalname=name.partition("[")[0],  # from which pytest makes the node's id
    )
