"""Several points cut at once: the switches side by side, each edge with its own times, the skew measured, and all of it
healed when some of it fails."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from desks import DESK, PATIENCE, Desk, DeskSwitch, desk
from stories import BACK, CUT, GONE, RESTORED, Bench, healthy

from plugpull.checks import removed, returned
from plugpull.dut.conversation.clock import DutClock, Exchange
from plugpull.errors import RigError
from plugpull.faults import cut
from plugpull.faults.breaker import Breaker
from plugpull.faults.injection import Injection
from plugpull.faults.parallel import at_once
from plugpull.faults.triggers import Now
from plugpull.history import events as ev
from plugpull.history.reader import History
from plugpull.interrupts import signals_raise
from plugpull.judging.judge import judge_history
from plugpull.judging.results import cut_results
from plugpull.report.html import events_of, render_html
from plugpull.report.narrate import narrate
from plugpull.rig.model import Mechanism
from plugpull.rig.topology import CutPoint
from plugpull.switches.base import Acknowledged

SHELF = (
    DESK.switch("mains", ports=2, mechanism="mains")
    .having("disk1", power="mains.1")
    .having("disk2", power="mains.2")
    .text
)


@dataclass
class Strip(DeskSwitch):
    """A switch with one command for several ports, or that waits for another before it acknowledges."""

    simultaneous: bool = False
    commands: list[tuple[tuple[str, ...], bool]] = field(default_factory=list)
    meet: threading.Barrier | None = None

    def _command(self, port: str, on: bool) -> None:
        if self.meet is not None:
            self.meet.wait(PATIENCE)
        super()._command(port, on)

    def set(self, port: str, on: bool) -> Acknowledged:
        self.commands.append(((port,), on))
        return super().set(port, on)

    def set_many(self, ports: Sequence[str], on: bool) -> tuple[Acknowledged, ...]:
        self.commands.append((tuple(ports), on))
        done = tuple(DeskSwitch.set(self, port, on) for port in ports)
        if not self.simultaneous:
            return done
        return tuple(Acknowledged(port, done[0].commanded, done[-1].acknowledged) for port in ports)


@contextmanager
def shelf(directory: Path, rig: str = SHELF) -> Iterator[tuple[Desk, Strip, Strip]]:
    with desk(directory, rig=rig) as on_desk:
        cables, mains = Strip(), Strip("mains", Mechanism.MAINS)
        on_desk.bench.cables = cables
        on_desk.bench.others["mains"] = mains
        yield on_desk, cables, mains


def points(on_desk: Desk, *names: str) -> tuple[CutPoint, ...]:
    known = on_desk.context.topology.cut_points()
    return tuple(known[name] for name in names)


def edges(on_desk: Desk, phase: str, state: str = "off") -> list[ev.Edge]:
    return [edge for edge in on_desk.recorded(ev.Edge) if (edge.phase, edge.state) == (phase, state)]


def test_ports_of_one_switch_go_in_one_command_with_no_skew_if_it_can(tmp_path: Path) -> None:
    for simultaneous in (True, False):
        with shelf(tmp_path) as (on_desk, cables, mains):
            cables.simultaneous = simultaneous
            with Injection(
                on_desk.context, Breaker(on_desk.context), cut(*points(on_desk, "disk1.cable", "disk2.cable"))
            ):
                assert cables.ports == {"1": False, "2": False}
                on_desk.attach(1)
                on_desk.attach(2)
            assert cables.commands == [(("1", "2"), False), (("1", "2"), True)]
            assert mains.commands == []
            off, on = on_desk.recorded(ev.CutSwitched)
            assert (off.cuts, off.state, off.ports, off.switches) == ((1, 2), "off", 2, ("cables",))
            assert on.state == "on"
            assert (off.skew == 0) is simultaneous
            times = [edge.at for edge in edges(on_desk, "acknowledged")]
            assert len(times) == 2
            assert (times[0] == times[1]) is simultaneous, "each edge has its own time"
            assert [cut.group for cut in on_desk.recorded(ev.CutArmed)] == [1, 1]


def test_switches_go_side_by_side(tmp_path: Path) -> None:
    """Each waits, in the midst of its command, until the other is in the midst of its own."""
    with shelf(tmp_path) as (on_desk, cables, mains):
        cables.meet = mains.meet = threading.Barrier(2)
        breaker = Breaker(on_desk.context)
        wanted = points(on_desk, "disk1.cable", "disk1.power")
        numbers = breaker.arm(wanted, Now(), False)
        breaker.switch_all(tuple(zip(numbers, wanted, strict=True)), False)
        assert (cables.ports, mains.ports) == ({"1": False}, {"1": False})
        (switched,) = on_desk.recorded(ev.CutSwitched)
        acknowledged = edges(on_desk, "acknowledged")
        assert {edge.point for edge in acknowledged} == {"disk1.cable", "disk1.power"}
        assert switched.skew >= 0
        assert set(switched.switches) == {"cables", "mains"}
        for edge in acknowledged:
            assert edge.sent is not None
            assert edge.at is not None
            assert edge.sent <= edge.at
        line = narrate(switched)
        assert line is not None
        assert "cuts 1, 2: 2 ports off at once by cables, mains, skew" in line.words
        breaker.heal()
        assert (cables.ports, mains.ports) == ({"1": True}, {"1": True})


def test_one_outlet_of_two_points_is_switched_once_and_recorded_for_both(tmp_path: Path) -> None:
    shared = SHELF.replace('name = "mains"', 'name = "mains"\nshared = ["1"]').replace("mains.2", "mains.1")
    with shelf(tmp_path, shared) as (on_desk, _, mains):
        breaker = Breaker(on_desk.context)
        one, two = points(on_desk, "disk1.power", "disk2.power")
        assert one.victims == ("disk1", "disk2")
        breaker.switch_all(((1, one), (2, two)), False)
        assert mains.commands == [(("1",), False)]
        assert [(edge.cut, edge.point) for edge in edges(on_desk, "acknowledged")] == [
            (1, "disk1.power"),
            (2, "disk2.power"),
        ]
        assert on_desk.recorded(ev.CutSwitched) == [], "one port has no skew"
        assert breaker.heal() == {"disk1", "disk2"}
        assert mains.ports == {"1": True}
        assert [edge.cut for edge in edges(on_desk, "acknowledged", "on")] == [1, 2]


def test_a_switch_that_fails_while_others_have_cut_is_named_and_all_is_healed(tmp_path: Path) -> None:
    with shelf(tmp_path) as (on_desk, cables, mains):
        breaker = Breaker(on_desk.context)
        mains.broken["1"] = RigError("the relay board does not answer", hint="is it plugged in?")
        with (
            pytest.raises(RigError, match=r"1 of 2 switches failed: mains: the relay board does not answer") as caught,
            Injection(on_desk.context, breaker, cut(*points(on_desk, "disk1.cable", "disk1.power"))),
        ):
            raise AssertionError("the body must not run")
        assert caught.value.hint == "is it plugged in?"
        assert cables.ports == {"1": False}
        assert on_desk.recorded(ev.CutSwitched) == [], "there is no skew of what did not happen"
        mains.broken.clear()
        breaker.heal()
        assert (cables.ports, mains.ports) == ({"1": True}, {"1": True})
        (healed,) = on_desk.recorded(ev.Healed)
        assert (sorted(healed.ports), healed.ok) == (["cables.1", "mains.1"], True)


def test_all_switches_that_fail_are_named(tmp_path: Path) -> None:
    with shelf(tmp_path) as (on_desk, cables, mains):
        cables.broken["1"] = OSError(19, "No such device")
        mains.broken["1"] = RigError("no answer")
        one, two = points(on_desk, "disk1.cable", "disk1.power")
        with pytest.raises(RigError) as caught:
            Breaker(on_desk.context).switch_all(((1, one), (2, two)), False)
        assert "2 of 2 switches failed" in caught.value.what
        assert "mains: no answer" in caught.value.what
        assert "No such device" in caught.value.what


def test_a_restore_that_fails_is_tried_once_more_after_everything_else(tmp_path: Path) -> None:
    class Moody(Strip):
        def _command(self, port: str, on: bool) -> None:
            if on and self.commands.count(((port,), True)) < 2:
                raise RigError("not now")
            super()._command(port, on)

    with shelf(tmp_path) as (on_desk, cables, _):
        mains = on_desk.bench.others["mains"] = Moody("mains", Mechanism.MAINS)
        breaker = Breaker(on_desk.context)
        one, two = points(on_desk, "disk1.cable", "disk1.power")
        breaker.switch_all(((1, one), (2, two)), False)
        breaker.heal()
        assert mains.commands == [(("1",), False), (("1",), True), (("1",), True)]
        assert (cables.ports, mains.ports) == ({"1": True}, {"1": True})
        (healed,) = on_desk.recorded(ev.Healed)
        assert healed.ok
        assert healed.detail == ""


def test_a_port_that_reads_back_off_after_it_was_healed_is_not_healed(tmp_path: Path) -> None:
    with shelf(tmp_path) as (on_desk, cables, _):
        breaker = Breaker(on_desk.context)
        (point,) = points(on_desk, "disk1.cable")
        breaker.switch(1, point, False)
        cables.lying.add("1")
        assert breaker.heal() == frozenset()
        (healed,) = on_desk.recorded(ev.Healed)
        assert (healed.ok, healed.detail) == (False, "cables.1: it was switched on and reads back off")
        assert cables.commands.count((("1",), True)) == 2
        cables.lying.clear()
        assert breaker.heal() == {"disk1"}
        assert cables.ports == {"1": True}


def test_nothing_is_switched_when_not_all_can_be_put_on_record(tmp_path: Path) -> None:
    with shelf(tmp_path) as (on_desk, cables, mains):
        breaker = Breaker(on_desk.context)
        one, two = points(on_desk, "disk1.cable", "disk1.power")
        on_desk.recorder.close()
        with pytest.raises(RigError):
            breaker.switch_all(((1, one), (2, two)), False)
        assert (cables.commands, mains.commands) == ([], [])


class NeverMapped(DutClock):
    """The clock of a DUT whose listener comes to no exchange of clocks, however long a test takes."""

    def add(self, exchange: Exchange) -> None:
        pass


def test_a_dut_that_has_told_no_time_yet_keeps_nothing_off(tmp_path: Path) -> None:
    """After a lost connection the DUT is connected again, and its new agent's clock is not mapped at once."""
    with shelf(tmp_path) as (on_desk, cables, mains):
        breaker = Breaker(on_desk.context)
        one, two = points(on_desk, "disk1.cable", "disk1.power")
        breaker.switch_all(((1, one), (2, two)), False)
        on_desk.bench.link.clock = NeverMapped()
        breaker.heal()
        assert (cables.ports, mains.ports) == ({"1": True}, {"1": True})
        (healed,) = on_desk.recorded(ev.Healed)
        assert (healed.at, healed.ok) == (None, True)
        assert {edge.at for edge in edges(on_desk, "acknowledged", "on")} == {None}


