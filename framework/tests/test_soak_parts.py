"""The parts of a soak: lengths, what is drawn, how far a history has come, and what a lost disk means."""

from __future__ import annotations

import io
from pathlib import Path
from random import Random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from rig_builder import a_rig
from stories import CUT, VICTIM, healthy

from plugpull.errors import NotServed, UsageError
from plugpull.faults.expected import expected
from plugpull.history import events as ev
from plugpull.history.reader import Story
from plugpull.history.recorder import Recorder
from plugpull.judging.judge import judge_story
from plugpull.judging.results import Verdict
from plugpull.locate import rigs_dir
from plugpull.report.live import LiveView
from plugpull.rig.load import load_rig
from plugpull.rig.topology import Topology, without_disks
from plugpull.soak.draw import (
    APART,
    LONGEST_HELD,
    SHORTEST_HELD,
    draw_fault,
    draw_wait,
    mean_wait,
    points_to_cut,
)
from plugpull.soak.length import length_text, parse_length
from plugpull.soak.progress import SoakProgress
from plugpull.soak.state import read_state

QUICK = load_rig(rigs_dir() / "quick.toml")


@pytest.mark.parametrize(
    ("text", "seconds", "said"),
    [
        ("90s", 90, "1 min 30 s"),
        ("30m", 1800, "30 min"),
        ("45min", 2700, "45 min"),
        ("2h", 7200, "2 h"),
        ("1.5 h", 5400, "1 h 30 min"),
        ("1d12h", 129600, "1 d 12 h"),
        ("4d", 345600, "4 d"),
        ("1d 30s", 86430, "1 d"),
    ],
)
def test_lengths(text: str, seconds: float, said: str) -> None:
    assert parse_length(text) == seconds
    assert length_text(seconds) == said


@pytest.mark.parametrize("text", ["", "4", "d", "4 days", "-1h", "2h later", "1e3s", "0s", "5s", "3000d", "٤d"])
def test_what_is_not_a_length(text: str) -> None:
    with pytest.raises(UsageError) as refused:
        parse_length(text)
    assert refused.value.hint


# --- what is drawn ----------------------------------------------------------------------------------------------------


@given(st.integers(0, 1 << 32))
def test_a_drawn_fault_leaves_a_disk_and_heals(seed: int) -> None:
    fault = draw_fault(Random(seed), Topology(QUICK))
    due = expected(fault, QUICK)
    assert due.survivors
    assert due.removed
    assert due.removed == due.returned


def test_every_point_is_drawn_sometime() -> None:
    """Each that leaves a disk, alone and with another."""
    stream, seen = Random(7), set[str]()
    for _ in range(400):
        seen.add(repr(draw_fault(stream, Topology(QUICK))).replace(".", ""))
    words = " ".join(seen)
    assert all(f"'{point.name.replace('.', '')}'" in words for point in points_to_cut(Topology(QUICK)))
    assert "Together" in words


def test_what_may_be_cut() -> None:
    """Nothing that takes a disk which must not be written, and not the DUT's own power. A disk that is alone is cut."""
    rig = (
        a_rig("shelf")
        .switch(ports=4)
        .controller()
        .hub("hub1", "usb.1", cable="cables.1")
        .disk("mine", "hub1.1", "S-1", "16 MiB", scratch=True, cable="cables.2")
        .disk("yours", "hub1.2", "S-2", "16 MiB", cable="cables.3")
        .load()
    )
    assert [point.name for point in points_to_cut(Topology(rig))] == ["mine.cable"]
    with pytest.raises(NotServed):
        points_to_cut(Topology(without_disks(rig, ["mine"])))


@given(st.integers(0, 1 << 32), st.floats(30, 1e6))
def test_a_wait_is_random_and_bounded(seed: int, seconds: float) -> None:
    stream = Random(seed)
    mean = mean_wait(seconds)
    assert 10 <= mean <= 300
    assert 0 <= draw_wait(stream, seconds) <= 3 * mean
    assert SHORTEST_HELD < LONGEST_HELD


@pytest.mark.parametrize("seed", range(20))
def test_two_hours_have_forty_faults(seed: int) -> None:
    """As long as a turn takes no longer beside its wait than on an emulated bench."""
    stream, spent, turns = Random(seed), 0.0, 0
    while (spent := spent + draw_wait(stream, 7200.0) + APART) < 7200.0:
        turns += 1
    assert 40 <= turns <= 80


def test_waits_are_about_as_long_as_they_should_be() -> None:
    """The mean of waits that are cut at three times the mean is 1 - exp(-3) of it: 0.95."""
    stream = Random(3)
    waits = [draw_wait(stream, 4 * 86400) for _ in range(4000)]
    assert 0.9 < sum(waits) / len(waits) / 300 < 1.0


def test_a_rig_without_disks() -> None:
    less = without_disks(QUICK, ["disk2"])
    assert [disk.name for disk in less.disk] == ["disk1", "disk3"]
    points = Topology(less).cut_points()
    assert "disk2.cable" not in points
    assert points["hub1.cable"].victims == ("disk3",)


# --- how far it has come ----------------------------------------------------------------------------------------------


def wall(seconds: int) -> str:
    return f"2030-01-01T00:{seconds // 60:02}:{seconds % 60:02}+00:00"


def turn(number: int, begin: int, end: int | None) -> list[ev.Event]:
    name = f"test_it[{number:04}]"
    found: list[ev.Event] = [ev.ScenarioBegun(id=name, wall=wall(begin), seed=5)]
    found += [ev.ClockMapped(at=float(each), controller=1000.0 + each, error=0.01) for each in range(begin, begin + 9)]
    return found if end is None else [*found, ev.ScenarioEnded(id=name, wall=wall(end), seconds=float(end - begin))]


