"""A disk's cable and its power, and its neighbour's power, cut in the same moment on a guest under load."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from plugpull.exit_status import EXIT_PASS
from plugpull.judging.results import Verdict
from plugpull.judging.results_io import read_results

pytestmark = pytest.mark.bench
RIG = Path(__file__).parents[2] / "rigs/quick.toml"
SCENARIO = '''
from plugpull.checks import data_intact, kept_pace, removed, returned
from plugpull.load import sequential_write


def test_a_shelf(rig):
    """Two disks of three lose everything at once."""
    one, two, survivor = rig.disks
    with rig.load(rig.disks, sequential_write) as load:
        load.settle()
        with rig.cut(one.cable, one.power, two.power):
            rig.wait(seconds=1)
        load.regain_pace()
    rig.judge(removed([one, two]), returned([one, two], within=30), kept_pace(survivor), data_intact())
'''


def test_a_cut_through_two_switches_is_one_cut_with_its_skew(tmp_path: Path) -> None:
    (tmp_path / "test_shelf.py").write_text(SCENARIO)
    environment = {name: text for name, text in os.environ.items() if not name.startswith("PYTEST_")}
    command = [sys.executable, "-m", "plugpull", "run", "test_shelf.py", "--rig", str(RIG)]
    ended = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == EXIT_PASS, ended.stdout + ended.stderr
    (scenario,) = read_results(tmp_path / "runs/latest").scenarios
    assert scenario.verdict is Verdict.PASS
    cuts = {cut.point: cut for cut in scenario.cuts}
    assert set(cuts) == {"disk1.cable", "disk1.power", "disk2.power"}
    (skew,) = {cut.skew for cut in cuts.values()}
    assert skew is not None
    assert skew >= 0
    assert all(cut.kernel_skew is not None and cut.restored_skew is not None for cut in cuts.values())
    assert cuts["disk1.cable"].commanded_at == cuts["disk1.power"].commanded_at, "one cut to that disk"
    assert "3 ports off at once by cables, mains, skew" in ended.stdout
