"""Bench slots: held machine-wide, in order of arrival, and released when their holder dies."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from plugpull.coordination.slots import Slots, slots_directory, slots_here, slots_needed, slots_of
from plugpull.errors import RigError, UsageError

GIB = 1 << 30
PATIENCE = 60.0
HOLDER = """
import sys
from pathlib import Path
from plugpull.coordination.slots import Slots
with Slots(int(sys.argv[2]), Path(sys.argv[1])).hold(int(sys.argv[3])):
    print("held", flush=True)
    sys.stdin.read()
"""


@contextmanager
def holder(directory: Path, total: int, need: int = 1) -> Iterator[subprocess.Popen[str]]:
    """Another process that holds slots until its input ends."""
    command = [sys.executable, "-c", HOLDER, str(directory), str(total), str(need)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        try:
            yield process
        finally:
            process.kill()


def free(directory: Path, total: int, need: int = 1) -> bool:
    with Slots(total, directory).hold_if_free(need) as held:
        return held


# --- how many ----------------------------------------------------------------------------------------------


def test_there_is_a_slot_for_each_cpu_and_each_gib() -> None:
    assert slots_of(cpus=8, memory=32 * GIB) == 8
    assert slots_of(cpus=8, memory=3 * GIB) == 3
    assert slots_of(cpus=1, memory=GIB // 2) == 1


def test_a_larger_guest_needs_more_slots() -> None:
    assert slots_needed(cpus=2, memory=512 << 20) == 1
    assert slots_needed(cpus=2, memory=768 << 20) == 1
    assert slots_needed(cpus=2, memory=4 * GIB) == 5
    assert slots_needed(cpus=8, memory=512 << 20) == 4


def test_the_number_of_slots_can_be_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PLUGPULL_SLOTS", raising=False)
    assert slots_here() >= 1
    monkeypatch.setenv("PLUGPULL_SLOTS", "7")
    assert slots_here() == 7
    for wrong in ("0", "-1", "two", "1000000", "²"):
        monkeypatch.setenv("PLUGPULL_SLOTS", wrong)
        with pytest.raises(UsageError, match="is not a number of benches"):
            slots_here()


def test_the_directory_is_the_same_for_every_user(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    assert slots_directory(tmp_path) == Path("/tmp"), "only its owner may create files there"
    tmp_path.chmod(0o777)
    assert slots_directory(tmp_path) == Path("/tmp"), "anybody may remove the files of others"
    tmp_path.chmod(0o1777)
    assert slots_directory(tmp_path) == tmp_path
    assert slots_directory(tmp_path / "missing") == Path("/tmp")


# --- holding them ------------------------------------------------------------------------------------------


def test_another_process_counts(tmp_path: Path) -> None:
    with holder(tmp_path, 2):
        assert free(tmp_path, 2)
        assert not free(tmp_path, 2, need=2)
        with holder(tmp_path, 2):
            assert not free(tmp_path, 2)
    assert free(tmp_path, 2, need=2)


def test_more_than_all_slots_are_all(tmp_path: Path) -> None:
    with Slots(2, tmp_path).hold(5):
        assert not free(tmp_path, 2)


def test_a_slot_is_free_again_when_its_holder_is_killed(tmp_path: Path) -> None:
    with holder(tmp_path, 1) as process:
        assert not free(tmp_path, 1)
        process.send_signal(signal.SIGKILL)
        process.wait(PATIENCE)
        assert free(tmp_path, 1)


def test_who_waits_says_so_and_gets_the_slot(tmp_path: Path) -> None:
    said: list[str] = []
    sent, got = threading.Event(), threading.Event()

    def notify(text: str) -> None:
        said.append(text)
        sent.set()

    def wait() -> None:
        with Slots(1, tmp_path).hold(notify=notify):
            got.set()

    with holder(tmp_path, 1):
        waiting = threading.Thread(target=wait)
        waiting.start()
        assert sent.wait(PATIENCE)
        assert not got.wait(0.5)
    assert got.wait(PATIENCE)
    waiting.join()
    assert said == ["waiting: all bench slots of this machine are in use (PLUGPULL_SLOTS=1)"]


def test_who_needs_two_slots_is_not_overtaken_by_those_who_need_one(tmp_path: Path) -> None:
    slots, got, turn, over = Slots(2, tmp_path), list[str](), threading.Event(), threading.Event()

    def large() -> None:
        with slots.hold(2, lambda _: turn.set()):
            got.append("large")

    def small() -> None:
        with slots.hold(1):
            got.append("small")
            over.set()

    threads = [threading.Thread(target=large), threading.Thread(target=small)]
    with ExitStack() as held:
        held.enter_context(holder(tmp_path, 2))
        threads[0].start()
        assert turn.wait(PATIENCE)
        threads[1].start()
        assert not over.wait(0.5), "one slot is free, but it is the turn of the other"
    for thread in threads:
        thread.join(PATIENCE)
    assert got == ["large", "small"]


# --- a directory that is open to everybody -------------------------------------------------------------------


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    target = tmp_path / "precious"
    target.write_text("precious")
    (tmp_path / "plugpull-bench-1.lock").symlink_to(target)
    with (
        pytest.raises(RigError, match=r"plugpull-bench-1\.lock of a bench slot cannot be opened"),
        Slots(1, tmp_path).hold(),
    ):
        pass
    assert target.read_text() == "precious"
    assert not free(tmp_path, 1), "a run that does not wait goes on without a slot"


def test_a_link_to_nowhere_creates_nothing(tmp_path: Path) -> None:
    (tmp_path / "plugpull-bench-turn.lock").symlink_to(tmp_path / "nowhere")
    with pytest.raises(RigError), Slots(1, tmp_path).hold():
        pass
    assert not (tmp_path / "nowhere").exists()


def test_a_pipe_does_not_block(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "plugpull-bench-1.lock")
    with pytest.raises(RigError, match="not an ordinary file"), Slots(1, tmp_path).hold():
        pass


def test_the_files_are_empty_and_open_to_every_user(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        with Slots(1, tmp_path).hold():
            pass
    finally:
        os.umask(before)
    found = sorted(tmp_path.iterdir())
    assert [path.name for path in found] == [f"plugpull-bench-{name}.lock" for name in ("1", "taking", "turn")]
    assert {(path.stat().st_size, stat.S_IMODE(path.stat().st_mode)) for path in found} == {(0, 0o644)}


def test_a_file_that_was_removed_meanwhile_is_made_again(tmp_path: Path) -> None:
    with Slots(1, tmp_path).hold():
        (tmp_path / "plugpull-bench-1.lock").unlink()
        with holder(tmp_path, 1):
            assert not free(tmp_path, 1)
