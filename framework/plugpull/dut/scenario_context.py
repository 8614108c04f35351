"""What the loads and faults of one scenario work with: the rig, its bench, and the history."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from random import Random
from typing import Literal

from plugpull.dut.bench import Bench
from plugpull.dut.conversation.link import AgentGone
from plugpull.dut.listener import Listener
from plugpull.errors import RigError, UsageError
from plugpull.history import events as ev
from plugpull.history.recorder import Recorder
from plugpull.interrupts import signals_held
from plugpull.rig.model import Disk, Rig
from plugpull.rig.topology import Topology
from plugpull.streams import DATA, Streams

Predicate = Callable[[ev.Event], bool]

LIFTED = 16 << 20
"""Bytes per second of an emulated disk or a shared rate while nothing is timed. An emulated guest moves little more;
without any limit, md would check a small array between two looks at it."""
HURRIED = 4 << 20
"""The same while a load runs whose pace nobody judges. It is lower because the load becomes faster as well, and takes
more of the guest's processors."""


@dataclass
class ScenarioContext:
    """The rig, the bench and the history of one scenario. Times are DUT seconds unless noted otherwise."""

    rig: Rig
    topology: Topology
    bench: Bench
    listener: Listener
    recorder: Recorder
    streams: Streams
    """Where random choices come from."""
    split: dict[str, float] = field(default_factory=dict)
    restore: Callable[[], object] = lambda: None
    """Turns on every port that a cut of this scenario has turned off. Never raises. The breaker sets it."""
    promised: dict[str, Callable[[], bool]] = field(default_factory=dict)
    """For each disk that stamps are written to: whether something was made durable on it since that began."""
    flushing: dict[str, Callable[[], bool]] = field(default_factory=dict)
    """For each disk that stamps are written to: whether a flush of it is under way."""
    busy: list[Callable[[], bool]] = field(default_factory=list)
    """For each load of the scenario: whether it runs."""
    timed: list[Callable[[], bool]] = field(default_factory=list)
    """For each load of the scenario: whether it runs and has a baseline, by which its pace is judged."""
    _phase: tuple[str, float] = ("", 0.0)
    _untimed: bool = False

    @property
    def random(self) -> Random:
        """What loads draw from: the stream for data."""
        return self.streams.of(DATA)

    @property
    def kernel(self) -> str:
        """The release of Linux that the DUT runs, as it said when it was ready; empty before that."""
        ready = (event for event in reversed(self.recorder.since(0)) if isinstance(event, ev.DutReady))
        return next((event.kernel for event in ready), "")

    def now(self) -> float:
        return self.bench.link.clock.now()[0]

    def moment(self) -> tuple[float, float]:
        """(DUT time, bound on its error) of this instant on the controller."""
        return self.bench.link.clock.now()

    def phase(self, name: ev.PhaseName | Literal[""], text: str = "") -> None:
        """Record what comes next; the time until the next phase is counted to it. An empty ``name``: nothing does."""
        now = time.monotonic()
        before, begun = self._phase
        if before:
            self.split[before] = self.split.get(before, 0.0) + now - begun
        self._phase = (name, now)
        if name:
            self.recorder.record(ev.Phase(at=self.now(), name=name, text=text))

    @contextmanager
    def untimed(self) -> Iterator[None]:
        """A step whose time is not judged: for its length emulated disks may be faster than their rates, unless a load
        runs beside it whose pace is judged. Raises RigError."""
        if self._untimed or any(runs() for runs in self.timed):
            yield
            return
        self._untimed = True
        try:
            self._lift_rates(HURRIED if any(runs() for runs in self.busy) else LIFTED)
            yield
        except BaseException:
            with suppress(RigError):  # the first error says more
                self._lift_rates(None)
            raise
        else:
            self._lift_rates(None)
        finally:
            self._untimed = False

    def _lift_rates(self, to: int | None) -> None:
        self.bench.lift_rates(to)
        if self.rig.dut.kind == "virtual":
            self.recorder.record(ev.RatesLifted(at=self.now(), to=to))

    def wait_for(self, predicate: Predicate, timeout: float, *, since: int | None = None) -> ev.Event | None:
        """The first event that satisfies ``predicate``; None at the deadline. Raises AgentGone when none can come
        any more."""
        if self.listener.lost:
            raise AgentGone(self.listener.lost)
        found = self.recorder.wait_for(lambda e: isinstance(e, ev.AgentLost) or predicate(e), timeout, since=since)
        if isinstance(found, ev.AgentLost):
            raise AgentGone(self.listener.lost or found.why)
        return found

    def pause(self, seconds: float) -> None:
        """Wait for ``seconds``. Raises AgentGone if the DUT dies meanwhile."""
        self.wait_for(lambda event: False, seconds)

    def leaving(self, error: BaseException | None) -> None:
        """Call this first when a step ends with ``error``, before a load is stopped or a filesystem is unmounted.

        Those take their time. If a signal ends the run, power is restored here."""
        if isinstance(error, KeyboardInterrupt | SystemExit):
            with signals_held(then_raise=False):  # the exception is on its way already
                self.restore()

    def disk(self, name: str) -> Disk:
        for disk in self.rig.disk:
            if disk.name == name:
                return disk
        raise UsageError(f"the rig has no disk named {name!r}")

    def identity(self, name: str) -> dict[str, object]:
        """What the agent's scratch guard has to find on the opened descriptor before anything is written.

        Raises UsageError for a disk that is not declared scratch, RigError for one that is not attached.
        """
        disk = self.disk(name)
        if not disk.scratch:
            raise UsageError(
                f"{name} is not declared scratch, so nothing may be written to it",
                hint=f"write scratch = true in its [[disk]] table of the rig file if it may be "
                f"erased (serial {disk.serial})",
            )
        attached = self.bench.disk_table.attached(name)
        if attached is None:
            raise RigError(
                f"{name} is not attached", hint=f"is the disk with serial {disk.serial} plugged in and powered?"
            )
        return {
            "kname": attached.kname,
            "diskseq": attached.diskseq,
            "serial": disk.serial,
            "place": self.bench.disk_table.places.get(name, attached.place),
            "size": disk.size,
            "sockets": list(self.bench.disk_table.sockets.get(name, ())),
            "erase_members": disk.erase_members,
        }

    def wait_attached(self, names: tuple[str, ...], timeout: float) -> tuple[str, ...]:
        """Wait until all of these disks are on the kernel's list; those still missing at the deadline."""
        deadline = time.monotonic() + timeout
        # Marked before looking: a disk that comes in between must not be waited for.
        mark = self.recorder.mark()
        missing = self._missing(names)
        while missing:
            left = deadline - time.monotonic()
            if left <= 0 or self.wait_for(lambda e: isinstance(e, ev.DiskAttached), left, since=mark) is None:
                return self._missing(names)
            mark = self.recorder.mark()
            missing = self._missing(names)
        return ()

    def _missing(self, names: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(name for name in names if self.bench.disk_table.attached(name) is None)
