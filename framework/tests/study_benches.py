"""Makes up the histories of studies: a synthetic rig on which a design was measured, sampled every 0.1 s."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from synthetic_rigs import SyntheticRig

from plugpull.checks import Check, Judgement, encode_check
from plugpull.checks.reach import unreached
from plugpull.history import events as ev
from plugpull.history.counters import Counters
from plugpull.history.story import Story
from plugpull.judging.results import Conclusion
from plugpull.load.designs import Condition, Design, interleaved
from plugpull.load.timed import length_of

STEP = 0.1
AROUND, RAMP = 0.8, 0.5
"""Seconds of a load beside its measurement, and those of them that come before it."""
BLOCK = 64 << 10
MB = 1e6


@dataclass
class StudyBench:
    """``story(check)`` is the history of a study. Change ``events`` for what goes wrong."""

    rig: SyntheticRig
    design: Design[str]
    repeats: int = 5
    table: dict[str, Any] = field(default_factory=dict)
    """The rig file, as data."""
    stalled: Sequence[int] = ()
    """The numbers of the measurements in which nothing moves."""
    deaf: Sequence[int] = ()
    """The numbers of the measurements during which the sampler is not heard."""
    speed: str = "480"
    pace: Callable[[str, float], float] = lambda disk, since: 1.0
    """The share of its rate that a disk has some seconds after its measurement began."""

    begin: float = 10.0
    """DUT seconds at which the first load is started."""
    cpus: tuple[float, float] | None = None
    """CPUs in use without a load and with one, of 2; ``None``: not counted."""
    process: float = 0.0
    """Per cent of a CPU that fio uses."""

    written: float = 0.0
    """Bytes that each disk has written before."""

    def __post_init__(self) -> None:
        self.events: list[ev.Event] = [*self._attached(), *self._trials()]

    def _attached(self) -> list[ev.Event]:
        return [
            ev.DutReady(
                at=9.0,
                kernel="6.1",
                kind=self.table.get("dut", {}).get("kind", "virtual"),
                cpus=2,
                how="restored",
                took=1.0,
            ),
            *(
                ev.DiskAttached(
                    at=9.5,
                    disk=name,
                    kname=_kname(number),
                    diskseq=number + 1,
                    devt=f"8:{16 * number}",
                    serial=f"S-{name}",
                    place=f"0000:00:05.0/{number + 1}:0",
                    size=64 << 20,
                    speed=self.speed,
                )
                for number, name in enumerate(self.rig.names)
            ),
        ]

    def _kind(self) -> ev.DutKind:
        return "ssh" if self.table.get("dut", {}).get("kind") == "ssh" else "virtual"

    def _trials(self) -> list[ev.Event]:
        made: list[ev.Event] = []
        counters = {name: [0.0, self.written] for name in self.rig.names}
        order = list(interleaved(self.design, self.repeats, random.Random("order")))
        begin = self.begin
        made += self._idle()
        for number, (repeat, condition) in enumerate(order, 1):
            length = length_of(condition, virtual=True)
            made += self._trial(number, len(order), repeat, condition, begin, length, counters)
            begin = round(begin + AROUND + length, 6)
        return [*made, *(_outside(begin, name, counters[name]) for name in self.rig.names)]

    def _trial(
        self,
        number: int,
        planned: int,
        repeat: int,
        condition: Condition[str],
        begin: float,
        length: float,
        counters: dict[str, list[float]],
    ) -> list[ev.Event]:
        places = [self.rig.names.index(name) for name in condition.disks]
        rates = {} if number in self.stalled else self.rig.run(places)
        made: list[ev.Event] = []
        mode = condition.pattern.mode
        assert mode != "idle"
        for name in condition.disks:
            job = f"measure{number}-{name}"
            argv = ("fio", "--name=measure")
            made.append(
                ev.LoadBegun(at=begin, disk=name, job=job, mode=mode, block=BLOCK, depth=4, span=64 << 20, argv=argv)
            )
        before = {name: _whole(counters[name]) for name in condition.disks}
        steps = round((AROUND + length) / STEP)
        for step in range(steps):
            at = round(begin + step * STEP, 6)
            if number not in self.deaf or not begin + RAMP < at < begin + RAMP + length:
                made.append(ev.Sampled(at=at, disks=_row(self.rig, counters), cpu=self._cpu(at)))
            for name, rate in rates.items() if step < steps - 1 else ():
                counters[name][mode == "write"] += rate * self.pace(name, at - begin - RAMP) * STEP
        moved = {
            name: (after[0] - before[name][0], after[1] - before[name][1])
            for name in condition.disks
            if (after := _whole(counters[name]))
        }
        start = round(begin + RAMP, 6)
        end = round(start + length, 6)
        measured = self._measured(number, planned, repeat, condition, start, end)
        return [*made, measured, *self._ended(number, end, moved)]

    def _measured(
        self, number: int, planned: int, repeat: int, condition: Condition[str], begin: float, end: float
    ) -> ev.Measured:
        mode = condition.pattern.mode
        assert mode != "idle"
        return ev.Measured(
            at=end,
            begin=begin,
            disks=condition.disks,
            mode=mode,
            block=BLOCK,
            depth=4,
            number=number,
            planned=planned,
            repeat=repeat,
            repeats=self.repeats,
        )

    def _ended(self, number: int, end: float, moved: dict[str, tuple[int, int]]) -> list[ev.Event]:
        """The ends of the loads, which ``moved`` so many bytes: (read, written) by disk."""
        return [
            ev.LoadEnded(
                at=end + 0.2,
                asked_at=end + 0.1,
                disk=name,
                job=f"measure{number}-{name}",
                asked=True,
                usr_cpu=self.process,
                read_bytes=read,
                written_bytes=written,
            )
            for name, (read, written) in moved.items()
        ]

    def _idle(self) -> list[ev.Event]:
        still = {name: [0.0, self.written] for name in self.rig.names}
        times = [round(9.6 + step * STEP, 6) for step in range(round((self.begin - 9.6) / STEP))]
        return [ev.Sampled(at=at, disks=_row(self.rig, still), cpu=self._cpu(at)) for at in times]

    def _cpu(self, at: float) -> tuple[int, int]:
        """(busy, total) jiffies since boot, of 2 CPUs; counted once per second."""
        if self.cpus is None or round(at / STEP) % 10:
            return (0, 0)
        idle, busy = self.cpus
        used = idle * min(at, self.begin) + busy * max(0.0, at - self.begin)
        return round(used * 100), round(at * 200)

    def story(self, *checks: Check) -> Story:
        """The history, in order of time."""
        begun = ev.ScenarioBegun(id="scenarios/test_study.py::test_study", wall="2030-01-01T00:00:01+00:00", seed=7)
        middle = sorted(self.events, key=lambda event: event.at or 0.0)
        last = (middle[-1].at or 0.0) + 1.0
        judged = ev.Judged(at=last, checks=tuple(encode_check(check) for check in checks))
        ended = ev.ScenarioEnded(at=last, id=begun.id, wall="2030-01-01T00:09:00+00:00", seconds=last)
        return Story(begun, (begun, *middle, judged, ended), rig=self._rig_file())

    def _rig_file(self) -> dict[str, Any]:
        disks = [
            {"name": name, "at": f"usb.{number}", "serial": f"S-{name}", "scratch": True}
            for number, name in enumerate(self.rig.names, 1)
        ]
        return {"dut": {"kind": "virtual"}, "controller": [{"name": "usb", "ports": 15}], "disk": disks} | self.table


def _kname(number: int) -> str:
    return f"sd{chr(ord('b') + number)}"


def _whole(counts: Sequence[float]) -> tuple[int, int]:
    """(read, written): counters count whole requests."""
    read, written = (int(count) // BLOCK * BLOCK for count in counts)
    return read, written


def _outside(at: float, name: str, counts: Sequence[float]) -> ev.CountedOutside:
    read, written = _whole(counts)
    return ev.CountedOutside(at=at, disk=name, read_bytes=read, written_bytes=written)


def _row(rig: SyntheticRig, counters: dict[str, list[float]]) -> dict[str, Counters]:
    row = {}
    for number, name in enumerate(rig.names):
        read, written = _whole(counters[name])
        row[_kname(number)] = Counters(number + 1, read, written, read // BLOCK, written // BLOCK, 0, 0, 1)
    return row


def writing(design: Design[str]) -> Design[str]:
    """Only what is written of a design."""
    return tuple(condition for condition in design if condition.pattern.mode == "write")


def a_rig(
    rates: Sequence[float], *limits: tuple[Sequence[int], float], noise: float = 0.01, seed: object = 0
) -> SyntheticRig:
    """A synthetic rig with rates and limits in MB/s."""
    limited = [(members, limit * MB) for members, limit in limits]
    return SyntheticRig([rate * MB for rate in rates], limited, noise=noise, seed=seed)


def judged(bench: StudyBench, check: Check) -> Judgement:
    """The judgement of a study that has all its evidence."""
    story = bench.story(check)
    assert unreached(story, check.claims(story)) == ()
    return check.judge(story)


def kinds(found: Judgement) -> list[tuple[str, str]]:
    """Kind and subject of each conclusion."""
    return [(one.kind, one.subject) for one in found.conclusions]


def only(found: Judgement, kind: str) -> Conclusion:
    """The one conclusion of this kind."""
    (one,) = [one for one in found.conclusions if one.kind == kind]
    return one
