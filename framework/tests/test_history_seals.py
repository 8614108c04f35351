"""Numbers and seals: each way a history can be damaged is noticed, said, and attributed to its scenario."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import get_args

import msgspec
import pytest
from stories import BACK, RIG, healthy, later

from plugpull.cli import main
from plugpull.exit_status import EXIT_PASS, EXIT_UNKNOWN
from plugpull.history import events as ev
from plugpull.history.reader import History, read_history
from plugpull.history.recorder import Recorder
from plugpull.history.seals import SEAL_EVERY
from plugpull.judging.judge import judge_history
from plugpull.judging.results import Results, Verdict

Lines = list[bytes]


def scenario(name: str, **changed: str) -> list[ev.Event]:
    """A healthy scenario of this name; ``serial``: its victim comes back with another serial number."""
    bench = healthy()
    if changed:
        bench.replace(ev.DiskAttached, lambda event: event.at == BACK, **changed)
    begun, *middle, ended = bench.scenario()
    return [msgspec.structs.replace(begun, id=name), *middle, msgspec.structs.replace(ended, id=name)]


def recorded(directory: Path, *scenarios: list[ev.Event]) -> Lines:
    """The lines of a run as the recorder writes them."""
    file = directory / "history.jsonl"
    file.unlink(missing_ok=True)
    with Recorder(file) as recorder:
        recorder.record(
            ev.RunBegun(
                version=1,
                plugpull="1",
                wall="2030-01-01T00:00:00+00:00",
                rig_name="made-up",
                rig=RIG,
                seed=7,
                numbered=True,
            )
        )
        for number, events in enumerate(scenarios):
            for event in events:
                recorder.record(later(event, 100.0 * number))
            recorder.record(ev.Note(text="after the scenario"))
        recorder.record(ev.RunEnded(wall="2030-01-01T00:00:30+00:00"))
    return file.read_bytes().splitlines(keepends=True)


@pytest.fixture
def run(tmp_path: Path) -> Lines:
    return recorded(tmp_path, scenario("a"), scenario("b"))


def reread(directory: Path, lines: Lines, *, edited: bool = False) -> History:
    file = directory / "history.jsonl"
    file.write_bytes(b"".join(lines))
    return read_history(file, edited=edited)


def rejudged(directory: Path, lines: Lines, *, edited: bool = False) -> tuple[History, Results]:
    history = reread(directory, lines, edited=edited)
    return history, judge_history(history)


def kind(line: bytes) -> str:
    return str(json.loads(line)["type"])


def inside(lines: Lines, name: str) -> int:
    """The index of a sample in the middle of a scenario."""
    begin = next(i for i, line in enumerate(lines) if kind(line) == "scenario.begin" and json.loads(line)["id"] == name)
    return next(i for i in range(begin + 150, len(lines)) if kind(lines[i]) == "sample")


def test_a_run_as_it_was_recorded_has_no_flaws(tmp_path: Path, run: Lines) -> None:
    history, results = rejudged(tmp_path, run)
    assert not history.flawed
    assert results.verdict is Verdict.PASS
    assert not results.edited
    assert [json.loads(line)["n"] for line in run] == list(range(1, len(run) + 1))


def test_seals_follow_each_scenario_and_the_run_and_are_never_far_apart(run: Lines) -> None:
    kinds = [kind(line) for line in run]
    assert kinds[-2:] == ["run.end", "seal"]
    for place, this in enumerate(kinds[:-1]):
        if this == "scenario.end":
            assert kinds[place + 1] == "seal"
        if this == "scenario.begin":
            assert kinds[place - 1] == "seal"
    seals = [place for place, this in enumerate(kinds) if this == "seal"]
    assert max(two - one for one, two in pairwise(seals)) <= SEAL_EVERY + 1


def test_seals_and_numbers_reach_neither_stories_nor_those_who_wait(tmp_path: Path) -> None:
    with Recorder(tmp_path / "history.jsonl") as recorder:
        for event in scenario("a"):
            recorder.record(event)
        in_memory = recorder.since()
    (story,) = read_history(tmp_path).stories
    assert story.events == in_memory
    assert not story.of(ev.Seal)


def test_no_event_has_a_field_that_would_hide_its_number() -> None:
    assert [event for event in get_args(ev.AnyEvent) if "n" in event.__struct_fields__] == []


# --- each kind of damage -----------------------------------------------------------------------------------


def drop(lines: Lines, place: int) -> Lines:
    return [*lines[:place], *lines[place + 1 :]]


def double(lines: Lines, place: int) -> Lines:
    return [*lines[: place + 1], *lines[place:]]


def move(lines: Lines, place: int) -> Lines:
    return [*lines[:place], lines[place + 1], lines[place], *lines[place + 2 :]]


def alter(lines: Lines, place: int) -> Lines:
    changed = json.loads(lines[place]) | {"at": 0.5}
    return [*lines[:place], json.dumps(changed).encode() + b"\n", *lines[place + 1 :]]


def unnumber(lines: Lines, place: int) -> Lines:
    bare = {key: value for key, value in json.loads(lines[place]).items() if key != "n"}
    return [*lines[:place], json.dumps(bare).encode() + b"\n", *lines[place + 1 :]]


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (drop, "1 line is missing from the history (line {n})"),
        (double, "1 line is in the history twice (the first is line {n})"),
        (move, "1 line is out of order in the history (the first is line {n})"),
        (alter, "the history was altered after it was written: lines "),
        (unnumber, "1 line is without a number in a numbered history"),
    ],
)
def test_damage_is_said_of_the_scenario_it_is_in(
    tmp_path: Path, run: Lines, damage: Callable[[Lines, int], Lines], said: str
) -> None:
    place = inside(run, "b")
    history, results = rejudged(tmp_path, damage(run, place))
    first, second = history.stories
    assert first.flaws == ()
    assert second.flaws[0].startswith(said.format(n=place + 1))
    assert history.flaws == ()
    assert [one.verdict for one in results.scenarios] == [Verdict.PASS, Verdict.UNKNOWN]
    assert results.verdict is Verdict.UNKNOWN
    assert second.flaws[0] in results.scenarios[1].unknowns


def test_a_number_altered_is_noticed_too(tmp_path: Path, run: Lines) -> None:
    place = inside(run, "a")
    run[place] = run[place].replace(b'"n":%d}' % (place + 1), b'"n":%d}' % 10**15)
    history, results = rejudged(tmp_path, run)
    assert results.scenarios[0].verdict is Verdict.UNKNOWN
    assert history.flawed


def test_a_hole_is_counted(tmp_path: Path, run: Lines) -> None:
    place = inside(run, "a")
    history = reread(tmp_path, [*run[:place], *run[place + 7 :]])
    assert history.stories[0].flaws == (f"7 lines are missing from the history (the first is line {place + 1})",)


def test_damage_between_scenarios_makes_the_run_unknown(tmp_path: Path, run: Lines) -> None:
    place = next(i for i, line in enumerate(run) if kind(line) == "note")
    history, results = rejudged(tmp_path, drop(run, place))
    assert history.flaws == (f"1 line is missing from the history (line {place + 1})",)
    assert {one.verdict for one in results.scenarios} == {Verdict.PASS}
    assert results.verdict is Verdict.UNKNOWN
    assert "1 line is missing" in results.sentence


def test_a_finding_stands_beside_damage(tmp_path: Path) -> None:
    lines = recorded(tmp_path, scenario("a", serial="X"))
    place = inside(lines, "a")
    _, results = rejudged(tmp_path, drop(lines, place))
    assert results.verdict is Verdict.FAIL
    assert "1 line is missing" in results.scenarios[0].unknowns[-1]


def test_a_torn_line_in_the_middle_is_damaged_and_not_missing_as_well(tmp_path: Path, run: Lines) -> None:
    place = inside(run, "b")
    history, results = rejudged(tmp_path, [*run[:place], run[place][:20] + b"\n", *run[place + 1 :]])
    assert history.stories[1].lost_lines == 1
    assert not history.flawed
    assert results.scenarios[1].verdict is Verdict.UNKNOWN


def test_lines_after_the_end(tmp_path: Path, run: Lines) -> None:
    added = [b'{"type":"note","text":"later","n":%d}\n' % (len(run) + 1)]
    history, results = rejudged(tmp_path, run + added)
    assert "the history goes on after the end of the run: 1 more events" in history.flaws
    assert results.verdict is Verdict.UNKNOWN
    _, results = rejudged(tmp_path, run + added, edited=True)
    assert results.verdict is Verdict.UNKNOWN, "with --edited too"


def test_no_single_line_can_be_taken_away_or_doubled_unnoticed(tmp_path: Path) -> None:
    run = recorded(tmp_path, scenario("a"))
    for place in range(len(run)):
        for damage in (drop, double):
            history = reread(tmp_path, damage(run, place))
            assert history.flawed or not history.complete, (place, damage.__name__)


def test_no_beginning_of_a_history_passes(tmp_path: Path, run: Lines) -> None:
    for length in range(1, len(run)):
        history = reread(tmp_path, run[:length])
        assert history.flawed or not history.complete, length


def test_a_killed_run_is_readable(tmp_path: Path, run: Lines) -> None:
    place = inside(run, "b")
    history, results = rejudged(tmp_path, [*run[:place], run[place][:30]])
    assert history.torn
    assert not history.flawed, "that it has no end is said once"
    assert [one.verdict for one in results.scenarios] == [Verdict.PASS, Verdict.UNKNOWN]
    assert results.verdict is Verdict.UNKNOWN


def test_a_stripped_history_is_not_taken_for_an_old_one(tmp_path: Path, run: Lines) -> None:
    stripped = run
    for place in range(len(run)):
        stripped = unnumber(stripped, place)
    stripped = [line for line in stripped if kind(line) != "seal"]
    history, results = rejudged(tmp_path, stripped)
    assert history.stories[0].flaws[0].endswith("lines are without a number in a numbered history")
    assert {one.verdict for one in results.scenarios} == {Verdict.UNKNOWN}
    assert results.verdict is Verdict.UNKNOWN
    only_numbers = [unnumber(run, 0)[0].replace(b'"numbered": true', b'"x": 1'), *run[1:]]
    assert rejudged(tmp_path, only_numbers)[1].verdict is Verdict.UNKNOWN


# --- edited on purpose -------------------------------------------------------------------------------------


def test_an_edited_history_is_judged_all_the_same(tmp_path: Path, run: Lines) -> None:
    place = inside(run, "a")
    history, results = rejudged(tmp_path, drop(alter(run, place + 3), place), edited=True)
    assert not history.flawed
    assert results.edited


def test_the_command_says_how_it_was_judged(tmp_path: Path, run: Lines, capsys: pytest.CaptureFixture[str]) -> None:
    place = next(i for i, line in enumerate(run) if kind(line) == "note")
    (tmp_path / "history.jsonl").write_bytes(b"".join(drop(run, place)))
    assert main(["check", str(tmp_path)]) == EXIT_UNKNOWN
    assert f"hint: if it was edited on purpose: plugpull check --edited {tmp_path}" in capsys.readouterr().out
    assert main(["check", "--edited", str(tmp_path)]) == EXIT_PASS
    assert "note: the history was judged as edited" in capsys.readouterr().out
    assert main(["check", "--edited", "--json", str(tmp_path)]) == EXIT_PASS
    assert json.loads(capsys.readouterr().out)["edited"] is True
    assert main(["report", "--edited", str(tmp_path)]) == EXIT_PASS
    assert "edited on purpose" in (tmp_path / "report.html").read_text()


# --- the recorder ------------------------------------------------------------------------------------------


def test_a_recorder_goes_on_where_another_stopped(tmp_path: Path) -> None:
    file = tmp_path / "history.jsonl"
    for text in ("one", "two"):
        with Recorder(file) as recorder:
            recorder.record(ev.Note(text=text))
    assert [json.loads(line)["n"] for line in file.read_bytes().splitlines()] == [1, 2, 3, 4]
    assert not read_history(file).flawed


def test_a_recorder_ends_the_torn_line_of_another(tmp_path: Path) -> None:
    file = tmp_path / "history.jsonl"
    with Recorder(file) as recorder:
        recorder.record(ev.Note(text="one"))
    file.write_bytes(file.read_bytes() + b'{"type":"no')
    with Recorder(file) as recorder:
        recorder.record(ev.Note(text="two"))
    history = read_history(file)
    assert history.lost_lines == 1
    assert [type(event) for event in history.stray] == [ev.Note, ev.RigFault, ev.Note]
    assert not history.flawed


def test_a_history_is_for_its_owner_only(tmp_path: Path) -> None:
    with Recorder(tmp_path / "history.jsonl") as recorder:
        recorder.record(ev.Note(text="one"))
    assert (tmp_path / "history.jsonl").stat().st_mode & 0o777 == 0o600


def test_every_event_can_be_read_back() -> None:
    """A class that ``AnyEvent`` lacks would be written and never read."""
    assert set(ev.Event.__subclasses__()) == set(get_args(ev.AnyEvent))


def test_a_hint_is_called_mend_on_disk() -> None:
    """So that histories written before the field was renamed keep theirs."""
    fault = msgspec.json.decode(b'{"type":"rig.fault","summary":"no answer","mend":"plug it in"}', type=ev.RigFault)
    assert fault.hint == "plug it in"
    assert b'"mend":"plug it in"' in msgspec.json.encode(fault)
