"""Faults on a bench: what is off at each moment, what is put on record, and that all of it is healed."""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest
from desks import Desk, described, desk
from fault_strategies import faults, timed
from hypothesis import given, settings
from hypothesis import strategies as st

from plugpull.dut.scenario_context import ScenarioContext
from plugpull.errors import NotServed, RigError, UsageError
from plugpull.faults import (
    after,
    at_random,
    bounce,
    cut,
    held,
    in_sequence,
    injection,
    kernel_says,
    pause,
    repeated,
    together,
)
from plugpull.faults import triggers as triggers_module
from plugpull.faults.breaker import Breaker
from plugpull.faults.codec import decode, encode
from plugpull.faults.compose import Fault
from plugpull.faults.expected import rehearse, whole
from plugpull.faults.injection import Injection
from plugpull.faults.triggers import AtRandom, Promised, Trigger
from plugpull.faults.watching import Watch
from plugpull.history import events as ev
from plugpull.history.reader import read_history

POINTS = ("disk1.cable", "disk2.cable")
FEW = settings(max_examples=25, deadline=None)


@pytest.fixture(autouse=True, scope="module")
def nobody_is_waited_for() -> Iterator[None]:
    """No kernel is there to take a disk off its list or to bring it back."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(injection, "SEEN_WITHIN", 0.0)
        patch.setattr(injection, "BACK_WITHIN", 0.0)
        yield


@contextmanager
def a_desk() -> Iterator[tuple[Desk, Breaker]]:
    with tempfile.TemporaryDirectory() as folder, desk(Path(folder)) as on_desk:
        yield on_desk, Breaker(on_desk.context)


def off(on_desk: Desk) -> set[str]:
    """The points that are off."""
    return {f"disk{port}.cable" for port, on in on_desk.bench.cables.ports.items() if not on}


def commands(on_desk: Desk) -> list[tuple[str, str]]:
    """Every edge, in order."""
    return [(f"disk{port}.cable", "on" if on else "off") for port, on in on_desk.bench.cables.done]


# --- laws -----------------------------------------------------------------------------------------------------


@FEW
@given(faults(POINTS, timed()))
def test_a_fault_does_on_the_bench_what_it_does_on_paper(fault: Fault) -> None:
    with a_desk() as (on_desk, breaker):
        injected = Injection(on_desk.context, breaker, fault).inject()
        plan = rehearse(fault.inject([]))
        opened = [opening for step in plan for opening in step.off]
        closed = {opening for step in plan for opening in step.on}
        assert off(on_desk) == {point for one in opened if one not in closed for point in one.points}
        injected.heal()
        assert off(on_desk) == set()
        breaker.heal()
        assert on_desk.recorded(ev.Healed) == [], "nothing was left off"
        armed = on_desk.recorded(ev.CutArmed)
        whole_plan = [opening for step in rehearse(whole(fault)) for opening in step.off]
        assert sorted(one.point for one in armed) == sorted(point for one in whole_plan for point in one.points)
        edges = {(edge.cut, edge.state) for edge in on_desk.recorded(ev.Edge) if edge.phase == "acknowledged"}
        assert edges == {(one.cut, state) for one in armed for state in ("off", "on")}


@FEW
@given(
    st.lists(st.sets(st.sampled_from(POINTS), min_size=1), min_size=2, max_size=3),
    st.lists(st.tuples(st.booleans(), st.integers(0, 2)), max_size=10),
)
def test_a_port_stays_off_until_the_last_of_overlapping_cuts_is_healed(
    points: list[set[str]], steps: list[tuple[bool, int]]
) -> None:
    with a_desk() as (on_desk, breaker):
        cuts = [Injection(on_desk.context, breaker, cut(*sorted(some))) for some in points]
        holding: dict[int, set[str]] = {}
        for inject, which in steps:
            which %= len(cuts)
            if inject and which not in holding:
                cuts[which].inject()
                holding[which] = points[which]
            elif not inject:
                cuts[which].heal()
                holding.pop(which, None)
            assert off(on_desk) == {point for held_off in holding.values() for point in held_off}
        breaker.heal()
        assert off(on_desk) == set()
        armed = {one.cut for one in on_desk.recorded(ev.CutArmed)}
        restored = {
            edge.cut for edge in on_desk.recorded(ev.Edge) if (edge.phase, edge.state) == ("acknowledged", "on")
        }
        assert restored == armed, "each cut has its edge back on, once its port is on"


@FEW
@given(faults(POINTS, timed(), permanent=True))
def test_whatever_is_not_healed_is_healed_at_the_end(fault: Fault) -> None:
    with a_desk() as (on_desk, breaker):
        Injection(on_desk.context, breaker, fault).inject()
        was_off = off(on_desk)
        breaker.heal()
        assert off(on_desk) == set()
        assert [len(healed.ports) for healed in on_desk.recorded(ev.Healed)] == ([len(was_off)] if was_off else [])


# --- one after the other, and side by side --------------------------------------------------------------------


def test_a_sequence_leaves_open_what_it_opened_until_it_is_healed(tmp_path: Path) -> None:
    with desk(tmp_path) as on_desk:
        breaker = Breaker(on_desk.context)
        with Injection(on_desk.context, breaker, in_sequence(cut(POINTS[0]), pause(0.01), cut(POINTS[1]))):
            assert off(on_desk) == set(POINTS)
        assert commands(on_desk) == [(POINTS[0], "off"), (POINTS[1], "off"), (POINTS[0], "on"), (POINTS[1], "on")]
        assert [one.group for one in on_desk.recorded(ev.CutArmed)] == [0, 0]


def test_side_by_side_each_keeps_its_own_time(tmp_path: Path) -> None:
    with desk(tmp_path) as on_desk:
        slow = in_sequence(pause(0.1), held(cut(POINTS[1]), 0.5))
        Injection(on_desk.context, Breaker(on_desk.context), together(held(cut(POINTS[0]), 0.3), slow)).inject()
        assert commands(on_desk) == [(POINTS[0], "off"), (POINTS[1], "off"), (POINTS[0], "on"), (POINTS[1], "on")]


def test_a_trigger_that_is_late_keeps_nobody_else_waiting(tmp_path: Path) -> None:
    with desk(tmp_path) as on_desk:
        fault = together(cut(POINTS[0], when=kernel_says("reset")), cut(POINTS[1], when=after(0.01)))

        def speak() -> None:
            on_desk.wait_for(ev.Edge, of=lambda edge: edge.point == POINTS[1] and edge.phase == "acknowledged")
            on_desk.report({"ev": "kmsg", "at": 1.0, "level": 6, "seq": 1, "text": "usb 1-1: reset"})

        speaking = threading.Thread(target=speak, daemon=True)
        speaking.start()
        Injection(on_desk.context, Breaker(on_desk.context), fault).inject()
        speaking.join()
        assert commands(on_desk) == [(POINTS[1], "off"), (POINTS[0], "off")]


def test_equal_triggers_are_one_even_a_random_one(tmp_path: Path) -> None:
    with desk(tmp_path) as on_desk:
        when = at_random(0, 0.01)
        both = together(cut(POINTS[0], when=when), cut(POINTS[1], when=when))
        with Injection(on_desk.context, Breaker(on_desk.context), both):
            pass
        assert [one.group for one in on_desk.recorded(ev.CutArmed)] == [1, 1]
        assert [(one.state, one.cuts) for one in on_desk.recorded(ev.CutSwitched)] == [("off", (1, 2)), ("on", (1, 2))]
        (note,) = on_desk.recorded(ev.Note)
        assert note.text.endswith("(at random within 0 to 0.01 s)")


def test_what_is_healed_apart_is_not_one_group(tmp_path: Path) -> None:
    with desk(tmp_path) as on_desk:
        both = together(held(cut(POINTS[0]), 0.01), cut(POINTS[1]))
        with Injection(on_desk.context, Breaker(on_desk.context), both):
            assert off(on_desk) == {POINTS[1]}
        assert [one.group for one in on_desk.recorded(ev.CutArmed)] == [0, 0]


def test_a_bounce_is_a_group_of_cuts_and_leaves_nothing_to_heal(tmp_path: Path) -> None:
    with desk(tmp_path) as on_desk:
        with Injection(on_desk.context, Breaker(on_desk.context), bounce(POINTS[0], gaps=(0.02, 0.01, 0.02))):
            assert off(on_desk) == set()
        assert commands(on_desk) == [(POINTS[0], state) for state in ("off", "on", "off", "on")]
        assert [(one.cut, one.group, one.fault) for one in on_desk.recorded(ev.CutArmed)] == [(1, 1, 1), (2, 1, 1)]
        times = [edge.at or 0.0 for edge in on_desk.recorded(ev.Edge) if edge.phase == "acknowledged"]
        for begin, end, gap in zip(times, times[1:], (0.02, 0.01, 0.02), strict=False):
            assert end - begin >= gap - 0.001


@pytest.mark.parametrize(
    ("driver", "asleep", "refused"), [("virtio_scsi", True, True), ("virtio_scsi", False, False), ("uas", True, False)]
)
def test_a_cut_that_the_driver_would_never_notice_is_refused(
    tmp_path: Path, driver: str, asleep: bool, refused: bool
) -> None:
    with desk(tmp_path) as on_desk:
        on_desk.report({"ev": "disk.add", "at": 1.0, "disk": described("S-1", "sd1", driver=driver)})
        on_desk.wait_for(ev.DiskAttached)
        if asleep:
            on_desk.listener.let_sleep(60.0)
        injected = Injection(on_desk.context, Breaker(on_desk.context), held(cut(POINTS[0]), 0.01))
        if refused:
            with pytest.raises(NotServed, match="virtio_scsi does not look"):
                injected.inject()
        else:
            injected.inject()
        assert bool(commands(on_desk)) is not refused


def test_a_bounce_waits_for_a_removal_that_comes_after_it(tmp_path: Path) -> None:
    """The contact is made again before the kernel has noticed that it was lost."""
    with desk(tmp_path) as on_desk, pytest.MonkeyPatch.context() as patch:
        for patience in ("SEEN_WITHIN", "BACK_WITHIN"):
            patch.setattr(injection, patience, 60.0)
        on_desk.attach(1)

        def kernel() -> None:
            on_desk.wait_for(ev.Edge, of=lambda edge: (edge.cut, edge.state, edge.phase) == (1, "on", "read-back"))
            time.sleep(0.1)  # the time that the kernel takes
            on_desk.report({"ev": "disk.remove", "at": 1.0, "kname": "sd1", "diskseq": 7})
            on_desk.wait_for(ev.DiskDetached)
            time.sleep(0.1)
            on_desk.report({"ev": "disk.add", "at": 1.0, "disk": described("S-1", "sd1", 8)})

        thread = threading.Thread(target=kernel)
        thread.start()
        with Injection(on_desk.context, Breaker(on_desk.context), bounce(POINTS[0], gaps=(0.001,))):
            assert len(on_desk.recorded(ev.DiskAttached)) == 2
        thread.join()


def test_a_repeated_cut_that_is_not_held_opens_its_point_once_more(tmp_path: Path) -> None:
    with desk(tmp_path) as on_desk:
        with Injection(on_desk.context, Breaker(on_desk.context), repeated(cut(POINTS[0]), 3)):
            assert off(on_desk) == {POINTS[0]}
        assert commands(on_desk) == [(POINTS[0], "off")] * 3 + [(POINTS[0], "on")]


# --- on record, and again -------------------------------------------------------------------------------------


def test_a_fault_read_from_a_history_can_be_made_again(tmp_path: Path) -> None:
    fault: Fault = in_sequence(
        cut(POINTS[0]),
        together(held(cut(POINTS[1], when=at_random(0, 0.01)), 0.02), pause(0.01)),
        bounce(POINTS[1], gaps=(0.01, 0.01, 0.01), when=after(0.01)),
    )
    made = []
    for number in range(2):
        folder = tmp_path / str(number)
        folder.mkdir()
        with desk(folder) as on_desk:
            on_desk.recorder.record(ev.ScenarioBegun(id="a", wall="", seed=1))
            with Injection(on_desk.context, Breaker(on_desk.context), fault):
                pass
        (story,) = read_history(folder / "history.jsonl").stories
        (event,) = story.of(ev.FaultInjected)
        fault = decode(event.fault, Fault)
        armed = [(one.cut, one.point, one.trigger, one.group, one.fault) for one in story.of(ev.CutArmed)]
        edges = [(one.cut, one.point, one.state, one.phase) for one in story.of(ev.Edge)]
        notes = [note.text for note in story.of(ev.Note)]
        made.append((armed, edges, notes, encode(fault)))
    assert made[0] == made[1]
    assert len(made[0][0]) == 4


def test_an_unknown_point_is_named_before_anything_is_done(tmp_path: Path) -> None:
    with desk(tmp_path) as on_desk:
        fault = in_sequence(cut(POINTS[0]), cut("disk9.cable"))
        with pytest.raises(UsageError, match=r'no cut point "disk9\.cable"'):
            Injection(on_desk.context, Breaker(on_desk.context), fault).inject()
        assert commands(on_desk) == []
        assert on_desk.recorded(ev.FaultInjected) == []


# --- when it goes wrong ---------------------------------------------------------------------------------------


class Interrupted(Trigger, msgspec.Struct, frozen=True, tag_field="kind", tag="interrupted"):
    """Ctrl-C while it is waited for. A trigger that the package does not know."""

    def text(self) -> str:
        return "Ctrl-C"

    def watch(self, context: ScenarioContext) -> Watch:
        raise KeyboardInterrupt


def test_ctrl_c_in_the_middle_of_a_fault_restores_power_at_once(tmp_path: Path) -> None:
    with desk(tmp_path) as on_desk:
        breaker = Breaker(on_desk.context)
        fault = decode(encode(in_sequence(cut(POINTS[0]), held(cut(POINTS[1]), 0), pause(Interrupted()))), Fault)
        with pytest.raises(KeyboardInterrupt), Injection(on_desk.context, breaker, fault):
            raise AssertionError("the body must not run")
        assert off(on_desk) == set()
        assert len(on_desk.recorded(ev.Healed)) == 1


def test_ctrl_c_restores_what_was_injected_without_a_with_block(tmp_path: Path) -> None:
    with desk(tmp_path) as on_desk:
        breaker = Breaker(on_desk.context)
        Injection(on_desk.context, breaker, cut(POINTS[0])).inject()
        with pytest.raises(KeyboardInterrupt):
            Injection(on_desk.context, breaker, pause(Interrupted())).inject()
        assert off(on_desk) == set()


def test_a_trigger_that_does_not_come_leaves_the_rest_to_the_end_of_the_scenario(tmp_path: Path) -> None:
    with desk(tmp_path) as on_desk, pytest.MonkeyPatch.context() as patch:
        patch.setattr(triggers_module, "TRIGGER_DEADLINE", 0.05)
        breaker = Breaker(on_desk.context)
        fault = together(cut(POINTS[0]), cut(POINTS[1], when=kernel_says("never")))
        with pytest.raises(RigError, match="did not log /never/"), Injection(on_desk.context, breaker, fault):
            raise AssertionError("the body must not run")
        assert off(on_desk) == {POINTS[0]}
        breaker.heal()
        assert off(on_desk) == set()


def test_a_promise_is_waited_for_where_stamps_are_written(tmp_path: Path) -> None:
    with desk(tmp_path) as on_desk:
        wanted = Promised("disk1", AtRandom(0, 0.01))
        with pytest.raises(UsageError, match="no stamps are written to it"):
            wanted.wait(on_desk.context)
        on_desk.context.promised["disk1"] = lambda: True
        assert wanted.wait(on_desk.context).startswith("something was promised on disk1, and after 0.0")
        on_desk.context.promised["disk1"] = lambda: False
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(triggers_module, "TRIGGER_DEADLINE", 0.05)
            with pytest.raises(RigError, match="nothing was made durable on disk1"):
                wanted.wait(on_desk.context)


def test_a_disk_that_another_cut_holds_off_is_not_waited_for(tmp_path: Path) -> None:
    with desk(tmp_path) as on_desk, pytest.MonkeyPatch.context() as patch:
        patch.setattr(injection, "BACK_WITHIN", 60.0)
        breaker = Breaker(on_desk.context)
        Injection(on_desk.context, breaker, cut(POINTS[0])).inject()
        second = Injection(on_desk.context, breaker, cut(POINTS[0])).inject()
        second.heal()  # and does not wait a minute for a disk that cannot come
        assert off(on_desk) == {POINTS[0]}
