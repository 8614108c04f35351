"""Steps that nobody times: emulated disks may be as fast as they can for their length, unless a load runs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from desks import DeskBench, desk

from plugpull.dut.scenario_context import ScenarioContext
from plugpull.errors import RigError


@pytest.fixture
def lifted(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """What the bench was asked for, in order."""
    asked: list[bool] = []
    monkeypatch.setattr(DeskBench, "lift_rates", lambda bench, lifted: asked.append(lifted))
    return asked


@pytest.fixture
def context(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ScenarioContext]:
    with desk(tmp_path_factory.mktemp("desk")) as opened:
        yield opened.context


def test_rates_are_lifted_once_for_a_step_and_the_steps_within_it(context: ScenarioContext, lifted: list[bool]) -> None:
    with context.untimed():
        with context.untimed():
            assert lifted == [True]
        assert lifted == [True]
    assert lifted == [True, False]
    with context.untimed():
        pass
    assert lifted == [True, False, True, False]


def test_rates_hold_while_a_load_runs(context: ScenarioContext, lifted: list[bool]) -> None:
    running = [True]
    context.busy += [lambda: False, lambda: running[0]]
    with context.untimed():
        pass
    assert lifted == []
    running[0] = False
    with context.untimed():
        pass
    assert lifted == [True, False]


@pytest.mark.parametrize("error", [RigError("mdadm failed"), KeyboardInterrupt()])
def test_rates_are_set_again_after_an_error(context: ScenarioContext, lifted: list[bool], error: BaseException) -> None:
    with pytest.raises(type(error)), context.untimed():
        raise error
    assert lifted == [True, False]


def test_the_first_error_is_the_one_that_is_raised(context: ScenarioContext, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(bench: DeskBench, lifted: bool) -> None:
        if not lifted:
            raise RigError("QEMU is gone")

    monkeypatch.setattr(DeskBench, "lift_rates", refuse)
    with pytest.raises(RigError, match="mdadm failed"), context.untimed():
        raise RigError("mdadm failed")
    with pytest.raises(RigError, match="QEMU is gone"), context.untimed():
        pass
    assert not context._untimed
