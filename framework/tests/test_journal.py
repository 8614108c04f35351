"""Cleaning up after killed runs: their processes are ended and their directories removed, those of others stay."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from plugpull.coordination.journal import VARIABLE, Journal, sweep
from plugpull.coordination.processes import GOING, marked
from plugpull.errors import RigError

PATIENCE = 60.0
HOLDER = """
import subprocess, sys
from pathlib import Path
from plugpull.coordination.journal import Journal

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
        return "(sleep)" in stat and stat.rpartition(")")[2].split()[0] not in GOING
    except OSError:
        return False


def left_behind(root: Path, name: str, *lines: bytes) -> Path:
    """The journal of a run that has ended."""
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
        notices: list[str] = []
        assert sweep(tmp_path / "journal", notices.append) == 1
        assert not any(alive(pid) for pid in run.pids)
        assert not run.directory.exists()
        assert not run.journal.exists()
        (sentence,) = notices
        assert f"(/runs/killed, pid {run.process.pid})" in sentence
        assert sentence.endswith("2 processes ended, 1 directories removed")
        assert sweep(tmp_path / "journal", notices.append) == 0


@pytest.mark.parametrize(
    ("environ", "state", "flags", "where", "due"),
    [
        (b"A=1\0MARK=x\0", "S", 0x400000, "140 150", ([7], [])),
        (b"A=1\0", "S", 0x400000, "140 150", ([], [])),
        (b"", "R", 0x400000, "0 0", ([], [7])),  # its parent can be dead already
        (b"", "S", 0x400000, "140 140", ([], [])),  # started with an empty environment
        (b"", "Z", 0x40000C, "0 0", ([], [])),
        (b"", "I", 0x4208060, "0 0", ([], [])),  # a kernel thread
    ],
)
def test_a_process_that_is_just_being_started_is_waited_for(
    tmp_path: Path, environ: bytes, state: str, flags: int, where: str, due: tuple[list[int], list[int]]
) -> None:
    (tmp_path / "7").mkdir()
    (tmp_path / "7" / "environ").write_bytes(environ)
    (tmp_path / "7" / "stat").write_text(f"7 (a) b) {state} 1 7 7 0 -1 {flags} " + "1 " * 40 + f"{where} 0\n")
    assert marked(b"MARK=x", tmp_path) == due


def test_a_run_that_lives_is_left_alone(tmp_path: Path) -> None:
    with holder(tmp_path / "journal", tmp_path / "private") as run:
        notices: list[str] = []
        assert sweep(tmp_path / "journal", notices.append) == 0
        assert notices == []
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
    notices: list[str] = []
    assert sweep(tmp_path / "journal", notices.append) == 1
    assert all((directory / "work").exists() for directory in precious)
    assert "0 directories removed" in notices[0]


def test_a_symlink_is_not_followed(tmp_path: Path) -> None:
    precious, link = tmp_path / "precious", tmp_path / "plugpull-0123abcd-111111"
    precious.mkdir()
    (precious / "work").write_text("years of it")
    link.symlink_to(precious)
    own = tmp_path / "plugpull-0123abcd-222222"
    own.mkdir()
    (own / "elsewhere").symlink_to(precious)
    left_behind(tmp_path / "journal", "0123abcd", line(directory=str(link)), line(directory=str(own)))
    notices: list[str] = []
    assert sweep(tmp_path / "journal", notices.append) == 1
    assert (precious / "work").exists()
    assert link.is_symlink()
    assert not own.exists()
    assert "1 directories removed" in notices[0]


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
    notices: list[str] = []
    assert sweep(tmp_path / "journal", notices.append) == 1
    assert "unknown" in notices[0]
    assert not path.exists()


class Restored:
    """Stands for the switches: which ports were turned on, and which cannot be."""

    def __init__(self, *broken: str) -> None:
        self.ports: list[str] = []
        self._broken = broken

    def __call__(self, switch: dict[str, Any], dut: dict[str, Any], folder: Path, port: str) -> None:
        if port in self._broken:
            raise ValueError("a driver may raise anything")
        self.ports.append(port)


def off(port: str, **other: Any) -> bytes:
    return json.dumps({"outlet": port, "on": False, "switch": {"name": "s"}, "dut": {}, **other}).encode() + b"\n"


