"""Makes up the histories of studies of tasks: fio's figures of a rig with a known truth, sampled every 0.1 s."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from plugpull.checks import Check, Judgement, encode_check
from plugpull.checks.reach import unreached
from plugpull.history import events as ev
from plugpull.history.counters import Counters
from plugpull.history.story import Story
from plugpull.load.designs import in_rounds
from plugpull.load.tasks import FioTask

STEP = 0.1
MB = 1e6
Figures = Callable[[FioTask[str], str, int, random.Random], ev.FioFigures]
"""What fio reports of a task on a disk in a round."""
Paused = Callable[[str, str, int, float], bool]
"""Whether a disk completes nothing in a task's round, some seconds after it began."""


@dataclass
class TaskBench:
    """``story(check)`` is the history of a study. Change ``events`` for what goes wrong."""

    disks: Sequence[str]
    tasks: Sequence[FioTask[str]]
    figures: Figures
    repeats: int = 5
    length: float = 3.0
    table: dict[str, Any] = field(default_factory=dict)
    """The rig file, as data."""
    paused: Paused = lambda task, disk, repeat, since: False
    deaf: Sequence[int] = ()
    """The numbers of the tasks during which the sampler is not heard."""
    speed: str = "480"
    seed: object = 0
    begin: float = 10.0

    def __post_init__(self) -> None:
        self.events: list[ev.Event] = [
            ev.DutReady(at=9.0, kernel="6.1", kind=self._kind, cpus=2, how="restored", took=1.0),
            *(self._attached(number, name) for number, name in enumerate(self.disks)),
        ]
        draw, at, done = random.Random(f"{self.seed}"), self.begin, dict.fromkeys(self.disks, 0)
        order = list(in_rounds(tuple(self.tasks), self.repeats, random.Random("order")))
        for number, (repeat, task) in enumerate(order, 1):
            self._run(number, len(order), repeat, task, at, draw, done)
            at = round(at + self.length + 0.5, 6)

    @property
    def _kind(self) -> ev.DutKind:
        return "ssh" if self.table.get("dut", {}).get("kind") == "ssh" else "virtual"

    def _attached(self, number: int, name: str) -> ev.DiskAttached:
        return ev.DiskAttached(
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

    def _run(
        self,
        number: int,
        planned: int,
        repeat: int,
        task: FioTask[str],
        begin: float,
        draw: random.Random,
        done: dict[str, int],
    ) -> None:
        figures = {disk: self.figures(task, disk, repeat, draw) for disk in task.disks}
        self._switch_caches(task, begin)
        end = round(begin + self.length, 6)
        for step in range(round((self.length + 0.5) / STEP)):
            at, working = round(begin + step * STEP, 6), step * STEP < self.length
            row = {}
            for place, disk in enumerate(self.disks):
                stands = not working or disk not in figures or self.paused(task.name, disk, repeat, step * STEP)
                done[disk] += not stands
                busy = int(working and disk in figures)
                row[_kname(place)] = Counters(place + 1, 0, done[disk] << 16, 0, done[disk], 0, busy, 1)
            if number not in self.deaf or not working:
                self.events.append(ev.Sampled(at=at, disks=row))
        self.events.append(
            ev.FioRan(
                at=end,
                begin=begin,
                task=task.name,
                disks=tuple(task.disks),
                mode=task.mode,
                block=task.block,
                depth=task.depth,
                number=number,
                planned=planned,
                repeat=repeat,
                repeats=self.repeats,
                figures=figures,
                drive_cache=task.drive_cache,
            )
        )

    def _switch_caches(self, task: FioTask[str], begin: float) -> None:
        for disk in task.disks if task.drive_cache is not None else ():
            self.events.append(
                ev.DriveCacheSwitched(at=begin - 0.3, until=begin - 0.1, disk=disk, on=bool(task.drive_cache))
            )

    def story(self, *checks: Check) -> Story:
        """The history, in order of time."""
        begun = ev.ScenarioBegun(id="scenarios/test_task.py::test_task", wall="2030-01-01T00:00:01+00:00", seed=7)
        middle = sorted(self.events, key=lambda event: event.at or 0.0)
        last = (middle[-1].at or 0.0) + 1.0
        judged = ev.Judged(at=last, checks=tuple(encode_check(check) for check in checks))
        ended = ev.ScenarioEnded(at=last, id=begun.id, wall="2030-01-01T00:09:00+00:00", seconds=last)
        return Story(begun, (begun, *middle, judged, ended), rig=self._rig_file())

    def _rig_file(self) -> dict[str, Any]:
        disks = [
            {"name": name, "at": f"usb.{number}", "serial": f"S-{name}", "scratch": True}
            for number, name in enumerate(self.disks, 1)
        ]
        return {"dut": {"kind": "virtual"}, "controller": [{"name": "usb", "ports": 15}], "disk": disks} | self.table


def judged(bench: TaskBench, check: Check) -> Judgement:
    """The judgement of a study that has all its evidence."""
    story = bench.story(check)
    assert unreached(story, check.claims(story)) == ()
    return check.judge(story)


def rated(disks: Sequence[str], rate: float) -> list[dict[str, Any]]:
    """The disks of a rig file, each with the same rate in bytes per second."""
    return [
        {"name": name, "at": f"usb.{number}", "serial": f"S-{name}", "scratch": True, "rate": rate}
        for number, name in enumerate(disks, 1)
    ]


def _kname(number: int) -> str:
    return f"sd{chr(ord('b') + number)}"
