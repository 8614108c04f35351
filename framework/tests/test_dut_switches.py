"""Switches of a real bench: kept open, opened again after a failure, and restored by the next start after a SIGKILL."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from shelves import shelf

from plugpull.coordination.journal import Journal, sweep
from plugpull.dut.real.reach import reach_of
from plugpull.dut.real.setting import RealSetting
from plugpull.errors import RigError
from plugpull.left_off import _restore
from plugpull.rig.load import load_rig
from plugpull.rig.model import Rig
from plugpull.switches.person import TerminalPerson

PATIENCE = 60.0


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return load_rig(shelf(tmp_path))


@contextmanager
def opened(folder: Path) -> Iterator[RealSetting]:
    rig = load_rig(shelf(folder))
    journal = Journal(folder / "journal", folder)
    setting = RealSetting(rig, folder, journal, reach_of(rig.dut), TerminalPerson())
    try:
        yield setting
    finally:
        setting.close()
        journal.close()


def state(folder: Path, port: int) -> str:
    return (folder / f"state-{port}").read_text().strip()


def test_a_switch_is_opened_once(tmp_path: Path) -> None:
    with opened(tmp_path) as setting:
        first = setting.switch("relay")
        first.set("1", False)
        assert setting.switch("relay") is first


def test_a_switch_that_failed_is_opened_anew(tmp_path: Path) -> None:
    with opened(tmp_path) as setting:
        first = setting.switch("relay")
        with pytest.raises(RigError):
            first.read("1")  # there is no file yet
        second = setting.switch("relay")
        assert second is not first
        second.set("1", True)
        assert second.read("1") is True
        assert setting.switch("relay") is second


KILLED = """
import os, signal, sys
from pathlib import Path
from test_dut_switches import opened

with opened(Path(sys.argv[1])) as setting:
    relay = setting.switch("relay")
    relay.set_many(["1", "2", "3"], False)
    relay.set("3", True)
    relay.set("4", False)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def kill_a_run(folder: Path) -> None:
    line = [sys.executable, "-c", KILLED, str(folder)]
    done = subprocess.run(line, cwd=Path(__file__).parent, timeout=PATIENCE, check=False)
    assert done.returncode == -9


def test_what_a_killed_run_left_off_is_turned_on_by_the_next_start(tmp_path: Path) -> None:
    kill_a_run(tmp_path)
    assert [state(tmp_path, port) for port in (1, 2, 3, 4)] == ["off", "off", "on", "off"]
    (tmp_path / "state-3").write_text("untouched")
    notices: list[str] = []
    assert sweep(tmp_path / "journal", notices.append, _restore) == 1
    assert [state(tmp_path, port) for port in (1, 2, 3, 4)] == ["on", "on", "untouched", "on"]
    assert [line for line in notices if "power restored: relay.1 was left off" in line]
    assert list((tmp_path / "journal").iterdir()) == []


def test_what_cannot_be_turned_on_is_tried_again_by_each_start(tmp_path: Path) -> None:
    kill_a_run(tmp_path)
    (tmp_path / "state-2").unlink()
    (tmp_path / "state-2").mkdir()  # a switch that fails
    notices: list[str] = []
    sweep(tmp_path / "journal", notices.append, _restore)
    assert state(tmp_path, 1) == "on"
    assert state(tmp_path, 4) == "on", "one that fails kept the rest from being restored"
    assert [line for line in notices if "could not be restored: relay.2" in line]
    assert [line for line in notices if "tries again" in line]
    (tmp_path / "state-2").rmdir()
    notices.clear()
    sweep(tmp_path / "journal", notices.append, _restore)
    assert state(tmp_path, 2) == "on"
    assert list((tmp_path / "journal").iterdir()) == []


def test_a_sweep_that_can_restore_nothing_keeps_the_journal(tmp_path: Path) -> None:
    kill_a_run(tmp_path)
    sweep(tmp_path / "journal", lambda text: None)
    assert state(tmp_path, 1) == "off"
    assert list((tmp_path / "journal").iterdir())


def test_an_orderly_end_with_an_outlet_off_is_put_right_by_the_next_start(tmp_path: Path) -> None:
    with opened(tmp_path) as setting:
        setting.switch("relay").set("1", False)
    sweep(tmp_path / "journal", lambda text: None, _restore)
    assert state(tmp_path, 1) == "on"


def test_an_orderly_end_with_everything_on_leaves_nothing(tmp_path: Path) -> None:
    with opened(tmp_path) as setting:
        setting.switch("relay").set("1", False)
        setting.switch("relay").set("1", True)
        assert setting.switch("relay").read("1") is True
    assert list((tmp_path / "journal").iterdir()) == []


def test_an_outlet_that_acknowledges_and_reads_back_off_is_not_forgotten(tmp_path: Path) -> None:
    with opened(tmp_path) as setting:
        relay = setting.switch("relay")
        relay.set("1", False)
        relay.set("1", True)
        (tmp_path / "state-1").write_text("off")
        assert relay.read("1") is False
    (journal,) = (tmp_path / "journal").iterdir()
    assert journal.suffix == ".jsonl"


@pytest.mark.parametrize("broken", [{}, {"name": "relay"}, {"name": "relay", "driver": "gone", "ports": 1}])
def test_a_journal_whose_switch_makes_no_sense_stops_nothing(tmp_path: Path, broken: dict[str, Any]) -> None:
    journal = Journal(tmp_path / "journal", tmp_path)
    journal.outlet(broken, {"kind": "local"}, tmp_path, "1", False)
    journal.close()
    notices: list[str] = []
    assert sweep(tmp_path / "journal", notices.append, _restore) == 1
    assert [line for line in notices if "could not be restored" in line]


def test_a_switch_table_can_be_put_into_the_journal_and_read_back(rig: Rig) -> None:
    (declared,) = rig.switch
    again = type(declared).model_validate(declared.model_dump(mode="json"))
    assert again == declared
    assert again.options == declared.options


def test_an_exit_stack_is_all_a_run_has_to_close(tmp_path: Path) -> None:
    from plugpull.dut.real.bench import prepare_real

    file = shelf(tmp_path)
    with ExitStack() as held:
        journal = Journal(tmp_path / "journal", tmp_path)
        held.callback(journal.close)
        assert callable(prepare_real(load_rig(file), file, journal, held))
    assert list((tmp_path / "journal").iterdir()) == []
