"""Steps that nobody times: emulated disks may be faster than their rates meanwhile, unless a load runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import Mock

import pytest
from desks import DeskBench, desk

from plugpull.dut.scenario_context import HURRIED, LIFTED, ScenarioContext
from plugpull.errors import RigError
from plugpull.history import events as ev
from plugpull.integrity.file_patterns import file_storm
from plugpull.integrity.writing.files.running import RunningFiles
from plugpull.load.runner import Job
from plugpull.load.running import RunningJobs
from plugpull.locate import rigs_dir
from plugpull.rig.load import load_rig
from plugpull.rig.topology import Topology
from plugpull.targets.array import Array, RaidLevel
from plugpull.targets.disk import RigDisk
from plugpull.targets.filesystem import Filesystem
from plugpull.targets.made_array import MadeArray

TOPOLOGY = Topology(load_rig(rigs_dir() / "quick.toml"))
DISKS = (RigDisk("disk1", TOPOLOGY), RigDisk("disk2", TOPOLOGY))


@pytest.fixture
def lifted(monkeypatch: pytest.MonkeyPatch) -> list[int | None]:
    """What the bench was asked for, in order."""
    asked: list[int | None] = []
    monkeypatch.setattr(DeskBench, "lift_rates", lambda bench, to: asked.append(to))
    return asked


@pytest.fixture
def context(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ScenarioContext]:
    with desk(tmp_path_factory.mktemp("desk")) as opened:
        yield opened.context


def test_rates_are_lifted_once_for_a_step_and_the_steps_within_it(
    context: ScenarioContext, lifted: list[int | None]
) -> None:
    with context.untimed():
        with context.untimed():
            assert lifted == [LIFTED]
        assert lifted == [LIFTED]
    assert lifted == [LIFTED, None]
    with context.untimed():
        pass
    assert lifted == [LIFTED, None, LIFTED, None]


def test_the_history_has_when_rates_were_lifted(context: ScenarioContext, lifted: list[int | None]) -> None:
    with context.untimed():
        pass
    recorded = [event.to for event in context.recorder.since(0) if isinstance(event, ev.RatesLifted)]
    assert recorded == lifted == [LIFTED, None]


@pytest.mark.parametrize("whose", ["busy", "timed"])
def test_rates_are_lifted_less_while_a_load_runs_and_not_while_it_is_timed(
    context: ScenarioContext, lifted: list[int | None], whose: str
) -> None:
    running = [True]
    loads = context.busy if whose == "busy" else context.timed
    loads += [lambda: False, lambda: running[0]]
    with context.untimed():
        pass
    assert lifted == ([HURRIED, None] if whose == "busy" else [])
    lifted.clear()
    running[0] = False
    with context.untimed():
        pass
    assert lifted == [LIFTED, None]


@pytest.mark.parametrize("error", [RigError("mdadm failed"), KeyboardInterrupt()])
def test_rates_are_set_again_after_an_error(
    context: ScenarioContext, lifted: list[int | None], error: BaseException
) -> None:
    with pytest.raises(type(error)), context.untimed():
        raise error
    assert lifted == [LIFTED, None]


def test_the_first_error_is_the_one_that_is_raised(context: ScenarioContext, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(bench: DeskBench, to: int | None) -> None:
        if to is None:
            raise RigError("QEMU is gone")

    monkeypatch.setattr(DeskBench, "lift_rates", refuse)
    with pytest.raises(RigError, match="mdadm failed"), context.untimed():
        raise RigError("mdadm failed")
    with pytest.raises(RigError, match="QEMU is gone"), context.untimed():
        pass
    assert not context._untimed


# --- who uses it ------------------------------------------------------------------------------------------------------


class Watched(Mock):
    """A context that notes what was done and whether its time counted."""

    def __init__(self, **more: Any) -> None:
        super().__init__(**more)
        self.done: list[tuple[str, bool]] = []
        self.inside = False
        self.listener.lost = ""
        self.recorder.since.return_value = []
        self.identity = lambda name: {"kname": name}
        self.wait_for = lambda *_, **__: self.note("wait")
        self.bench.link.call = lambda op, *_, **asked: self.note(str(asked.get("do", op)))

    def note(self, what: str) -> dict[str, Any]:
        self.done.append((what, self.inside))
        return {"ok": True, "seconds": 0.1, "detail": "", "uuid": "F5"}

    @contextmanager
    def untimed(self) -> Iterator[None]:
        self.inside = True
        yield
        self.inside = False

    def _get_child_mock(self, /, **more: Any) -> Mock:
        return Mock(**more)


def array_on(context: Watched) -> MadeArray:
    plan = Array("array1", RaidLevel.MIRRORED, DISKS, uuid="U", kname="md127", bytes=1 << 20)

    def read_members(array: MadeArray) -> None:
        context.note("read")

    return MadeArray(context, plan, (), read_members)


def test_a_filesystem_is_made_and_mounted_without_being_timed() -> None:
    context = Watched()
    volume = Filesystem(context, DISKS[0], "ext4").__enter__()
    assert context.done == [("mkfs", True), ("mount", True)]
    volume.unmount()
    assert context.done[-1] == ("umount", False)


def test_an_array_is_waited_for_checked_and_read_without_being_timed() -> None:
    context = Watched()
    array = array_on(context)
    assert (array.wait_clean(), array.wait_in_sync(DISKS[0]), array.check()) == (True, True, True)
    assert [timed for what, timed in context.done if what == "wait"] == [True] * 5
    array.__exit__(None, None, None)
    assert context.done[-2:] == [("read", True), ("erase", True)]


def test_how_soon_an_array_notices_is_timed() -> None:
    context = Watched()
    array = array_on(context)
    assert array.wait_degraded()
    assert array.wait_resyncing()
    assert context.done == [("wait", False)] * 2


class Load(RunningJobs):
    """A load whose context sees when it reads back."""

    def _begin(self) -> None: ...

    def _stop_jobs(self, running: Iterable[Job]) -> dict[str, Any]:
        return {}

    def verify(self) -> None:
        assert isinstance(self._context, Watched)
        self._context.note("verify")

    def _first_bytes(self, disk: str) -> int:
        return 1


def test_a_load_counts_as_running_until_its_jobs_have_ended_and_is_read_back_without_being_timed() -> None:
    context = Watched(busy=[], timed=[])
    load = Load(context, DISKS[:1])
    (runs,), (timed,) = context.busy, context.timed
    assert not runs()
    load._jobs = {"disk1": Job("load1-disk1", "disk1", "sda", 1 << 20)}
    assert runs()
    load._jobs["disk1"].ended.set()
    assert not runs()
    assert not timed()
    load._jobs = {}
    with load:
        assert context.done == []
    assert context.done == [("verify", True)]


def test_a_load_is_timed_from_its_baseline_on(monkeypatch: pytest.MonkeyPatch) -> None:
    context = Watched(busy=[], timed=[])
    load = Load(context, DISKS[:1])
    (timed,) = context.timed
    monkeypatch.setattr(load, "_wait_all_moving", lambda: None)
    load._jobs = {"disk1": Job("load1-disk1", "disk1", "sda", 1 << 20)}
    load.run_for(0.0)
    assert not timed()
    monkeypatch.setattr(load, "_watch_steadily", lambda begin, seconds: None)
    monkeypatch.setattr("plugpull.load.running.rate_between", lambda begin, end, kname: 1.0)
    load.settle(0.0)
    assert timed()
    load._jobs["disk1"].ended.set()
    assert not timed()


def test_files_are_looked_at_without_being_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    context = Watched(busy=[])
    files = RunningFiles(context, Mock(), file_storm)
    (runs,) = context.busy
    assert not runs()
    files._job = Mock()
    files._job.ended.is_set.return_value = False
    assert runs()
    monkeypatch.setattr(files, "_look", lambda: bool(context.note("look")))
    assert files.verify()
    assert context.done == [("look", True)]
