"""The scenarios of a long run are judged by several processes: the results are those of one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import msgspec
from stories import RIG, healthy, later

from plugpull.history import events as ev
from plugpull.history.reader import read_history
from plugpull.history.recorder import Recorder
from plugpull.judging.side_by_side import WORTH_IT, judged_side_by_side

COUNT, LOST = 20, 7
"""Scenarios of the run, and the one whose victim does not come back."""
JUDGE = """
import os, sys
from pathlib import Path
from plugpull.history.reader import read_history
from plugpull.judging import side_by_side
from plugpull.judging.judge import judge_history

if sys.argv[2] == "dies":
    side_by_side._answer = lambda share, connection: os._exit(1)
history = read_history(Path(sys.argv[1]))
judged = side_by_side.judged_side_by_side(history, 2)
whole = judge_history(history)
verdicts = {one.verdict.value for one in whole.scenarios}
print(len(judged), sorted(verdicts), judge_history(history, judged) == whole)
"""


def recorded(folder: Path, count: int) -> Path:
    path = folder / "history.jsonl"
    wall = "2030-01-01T00:00:00+00:00"
    with Recorder(path) as recorder:
        recorder.record(
            ev.RunBegun(version=1, plugpull="1", wall=wall, rig_name="made-up", rig=RIG, seed=7, numbered=True)
        )
        for number in range(count):
            begun, *middle, ended = healthy().scenario()
            name = f"test_it[{number:04}]"
            recorder.record(msgspec.structs.replace(begun, id=name))
            for event in middle:
                if number != LOST or not isinstance(event, ev.DiskAttached) or (event.at or 0.0) < 15:
                    recorder.record(later(event, 100.0 * number))
            recorder.record(msgspec.structs.replace(ended, id=name))
        recorder.record(ev.RunEnded(wall="2030-01-01T01:00:00+00:00"))
    return path


def judged(history: Path, how: str) -> str:
    """What a process without other threads says, as that of a command is."""
    done = subprocess.run(
        [sys.executable, "-c", JUDGE, str(history), how], capture_output=True, text=True, check=True, timeout=300
    )
    return done.stdout.strip()


def test_the_results_are_those_of_one_process(tmp_path: Path) -> None:
    assert judged(recorded(tmp_path, COUNT), "lives") == f"{COUNT} ['FAIL', 'PASS'] True"


def test_what_a_process_that_died_was_to_judge_is_judged_again(tmp_path: Path) -> None:
    assert judged(recorded(tmp_path, COUNT), "dies") == f"{COUNT // 2} ['FAIL', 'PASS'] True"


def test_a_short_run_is_judged_by_one(tmp_path: Path) -> None:
    assert judged_side_by_side(read_history(recorded(tmp_path, WORTH_IT - 1)), 2) == {}
