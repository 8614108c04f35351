"""Triggers and cuts: when, in words; every edge put on record; and power that comes back whatever happens."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
from desks import Desk, described, desk

from plugpull.errors import PlugpullError, RigError, UsageError
from plugpull.faults import after, at_random, cut, kernel_says
from plugpull.faults import triggers as triggers_module
from plugpull.faults.breaker import Breaker
from plugpull.faults.injection import Injection
from plugpull.faults.triggers import Moved, Now, StepBegins, Trigger
from plugpull.history import events as ev
from plugpull.rig.topology import CutPoint


@pytest.mark.parametrize(
    ("trigger", "text"),
    [
        (Now(), "at once"),
        (after(2), "after 2 s"),
        (after(0), "after 0 s"),
        (at_random(0.1, 0.5), "at random within 0.1 to 0.5 s"),
        (at_random(1, 1), "at random within 1 to 1 s"),
        (kernel_says("reset .* USB"), "the kernel logs /reset .* USB/"),
        (Moved("disk1", 32 << 20), "32 MiB moved on disk1"),
    ],
)
def test_a_trigger_says_when_in_words(trigger: Trigger, text: str) -> None:
    assert trigger.text() == text


@pytest.mark.parametrize(
    "make",
    [
        lambda: after(-1),
        lambda: after(float("nan")),
        lambda: after(float("inf")),
        lambda: at_random(2, 1),
        lambda: at_random(-1, 1),
        lambda: at_random(0, float("nan")),
        lambda: kernel_says("(unclosed"),
    ],
)
def test_a_moment_that_cannot_come_is_refused_before_anything_is_done(make: Any) -> None:
    with pytest.raises(UsageError):
        make()


def test_at_random_is_repeated_by_the_seed(tmp_path: Path) -> None:
    said = []
    for _ in range(2):
        with desk(tmp_path) as on_desk:
            said.append([at_random(0, 0.02).wait(on_desk.context) for _ in range(3)])
    assert said[0] == said[1]
    assert len(set(said[0])) == 3
    assert said[0][0].endswith("(at random within 0 to 0.02 s)")


def test_the_kernels_words_are_waited_for_from_now_on(tmp_path: Path) -> None:
    def says(text: str, number: int) -> dict[str, Any]:
        return {"ev": "kmsg", "at": 1.0, "level": 6, "seq": number, "text": text}

    with desk(tmp_path) as on_desk:
        on_desk.report(says("usb 1-1: reset high-speed USB device", 1))
        on_desk.wait_for(ev.KernelMessage)
        happened = threading.Event()

        def wait() -> None:
            kernel_says("reset .* USB").wait(on_desk.context)
            happened.set()

        waiting = threading.Thread(target=wait, daemon=True)
        waiting.start()
        assert not happened.wait(0.2), "what was said before does not count"
        number = 2
        while not happened.wait(0.05):  # it may not be listening yet
            on_desk.report(says("usb 1-1: reset SuperSpeed USB device", number))
            number += 1
            assert number < 1000
        waiting.join()


def test_a_step_is_counted_from_the_scenarios_begin_and_on_one_disk(tmp_path: Path) -> None:
    def begins(disk: str, step: str, at: float) -> dict[str, Any]:
        return {"ev": "step.begin", "at": at, "disk": disk, "step": step}

    when = StepBegins("disk1", "mount", 2, at_random(0, 0.01))
    assert when.text() == "the mount of disk1 begins, and at random within 0 to 0.01 s after that"
    with desk(tmp_path) as on_desk:
        for number, (disk, step) in enumerate([("disk1", "mount"), ("disk1", "umount"), ("disk2", "mount")]):
            on_desk.report(begins(disk, step, 1.0 + number))
        on_desk.wait_for(ev.StepBegun)
        happened: list[str] = []
        waiting = threading.Thread(target=lambda: happened.append(when.wait(on_desk.context)), daemon=True)
        waiting.start()
        waiting.join(0.3)
        assert happened == [], "the first mount does not count, nor does that of another disk"
        on_desk.report(begins("disk1", "mount", 5.0))
        waiting.join(30)
        assert happened[0].startswith("the mount of disk1 began, and after 0.00")


def test_a_step_that_never_begins_is_the_benchs_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(triggers_module, "TRIGGER_DEADLINE", 0.05)
    with desk(tmp_path) as on_desk, pytest.raises(RigError, match="no umount of disk1 began within"):
        StepBegins("disk1", "umount", 1, at_random(0, 0.01)).wait(on_desk.context)


def sample(moved: int, kname: str = "sda", diskseq: int = 7) -> dict[str, Any]:
    stat = f"0 0 {moved // 512} 0 0 0 0 0 0 0 0 0 0"
    return {"ev": "sample", "at": 1.0, "disks": {kname: [diskseq, stat]}}


def test_bytes_moved_are_counted_from_the_loads_begin_and_on_one_attachment(tmp_path: Path) -> None:
    with desk(tmp_path) as on_desk:
        on_desk.report({"ev": "disk.add", "at": 0.5, "disk": described()})
        on_desk.report(sample(8 << 20))
        on_desk.wait_for(ev.Sampled)
        on_desk.context.phase("load")
        for moved in (8, 8.5):
            on_desk.report(sample(int(moved * (1 << 20))))
        on_desk.recorder.record(ev.LoadBegun(disk="disk1", job="load", mode="write", block=4096, depth=1, span=1 << 20))
        on_desk.report(sample(99 << 20, diskseq=6))  # another disk had this name
        on_desk.report(sample(99 << 20, kname="sdb"))
        on_desk.wait_for(ev.Sampled, of=lambda e: "sdb" in e.disks)
        small, large = Moved("disk1", 1 << 19), Moved("disk1", 1 << 20)
        assert small.wait(on_desk.context) == "512 KiB moved on disk1"
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(triggers_module, "TRIGGER_DEADLINE", 0.1)
            with pytest.raises(RigError, match=r"disk1 did not move 1 MiB within 0\.1 s, so nothing was cut"):
                large.wait(on_desk.context)


# --- cuts -------------------------------------------------------------------------------------------------------------


def points(on_desk: Desk) -> tuple[CutPoint, ...]:
    known = on_desk.context.topology.cut_points()
    return known["disk1.cable"], known["disk2.cable"]


def cut_of(on_desk: Desk, breaker: Breaker, *which: CutPoint, permanent: bool = False) -> Injection:
    return Injection(on_desk.context, breaker, cut(*which, permanent=permanent))


def test_every_edge_is_commanded_acknowledged_and_read_back(tmp_path: Path) -> None:
    with desk(tmp_path) as on_desk:
        first, _ = points(on_desk)
        breaker = Breaker(on_desk.context)
        with cut_of(on_desk, breaker, first):
            assert on_desk.bench.cables.ports == {"1": False}
            on_desk.attach(1)
        edges = [(edge.state, edge.phase, edge.agrees) for edge in on_desk.recorded(ev.Edge)]
        phases = ("commanded", "acknowledged", "read-back")
        assert edges == [(state, phase, True) for state in ("off", "on") for phase in phases]
        (armed,) = on_desk.recorded(ev.CutArmed)
        assert (armed.point, armed.mechanism, armed.trigger, armed.victims) == (
            "disk1.cable",
            "data",
            "at once",
            ("disk1",),
        )
        times = [edge.at for edge in on_desk.recorded(ev.Edge)]
        assert None not in times
        breaker.heal()
        assert on_desk.recorded(ev.Healed) == [], "nothing was off"


def test_a_switch_that_disagrees_is_put_on_record_and_one_that_cannot_say_is_not_asked(tmp_path: Path) -> None:
    with desk(tmp_path) as on_desk:
        first, second = points(on_desk)
        breaker = Breaker(on_desk.context)
        on_desk.bench.cables.lying.add("1")
        breaker.switch(1, first, False)
        on_desk.bench.cables.readable = False
        breaker.switch(2, second, False)
        said = [(edge.cut, edge.phase, edge.agrees) for edge in on_desk.recorded(ev.Edge)]
        assert said == [
            (1, "commanded", True),
            (1, "acknowledged", True),
            (1, "read-back", False),
            (2, "commanded", True),
            (2, "acknowledged", True),
        ]


def test_a_scenario_that_raises_during_a_cut_is_healed_after_it(tmp_path: Path) -> None:
    with desk(tmp_path) as on_desk:
        breaker = Breaker(on_desk.context)
        with pytest.raises(ZeroDivisionError), cut_of(on_desk, breaker, *points(on_desk)):
            raise ZeroDivisionError
        assert on_desk.bench.cables.ports == {"1": False, "2": False}
        breaker.heal()
        assert on_desk.bench.cables.ports == {"1": True, "2": True}
        (healed,) = on_desk.recorded(ev.Healed)
        assert (healed.ports, healed.ok) == (("cables.1", "cables.2"), True)


def test_a_permanent_cut_lasts_until_it_is_healed(tmp_path: Path) -> None:
    with desk(tmp_path) as on_desk:
        breaker = Breaker(on_desk.context)
        with cut_of(on_desk, breaker, points(on_desk)[0], permanent=True):
            pass
        assert on_desk.bench.cables.ports == {"1": False}
        breaker.heal()
        assert on_desk.bench.cables.ports == {"1": True}


@pytest.mark.parametrize(
    "failure", [RigError("relay board does not answer"), OSError(19, "No such device")], ids=["rig", "driver"]
)
def test_one_port_that_cannot_be_healed_does_not_keep_the_others_off(tmp_path: Path, failure: Exception) -> None:
    with desk(tmp_path) as on_desk:
        first, second = points(on_desk)
        breaker = Breaker(on_desk.context)
        breaker.switch(1, first, False)
        breaker.switch(2, second, False)
        on_desk.bench.cables.broken["1"] = failure
        breaker.heal()
        assert on_desk.bench.cables.ports == {"1": False, "2": True}
        (healed,) = on_desk.recorded(ev.Healed)
        assert not healed.ok
        assert healed.detail.startswith("cables.1: ")
        assert (failure.what if isinstance(failure, PlugpullError) else "No such device") in healed.detail
        on_desk.bench.cables.broken.clear()
        breaker.heal()
        assert on_desk.bench.cables.ports == {"1": True, "2": True}


def test_a_cut_whose_switch_fails_halfway_is_healed(tmp_path: Path) -> None:
    with desk(tmp_path) as on_desk:
        breaker = Breaker(on_desk.context)
        on_desk.bench.cables.broken["2"] = RigError("relay board does not answer")
        with pytest.raises(RigError, match="relay board"), cut_of(on_desk, breaker, *points(on_desk)):
            raise AssertionError("the body must not run")
        on_desk.bench.cables.broken.clear()
        breaker.heal()
        assert on_desk.bench.cables.ports == {"1": True, "2": True}


def test_a_history_that_cannot_be_written_keeps_nothing_off_and_cuts_nothing(tmp_path: Path) -> None:
    with desk(tmp_path) as on_desk:
        first, second = points(on_desk)
        breaker = Breaker(on_desk.context)
        breaker.switch(1, first, False)
        on_desk.recorder.close()  # as final as a full disk
        with pytest.raises(RigError):
            breaker.switch(2, second, False)
        assert "2" not in on_desk.bench.cables.ports, "what cannot be put on record is not cut"
        breaker.heal()
        assert on_desk.bench.cables.ports["1"] is True