def test_works_that_are_let_go_together_wait_for_each_other() -> None:
    met = threading.Barrier(3)
    seen: list[int] = []

    def work() -> None:
        seen.append(met.wait(PATIENCE))

    assert at_once({"a": work, "b": work, "c": work}) == {}
    assert sorted(seen) == [0, 1, 2]
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("switch-")]


def test_interrupted_it_lets_commands_under_way_end_first() -> None:
    """Else a port could be switched off after it was healed."""
    begun, release, done = threading.Event(), threading.Event(), threading.Event()

    def slow() -> None:
        begun.set()
        release.wait(PATIENCE)
        done.set()

    def interrupt() -> None:
        begun.wait(PATIENCE)
        os.kill(os.getpid(), signal.SIGINT)
        threading.Timer(0.2, release.set).start()

    threading.Thread(target=interrupt).start()
    with signals_raise(), pytest.raises(KeyboardInterrupt):
        at_once({"slow": slow, "quick": lambda: None})
    assert done.is_set()


# --- what a history of it says --------------------------------------------------------------------------------


def both(skew: float = 0.004, late: float = 0.03) -> Bench:
    """The healthy story, with the power of the victim cut ``late`` seconds after its cable, and restored as late."""
    bench = healthy()
    bench.replace(ev.CutArmed, group=1)
    (armed,) = [event for event in bench.events if isinstance(event, ev.CutArmed)]
    bench.add(ev.CutArmed(at=armed.at, cut=2, point="disk1.power", mechanism="mains", trigger="at once",
                          victims=armed.victims, group=1))  # fmt: skip
    states: tuple[tuple[ev.PortState, float], ...] = (("off", CUT), ("on", RESTORED))
    phases: tuple[tuple[ev.EdgePhase, float], ...] = (
        ("commanded", late),
        ("acknowledged", late + 0.01),
        ("read-back", late + 0.02),
    )
    for state, at in states:
        for phase, after in phases:
            bench.add(ev.Edge(at=at + after, cut=2, point="disk1.power", switch="mains", port="1", state=state,
                              phase=phase, error=0.002))  # fmt: skip
        bench.add(
            ev.CutSwitched(at=at + 0.05, cuts=(1, 2), state=state, switches=("cables", "mains"), ports=2, skew=skew)
        )
    return bench


