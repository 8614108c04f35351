"""Makes up histories for the tests of reading, checks and judgement: a small bench whose every event is on record.

``Bench`` is three disks behind one hub under a sequential load, sampled every 50 ms. Its methods add what happens to
it; ``healthy()`` is the story of a cable cut that goes well, and each test changes the one thing it is about.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from plugpull.checks import Check, Judgement, data_intact, encode_check, kept_pace, kernel_clean, removed, returned
from plugpull.checks.reach import unreached
from plugpull.history import events as ev
from plugpull.history.counters import Counters
from plugpull.history.reader import Story, read_history

MB = 1_000_000
RATE = 20 * MB
SIZE = 64 << 20
DISKS = ("disk1", "disk2", "disk3")
VICTIM, SURVIVORS = "disk1", ("disk2", "disk3")
SETTLED, CUT, RESTORED, STOPPED, LAST = 12.0, 15.0, 17.0, 24.0, 26.0
GONE, BACK = CUT + 0.07, RESTORED + 1.21
"""DUT seconds at which things happen on the healthy bench."""
STEP = 0.05

Pace = Callable[[str, float], float]
"""Bytes per second of a disk at a time."""

RIG: dict[str, Any] = {
    "rig": {"name": "made-up"},
    "controller": [{"name": "usb", "ports": 8}],
    "hub": [{"name": "hub1", "at": "usb.1", "ports": 4}],
    "disk": [
        {"name": disk, "at": f"hub1.{port}", "serial": f"S-{disk}", "scratch": True}
        for port, disk in enumerate(DISKS, 1)
    ],
}


def steady(disk: str, at: float) -> float:
    return RATE


@dataclass
class Bench:
    """Collects events; ``story()`` puts them in order of time and adds the samples."""

    pace: Pace = steady
    checks: tuple[Check, ...] = ()
    mode: ev.LoadMode = "write"
    until: float = LAST
    starved: tuple[tuple[float, float], ...] = ()
    events: list[ev.Event] = field(default_factory=list)
    _attached: dict[str, list[tuple[float, float, str, int]]] = field(default_factory=dict)
    _sequence: int = 0

    def add(self, *events: ev.Event) -> None:
        self.events.extend(events)

    def attach(self, disk: str, at: float, **other: Any) -> None:
        port = DISKS.index(disk) + 1 if disk in DISKS else 4
        self._sequence += 1
        kname = other.pop("kname", f"sd{chr(ord('a') + port)}")
        usb = f"/sys/devices/pci0000:00/0000:00:05.0/usb1/1-1/1-1.{port}"
        known: dict[str, Any] = {
            "disk": disk,
            "kname": kname,
            "diskseq": self._sequence,
            "devt": f"8:{16 * port}",
            "serial": f"S-{disk}",
            "place": f"0000:00:05.0/1.{port}:0",
            "size": SIZE,
            "speed": "480",
            "sysfs": f"{usb}/1-1.{port}:1.0/host{port}/block/{kname}",
        }
        event = ev.DiskAttached(at=at, **(known | other))
        self.add(event, ev.KernelMessage(at=at, text=f"sd {port}:0:0:0: [{kname}] Attached SCSI disk"))
        self._attached.setdefault(disk, []).append((at, float("inf"), kname, self._sequence))

    def detach(self, disk: str, at: float) -> None:
        begin, _, kname, sequence = self._attached[disk].pop()
        self._attached[disk].append((begin, at, kname, sequence))
        port = DISKS.index(disk) + 1
        path = f"/devices/pci0000:00/0000:00:05.0/usb1/1-1/1-1.{port}"
        self.add(
            ev.KernelMessage(at=at - 0.02, text=f"usb 1-1.{port}: USB disconnect, device number 4"),
            ev.Uevent(at=at - 0.01, action="remove", subsystem="usb", devpath=path, disks=(disk,)),
            ev.DiskDetached(at=at, disk=disk, kname=kname, diskseq=sequence),
        )

    def switch(
        self, state: ev.PortState, at: float, *, cut: int = 1, agrees: bool | None = True, ack: bool = True
    ) -> None:
        def edge(phase: ev.EdgePhase, when: float, agrees: bool = True) -> ev.Edge:
            return ev.Edge(
                at=when,
                cut=cut,
                point=f"{VICTIM}.cable",
                switch="cables",
                port="1",
                state=state,
                phase=phase,
                agrees=agrees,
                error=0.002,
            )

        self.add(edge("commanded", at))
        if ack:
            self.add(edge("acknowledged", at + 0.01))
        if agrees is not None:
            self.add(edge("read-back", at + 0.02, agrees))

    def arm(self, at: float, *, cut: int = 1, victims: tuple[str, ...] = (VICTIM,), permanent: bool = False) -> None:
        self.add(
            ev.CutArmed(
                at=at,
                cut=cut,
                point=f"{VICTIM}.cable",
                mechanism="data",
                trigger="at once",
                victims=victims,
                permanent=permanent,
            )
        )

    def load(self, disk: str, begin: float, end: float | None, **ended: Any) -> None:
        self.add(
            ev.LoadBegun(at=begin, disk=disk, job=f"load-{disk}", mode=self.mode, block=65536, depth=4, span=1 << 20)
        )
        if end is not None:
            known: dict[str, Any] = {"asked": True, "asked_at": end - 0.3, "exit_status": 0}
            self.add(ev.LoadEnded(at=end, disk=disk, job=f"load-{disk}", **(known | ended)))

    def drop(self, kind: type[ev.Event], keep: Callable[[Any], bool] = lambda event: False) -> None:
        """Takes the events of one kind out of the story, apart from those to ``keep``."""
        self.events = [event for event in self.events if not isinstance(event, kind) or keep(event)]

    def replace(self, kind: type[ev.Event], of: Callable[[Any], bool] = lambda event: True, **changes: Any) -> None:
        self.events = [
            msgspec.structs.replace(event, **changes) if isinstance(event, kind) and of(event) else event
            for event in self.events
        ]

    def samples(self) -> list[ev.Event]:
        counters: dict[str, float] = dict.fromkeys(self._attached, 0.0)
        last: dict[str, int] = {}
        made: list[ev.Event] = []
        loads = {event.disk: event.at or 0.0 for event in self.events if isinstance(event, ev.LoadBegun)}
        ends = {
            event.disk: event.asked_at or event.at or 0.0 for event in self.events if isinstance(event, ev.LoadEnded)
        }
        for step in range(round((self.until - 10.0) / STEP)):
            at = round(10.0 + step * STEP, 6)
            row = {}
            for disk, attachments in self._attached.items():
                here = next((one for one in attachments if one[0] <= at < one[1]), None)
                if here is None:
                    continue
                if last.get(disk) != here[3]:
                    # What is read as it comes up, to know it.
                    counters[disk], last[disk] = 0.0 if self.mode != "read" else 4096.0, here[3]
                first = here is attachments[0]
                if first and disk in loads and loads[disk] <= at < ends.get(disk, self.until):
                    counters[disk] += self.pace(disk, at) * STEP
                done = int(counters[disk])
                read, written = (done, 0) if self.mode == "read" else (4096, done)
                row[here[2]] = Counters(here[3], read, written, 1 + (read >> 16), 1 + (written >> 16), 0, 0, 1)
            if any(begin < at < end for begin, end in self.starved):
                continue
            made.append(ev.Sampled(at=at, disks=row))
            if step % round(1 / STEP) == 0:
                made.append(ev.ClockMapped(at=at, controller=at + 600.0, error=0.002))
        return made

    def scenario(self, *, end: bool = True) -> list[ev.Event]:
        middle = sorted([*self.events, *self.samples()], key=lambda event: event.at or 0.0)
        begun = ev.ScenarioBegun(id="scenarios/test_cable.py::test_cut", wall="2030-01-01T00:00:01+00:00", seed=7)
        last: list[ev.Event] = [ev.Judged(at=LAST, checks=tuple(encode_check(check) for check in self.checks))]
        if end:
            wall = "2030-01-01T00:00:20+00:00"
            last.append(ev.ScenarioEnded(id=begun.id, wall=wall, seconds=16.0, split={"hold": 2.0}))
        return [begun, *middle, *last]

    def story(self) -> Story:
        events = self.scenario()
        begun = events[0]
        assert isinstance(begun, ev.ScenarioBegun)
        return Story(begun, tuple(events), rig=RIG)

    def judge(self, check: Check) -> Judgement:
        return check.judge(self.story())

    def unreached(self, check: Check) -> tuple[str, ...]:
        """What the check claims without the evidence for it."""
        story = self.story()
        return unreached(story, check.claims(story))


def healthy(
    *, pace: Pace = steady, mode: ev.LoadMode = "write", checks: Iterable[Check] | None = None, until: float = LAST
) -> Bench:
    """A cable is cut while all three disks are under load; its disk goes, comes back, and all is well."""
    bench = Bench(pace=pace, mode=mode, until=until, checks=tuple(all_checks() if checks is None else checks))
    bench.add(
        ev.DutReady(at=10.0, kernel="6.12.1", kind="virtual", how="restored", took=1.0, fio="fio-3.33"),
        ev.Phase(at=10.0, name="plug"),
    )
    for number, disk in enumerate(DISKS):
        bench.attach(disk, 10.4 + number / 10)
    bench.load(VICTIM, 11.0, CUT + 0.09, asked=False, asked_at=None, exit_status=1, errno=19, message="No such device")
    for disk in SURVIVORS:
        bench.load(disk, 11.0, STOPPED + 0.3)
    bench.add(ev.LoadSettled(at=SETTLED, disks=DISKS))
    bench.arm(14.9)
    bench.switch("off", CUT)
    bench.detach(VICTIM, GONE)
    bench.switch("on", RESTORED)
    bench.attach(VICTIM, BACK)
    for disk in DISKS:
        bench.add(ev.Verified(at=25.0, disk=disk, checked=SIZE if mode == "read" else 1 << 20))
    bench.add(ev.Residue(at=25.5))
    return bench


def all_checks() -> tuple[Check, ...]:
    return (removed(VICTIM), returned(VICTIM), kept_pace(SURVIVORS), data_intact(), kernel_clean())


def run_of(*scenarios: list[ev.Event]) -> list[ev.Event]:
    """A whole run of these scenarios."""
    begun = ev.RunBegun(
        version=ev.HISTORY_VERSION,
        plugpull="0.1.0",
        wall="2030-01-01T00:00:00+00:00",
        rig_name="made-up",
        rig=RIG,
        seed=7,
    )
    inside = [later(event, 100.0 * number) for number, scenario in enumerate(scenarios) for event in scenario]
    return [begun, *inside, ev.RunEnded(wall="2030-01-01T00:00:30+00:00")]


def later(event: ev.Event, seconds: float) -> ev.Event:
    """The same on the same DUT, restored from its snapshot so much later by the controller's clock."""
    if not isinstance(event, ev.ClockMapped):
        return event
    return msgspec.structs.replace(event, controller=event.controller + seconds)


def encode(events: Iterable[ev.Event]) -> bytes:
    return b"".join(msgspec.json.encode(event) + b"\n" for event in events)


def read_back(directory: Path, events: Iterable[ev.Event]) -> Story:
    """The first story of these events, by way of a file."""
    file = directory / "history.jsonl"
    file.write_bytes(encode(events))
    return read_history(file).stories[0]
