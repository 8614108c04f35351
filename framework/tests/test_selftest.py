"""``plugpull test`` itself: it finds what tests leave running, and waits for what Ctrl-C interrupted."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from plugpull.setup import selftest

LEAVES = """
import subprocess
from pathlib import Path

def test_that_leaves_a_process_behind():
    sleeping = subprocess.Popen(["sleep", "300"], start_new_session=True)
    Path("pid").write_text(str(sleeping.pid))
    sleeping.returncode = 0  # as if it had been waited for
"""
TIDIES = """
import time
from pathlib import Path
try:
    Path("ready").touch()
    time.sleep(300)
finally:
    time.sleep(1)
    Path("tidy").touch()
"""
RUNS = """
import signal, sys
from pathlib import Path
from plugpull.setup import selftest
signal.signal(signal.SIGINT, signal.default_int_handler)
selftest._tool("tidies", Path.cwd(), [sys.executable, "tidies.py"])
"""


def test_tests_that_pass_and_leave_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "test_fine.py").write_text("def test_fine(): pass")
    (step,) = selftest._pytest("fine", tmp_path, ["test_fine.py"])
    assert (step.ok, step.counts) == (True, {"passed": 1})
    assert selftest._summary([step])
    assert "1 passed, 0 failed, 0 skipped" in capsys.readouterr().out


def test_tests_beside_others_have_low_priority_and_are_shown_at_the_end(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "test_fine.py").write_text(
        "import os, pathlib\ndef test_fine():\n    pathlib.Path('nice').write_text(str(os.nice(0)))"
    )
    with selftest._pytest_started("fine", tmp_path, ["test_fine.py"], beside=True) as ended:
        assert "test session starts" not in capsys.readouterr().out
        (step,) = ended()
    assert (step.ok, step.counts) == (True, {"passed": 1})
    assert "1 passed in" in capsys.readouterr().out
    assert int((tmp_path / "nice").read_text()) == min(os.nice(0) + 10, 19)


@pytest.mark.parametrize("workers", ["0", "1"])
def test_a_process_that_a_test_left_behind_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], workers: str
) -> None:
    monkeypatch.setattr(selftest, "_GONE_WITHIN", 0.0)
    (tmp_path / "test_leaves.py").write_text(LEAVES)
    tests, left = selftest._pytest("leaves", tmp_path, ["-n", workers, "test_leaves.py"])
    pid = int((tmp_path / "pid").read_text())
    os.kill(pid, signal.SIGKILL)
    assert tests.ok
    assert (left.name, left.ok) == ("leftovers", False)
    assert f"pid {pid}: sleep 300" in capsys.readouterr().out
    assert not selftest._summary([tests, left])


@pytest.mark.parametrize("status", [0, 1])
def test_a_linter_runs_beside_the_tests_and_is_shown_in_one_piece(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], status: int
) -> None:
    line = f"import os; print('one', flush=True); print('nice', os.nice(0)); raise SystemExit({status})"
    step = selftest._tool("linter", tmp_path, [sys.executable, "-c", line])
    assert (step.name, step.ok) == ("linter", status == 0)
    assert f"\none\nnice {min(os.nice(0) + 10, 19)}\n" in capsys.readouterr().out


def test_no_test_at_all_is_a_failure(tmp_path: Path) -> None:
    assert not selftest._summary(selftest._pytest("none", tmp_path, ["-k", "nothing"]))


def test_what_ctrl_c_interrupts_may_tidy_up_before_it_ends(tmp_path: Path) -> None:
    (tmp_path / "tidies.py").write_text(TIDIES)
    line = [sys.executable, "-c", RUNS]
    with subprocess.Popen(line, cwd=tmp_path, start_new_session=True, stderr=subprocess.DEVNULL) as running:
        deadline = time.monotonic() + 60
        while not (tmp_path / "ready").exists():
            assert time.monotonic() < deadline, "it did not start"
            time.sleep(0.02)  # another process's file
        os.killpg(running.pid, signal.SIGINT)  # as a terminal does
        assert running.wait(60) != 0
    assert (tmp_path / "tidy").exists()


def test_a_test_that_hangs_fails_and_the_others_run(tmp_path: Path) -> None:
    (tmp_path / "test_two.py").write_text(
        "import threading\n\n\ndef test_hung():\n    threading.Event().wait()\n\n\ndef test_healthy():\n    pass\n"
    )
    options = ["-n", "1", "-p", "no:cacheprovider", *selftest._HUNG_AFTER, "5"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, "test_two.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 1
    assert "1 failed, 1 passed" in done.stdout
    assert "FAILED test_two.py::test_hung" in done.stdout


@pytest.mark.parametrize("refused", ["", "1"])
def test_a_module_is_compiled_for_all_processes_of_the_tests_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refused: str
) -> None:
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", refused)
    monkeypatch.delenv("PYTHONPYCACHEPREFIX", raising=False)
    (tmp_path / "one.py").write_text("print(__cached__)")
    with selftest._modules_compiled_once():
        said = subprocess.run(
            [sys.executable, "-c", "import one"], cwd=tmp_path, capture_output=True, text=True, check=True
        ).stdout
        cached = Path(said.strip())
        assert cached.is_file()
    # A folder of its own, which is gone afterwards, if the user wants none beside the modules.
    assert (tmp_path / "__pycache__").is_dir() == cached.is_file() == (not refused)
    assert os.environ["PYTHONDONTWRITEBYTECODE"] == refused


def test_no_file_whose_tests_boot_guests_is_left_out() -> None:
    """Such a file says ``mark.bench`` itself: no helper does, and no other test file hands one on."""
    tests = Path(__file__).parent
    with_guests = {Path(name).stem for name in selftest._files_with_guests(tests.parents[1])}
    texts = {path.stem: path.read_text(encoding="utf-8") for path in tests.glob("*.py")}
    assert {"test_agent_in_guest", "test_documents"} <= with_guests < texts.keys()
    assert not [name for name, text in texts.items() if "mark.bench" in text and not name.startswith("test_")]
    for name in texts.keys() - with_guests:
        imported = re.findall(r"^\s*(?:from|import) (test_\w+)", texts[name], re.MULTILINE)
        assert not with_guests & set(imported), f"{name}.py"