def test_a_disks_cable_and_power_cut_at_once_are_one_cut_to_it() -> None:
    for late in (0.0, 0.03, 0.3):
        story = both(late=late).story()
        cable, power = cut_results(story)
        assert (cable.point, power.point) == ("disk1.cable", "disk1.power")
        assert (cable.group, power.group) == (1, 1)
        for each in (cable, power):
            assert (each.skew, each.restored_skew, each.kernel_skew) == (0.004, 0.004, 0.0)
            assert each.commanded_at == CUT, "the disk may go with the first command"
            assert each.restored_at == RESTORED + late, "and come back after the last"
            assert (each.disks[0].removed_at, each.returned_at) == (GONE, BACK)


def test_a_single_cut_has_no_skew() -> None:
    (cut,) = cut_results(healthy().story())
    assert (cut.group, cut.skew, cut.kernel_skew, cut.restored_skew) == (0, None, None, None)


def test_the_checks_take_it_for_one_cut() -> None:
    for check in (removed("disk1"), returned("disk1")):
        judgement = both(late=0.3).judge(check)
        assert (judgement.findings, judgement.unknowns) == ((), ())


def test_the_driver_tells_when_the_command_was_on_its_way() -> None:
    bench = healthy()
    bench.replace(ev.Edge, lambda edge: edge.phase == "acknowledged" and edge.state == "off", sent=CUT + 0.004)
    (cut,) = cut_results(bench.story())
    assert cut.commanded_at == CUT + 0.004


