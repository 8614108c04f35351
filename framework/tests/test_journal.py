"""Tidying up after runs that were killed: theirs is removed and ended, everybody else's is left alone."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from plugpull.rig.journal import VARIABLE, Journal, sweep

PATIENCE = 60.0
HOLDER = """
import subprocess, sys
from pathlib import Path
from plugpull.rig.journal import Journal

root, parent = map(Path, sys.argv[1:])
journal = Journal(root, Path("/runs/killed"))
directory = journal.directory(parent)
(directory / "disk1.medium").write_bytes(b"x" * 1000)
sleeps = [subprocess.Popen(["sleep", "1000"], start_new_session=True) for _ in range(2)]
print(journal.path, directory, *(sleep.pid for sleep in sleeps), flush=True)
sys.stdin.read()
"""


class Holder:
    """A run in a process of its own, with a journal, a private directory and two processes in sessions of their own."""

    def __init__(self, root: Path, parent: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", HOLDER, str(root), str(parent)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        journal, directory, *pids = self.process.stdout.readline().split()
        self.journal, self.directory = Path(journal), Path(directory)
        self.pids = [int(pid) for pid in pids]

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(PATIENCE)

    def close(self) -> None:
        self.kill()
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                stream.close()
        for pid in self.pids:
            if alive(pid):
                os.kill(pid, signal.SIGKILL)


@contextmanager
def holder(root: Path, parent: Path) -> Iterator[Holder]:
    parent.mkdir(exist_ok=True)
    run = Holder(root, parent)
    try:
        yield run
    finally:
        run.close()


def alive(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
        return "(sleep)" in stat and stat.rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def left_behind(root: Path, name: str, *lines: bytes) -> Path:
    """The journal of a run that is no more."""
    root.mkdir(exist_ok=True)
    path = root / f"{name}.jsonl"
    path.write_bytes(b"".join(lines))
    return path


def line(**entry: str) -> bytes:
    return json.dumps(entry).encode() + b"\n"


def test_a_killed_run_is_tidied_up_after(tmp_path: Path) -> None:
    with holder(tmp_path / "journal", tmp_path / "private") as run:
        run.kill()
        assert all(alive(pid) for pid in run.pids), "what it started outlives it, until somebody tidies up"
        told: list[str] = []
        assert sweep(tmp_path / "journal", told.append) == 1
        assert not any(alive(pid) for pid in run.pids)
        assert not run.directory.exists()
        assert not run.journal.exists()
        (sentence,) = told
        assert f"(/runs/killed, pid {run.process.pid})" in sentence
        assert sentence.endswith("2 processes ended, 1 directories removed")
        assert sweep(tmp_path / "journal", told.append) == 0


def test_a_run_that_lives_is_left_alone(tmp_path: Path) -> None:
    with holder(tmp_path / "journal", tmp_path / "private") as run:
        told: list[str] = []
        assert sweep(tmp_path / "journal", told.append) == 0
        assert told == []
        assert all(alive(pid) for pid in run.pids)
        assert (run.directory / "disk1.medium").exists()
        assert run.journal.exists()


def test_of_two_runs_only_the_killed_one_is_tidied_up_after(tmp_path: Path) -> None:
    root, private = tmp_path / "journal", tmp_path / "private"
    with holder(root, private) as killed, holder(root, private) as living:
        killed.kill()
        assert sweep(root, lambda text: None) == 1
        assert not killed.directory.exists()
        assert not any(alive(pid) for pid in killed.pids)
        assert living.directory.exists()
        assert all(alive(pid) for pid in living.pids)


def test_a_foreign_directory_is_not_removed(tmp_path: Path) -> None:
    precious = [tmp_path / "precious", tmp_path / "plugpull-ffffffff-123456", tmp_path / "plugpull-0123abcdef-1"]
    for directory in precious:
        directory.mkdir()
        (directory / "work").write_text("years of it")
    entries = [line(directory=str(directory)) for directory in (*precious, tmp_path, "/", "", ".")]
    left_behind(tmp_path / "journal", "0123abcd", *entries, line(other="x"), b"[1]\n", b'{"directory": 7}\n')
    told: list[str] = []
    assert sweep(tmp_path / "journal", told.append) == 1
    assert all((directory / "work").exists() for directory in precious)
    assert "0 directories removed" in told[0]


def test_a_symlink_is_not_followed(tmp_path: Path) -> None:
    precious, link = tmp_path / "precious", tmp_path / "plugpull-0123abcd-111111"
    precious.mkdir()
    (precious / "work").write_text("years of it")
    link.symlink_to(precious)
    own = tmp_path / "plugpull-0123abcd-222222"
    own.mkdir()
    (own / "elsewhere").symlink_to(precious)
    left_behind(tmp_path / "journal", "0123abcd", line(directory=str(link)), line(directory=str(own)))
    told: list[str] = []
    assert sweep(tmp_path / "journal", told.append) == 1
    assert (precious / "work").exists()
    assert link.is_symlink()
    assert not own.exists()
    assert "1 directories removed" in told[0]


@pytest.mark.parametrize("torn", [b'{"directory": "/tmp/plug', b"\xff\xfe{", b"\0" * 100, b"[" * 200_000])
def test_a_torn_last_line_does_not_keep_the_rest_from_being_undone(tmp_path: Path, torn: bytes) -> None:
    own = tmp_path / "plugpull-0123abcd-222222"
    own.mkdir()
    path = left_behind(tmp_path / "journal", "0123abcd", line(run="/r", pid="1"), line(directory=str(own)), torn)
    assert sweep(tmp_path / "journal", lambda text: None) == 1
    assert not own.exists()
    assert not path.exists()


def test_a_run_killed_before_its_first_line_is_tidied_up_too(tmp_path: Path) -> None:
    path = left_behind(tmp_path / "journal", "0123abcd")
    told: list[str] = []
    assert sweep(tmp_path / "journal", told.append) == 1
    assert "unknown" in told[0]
    assert not path.exists()


def test_without_a_journal_directory_there_is_nothing_to_do(tmp_path: Path) -> None:
    assert sweep(tmp_path / "none", lambda text: None) == 0


def test_an_orderly_end_leaves_nothing_and_restores_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, "outer")
    journal = Journal(tmp_path / "journal", tmp_path)
    assert os.environ[VARIABLE] == str(journal.path)
    directory = journal.directory(tmp_path)
    assert directory.stat().st_mode & 0o777 == 0o700
    assert directory.name.startswith(f"plugpull-{journal.id}-")
    journal.close()
    assert os.environ[VARIABLE] == "outer"
    assert list((tmp_path / "journal").iterdir()) == []
