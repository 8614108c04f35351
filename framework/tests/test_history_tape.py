"""Samples are kept in a table of columns. What is read from it must be what was recorded, however odd it was."""

from __future__ import annotations

import random
from array import array
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from stories import DISKS, Bench, encode, healthy, run_of

from plugpull.history import events as ev
from plugpull.history.columns import Column, unchanged
from plugpull.history.counters import Counters
from plugpull.history.reader import read_history
from plugpull.history.recorder import Recorder
from plugpull.history.samples import SampleTable
from plugpull.history.story import Story
from plugpull.history.tape import Tape, others_of, table_of, until
from plugpull.judging.judge import judge_story


def recorded(directory: Path, events: list[ev.Event]) -> Story:
    """The first story of these events, by way of the recorder: its lines are numbered."""
    file = directory / "history.jsonl"
    file.unlink(missing_ok=True)
    with Recorder(file) as recorder:
        for event in events:
            recorder.record(event)
    return read_history(file).stories[0]


def test_a_tape_has_the_events_as_they_were_recorded(tmp_path: Path) -> None:
    events = healthy().scenario()
    story = recorded(tmp_path, run_of(events))
    assert isinstance(story.events, Tape)
    assert list(story.events) == events
    assert story.events == tuple(events)
    assert len(story.events) == len(events)
    assert [story.events[place] for place in range(len(events))] == events
    assert story.events[-1] == events[-1]
    assert list(story.events[3:90:7]) == events[3:90:7]
    assert list(story.timeline()) == [
        ev.Sampled(at=event.at, disks={}, cpu=event.cpu) if isinstance(event, ev.Sampled) else event for event in events
    ]


def test_a_tape_ends_before_any_of_its_events(tmp_path: Path) -> None:
    events = healthy().scenario()
    story = recorded(tmp_path, run_of(events))
    for place, event in enumerate(story.others):
        begun = events[: events.index(event)]
        assert list(until(story.events, place)) == begun
        assert list(until(tuple(events), place)) == begun


def odd(bench: Bench, dice: random.Random) -> list[ev.Event]:
    """The events of a bench whose samples are damaged at random: late, without a time, doubled, with wrong counters."""
    events: list[ev.Event] = []
    for event in bench.scenario():
        if not isinstance(event, ev.Sampled) or dice.random() > 0.05:
            events.append(event)
            continue
        disks = {
            kname: Counters(
                *(number if dice.random() > 0.2 else dice.choice((0, -1, 7, 2**63, 10**30)) for number in one)
            )
            for kname, one in event.disks.items()
            if dice.random() > 0.2
        }
        at = dice.choice((event.at, None, round((event.at or 0.0) - 3.0, 6), 0.0))
        events += [ev.Sampled(at=at, disks=disks, report=dice.choice((0, 5)))] * dice.choice((0, 1, 2))
    return events


@pytest.mark.parametrize("seed", range(12))
def test_odd_samples_give_the_same_results_from_a_file_as_from_events(tmp_path: Path, seed: int) -> None:
    events = odd(healthy(), random.Random(seed))
    begun = events[0]
    assert isinstance(begun, ev.ScenarioBegun)
    read = recorded(tmp_path, run_of(events))
    made = Story(begun, tuple(events), rig=read.rig)
    for disk in DISKS:
        assert tuple(read.readings(disk)) == tuple(made.readings(disk))
        assert list(read.readings(disk).at) == sorted(read.readings(disk).at)
    assert read.silences == made.silences
    assert read.span == made.span
    assert replace(judge_result(read), flaws=()) == replace(judge_result(made), flaws=())


def judge_result(story: Story) -> Story:
    """The story, with its judgement in the place of its flaws' name: what two readings must agree in."""
    return Story(story.begun, (), rig={"result": judge_story(story)})


