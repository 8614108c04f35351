"""Closed segments of a history: nothing is lost or doubled, wherever the writer is killed, and damage is noticed."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from stories import RIG, healthy

from plugpull.errors import RigError
from plugpull.history import events as ev
from plugpull.history import segments
from plugpull.history.reader import read_history
from plugpull.history.recorder import Recorder

WALL = "2030-01-01T00:00:00+00:00"
BEGIN = ev.RunBegun(version=1, plugpull="1", wall=WALL, rig_name="made-up", rig=RIG, seed=7, numbered=True)


def play(recorder: Recorder, name: str, *, close: bool = True) -> None:
    """Record a scenario, and close its segment."""
    _, *middle, _ = healthy().scenario()
    recorder.record(ev.ScenarioBegun(id=name, wall=WALL, seed=7))
    for event in middle:
        recorder.record(event)
    recorder.record(ev.ScenarioEnded(id=name, wall=WALL, seconds=16.0, asked=5))
    if close:
        recorder.close_segment()


def names(file: Path) -> list[str]:
    return [story.id for story in read_history(file).stories]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "history.jsonl"


def test_a_history_in_segments_reads_like_one_in_one_piece(tmp_path: Path) -> None:
    read = []
    for folder, close in (("whole", False), ("parts", True)):
        (tmp_path / folder).mkdir()
        with Recorder(tmp_path / folder / "history.jsonl") as recorder:
            recorder.record(BEGIN)
            for name in ("a", "b", "c"):
                play(recorder, name, close=close)
            recorder.record(ev.RunEnded(wall=WALL))
        read.append(read_history(tmp_path / folder))
    whole, parts = read
    assert parts == whole
    assert (parts.complete, parts.flawed, parts.lost_lines) == (True, False, 0)
    packed = sorted((tmp_path / "parts/history").iterdir())
    assert [one.name for one in packed] == ["00001.jsonl.gz", "00002.jsonl.gz", "00003.jsonl.gz"]
    lines = b"".join(gzip.decompress(one.read_bytes()) for one in packed)
    assert lines + (tmp_path / "parts/history.jsonl").read_bytes() == (tmp_path / "whole/history.jsonl").read_bytes()


def test_writing_goes_on_after_closed_segments(file: Path) -> None:
    for begin, name in ((BEGIN, "a"), (ev.Note(text="again"), "b"), (ev.Note(text="and again"), "c")):
        recorder = Recorder(file)
        recorder.record(begin)
        play(recorder, name)
        del recorder  # never closed: its process was killed
    with Recorder(file) as recorder:
        recorder.record(ev.RunEnded(wall=WALL))
    history = read_history(file)
    assert [story.id for story in history.stories] == ["a", "b", "c"]
    assert (history.complete, history.flawed, history.lost_lines) == (True, False, 0)


class Killed(BaseException):
    """Stands for SIGKILL: nothing that comes after it runs."""


STEPS = ("mkdir", "_compress", "replace segment", "_new_end", "replace end")


def kill_at(step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let ``close_end`` end just before this step."""

    def stop(*_: object, **__: object) -> None:
        raise Killed

    replace = os.replace

    def replacing(source: Path, target: Path) -> None:
        if (target.suffix == ".gz") == (step == "replace segment"):
            raise Killed
        replace(source, target)

    if step == "mkdir":
        monkeypatch.setattr(Path, "mkdir", stop)
    elif step.startswith("replace"):
        monkeypatch.setattr(os, "replace", replacing)
    else:
        monkeypatch.setattr(segments, step, stop)


@pytest.mark.parametrize("step", STEPS)
def test_a_writer_that_is_killed_while_it_closes_a_segment(
    step: str, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder = Recorder(file)
    recorder.record(BEGIN)
    play(recorder, "a")
    play(recorder, "b", close=False)
    before = read_history(file)
    with monkeypatch.context() as patch:
        kill_at(step, patch)
        with pytest.raises(Killed):
            recorder.close_segment()
    assert read_history(file) == before
    with Recorder(file) as again:
        play(again, "c")
        again.record(ev.RunEnded(wall=WALL))
    history = read_history(file)
    assert [story.id for story in history.stories] == ["a", "b", "c"]
    assert (history.complete, history.flawed, history.lost_lines) == (True, False, 0)


def test_a_full_disk_leaves_the_lines_where_they_are(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with Recorder(file) as recorder:
        recorder.record(BEGIN)
        with monkeypatch.context() as patch:
            patch.setattr(segments, "_compress", full)
            play(recorder, "a")
        play(recorder, "b")
        recorder.record(ev.RunEnded(wall=WALL))
    history = read_history(file)
    assert ([story.id for story in history.stories], history.flawed) == (["a", "b"], False)


def cut_off(packed: bytes) -> bytes:
    return packed[: len(packed) // 2]


def garbled(packed: bytes) -> bytes:
    middle = len(packed) // 2
    return packed[:middle] + bytes(64) + packed[middle + 64 :]


@pytest.mark.parametrize("damage", [cut_off, garbled, lambda packed: b""], ids=["cut off", "garbled", "empty"])
@pytest.mark.parametrize("which", [0, 1, 2])
def test_a_damaged_segment_is_noticed(which: int, damage: Callable[[bytes], bytes], file: Path) -> None:
    with Recorder(file) as recorder:
        recorder.record(BEGIN)
        for name in ("a", "b", "c"):
            play(recorder, name)
        recorder.record(ev.RunEnded(wall=WALL))
    packed = sorted((file.parent / "history").iterdir())[which]
    packed.write_bytes(damage(packed.read_bytes()))
    history = read_history(file)
    assert history.lost_lines or history.flawed
    assert {"a", "b", "c"} - {story.id for story in history.stories} <= {"abc"[which]}


@pytest.mark.parametrize("which", [0, 1, 2])
def test_a_missing_segment_is_noticed(which: int, file: Path) -> None:
    with Recorder(file) as recorder:
        recorder.record(BEGIN)
        for name in ("a", "b", "c"):
            play(recorder, name)
        recorder.record(ev.RunEnded(wall=WALL))
    sorted((file.parent / "history").iterdir())[which].unlink()
    assert read_history(file).flawed


def test_what_is_not_a_segment_is_not_read(file: Path) -> None:
    with Recorder(file) as recorder:
        recorder.record(BEGIN)
        play(recorder, "a")
    folder = file.parent / "history"
    (folder / "notes.txt").write_text("mine")
    (folder / "00002.jsonl.gz").symlink_to("/dev/zero")
    history = read_history(file)
    assert ([story.id for story in history.stories], history.lost_lines) == (["a"], 1)


HOLDER = """
import sys
from pathlib import Path
from plugpull.history.events import Note
from plugpull.history.recorder import Recorder
recorder = Recorder(Path(sys.argv[1]), held=True)
recorder.record(Note(text="one"))
if "close" in sys.argv:
    recorder.close_segment()
print("held", flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("closed", [(), ("close",)], ids=["open", "closed"])
def test_a_history_that_is_being_written_says_so(closed: tuple[str, ...], file: Path) -> None:
    """As long as its writer lives, also after it closed a segment; and nobody else may write it meanwhile."""
    line = [sys.executable, "-c", HOLDER, str(file), *closed]
    with subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        writer.stdout.readline()
        assert read_history(file).running
        with pytest.raises(RigError, match="another process is writing"):
            Recorder(file, held=True)
        writer.kill()
    assert not read_history(file).running
    Recorder(file, held=True).close()
