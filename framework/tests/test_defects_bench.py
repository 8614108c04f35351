"""Runs of the small bench are waited for while they go on, however long that takes, and ended when they hang."""

from __future__ import annotations

import subprocess
import sys
from itertools import count
from pathlib import Path

import pytest
from defects_bench import run_while_it_goes_on, written

HANGS = [sys.executable, "-c", "import time; print('begun', flush=True); time.sleep(3600)"]
SHORT = [sys.executable, "-c", "import time; time.sleep(4); print('over')"]
"""Longer than the silence of the tests."""


def test_a_run_that_writes_may_take_longer_than_the_silence_that_is_allowed(tmp_path: Path) -> None:
    more = count()
    done = run_while_it_goes_on(SHORT, tmp_path, silence=2.0, size_of=lambda folder: next(more))
    assert (done.returncode, done.stdout) == (0, "over\n")


def test_a_silent_run_is_killed(tmp_path: Path) -> None:
    with pytest.raises(subprocess.TimeoutExpired):
        run_while_it_goes_on(HANGS, tmp_path, silence=2.0, size_of=lambda folder: 0)


def test_what_is_written_anywhere_below_the_folder_counts(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    before = written(tmp_path)
    (tmp_path / "runs" / "history.jsonl").write_text("an event")
    assert written(tmp_path) >= before + len("an event")


def test_the_status_of_a_run_is_passed_on(tmp_path: Path) -> None:
    assert run_while_it_goes_on([sys.executable, "-c", "raise SystemExit(3)"], tmp_path).returncode == 3
