"""A short soak on the virtual bench: a disk dies for good, the controller is killed, and the run goes on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from long_tests import only_if_asked
from rig_builder import a_rig

from plugpull.exit_status import EXIT_FAIL
from plugpull.history.reader import read_history
from plugpull.judging.results_io import read_results

pytestmark = [pytest.mark.bench, only_if_asked]

RIG = (
    a_rig("shelf")
    .switch(ports=3)
    .stock_controller()
    .disks(
        "disk1", "disk2", "disk3", serial="SOAK-{n}", size="32 MiB", rate="2 MiB/s", cable="cables.{n}", scratch=True
    )
    .table("defect", kind="never-returns", disk="disk2", scenario="test_disks_last")
    .text
)
WITHIN = 420.0


def turns(run: Path) -> int:
    """How many turns have ended so far."""
    return sum(story.ended is not None for story in read_history(run).stories)


def wait_for_turns(process: subprocess.Popen[bytes], out: Path, count: int) -> Path:
    deadline = time.monotonic() + WITHIN
    while not (out / "latest").exists() or turns((out / "latest").resolve()) < count:
        assert process.poll() is None, "it ended early"
        assert time.monotonic() < deadline
        time.sleep(0.5)  # another process makes it true
    return (out / "latest").resolve()


def test_a_soak_survives_a_dead_disk_and_a_killed_controller(tmp_path: Path) -> None:
    (tmp_path / "rig.toml").write_text(RIG)
    command = [sys.executable, "-m", "plugpull", "run"]
    begin = [*command, "--rig", "rig.toml", "--out", "runs", "--for", "240s", "--seed", "3"]
    with (tmp_path / "output").open("wb") as output:
        process = subprocess.Popen(begin, cwd=tmp_path, stdout=output, stderr=output)
    run = wait_for_turns(process, tmp_path / "runs", 2)
    so_far = subprocess.run([*command[:-1], "check", str(run)], capture_output=True, text=True, check=False)
    assert "the run is still going on" in so_far.stdout
    process.send_signal(signal.SIGKILL)
    process.wait()
    resume = [*command, "--resume", str(run)]
    done = subprocess.run(resume, cwd="/", env=os.environ, capture_output=True, text=True, timeout=600, check=False)
    results = read_results(run)
    assert done.returncode == EXIT_FAIL, done.stdout + done.stderr
    (lost,) = [scenario for scenario in results.scenarios if scenario.findings]
    assert (lost.findings[0].check, lost.findings[0].subject) == ("returned", "disk2"), lost.findings
    # What hung at its place is missing too, and said after it.
    assert {finding.check for finding in lost.findings[1:]} <= {"nothing_left"}, lost.findings
    assert [one.subject for one in results.conclusions if one.kind == "set-aside"] == ["disk2"]
    history = read_history(run)
    assert not history.flawed
    unended = [story.id for story in history.stories if story.ended is None]
    assert len(unended) == 1
    whole = json.loads((run / "results.json").read_text())
    assert len(whole["scenarios"]) >= 4
