"""Two scenarios run at the same time, each on a guest of its own, and become one run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import datetime
from pathlib import Path

import pytest
from long_tests import only_if_asked

from plugpull.history.reader import read_history
from plugpull.locate import rigs_dir, scenarios_dir

pytestmark = [pytest.mark.bench, only_if_asked]

SCENARIOS = ("test_discovery.py", "test_temporary_cable_cut.py::test_while_idle")


def span(history: Path) -> tuple[datetime, datetime]:
    """When the scenarios of a part began and ended."""
    stories = read_history(history).stories
    assert stories[-1].ended is not None
    return datetime.fromisoformat(stories[0].begun.wall), datetime.fromisoformat(stories[-1].ended.wall)


def test_two_benches_side_by_side(tmp_path: Path) -> None:
    paths = [str(scenarios_dir() / name) for name in SCENARIOS]
    command = [sys.executable, "-m", "plugpull", "run", *paths, "--rig", str(rigs_dir() / "quick.toml")]
    command += ["--jobs", "2", "--seed", "3", "--out", str(tmp_path / "runs")]
    environment = {name: text for name, text in os.environ.items() if not name.startswith("PYTEST_")}
    environment |= {"PLUGPULL_SLOTS": "8"}  # guests of other tests must not make it take turns
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=500, check=False)
    run = tmp_path / "runs/latest"
    results = json.loads((run / "results.json").read_bytes())
    assert (done.returncode, results["verdict"]) == (0, "PASS"), done.stdout + done.stderr
    assert [one["part"] for one in results["scenarios"]].count("bench-1") == 1
    assert [one["part"] for one in results["scenarios"]].count("bench-2") == 1
    (one, two) = (span(run / "parts" / name) for name in ("bench-1", "bench-2"))
    assert max(one[0], two[0]) < min(one[1], two[1]), "they ran at the same time"
    assert "bench-2: 1 scenario" in (run / "report.html").read_text()