def without_read_back(bench: Bench) -> Bench:
    bench.drop(ev.Edge, lambda edge: edge.phase != "read-back")
    return bench


def test_without_read_back_the_evidence_says_so() -> None:
    said = "no read-back: verified by its effect alone"
    judgement = without_read_back(healthy()).judge(removed("disk1"))
    assert (judgement.findings, judgement.unknowns) == ((), ())
    assert judgement.worst == f"gone after 0.07 s (limit 1 s); {said}"
    (finding,) = without_read_back(healthy()).judge(removed("disk1", within=0.05)).findings
    assert finding.evidence == (f"cables port 1: {said}",)
    (finding,) = healthy().judge(removed("disk1", within=0.05)).findings
    assert finding.evidence == ()


def page_of(bench: Bench) -> str:
    history = History(stories=(bench.story(),))
    return render_html(judge_history(history), events_of(history.stories))


def test_the_report_gives_the_skew_with_the_times() -> None:
    page = page_of(both())
    assert "at once with 2, skew 4.0 ms" in page
    assert "at once with 1, skew 4.0 ms" in page
    assert "the kernel saw it and those made at once with it within 0.0 ms" in page
    assert "all were on again within 4.0 ms of each other" in page
    assert page.count("Kernel log around cut") == 1, "once for all that were made at once"
    assert "no read-back" not in page
    assert "no read-back: verified by its effect alone" in page_of(without_read_back(healthy()))