def test_lines_that_only_look_like_samples_are_damaged(tmp_path: Path) -> None:
    lines = encode(run_of(healthy().scenario())).splitlines(True)
    place = next(number for number, line in enumerate(lines) if line.startswith(b'{"type":"sample"'))
    for broken in (
        b'{"type":"sample","at":1.0,"disks":{"sda":[1,2,3]}}\n',
        b'{"type":"sample","at":1.0}\n',
        b'{"type":"sample","at":"now","disks":{}}\n',
        b'{"type":"sample","at":1.0,"disks":{\n',
        b'{"type":"sample","at":1.0,"disks":{}}{"type":"sample","at":1.0,"disks":{}}\n',
    ):
        (tmp_path / "history.jsonl").write_bytes(b"".join([*lines[:place], broken, *lines[place:]]))
        history = read_history(tmp_path)
        assert history.lost_lines == 1
        assert len(history.stories[0].samples) == sum(line.startswith(b'{"type":"sample"') for line in lines)


def test_a_torn_sample_at_the_end_is_not_taken(tmp_path: Path) -> None:
    whole = encode(run_of(healthy().scenario()))
    end = whole.index(b'{"type":"sample"', len(whole) // 2)
    (tmp_path / "history.jsonl").write_bytes(whole[: end + 40])
    history = read_history(tmp_path)
    assert history.torn
    assert len(history.stories[0].samples) == whole[:end].count(b'{"type":"sample"')


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("compared", [True, False])
def test_a_column_knows_what_is_true_of_all_its_numbers(seed: int, compared: bool) -> None:
    dice = random.Random(seed)
    for _ in range(100):
        numbers = [dice.choice((0, 1, 5, -3, 2**40)) for _ in range(dice.randrange(1, 7))]
        numbers = sorted(numbers) if dice.random() < 0.5 else numbers
        column = Column(compared=compared)
        middle = dice.randrange(len(numbers) + 1)
        column.extend(numbers[:middle])
        column.extend(tuple(numbers[middle:]))
        assert list(column.numbers) == numbers
        assert column.falls == any(one > two for one, two in pairwise(numbers))
        assert column.constant == (len(set(numbers)) == 1)
        assert column.negative == any(number < 0 for number in numbers)
        flat = [place for begin, end in column.flat for place in range(begin, end)]
        assert flat == sorted(set(flat))
        assert set(flat) >= {i for i in range(1, len(numbers)) if numbers[i] <= numbers[i - 1]}
        assert not flat or flat[-1] < len(numbers)
        other = Column([dice.choice((0, 1)) for _ in numbers])
        standing = [
            i
            for i in range(1, len(numbers))
            if numbers[i] == numbers[i - 1] and other.numbers[i] == other.numbers[i - 1]
        ]
        assert list(unchanged([column, other])) == standing
        count = dice.randrange(1, len(numbers) + 1)
        parts = [column.until(count), other.until(count)]
        assert list(parts[0].numbers) == numbers[:count]
        assert list(unchanged(parts)) == [i for i in standing if i < count]
        assert parts[0].falls or all(one <= two for one, two in pairwise(numbers[:count]))


def test_counters_that_do_not_fit_are_kept_as_the_largest() -> None:
    assert list(Column([0, 10**30, -(10**30)]).numbers) == [0, 2**63 - 1, -(2**63)]
    beyond = Column([10**30, 10**29])
    assert (beyond.falls, beyond.constant, list(unchanged([beyond]))) == (False, True, [1])


def test_samples_of_one_story_do_not_change_when_its_end_is_left_out() -> None:
    table = SampleTable(event for event in healthy().scenario() if isinstance(event, ev.Sampled))
    part = table.until(100)
    assert part.samples(range(100)) == table.samples(range(100))
    assert len(part) == 100
    assert part.at == table.at[:100]
    assert table_of(Tape((), table, array("L", [0]) * len(table))) is table
    assert others_of(tuple(healthy().scenario()[:1])) == tuple(healthy().scenario()[:1])
