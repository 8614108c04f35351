"""The first lines of ``plugpull run``: which scenarios, on what, for how long."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from plugpull.commands.run_plugin import announced, earlier_times, root_of
from plugpull.locate import rigs_dir
from plugpull.rig.load import load_rig

IDS = ["scenarios/test_cable_cut.py::test_while_idle", *(f"scenarios/test_x.py::test_{n}" for n in range(9))]
COLLECT = """\
import pytest, sys
from pathlib import Path
from plugpull.commands.run_plugin import RunPlugin, root_of
from plugpull.locate import rigs_dir, stock_dir
from plugpull.rig.load import load_rig
rig = load_rig(rigs_dir() / "quick.toml")
root = root_of(sys.argv[1:], stock_dir())
line = ["--rootdir", str(root), "-q", "--no-header", "-p", "no:cacheprovider", sys.argv[1]]
raise SystemExit(pytest.main(line, plugins=[RunPlugin(rig, Path("runs"))]))
"""


def lines(rig: str, ids: list[str], earlier: dict[str, float]) -> list[str]:
    return list(announced(load_rig(rigs_dir() / rig), ids, earlier))


def test_what_runs_where_and_for_how_long() -> None:
    shown = lines("quick.toml", IDS[:1], {})
    assert shown[0] == "1 scenario on the rig quick (one controller, one hub, three disks), about 20 s"
    assert shown[1] == "  cable cut while idle"
    assert "no disk of this machine is touched" in shown[-1]


def test_times_of_an_earlier_run_are_used_and_long_lists_are_cut(tmp_path: Path) -> None:
    (tmp_path / "latest").mkdir()
    took = {"scenarios": [{"id": name, "seconds": 60.0} for name in IDS]}
    (tmp_path / "latest" / "results.json").write_text(json.dumps(took))
    shown = lines("quick.toml", IDS, earlier_times(tmp_path))
    assert shown[0].endswith("10 scenarios on the rig quick (one controller, one hub, three disks), about 10 min")
    assert "  and 4 more" in shown


def test_scenarios_that_nobody_timed_are_expected_to_take_the_usual_time() -> None:
    (cut,) = lines("quick.toml", ["scenarios/test_cable_cut.py::test_while_idle"] * 40, {})[:1]
    (array,) = lines("quick.toml", ["scenarios/test_raid_hub.py::test_x"] * 40, {})[:1]
    assert (cut[-6:], array[-6:]) == ("10 min", "10 min")


def test_results_that_cannot_be_read_are_no_reason_to_stop(tmp_path: Path) -> None:
    (tmp_path / "latest").mkdir()
    for text in ("", "[]", '{"scenarios": [{"id": 1}]}', '{"scenarios": [{"id": "a", "seconds": null}]}'):
        (tmp_path / "latest" / "results.json").write_text(text)
        assert earlier_times(tmp_path) == {}


def test_a_real_bench_is_announced_with_what_is_overwritten() -> None:
    assert "scratch disks will be overwritten" in lines("shelf-ssh.toml", IDS[:1], {})[-1]


@pytest.mark.parametrize("where", [".", "elsewhere"])
def test_a_test_of_a_folder_of_ones_own_is_named_with_its_file(tmp_path: Path, where: str) -> None:
    """Whether or not the command is run in that folder, which is given by its absolute path."""
    own = tmp_path / "test_my_own.py"
    own.write_text("def test_fails():\n    assert not True\n")
    command = [sys.executable, "-c", COLLECT, str(own)]
    (tmp_path / where).mkdir(exist_ok=True)
    ended = subprocess.run(command, cwd=tmp_path / where, capture_output=True, text=True, check=False)
    assert re.search(r"^FAILED (\.\./)?test_my_own\.py::test_fails", ended.stdout, re.MULTILINE)


def test_own_tests_outside_of_the_current_directory_are_named_from_the_folder_they_share(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (here := tmp_path / "here").mkdir()
    (tmp_path / "own" / "cables").mkdir(parents=True)
    monkeypatch.chdir(here)
    stock = tmp_path / "stock"
    own = tmp_path / "own"
    assert root_of([f"{own}/test_a.py::test_b"], stock) == own
    assert root_of([f"{own}/test_a.py", f"{own}/cables"], stock) == own
    assert root_of(["test_c.py", f"{own}/test_a.py"], stock) == tmp_path


def test_the_stock_scenarios_keep_their_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stock = tmp_path / "stock"
    monkeypatch.chdir(tmp_path)
    for paths in (
        [],
        ["stock/scenarios"],
        ["own/test_a.py", "stock/scenarios/test_b.py::test_c"],
        ["/elsewhere/test_d.py", "stock/scenarios"],
    ):
        assert root_of(paths, stock) == stock
    assert root_of(["own/test_a.py::test_b"], stock) == tmp_path
