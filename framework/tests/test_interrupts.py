"""A run that is ended from outside at a random moment leaves nothing behind, and its history can be read."""

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
from long_tests import only_if_asked

from plugpull.cache import Cache
from plugpull.coordination.journal import sweep
from plugpull.exit_status import EXIT_UNKNOWN
from plugpull.history.reader import History, read_history
from plugpull.judging.judge import judge_history
from plugpull.judging.results import Verdict
from plugpull.judging.results_io import read_results

pytestmark = pytest.mark.bench

MOMENTS = int(os.environ.get("PLUGPULL_INTERRUPTS", "3"))
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


def run_command(rig: Path, out: Path, which: str = "while_writing") -> list[str]:
    return [sys.executable, "-m", "plugpull", "run", "--rig", str(rig), "--out", str(out), "-k", which]


def pids_of(mark: str, program: str) -> list[int]:
    """Processes that have ``mark`` in their environment and ``program`` in their command line."""
    found = []
    for directory in Path("/proc").iterdir():
        try:
            ours = directory.name.isdigit() and mark.encode() in (directory / "environ").read_bytes()
            if ours and program.encode() in (directory / "cmdline").read_bytes():
                found.append(int(directory.name))
        except OSError:
            continue
    return found


def wait_for_text(folder: Path, text: str, run: subprocess.Popen[bytes]) -> Path:
    """The history of the run in ``folder``, once ``text`` is in it."""
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and run.poll() is None:
        time.sleep(0.1)  # another process's file: there is no event for its progress
        found = [path for path in folder.glob("2*/history.jsonl") if text in path.read_text()]
        if found:
            return found[0]
    run.kill()
    raise AssertionError(f"no {text} in the history:\n{(folder / 'output').read_text()}")


def wait_gone(mark: str, timeout: float) -> list[str]:
    deadline = time.monotonic() + timeout
    while (left := belonging(mark)) and time.monotonic() < deadline:
        time.sleep(0.05)  # processes of a process: there is nothing to wait on
    return left


def moments() -> list[tuple[signal.Signals, float]]:
    generator = random.Random(SEED)
    return [(SIGNALS[number % len(SIGNALS)], generator.uniform(0.2, LATEST)) for number in range(MOMENTS)]


def assert_honest(history: History, status: int) -> None:
    """A run passes if it came to its end with nothing cut short; then a signal can only have come after that."""
    passed = judge_history(history).verdict is Verdict.PASS
    if passed:
        assert history.ended is not None
        assert history.ended.interrupted == ""
        assert status <= 0, "it passed, but exited as if it had not"
    if status == 0:
        assert passed


@pytest.mark.parametrize(("number", "after"), moments())
def test_a_run_that_is_ended_leaves_nothing_behind(tmp_path: Path, number: signal.Signals, after: float) -> None:
    rig = tmp_path / "rig.toml"
    rig.write_text(RIG)
    mark = f"PLUGPULL_TEST_MARK={uuid.uuid4()}"
    name, _, value = mark.partition("=")
    command = run_command(rig, tmp_path)
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
        assert_honest(read, status)
    assert left == [], f"still there after {number.name} at {after:.2f} s: {left}\n{said}"
    if number is not signal.SIGKILL:
        directories = [path for path in tmp_path.iterdir() if path.is_dir() and not path.is_symlink()]
        for directory in directories:
            assert (directory / "report.html").exists() or not (directory / "history.jsonl").exists(), said


@pytest.mark.parametrize("moment", ["judge", pytest.param("scenario.end", marks=only_if_asked)])
def test_interrupted_while_a_scenario_is_put_away_is_not_a_pass(tmp_path: Path, moment: str) -> None:
    rig = tmp_path / "rig.toml"
    rig.write_text(RIG)
    command = run_command(rig, tmp_path, "while_idle or while_writing")
    with (tmp_path / "output").open("w") as output:
        run = subprocess.Popen(command, stdout=output, stderr=output, cwd=tmp_path)
        history = wait_for_text(tmp_path, f'"{moment}"', run)
        run.terminate()
        status = run.wait(60)
    read = read_history(history)
    said = (tmp_path / "output").read_text()
    assert status == EXIT_UNKNOWN, said
    assert judge_history(read).verdict is Verdict.UNKNOWN
    assert read.ended is not None
    assert "SIGTERM" in read.ended.interrupted


def test_the_next_start_tidies_up_after_a_killed_run_and_says_so(tmp_path: Path) -> None:
    rig = tmp_path / "rig.toml"
    rig.write_text(RIG)
    command = run_command(rig, tmp_path)
    with (tmp_path / "output").open("w") as output:
        run = subprocess.Popen(command, stdout=output, stderr=output, cwd=tmp_path)
        history = wait_for_text(tmp_path, "load.begin", run)
        run.kill()
        run.wait(10)
    notices: list[str] = []
    sweep(Cache.default().root / "journal", notices.append)
    (sentence,) = [text for text in notices if str(history.parent) in text]
    assert "tidied up after a run that was killed" in sentence
    assert f"pid {run.pid}" in sentence
    assert "1 directories removed" in sentence
    assert judge_history(read_history(history)).verdict is Verdict.UNKNOWN


def test_qemu_dying_is_the_benchs_fault(tmp_path: Path) -> None:
    rig = tmp_path / "rig.toml"
    rig.write_text(RIG)
    name, value = "PLUGPULL_TEST_MARK", str(uuid.uuid4())
    command = run_command(rig, tmp_path)
    with (tmp_path / "output").open("w") as output:
        run = subprocess.Popen(command, stdout=output, stderr=output, env={**os.environ, name: value}, cwd=tmp_path)
        wait_for_text(tmp_path, "load.settled", run)
        for pid in pids_of(f"{name}={value}", "qemu-system"):
            os.kill(pid, signal.SIGKILL)
        status = run.wait(60)
    results = read_results(tmp_path / "latest")
    assert status == EXIT_UNKNOWN, (tmp_path / "output").read_text()
    assert results.scenarios[0].findings == ()
    assert any("QEMU was killed by SIGKILL" in reason for reason in results.scenarios[0].unknowns)


def test_a_disks_firmware_dying_is_the_benchs_fault(tmp_path: Path) -> None:
    rig = tmp_path / "rig.toml"
    rig.write_text(RIG)
    name, value = "PLUGPULL_TEST_MARK", str(uuid.uuid4())
    command = run_command(rig, tmp_path)
    with (tmp_path / "output").open("w") as output:
        run = subprocess.Popen(command, stdout=output, stderr=output, env={**os.environ, name: value}, cwd=tmp_path)
        wait_for_text(tmp_path, "load.settled", run)
        (pid,) = pids_of(f"{name}={value}", "survivor.nbd")
        os.kill(pid, signal.SIGKILL)
        status = run.wait(60)
    results = read_results(tmp_path / "latest")
    assert status == EXIT_UNKNOWN, (tmp_path / "output").read_text()
    assert results.scenarios[0].findings == ()
    assert "nbdkit, the firmware of survivor, was killed by SIGKILL" in results.scenarios[0].unknowns
