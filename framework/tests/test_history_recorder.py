"""The recorder: events are on disk however the writer ends, threads can wait for them, and a failed write raises."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from plugpull.errors import RigError
from plugpull.history import events as ev
from plugpull.history.reader import read_history
from plugpull.history.recorder import Recorder

SCENARIO = ev.ScenarioBegun(id="a", wall="2030-01-01T00:00:00+00:00", seed=1)


def note(text: str, at: float | None = None) -> ev.Note:
    return ev.Note(at=at, text=text)


def test_what_is_recorded_is_read_back(tmp_path: Path) -> None:
    file = tmp_path / "history.jsonl"
    with Recorder(file) as recorder:
        recorder.record(SCENARIO)
        recorder.record(note("one", 1.25))
    (story,) = read_history(file).stories
    assert story.events == (SCENARIO, note("one", 1.25))


def test_it_appends_to_what_is_there(tmp_path: Path) -> None:
    file = tmp_path / "history.jsonl"
    for text in ("one", "two"):
        with Recorder(file) as recorder:
            recorder.record(note(text))
    assert list(read_history(file).stray) == [note("one"), note("two")]


def test_floats_are_rounded_to_microseconds_everywhere(tmp_path: Path) -> None:
    file = tmp_path / "history.jsonl"
    with Recorder(file) as recorder:
        recorder.record(ev.ScenarioEnded(at=1 / 3, id="a", wall="", seconds=2 / 3, split={"hold": 1e-9}))
    text = file.read_text()
    assert '"at":0.333333,' in text
    assert '"seconds":0.666667,' in text
    assert '"hold":0.0' in text


def test_everything_before_a_sigkill_is_on_disk(tmp_path: Path) -> None:
    file = tmp_path / "history.jsonl"
    program = f"""
import sys
from pathlib import Path
from plugpull.history.events import Note
from plugpull.history.recorder import Recorder
recorder = Recorder(Path({str(file)!r}))
for number in range(1000):
    recorder.record(Note(text=str(number)))
print("written", flush=True)
sys.stdin.read()
"""
    path = os.pathsep.join(sys.path)
    child = subprocess.Popen(
        [sys.executable, "-c", program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": path},
    )
    with child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"written\n"
        child.send_signal(signal.SIGKILL)
    history = read_history(file)
    assert len(history.stray) == 1000
    assert not history.torn
    assert not history.lost_lines


def test_threads_do_not_mix_their_lines(tmp_path: Path) -> None:
    file = tmp_path / "history.jsonl"
    with Recorder(file) as recorder:

        def talk(name: str) -> None:
            for number in range(200):
                recorder.record(note(f"{name}{number}" * 20))

        threads = [threading.Thread(target=talk, args=(name,)) for name in "abcd"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        in_memory = recorder.since()
    history = read_history(file)
    assert history.lost_lines == 0
    assert history.stray == in_memory
    assert len(in_memory) == 800


def test_wait_for_sees_what_came_since_the_mark_and_what_comes(tmp_path: Path) -> None:
    with Recorder(tmp_path / "history.jsonl") as recorder:
        recorder.record(note("old"))
        mark = recorder.mark()
        recorder.record(note("new"))
        assert recorder.wait_for(lambda event: event == note("new"), 0, since=mark) == note("new")
        assert recorder.wait_for(lambda event: event == note("old"), 0, since=mark) is None
        assert recorder.wait_for(lambda event: event == note("new"), 0) is None
        seen = threading.Event()

        def keep_recording() -> None:
            # Again and again: an event recorded before wait_for was called is rightly not seen.
            while not seen.wait(0.02):
                recorder.record(note("later"))

        writer = threading.Thread(target=keep_recording)
        writer.start()
        try:
            assert recorder.wait_for(lambda event: event == note("later"), 60) == note("later")
        finally:
            seen.set()
            writer.join()


def test_only_the_current_scenario_is_kept_in_memory(tmp_path: Path) -> None:
    with Recorder(tmp_path / "history.jsonl") as recorder:
        recorder.record(note("before"))
        mark = recorder.mark()
        recorder.record(SCENARIO)
        recorder.record(note("inside"))
        assert recorder.since() == (SCENARIO, note("inside"))
        assert recorder.since(mark) == (SCENARIO, note("inside"))
        assert recorder.mark() == 3


def test_memory_is_bounded_within_a_scenario_too(tmp_path: Path) -> None:
    with Recorder(tmp_path / "history.jsonl", keep=10) as recorder:
        for number in range(100):
            recorder.record(note(str(number)))
        mark = recorder.mark()
        assert mark == 100
        assert recorder.since() == tuple(note(str(number)) for number in range(90, 100))
        assert recorder.since(98) == (note("98"), note("99"))
        assert recorder.holds(90)
        assert not recorder.holds(89)


def test_subscribers_hear_each_event_until_they_leave(tmp_path: Path) -> None:
    heard: list[ev.Event] = []
    with Recorder(tmp_path / "history.jsonl") as recorder:
        leave = recorder.subscribe(heard.append)
        recorder.record(note("one"))
        leave()
        recorder.record(note("two"))
    assert heard == [note("one")]


def test_a_subscriber_that_fails_is_dropped_and_put_on_record(tmp_path: Path) -> None:
    def fails(event: ev.Event) -> None:
        raise ValueError("no")

    with Recorder(tmp_path / "history.jsonl") as recorder:
        recorder.subscribe(fails)
        recorder.record(note("one"))
        recorder.record(note("two"))
        faults = [event for event in recorder.since() if isinstance(event, ev.RigFault)]
    assert len(faults) == 1
    assert "ValueError: no" in faults[0].summary


def test_a_full_disk_is_a_rig_error_for_the_writer_the_waiter_and_the_closer() -> None:
    recorder = Recorder(Path("/dev/full"))
    with pytest.raises(RigError, match="No space left") as caught:
        recorder.record(note("one"))
    assert caught.value.hint
    with pytest.raises(RigError, match="No space left"):
        recorder.wait_for(lambda event: True, 60)
    with pytest.raises(RigError, match="No space left"):
        recorder.close()
    recorder.close()


def test_what_was_lost_to_a_full_disk_is_told_once_there_is_room(tmp_path: Path) -> None:
    file = tmp_path / "history.jsonl"
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    recorder = Recorder(file)
    recorder.record(SCENARIO)
    resource.setrlimit(resource.RLIMIT_FSIZE, (file.stat().st_size + 10, hard))
    try:
        with pytest.raises(RigError):
            recorder.record(note("torn in the middle"))
        with pytest.raises(RigError):
            recorder.record(note("not written at all"))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    recorder.record(note("after"))
    recorder.close(quietly=True)
    (story,) = read_history(file).stories
    assert story.lost_lines == 1
    assert [fault.summary for fault in story.of(ev.RigFault)] == ["2 events could not be written to the history"]
    assert story.of(ev.Note) == (note("after"),)


def test_recording_after_close_is_refused(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "history.jsonl")
    recorder.close()
    with pytest.raises(RigError, match="closed"):
        recorder.record(note("one"))


def test_a_history_that_cannot_be_opened_says_so(tmp_path: Path) -> None:
    with pytest.raises(RigError, match="cannot open the history"):
        Recorder(tmp_path / "absent" / "history.jsonl")