def test_the_time_that_was_worked_is_what_is_on_record(tmp_path: Path) -> None:
    """60 s until the second turn begins, in which the clock ran for 8 s more until it was killed; a pause; 40 s."""
    begun = ev.RunBegun(version=1, plugpull="1", wall=wall(0), rig_name="r", rig={}, seed=5, numbered=True)
    recorder = Recorder(tmp_path / "history.jsonl")
    for event in (begun, ev.SoakBegun(seconds=300.0, directory="/x"), *turn(1, 10, 60), *turn(2, 60, None)):
        recorder.record(event)
    state = read_state(tmp_path)
    assert (state.worked, state.left, state.turns, state.aside) == (68.0, 232.0, 2, {})
    recorder.close_segment()
    aside = ev.DiskSetAside(disk="disk2", wall=wall(620), cause="cut")
    for event in (
        ev.RunResumed(wall=wall(600)),
        *turn(3, 605, None),
        aside,
        ev.RunEnded(wall=wall(640), interrupted="x"),
    ):
        recorder.record(event)
    state = read_state(tmp_path)
    assert (state.worked, state.turns, list(state.aside), state.interrupted) == (108.0, 3, ["disk2"], "x")


def test_a_run_that_is_no_soak(tmp_path: Path) -> None:
    with Recorder(tmp_path / "history.jsonl") as recorder:
        recorder.record(ev.RunBegun(version=1, plugpull="1", wall=wall(0), rig_name="r", rig={}, seed=5))
    with pytest.raises(UsageError, match="was not started with --for"):
        read_state(tmp_path)


def test_progress_in_a_line() -> None:
    progress = SoakProgress(7200.0, worked=600.0, since=100.0, clock=lambda: 400.0, turns=7)
    progress.verdicts[Verdict.PASS], progress.aside["disk2"] = 6, "2030-01-01T00:00:00Z"
    assert progress.text() == (
        "soak: 15 min of 2 h, 1 h 45 min left; turn 7; 6 PASS; set aside: disk2 since 2030-01-01T00:00:00Z"
    )
    progress.earlier = 4
    assert "; turn 7; since turn 5: 6 PASS; " in progress.text(), "a restarted controller does not know what was before"


def test_progress_above_the_table_of_a_terminal() -> None:
    output = io.StringIO()
    view = LiveView(Console(file=output, width=120, force_terminal=True))
    assert "soak:" not in rendered(view)
    view.above = SoakProgress(7200.0, worked=3600.0, since=0.0, clock=lambda: 0.0, turns=3).render
    assert "soak: 1 h of 2 h, 1 h left; turn 3" in rendered(view)
    assert "50%" in rendered(view)


def rendered(view: LiveView) -> str:
    console = Console(file=io.StringIO(), width=120)
    with console.capture() as captured:
        console.print(view.render())
    return captured.get()


# --- lost disks -------------------------------------------------------------------------------------------------------


def with_aside(cause: ev.LossCause, disk: str, *, healed: bool = True) -> Story:
    bench = healthy()
    if not healed:
        bench.drop(ev.DiskAttached, lambda event: event.at < CUT)
        bench._attached[VICTIM].pop()
    bench.add(ev.DiskSetAside(at=25.8, disk=disk, wall="2030-01-01T00:00:19Z", cause=cause))
    return bench.story()


def test_a_disk_that_went_by_itself_is_a_finding() -> None:
    result = judge_story(with_aside("alone", "disk2"))
    assert [(one.check, one.subject) for one in result.findings] == [("set_aside", "disk2")]
    assert [(one.kind, one.subject) for one in result.conclusions] == [("set-aside", "disk2")]
    assert "since 2030-01-01T00:00:19Z" in result.conclusions[0].text


def test_a_disk_that_went_while_nobody_looked_is_not_known() -> None:
    result = judge_story(with_aside("unseen", "disk2"))
    assert (result.findings, result.verdict) == ((), Verdict.UNKNOWN)
    assert result.unknowns == ("disk2 was gone when the run was resumed, and why is not on record",)


def test_a_bench_that_lost_a_disk_is_to_blame() -> None:
    story = with_aside("alone", "disk2")
    fault = ev.RigFault(summary="the firmware of disk2 died", subject="disk2")
    result = judge_story(Story(story.begun, (*story.events[:-1], fault, story.events[-1]), rig=story.rig))
    assert (result.findings, result.verdict) == ((), Verdict.UNKNOWN)


def test_a_disk_that_is_set_aside_after_a_cut_is_found_by_returned_alone() -> None:
    result = judge_story(with_aside("cut", VICTIM))
    assert [one.check for one in result.findings] == []
    assert [one.kind for one in result.conclusions] == ["set-aside"]


def test_a_history_of_before_has_no_such_thing() -> None:
    assert judge_story(healthy().story()).conclusions == ()


def test_the_rig_of_a_scenario_is_without_disks_that_were_set_aside(tmp_path: Path) -> None:
    from plugpull.history.reader import read_history

    rig = {"disk": [{"name": "disk1"}, {"name": "disk2"}]}
    with Recorder(tmp_path / "history.jsonl") as recorder:
        recorder.record(ev.RunBegun(version=1, plugpull="1", wall="", rig_name="r", rig=rig, seed=5))
        recorder.record(ev.ScenarioBegun(id="a", wall="", seed=5))
        recorder.record(ev.ScenarioBegun(id="b", wall="", seed=5, without=("disk2",)))
    one, two = read_history(tmp_path).stories
    assert one.rig == rig
    assert two.rig["disk"] == [{"name": "disk1"}]
    assert msgspec.json.encode(two.begun)
