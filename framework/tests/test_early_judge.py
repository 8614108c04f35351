"""Long runs are judged scenario by scenario while they are read: the results are the same, and little is kept."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from stories import RIG, VICTIM, healthy, later

from plugpull.cli import main
from plugpull.history import events as ev
from plugpull.history.reader import read_history
from plugpull.history.recorder import Recorder
from plugpull.judging import early, lasting
from plugpull.judging.judge import judge_history
from plugpull.judging.outcome import judge_run, write_outcome
from plugpull.judging.results import Results, Verdict

COUNT, WHOLE = 9, 3
LATE = 6
"""The index of the turn in which the disk comes back as another one."""


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run of many scenarios, of which only a few are kept whole."""
    monkeypatch.setattr(early, "WHOLE", WHOLE)
    monkeypatch.setattr(lasting, "MOST_SHOWN", WHOLE)
    record(tmp_path, soak=True)
    return tmp_path


def record(folder: Path, *, soak: bool) -> None:
    with Recorder(folder / "history.jsonl") as recorder:
        wall = "2030-01-01T00:00:00+00:00"
        recorder.record(
            ev.RunBegun(version=1, plugpull="1", wall=wall, rig_name="made-up", rig=RIG, seed=7, numbered=True)
        )
        if soak:
            recorder.record(ev.SoakBegun(seconds=3600.0))
        for number in range(COUNT):
            for event in turn(number):
                recorder.record(event)
            recorder.record(ev.Note(text="between"))
            recorder.close_segment()
        recorder.record(ev.RunEnded(wall="2030-01-01T01:00:00+00:00"))


def turn(number: int) -> list[ev.Event]:
    bench = healthy()
    if number == LATE:
        bench.replace(ev.DiskAttached, lambda event: event.disk == VICTIM and event.at > 15, serial="ANOTHER")
    begun, *middle, ended = bench.scenario()
    name = f"test_it[{number:04}]"
    middle = [later(event, 100.0 * number) for event in middle]
    return [msgspec.structs.replace(begun, id=name), *middle, msgspec.structs.replace(ended, id=name)]


def plain(results: Results) -> bytes:
    return msgspec.json.encode(results)


def test_the_results_are_those_of_the_whole_history(run: Path) -> None:
    history, results = judge_run(run)
    assert plain(results) == plain(judge_history(read_history(run)))
    assert results.scenarios[LATE].verdict is Verdict.FAIL
    assert [one.verdict for one in results.scenarios].count(Verdict.PASS) == COUNT - 1
    sampled = [len(story.samples) > 0 for story in history.stories]
    assert sampled == [index < WHOLE or index == LATE for index in range(COUNT)]


def test_a_history_with_missing_lines_is_read_whole(run: Path) -> None:
    sorted((run / "history").iterdir())[LATE + 1].unlink()
    history, results = judge_run(run)
    assert history.flawed
    assert all(len(story.samples) for story in history.stories)
    assert results.verdict is Verdict.FAIL
    assert plain(results) == plain(judge_history(read_history(run)))


def test_the_page_of_a_long_run_says_what_it_leaves_out(run: Path) -> None:
    results, report = write_outcome(run)
    page = report.read_text()
    assert f"This page shows {WHOLE} of {COUNT} scenarios" in page
    assert f"test_it[{LATE:04}]" in page
    assert f"test_it[{COUNT - 1:04}]" in page
    assert "test_it[0000]" not in page
    assert len(results.scenarios) == COUNT
    assert "This page" not in results.sentence


def test_what_passed_is_not_listed_if_it_is_very_much(
    run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["check", str(run)])
    assert "test_it[0001]" in capsys.readouterr().out
    monkeypatch.setattr(lasting, "MOST_LISTED", COUNT - 1)
    main(["check", str(run)])
    said = capsys.readouterr().out
    assert f"test_it[{LATE:04}]" in said
    assert "test_it[0001]" not in said
    assert f"PASS    {COUNT - 1} scenarios, not listed here" in said


def test_another_run_of_as_many_scenarios_is_kept_whole(run: Path) -> None:
    (run / "other").mkdir()
    record(run / "other", soak=False)
    assert all(len(story.samples) for story in judge_run(run / "other")[0].stories)
    assert "This page shows" not in write_outcome(run / "other")[1].read_text()


def test_the_page_of_a_short_run_is_whole(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lasting, "MOST_SHOWN", COUNT)
    page = write_outcome(run)[1].read_text()
    assert "This page shows" not in page
    assert "test_it[0000]" in page
