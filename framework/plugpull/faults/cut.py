"""Making a cut, and mending it: every edge commanded, acknowledged, read back and put on record."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from types import TracebackType

from plugpull.dut.stage import Stage
from plugpull.errors import RigError
from plugpull.faults.triggers import Now, Trigger
from plugpull.history import events as ev
from plugpull.rig.topology import CutPoint

SEEN_WITHIN = 5.0
"""Seconds the cut waits for the kernel to take the victims off its list. Afterwards the checks say what that means."""
BACK_WITHIN = 20.0
"""Seconds the cut waits, once mended, for its victims to be back. Likewise."""


class Breaker:
    """Switches cut points of one scenario and remembers which are off, so that all can be healed."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._off: dict[str, tuple[int, CutPoint]] = {}
        self._cuts = 0

    def arm(self, points: tuple[CutPoint, ...], trigger: Trigger, permanent: bool) -> tuple[int, ...]:
        """Put the cuts on record before anything is done; their numbers."""
        numbers = []
        for point in points:
            self._cuts += 1
            numbers.append(self._cuts)
            self._stage.recorder.record(
                ev.CutArmed(
                    at=self._stage.now(),
                    cut=self._cuts,
                    point=point.name,
                    mechanism=point.mechanism.value,
                    trigger=trigger.text(),
                    victims=point.victims,
                    permanent=permanent,
                )
            )
        return tuple(numbers)

    def switch(self, cut: int, point: CutPoint, on: bool) -> None:
        """One edge. Raises RigError if the switch fails; a read-back that disagrees is put on record for the checks.

        Nothing is cut that cannot be put on record first; power comes back all the same.
        """
        switch = self._stage.bench.switch(point.switch)
        if not on:
            # Before the command: a failure halfway must find the port on the list of what has to be healed.
            self._off[point.outlet] = (cut, point)
        try:
            self._record(cut, point, on, "commanded", True)
        except RigError:
            if on:
                switch.set(point.port, True)
                self._off.pop(point.outlet, None)
            raise
        switch.set(point.port, on)
        self._record(cut, point, on, "acknowledged", True)
        state = switch.read(point.port)
        if state is not None:
            self._record(cut, point, on, "read-back", state == on)
        if on:
            self._off.pop(point.outlet, None)

    def _record(self, cut: int, point: CutPoint, on: bool, phase: str, agrees: bool) -> None:
        at, error = self._stage.moment()
        self._stage.recorder.record(
            ev.Edge(
                at=at,
                cut=cut,
                point=point.name,
                switch=point.switch,
                port=point.port,
                state="on" if on else "off",
                phase=phase,
                agrees=agrees,
                error=error,
            )
        )

    def heal(self) -> None:
        """Turn on whatever is off. Never raises: what fails is put on record and the rest is healed all the same."""
        if not self._off:
            return
        failed = []
        outlets = tuple(self._off)
        for cut, point in list(self._off.values()):
            try:
                self.switch(cut, point, True)
            except RigError as error:
                failed.append(f"{point.outlet}: {error.what}")
            except Exception as error:
                failed.append(f"{point.outlet}: {error!r}")
        healed = ev.Healed(at=self._stage.now(), ports=outlets, ok=not failed, detail="; ".join(failed))
        with suppress(RigError):  # the recorder keeps its failure and raises it again when it is closed
            self._stage.recorder.record(healed)


class Cut:
    """A cut that holds for the length of a ``with`` block; a permanent one until the scenario ends."""

    def __init__(
        self, stage: Stage, breaker: Breaker, points: Iterable[CutPoint], when: Trigger | None, permanent: bool
    ) -> None:
        self._stage = stage
        self._breaker = breaker
        self.points = tuple(points)
        self._trigger: Trigger = when or Now()
        self._permanent = permanent
        self.victims = tuple(dict.fromkeys(victim for point in self.points for victim in point.victims))
        self._numbers: tuple[int, ...] = ()

    def __enter__(self) -> Cut:
        stage = self._stage
        self._numbers = self._breaker.arm(self.points, self._trigger, self._permanent)
        stage.phase("armed", f"cut {', '.join(p.name for p in self.points)}: {self._trigger.text()}")
        happened = self._trigger.wait(stage)
        if happened != self._trigger.text():
            stage.recorder.record(ev.Note(at=stage.now(), text=f"trigger: {happened}", subject=self.points[0].name))
        stage.phase("cut")
        mark = stage.recorder.mark()
        for number, point in zip(self._numbers, self.points, strict=True):
            self._breaker.switch(number, point, False)
        stage.wait_detached(self.victims, SEEN_WITHIN, since=mark)
        stage.phase("hold")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._permanent or kind is not None:
            return  # what is still off is healed when the scenario ends
        self._stage.phase("return")
        for number, point in zip(self._numbers, self.points, strict=True):
            self._breaker.switch(number, point, True)
        self._stage.wait_attached(self.victims, BACK_WITHIN)
