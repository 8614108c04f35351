"""Limits where a scenario gives none, and the time that does not count."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from rig_texts import BENCH, edited
from stories import GONE, RESTORED, RIG, healthy

from plugpull.checks import limits, returned
from plugpull.checks.starved import awake, excused, gaps, granted, starved
from plugpull.history import events as ev
from plugpull.history.story import Story
from plugpull.rig.load import parse_rig
from plugpull.rig.model import DiskLimits


def on(kind: str, **own: Any) -> Story:
    """The healthy story, on a bench of this kind whose disk1 has these limits."""
    bench = healthy()
    story = bench.story()
    disks = [disk | ({"limits": own} if disk["name"] == "disk1" else {}) for disk in RIG["disk"]]
    return Story(story.begun, story.events, rig=RIG | {"dut": {"kind": kind}, "disk": disks})


def test_the_bench_decides() -> None:
    assert limits.removed_within(on("virtual"), "disk1") == 1
    assert limits.removed_within(on("ssh"), "disk1") == 2
    assert limits.removed_within(on("local"), "disk1") == 2


def test_the_dut_says_what_it_is_where_the_rig_file_does_not() -> None:
    bench = healthy()
    assert "dut" not in RIG
    assert limits.bench_kind(bench.story()) == "virtual"
    bench.drop(ev.DutReady)
    bench.add(ev.DutReady(at=10.0, kernel="6.12.1", kind="ssh", how="found", took=1.0))
    assert limits.bench_kind(bench.story()) == "ssh"


def test_the_disk_comes_before_the_bench_and_the_scenario_before_both() -> None:
    story = on("virtual", returned=30.0, min_ratio=0.7, removed=None)
    assert limits.returned_within(story, "disk1") == 30
    assert limits.min_ratio(story, "disk1") == 0.7
    assert limits.returned_within(story, "disk2") == 5
    assert limits.returned_within(story, "disk1", 3.0) == 3
    assert limits.removed_within(story, "disk1") == 1


@pytest.mark.parametrize(
    ("kind", "mechanism", "wanted"),
    [("local", "mains", 15), ("ssh", "vbus", 15), ("local", "data", 5), ("virtual", "mains", 5)],
)
def test_a_real_disk_that_lost_its_power_may_spin_up(kind: str, mechanism: str, wanted: float) -> None:
    assert limits.returned_within(on(kind), "disk1", mechanism=mechanism) == wanted
    assert limits.returned_within(on(kind, returned=7.0), "disk1", mechanism=mechanism) == 7


def test_disks_that_go_together_get_more_time() -> None:
    story = healthy().story()
    assert limits.removed_within(story, "disk1", together=3) == pytest.approx(2.0)
    assert limits.returned_within(story, "disk3", together=3) == pytest.approx(6.0)
    assert limits.removed_within(story, "disk1", 1.0, together=3) == 1
    assert limits.returned_within(story, "disk1", 1.0, together=3) == 1


@pytest.mark.parametrize(("after", "late"), [(5.9, 0), (6.1, 2)])
def test_the_disks_of_one_cut_wait_for_each_other(after: float, late: int) -> None:
    """Three disks at once get 5 s and 0.5 s for each of the two others."""
    bench = healthy(until=30.0)
    bench.replace(ev.CutArmed, victims=("disk1", "disk2", "disk3"))
    for disk in ("disk2", "disk3"):
        was = bench.story().attachments(disk)[-1]
        bench.add(ev.DiskDetached(at=GONE, disk=disk, kname=was.kname, diskseq=was.diskseq))
        bench.attach(disk, RESTORED + after)
    assert len(bench.judge(returned(("disk2", "disk3"))).findings) == late


def test_they_come_from_the_rig_file(tmp_path: Path) -> None:
    text = edited(
        BENCH, ('serial = "S1"', 'serial = "S1"\nlimits = { returned = "2 min", max_stall = 2, min_ratio = 1 }')
    )
    rig = parse_rig(text, tmp_path / "rig.toml").model_dump(mode="json")
    story = healthy().story()
    story = Story(story.begun, story.events, rig=rig)
    assert limits.returned_within(story, "disk1") == 120
    assert limits.max_stall(story, "disk1") == 2
    assert limits.min_ratio(story, "disk1") == 1
    assert limits.returned_within(story, "disk2") == 5


def test_the_rig_file_has_a_key_for_each() -> None:
    assert tuple(DiskLimits.model_fields) == limits.NAMES


def test_a_scenario_that_allows_one_stall_allows_twice_as_much_in_all() -> None:
    assert limits.all_stalls(on("virtual"), "disk1") == 1
    assert limits.all_stalls(on("virtual"), "disk1", 2.0) == 4


def test_time_without_samples_and_without_clock_answers_does_not_count() -> None:
    bench = healthy()
    bench.starved = ((16.0, 19.0),)
    bench.add(
        ev.ClockMapped(at=15.5, controller=5.5, error=0.001), ev.ClockMapped(at=19.5, controller=9.5, error=0.001)
    )
    story = bench.story()
    (gap,) = starved(story)
    assert gap.begin == pytest.approx(16.0, abs=0.051)
    assert gap.end == pytest.approx(19.0, abs=0.051)
    assert awake(story, 15.0, 20.0) == pytest.approx(2.0, abs=0.11)
    assert awake(story, 18.0, 18.5) == 0


def test_a_sampler_that_hangs_while_the_clock_answers_was_not_starved() -> None:
    bench = healthy()
    bench.starved = ((16.0, 19.0),)
    bench.add(ev.ClockMapped(at=17.0, controller=7.0, error=0.001))
    assert starved(bench.story()) == ()
    assert len(gaps(bench.story())) == 1


def test_an_agent_that_was_lost_was_not_starved() -> None:
    bench = healthy()
    bench.starved = ((16.0, 19.0),)
    bench.add(ev.AgentLost(at=17.0, why="closed", last_heard=16.0))
    assert starved(bench.story()) == ()


def slowly(share: float, *, ran: float | None = None, late: bool = True, busy: float = 0.5, threads: int = 0) -> Story:
    """The healthy story on two CPUs whose host gave them this share of their time from 15 s on; ``ran`` is what it says
    itself, CPU seconds per second, and ``busy`` the share of their time in which the CPUs did something. ``late``:
    samples are too, by a fifth of the time. ``threads`` emulate the CPUs."""
    story = healthy().story()
    events: list[ev.Event] = []
    for event in story.events:
        at = event.at or 0.0
        jiffies = round(200 * at if at < 15 else 3000 + 200 * share * (at - 15))
        if isinstance(event, ev.DutReady):
            event = msgspec.structs.replace(event, cpus=2, threads=threads)
        elif isinstance(event, ev.Sampled):
            if late and at >= 15 and round(at * 20) % 10 in (3, 4):
                continue
            event = msgspec.structs.replace(event, cpu=(round(jiffies * busy), jiffies))
        elif isinstance(event, ev.ClockMapped) and ran is not None:
            event = msgspec.structs.replace(event, ran=1.0 * at if at < 15 else 15 + ran * (at - 15))
        events.append(event)
    return Story(story.begun, tuple(events), rig=RIG)


def test_a_host_that_runs_the_dut_slowly_takes_time_from_it() -> None:
    story = slowly(0.4)
    assert granted(story, 11.0, 14.0) == 1
    assert granted(story, 17.0, 20.0) == pytest.approx(0.5, abs=0.01)
    assert awake(story, 17.0, 20.0) == pytest.approx(3 * 0.5**2, abs=0.05)
    assert awake(story, 11.0, 14.0) == 3


def test_lost_ticks_alone_are_no_starvation() -> None:
    assert granted(slowly(0.4, late=False), 17.0, 20.0) == 1, "the agent had what it needed all the while"


def test_a_dut_that_was_run_as_long_as_it_was_busy_was_not_starved() -> None:
    assert granted(slowly(0.4, ran=1.5), 17.0, 20.0) == 1, "it lost its timer interrupts itself"
    assert granted(slowly(0.4, ran=0.3), 17.0, 20.0) == pytest.approx(0.5, abs=0.01)


def test_one_thread_is_all_that_a_host_can_run() -> None:
    assert granted(slowly(0.7, ran=1.0, busy=1.0, threads=1), 17.0, 20.0) == 1
    assert granted(slowly(0.7, ran=1.0, busy=1.0, threads=2), 17.0, 20.0) == pytest.approx(0.8, abs=0.02)


def test_a_slow_host_excuses_what_it_made_longer() -> None:
    story = slowly(0.5)
    assert not excused(story, 11.0, 14.0, 2.0), "before that"
    assert excused(story, 17.0, 20.0, 2.0)
    assert not excused(story, 17.0, 25.0, 2.0), "8 s are more than that"
    assert not excused(slowly(0.2), 17.0, 20.0, 2.0), "it hardly ran: nobody knows"


def test_a_real_dut_has_no_host() -> None:
    story = slowly(0.4)
    events = tuple(
        msgspec.structs.replace(event, kind="ssh") if isinstance(event, ev.DutReady) else event
        for event in story.events
    )
    assert granted(Story(story.begun, events), 17.0, 20.0) == 1


def test_samples_that_are_late_say_that_the_dut_was_run_slowly() -> None:
    bench = healthy()
    bench.starved = tuple((17.01 + i / 5, 17.09 + i / 5) for i in range(15))
    story = bench.story()
    events = tuple(
        msgspec.structs.replace(
            event, **({"cpus": 2} if isinstance(event, ev.DutReady) else {"cpu": (1, round(200 * (event.at or 0)))})
        )
        if isinstance(event, ev.DutReady | ev.Sampled)
        else event
        for event in story.events
    )
    story = Story(story.begun, events, rig=RIG)
    assert granted(story, 12.0, 16.0) == 1
    assert granted(story, 17.5, 19.5) == pytest.approx(0.75, abs=0.05)


def test_a_steady_sampler_was_not_starved() -> None:
    assert starved(healthy().story()) == ()
    assert awake(healthy().story(), 15.0, 20.0) == 5
