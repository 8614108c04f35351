"""A run that is ended from outside, at a random moment: nothing stays behind, and what was recorded can be read."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

import pytest
from defects_bench import RIG

from plugpull.history.reader import read_history
from plugpull.judge import judge_history
from plugpull.results import Verdict
from plugpull.rig.journal import sweep
from plugpull.virtual.cache import Cache

pytestmark = pytest.mark.bench

MOMENTS = int(os.environ.get("PLUGPULL_INTERRUPTS", "6"))
"""How many moments are tried. Each takes about as long as a scenario; set it to 20 or more for a thorough run."""
SEED = int(os.environ.get("PLUGPULL_INTERRUPTS_SEED", "1"))
LATEST = 11.0
"""Seconds after the start until which a run is hit: about the length of the scenario."""
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)


def belonging(mark: str) -> list[str]:
    """Command lines of the processes that have ``mark`` in their environment: the run's own and all it started."""
    found = []
    for directory in Path("/proc").iterdir():
        if directory.name.isdigit() and int(directory.name) != os.getpid():
            try:
                if mark.encode() in (directory / "environ").read_bytes():
                    found.append((directory / "cmdline").read_bytes().replace(b"\0", b" ").decode()[:120])
            except OSError:
                continue
    return found


def wait_gone(mark: str, timeout: float) -> list[str]:
    deadline = time.monotonic() + timeout
    while (left := belonging(mark)) and time.monotonic() < deadline:
        time.sleep(0.05)  # processes of a process: there is nothing to wait on
    return left


def moments() -> list[tuple[signal.Signals, float]]:
    generator = random.Random(SEED)
    return [(SIGNALS[number % len(SIGNALS)], generator.uniform(0.2, LATEST)) for number in range(MOMENTS)]


@pytest.mark.parametrize(("number", "after"), moments())
def test_a_run_that_is_ended_leaves_nothing_behind(tmp_path: Path, number: signal.Signals, after: float) -> None:
    rig = tmp_path / "rig.toml"
    rig.write_text(RIG)
    mark = f"PLUGPULL_TEST_MARK={uuid.uuid4()}"
    name, _, value = mark.partition("=")
    command = [
        sys.executable,
        "-m",
        "plugpull",
        "run",
        "--rig",
        str(rig),
        "--out",
        str(tmp_path),
        "-k",
        "while_writing",
    ]
    with (tmp_path / "output").open("w") as output:
        run = subprocess.Popen(command, stdout=output, stderr=output, env={**os.environ, name: value}, cwd=tmp_path)
        try:
            run.wait(after)
        except subprocess.TimeoutExpired:
            run.send_signal(number)
        status = run.wait(60)
    said = (tmp_path / "output").read_text()
    left = wait_gone(mark, 5)
    for history in tmp_path.glob("*/history.jsonl"):
        read = read_history(history)
        assert read.lost_lines == 0, said
        if status != 0:
            assert judge_history(read).verdict is not Verdict.PASS
    assert left == [], f"still there after {number.name} at {after:.2f} s: {left}\n{said}"
    if number is not signal.SIGKILL:
        directories = [path for path in tmp_path.iterdir() if path.is_dir() and not path.is_symlink()]
        for directory in directories:
            assert (directory / "report.html").exists() or not (directory / "history.jsonl").exists(), said


def test_the_next_start_tidies_up_after_a_killed_run_and_says_so(tmp_path: Path) -> None:
    rig = tmp_path / "rig.toml"
    rig.write_text(RIG)
    command = [
        sys.executable,
        "-m",
        "plugpull",
        "run",
        "--rig",
        str(rig),
        "--out",
        str(tmp_path),
        "-k",
        "while_writing",
    ]
    with (tmp_path / "output").open("w") as output:
        run = subprocess.Popen(command, stdout=output, stderr=output, cwd=tmp_path)
        history = None
        deadline = time.monotonic() + 120
        while history is None and time.monotonic() < deadline and run.poll() is None:
            time.sleep(0.1)  # another process's file: nothing tells when it has got that far
            found = [path for path in tmp_path.glob("2*/history.jsonl") if "load.begin" in path.read_text()]
            history = found[0] if found else None
        run.kill()
        run.wait(10)
    assert history is not None, (tmp_path / "output").read_text()
    told: list[str] = []
    sweep(Cache.default().root / "journal", told.append)
    (sentence,) = [text for text in told if str(history.parent) in text]
    assert "tidied up after a run that was killed" in sentence
    assert f"pid {run.pid}" in sentence
    assert "1 directories removed" in sentence
    assert judge_history(read_history(history)).verdict is Verdict.UNKNOWN
