"""Reading a history back: whole, torn, damaged, newer than the reader; and what a story knows."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import get_args

import msgspec
import pytest
from stories import BACK, CUT, DISKS, GONE, RATE, RESTORED, SURVIVORS, VICTIM, encode, healthy, later, read_back, run_of

from plugpull.errors import UsageError
from plugpull.history import events as ev
from plugpull.history.counters import Counters
from plugpull.history.reader import Story, read_history
from plugpull.history.recorder import Recorder
from plugpull.judging.judge import judge_history
from plugpull.judging.results import Verdict, cut_results


def written(directory: Path, content: bytes) -> Path:
    file = directory / "history.jsonl"
    file.write_bytes(content)
    return file


def test_a_whole_run_comes_back_as_it_was_written(tmp_path: Path) -> None:
    scenario = healthy().scenario()
    written(tmp_path, encode(run_of(scenario, scenario)))
    history = read_history(tmp_path)
    assert history.complete
    assert history.begun is not None
    assert [list(story.events) for story in history.stories] == [scenario, [later(one, 100.0) for one in scenario]]
    assert history.stories[0].rig["rig"]["name"] == "made-up"


def test_a_torn_last_line_is_left_out(tmp_path: Path) -> None:
    content = encode(run_of(healthy().scenario()))
    history = read_history(written(tmp_path, content[:-5]))
    assert history.torn
    assert not history.complete
    assert history.ended is None
    assert history.lost_lines == 0


def test_a_whole_last_line_that_only_lacks_its_newline_counts(tmp_path: Path) -> None:
    history = read_history(written(tmp_path, encode(run_of(healthy().scenario()))[:-1]))
    assert history.complete


def test_every_kind_of_event_is_read_back() -> None:
    """One that is not among ``AnyEvent`` is taken for a kind from the future, and skipped."""
    kinds = {kind for kind in ev.Event.__subclasses__() if kind.__module__ == ev.__name__}
    assert kinds - set(get_args(ev.AnyEvent)) == set()


def test_kinds_and_fields_from_the_future_are_skipped(tmp_path: Path) -> None:
    begun = b'{"type":"scenario.begin","id":"a","wall":"","seed":1,"colour":"blue"}\n'
    history = read_history(written(tmp_path, begun + b'{"type":"smell","of":"smoke"}\n'))
    assert history.skipped_lines == 1
    assert history.lost_lines == 0
    assert history.stories[0].id == "a"


@pytest.mark.parametrize("damage", [b"\x00\xff\n", b'{"type":"note"\n', b'{"type":"note","text":5}\n', b"[]\n"])
def test_damaged_lines_are_counted_where_they_are(tmp_path: Path, damage: bytes) -> None:
    lines = encode(run_of(healthy().scenario())).splitlines(keepends=True)
    history = read_history(written(tmp_path, b"".join([*lines[:20], damage, *lines[20:]])))
    assert history.lost_lines == 1
    assert history.stories[0].lost_lines == 1
    history = read_history(written(tmp_path, b"".join([damage, *lines])))
    assert history.lost_lines == 1
    assert history.stories[0].lost_lines == 0


def test_what_is_not_a_history_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="not a history"):
        read_history(written(tmp_path, b"hello\n"))
    with pytest.raises(UsageError, match="cannot read"):
        read_history(tmp_path / "absent")


def test_disks_of_a_running_dut_are_carried_into_the_next_scenario(tmp_path: Path) -> None:
    begun = [ev.ScenarioBegun(id=name, wall="", seed=1) for name in "ab"]
    disk = ev.DiskAttached(
        at=1.0, disk="disk1", kname="sdb", diskseq=3, devt="8:16", serial="S", place="p", size=1 << 20
    )
    found = ev.DutReady(at=0.5, kernel="6.12.1", kind="local", how="found", took=0.1)
    sample = ev.Sampled(at=2.0, disks={"sdb": Counters(3, 1, 2, 0, 0, 0, 0, 0)})
    history = read_history(written(tmp_path, encode([begun[0], found, disk, begun[1], sample])))
    second = history.stories[1]
    assert second.attachments("disk1") == (disk,)
    assert second.readings("disk1")[0].written == 2
    restored = ev.DutReady(at=0.5, kernel="6.12.1", kind="virtual", how="restored", took=0.1)
    history = read_history(written(tmp_path, encode([begun[0], found, disk, begun[1], restored, sample])))
    assert history.stories[1].attachments("disk1") == ()


def test_what_a_new_agent_announces_replaces_what_was_attached_before(tmp_path: Path) -> None:
    begun = [ev.ScenarioBegun(id=name, wall="", seed=1) for name in "ab"]
    kept, gone = (
        ev.DiskAttached(at=1.0, disk=name, kname=kname, diskseq=3, devt="8:0", serial=name, place="p", size=1 << 20)
        for name, kname in (("disk1", "sda"), ("disk2", "sdb"))
    )
    connected = ev.DutReady(at=2.0, kernel="6.12.1", kind="ssh", how="connected", took=0.1)
    again = msgspec.structs.replace(kept, at=9.0)
    events = [begun[0], kept, gone, connected, begun[1], again, msgspec.structs.replace(connected, at=10.0)]
    second = read_history(written(tmp_path, encode(events))).stories[1]
    assert second.all_attachments == (again,)


def test_a_cut_is_put_together_from_its_events() -> None:
    (cut,) = cut_results(healthy().story())
    assert (cut.point, cut.mechanism, cut.victims) == ("disk1.cable", "data", (VICTIM,))
    assert cut.commanded_at == CUT
    assert cut.acknowledged_at == pytest.approx(CUT + 0.01)
    assert cut.read_back is True
    assert cut.kernel_saw_at == pytest.approx(GONE - 0.02)
    assert cut.restored_at == RESTORED
    assert cut.returned_at == BACK
    assert cut.error == 0.002
    (times,) = cut.disks
    assert times.removed_at == GONE
    assert CUT - 0.1 < (times.last_io_at or 0) <= GONE
    assert BACK <= (times.first_io_at or 0) < BACK + 0.1


def test_another_disks_disconnect_is_not_taken_for_the_cut() -> None:
    bench = healthy()
    bench.add(ev.KernelMessage(at=CUT + 0.01, text="usb 1-1.3: USB disconnect, device number 9"))
    assert cut_results(bench.story())[0].kernel_saw_at == pytest.approx(GONE - 0.02)
    bench.add(ev.KernelMessage(at=CUT + 0.02, text="usb 1-1: USB disconnect, device number 2"))
    assert cut_results(bench.story())[0].kernel_saw_at == pytest.approx(CUT + 0.02), "the hub above is the disk's"


def test_a_cut_never_made_and_one_never_answered() -> None:
    bench = healthy()
    bench.drop(ev.Edge)
    assert cut_results(bench.story())[0].commanded_at is None
    bench.switch("off", CUT, agrees=None, ack=False)
    (cut,) = cut_results(bench.story())
    assert (cut.commanded_at, cut.acknowledged_at, cut.read_back) == (CUT, None, None)


def test_what_comes_back_by_healing_did_not_come_back_from_a_permanent_cut() -> None:
    bench = healthy()
    bench.replace(ev.CutArmed, permanent=True)
    (cut,) = cut_results(bench.story())
    assert cut.disks[0].removed_at == GONE
    assert cut.restored_at is None
    assert cut.returned_at is None


def test_the_second_cut_of_a_disk_does_not_lend_its_events_to_the_first() -> None:
    bench = healthy(until=40.0)
    bench.arm(27.9, cut=2)
    bench.switch("off", 28.0, cut=2)
    bench.detach(VICTIM, 28.1)
    bench.switch("on", 30.0, cut=2)
    bench.attach(VICTIM, 31.0)
    first, second = cut_results(bench.story())
    assert (first.disks[0].removed_at, first.returned_at) == (GONE, BACK)
    assert (second.disks[0].removed_at, second.returned_at) == (28.1, 31.0)


def test_rates_follow_the_disk_and_not_its_kernel_name() -> None:
    bench = healthy()
    story = bench.story()
    rates = [rate.write_bps for rate in story.rates(SURVIVORS[0]) if 13 < rate.at < 23]
    assert max(rates) == pytest.approx(RATE, rel=0.01)
    assert min(rates) == pytest.approx(RATE, rel=0.01)
    back = [rate.write_bps for rate in story.rates(VICTIM) if rate.at > BACK]
    assert back
    assert max(back) == 0
    assert story.disk_at("sdb", CUT - 1) == VICTIM
    assert story.disk_at("sdb", CUT + 1) is None


def test_evidence_reaches_as_far_as_the_agent_was_heard() -> None:
    bench = healthy()
    assert bench.story().evidence_until is None
    assert bench.story().covers(CUT, CUT + 5)
    assert not bench.story().covers(CUT, 60.0)
    assert "the record ends" in bench.story().why_not_covered(CUT, 60.0)
    bench.until = 16.0
    bench.events = [event for event in bench.events if (event.at or 0) <= 16.0]
    bench.add(ev.AgentLost(at=18.0, why="no answer", last_heard=16.0))
    story = bench.story()
    assert story.evidence_until == 16.0
    assert story.covers(CUT, 15.5)
    assert not story.covers(CUT, 17.0)


def test_an_agent_that_is_heard_again_leaves_a_hole(tmp_path: Path) -> None:
    bench = healthy()
    bench.starved = ((16.0, 18.0),)
    bench.drop(ev.DiskAttached, lambda event: event.at < 16)
    bench.drop(ev.KernelMessage, lambda event: event.at < 16)
    bench.add(ev.AgentLost(at=16.5, why="no answer", last_heard=16.0))
    story = read_back(tmp_path, run_of(bench.scenario()))
    assert story.silences[0].begin == 16.0
    assert story.silences[0].end == pytest.approx(18.0)
    assert not story.covers(CUT, 17.0)
    assert not story.covers(CUT, 20.0)
    assert story.covers(19.0, 20.0)


def test_all_disks_are_known() -> None:
    assert all(len(healthy().story().attachments(disk)) == 1 + (disk == VICTIM) for disk in DISKS)


# --- what is missing of a scenario, also in a history without numbers ---------------------------------------------


def changed(directory: Path, change: Callable[[ev.Event], ev.Event | None]) -> Story:
    events = [made for event in run_of(healthy().scenario()) if (made := change(event)) is not None]
    return read_history(written(directory, encode(events))).stories[0]


def test_a_scenario_without_its_dut_is_flawed(tmp_path: Path) -> None:
    story = changed(tmp_path, lambda event: None if isinstance(event, ev.DutReady) else event)
    assert story.flaws == ("what the DUT was is missing from the history",)


def test_checks_that_were_asked_for_must_be_there(tmp_path: Path) -> None:
    def asking(count: int) -> Callable[[ev.Event], ev.Event]:
        return lambda event: (
            msgspec.structs.replace(event, asked=count) if isinstance(event, ev.ScenarioEnded) else event
        )

    assert changed(tmp_path, asking(5)).flaws == ()
    assert changed(tmp_path, asking(7)).flaws == ("the scenario asked for 7 checks, and the history has 5",)


def test_the_end_of_another_scenario_is_a_flaw(tmp_path: Path) -> None:
    story = changed(
        tmp_path,
        lambda event: msgspec.structs.replace(event, id="b") if isinstance(event, ev.ScenarioEnded) else event,
    )
    assert story.flaws == ("the history has the end of another scenario here: b",)


def test_an_end_without_a_beginning_is_a_flaw_of_the_run(tmp_path: Path) -> None:
    events = [event for event in run_of(healthy().scenario()) if not isinstance(event, ev.ScenarioBegun)]
    history = read_history(written(tmp_path, encode(events)))
    assert history.flaws == ("the beginning of a scenario is missing: scenarios/test_cable.py::test_cut",)
    assert judge_history(history).verdict is Verdict.UNKNOWN


def test_what_follows_a_scenario_is_kept_with_it(tmp_path: Path) -> None:
    late = ev.KernelMessage(at=27.0, text="BUG: unable to handle page fault")
    scenario = healthy().scenario()
    story, second = read_history(written(tmp_path, encode(run_of([*scenario, late], scenario)))).stories
    assert story.after == (late,)
    assert second.after == ()


def damaged(lines: list[bytes], dice: random.Random) -> bytes:
    """The lines of a history, some of them lost, doubled, moved, cut off, empty or of an unknown kind."""
    found: list[bytes] = []
    for line in lines:
        what = dice.random()
        if what < 0.01:
            found.append(dice.choice((b"\n", b"{}\n", b'{"type":"smell","n":7}\n', line[: len(line) // 2] + b"\n")))
        elif what < 0.02:
            found += [line, line]
        elif what < 0.03:
            found.insert(max(0, len(found) - dice.randrange(9)), line)
        elif what > 0.01 * dice.random():
            found.append(line)
    return b"".join(found)


@pytest.mark.parametrize("seed", range(8))
def test_lines_read_many_at_a_time_are_those_read_one_by_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    scenario = healthy().scenario()
    with Recorder(tmp_path / "history.jsonl") as recorder:
        for event in run_of(scenario, scenario):
            recorder.record(event)
    lines = (tmp_path / "history.jsonl").read_bytes().splitlines(True)
    whole = b"".join(lines) if seed == 0 else damaged(lines, random.Random(seed))
    written(tmp_path, whole[: len(whole) - 11 * (seed % 2)])
    found = []
    for at_once in (1, 2048, 10, 333):
        monkeypatch.setattr("plugpull.history.line_blocks.AT_ONCE", at_once)
        found.append(read_history(tmp_path))
    assert found[1:] == found[:1] * 3
    assert found[0].flawed == (seed > 0)