def dead_run(root: Path, *ports: str) -> Path:
    """The journal of a run that was killed with these ports off; its process is gone."""
    code = (
        "import os, sys\nfrom pathlib import Path\nfrom plugpull.coordination.journal import Journal\n"
        "journal = Journal(Path(sys.argv[1]), Path('/runs/killed'))\n"
        "for port in sys.argv[2:]: journal.outlet({'name': 's'}, {}, Path('.'), port, False)\n"
        "print(journal.path, flush=True)\nos.kill(os.getpid(), 9)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(root), *ports], stdout=subprocess.PIPE, check=False)
    return Path(done.stdout.decode().strip())


@pytest.mark.parametrize(
    "bad",
    [
        pytest.param(lambda path: path.mkdir(), id="directory"),
        pytest.param(os.mkfifo, id="fifo"),
        pytest.param(lambda path: path.symlink_to("/etc/passwd"), id="link"),
        pytest.param(lambda path: path.symlink_to("nowhere"), id="dangling"),
        pytest.param(lambda path: path.write_bytes(os.urandom(5000)), id="noise"),
        pytest.param(lambda path: path.write_bytes(b'{"outlet": ["1"], "switch": {"name": []}, "dut": 7}'), id="odd"),
        pytest.param(lambda path: path.write_bytes(off("9", dut="x", folder=[1])), id="ill-typed"),
        pytest.param(lambda path: path.write_bytes(b'{"directory": "/a\\u0000b/plugpull-0000bad0-1"}'), id="nul"),
    ],
)
def test_one_bad_journal_does_not_keep_the_others_from_being_undone(
    tmp_path: Path, bad: Callable[[Path], object]
) -> None:
    root = tmp_path / "journal"
    good = dead_run(root, "1", "2")
    bad(root / "0000bad0.jsonl")  # sorts before most, and the good one may sort before or after
    bad(root / "ffffbad0.jsonl")
    restored, notices = Restored("9"), list[str]()
    assert sweep(root, notices.append, restored) >= 1
    assert sorted(port for port in restored.ports if port in "12") == ["1", "2"]
    assert not good.exists()
    assert Path("/etc/passwd").exists()


def test_a_port_whose_switch_fails_does_not_keep_the_others_off(tmp_path: Path) -> None:
    journal = dead_run(tmp_path / "journal", "1", "2", "3")
    restored, notices = Restored("1"), list[str]()
    assert sweep(tmp_path / "journal", notices.append, restored) == 1
    assert restored.ports == ["2", "3"]
    assert journal.exists(), "the next start tries again"
    assert any("s.1 was left off: a driver may raise anything" in text for text in notices)


def test_the_journal_of_another_machine_is_skipped_and_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A home directory that several machines share: the switches are plugged into the other one."""
    journal = dead_run(tmp_path / "journal", "1")
    monkeypatch.setattr("plugpull.coordination.journal.machine_id", lambda: "another")
    restored, notices = Restored(), list[str]()
    assert sweep(tmp_path / "journal", notices.append, restored) == 0
    assert (restored.ports, journal.exists()) == ([], True)
    assert notices == [
        (
            f"the journal {journal} is skipped: it belongs to the machine {os.uname().nodename}; "
            "start plugpull there to undo it"
        )
    ]
    monkeypatch.undo()
    assert sweep(tmp_path / "journal", notices.append, restored) == 1
    assert restored.ports == ["1"]


def test_a_journal_of_an_older_version_is_this_machines(tmp_path: Path) -> None:
    left_behind(tmp_path / "journal", "0123abcd", line(run="/r", pid="1"), off("4"))
    restored = Restored()
    assert sweep(tmp_path / "journal", lambda text: None, restored) == 1
    assert restored.ports == ["4"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_the_journal_of_another_user_is_skipped(tmp_path: Path) -> None:
    journal = left_behind(tmp_path / "journal", "0123abcd", off("1"))
    os.chown(journal, 65534, 65534)
    restored, notices = Restored(), list[str]()
    assert sweep(tmp_path / "journal", notices.append, restored) == 0
    assert (restored.ports, journal.exists()) == ([], True)
    assert "is not a file of this user (uid 65534)" in notices[0]


def test_what_is_said_of_a_journal_moves_no_cursor(tmp_path: Path) -> None:
    left_behind(tmp_path / "journal", "0123abcd", line(run="\x1b[2J\nforged", pid="1"))
    notices: list[str] = []
    sweep(tmp_path / "journal", notices.append)
    assert not set("".join(notices)) & {"\x1b", "\n"}


def test_a_write_that_is_cut_short_is_completed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = Journal(tmp_path / "journal", tmp_path)
    write = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: write(fd, bytes(data)[:7]))
    journal.outlet({"name": "s"}, {}, tmp_path, "1", False)
    monkeypatch.undo()
    assert [entry.get("outlet") for entry in map(json.loads, journal.path.read_text().splitlines())] == [None, "1"]
    journal.close()
    assert journal.path.exists()


def test_on_a_full_disk_the_port_is_not_to_be_turned_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And once there is room again, the entry that was cut short damages no other."""
    journal = Journal(tmp_path / "journal", tmp_path)
    write, room = os.write, [20]

    def full(fd: int, data: bytes) -> int:
        if not room[0]:
            raise OSError(errno.ENOSPC, "No space left on device")
        written = write(fd, bytes(data)[: room[0]])
        room[0] -= written
        return written

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(RigError, match="No space left"):
        journal.outlet({"name": "s"}, {}, tmp_path, "1", False)
    monkeypatch.undo()
    journal.outlet({"name": "s"}, {}, tmp_path, "2", False)
    journal.close()
    restored = Restored()
    monkeypatch.setattr("plugpull.coordination.journal.lock", lambda path, wait: os.open(path, os.O_RDONLY))
    sweep(tmp_path / "journal", lambda text: None, restored)
    assert restored.ports == ["2"]


def test_an_outlet_is_on_the_disk_before_it_goes_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[bool] = []
    journal = Journal(tmp_path / "journal", tmp_path)
    monkeypatch.setattr(os, "fsync", lambda fd: synced.append(b'"outlet": "1"' in journal.path.read_bytes()))
    journal.outlet({"name": "s"}, {}, tmp_path, "1", False)
    assert synced == [True]
    journal.close()


def test_a_disk_that_fails_to_sync_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = Journal(tmp_path / "journal", tmp_path)

    def fail(fd: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(RigError, match="cannot write the journal"):
        journal.outlet({"name": "s"}, {}, tmp_path, "1", False)
    monkeypatch.undo()
    journal.close()


def test_a_journal_that_cannot_be_made_is_an_error_of_the_bench(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RigError, match="cannot write the journal"):
        Journal(tmp_path / "file" / "journal", tmp_path)


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
