"""Making a cut, and mending it."""

from __future__ import annotations

from collections.abc import Iterable
from types import TracebackType

from plugpull.dut.scenario_context import ScenarioContext
from plugpull.faults.breaker import Breaker
from plugpull.faults.triggers import Now, Trigger
from plugpull.history import events as ev
from plugpull.rig.topology import CutPoint

__all__ = ["Breaker", "Cut"]

SEEN_WITHIN = 5.0
"""Seconds the cut waits for the kernel to take the victims off its list. Afterwards the checks say what that means."""
BACK_WITHIN = 20.0
"""Seconds the cut waits, once mended, for its victims to be back. Likewise."""


class Cut:
    """A cut that holds for the length of a ``with`` block; a permanent one until the scenario ends.

    Several points are cut, and mended, at once.
    """

    def __init__(
        self,
        context: ScenarioContext,
        breaker: Breaker,
        points: Iterable[CutPoint],
        when: Trigger | None,
        permanent: bool,
    ) -> None:
        self._context = context
        self._breaker = breaker
        self.points = tuple(points)
        self._trigger: Trigger = when or Now()
        self._permanent = permanent
        self.victims = tuple(dict.fromkeys(victim for point in self.points for victim in point.victims))
        self._numbers: tuple[int, ...] = ()

    def __enter__(self) -> Cut:
        context = self._context
        self._numbers = self._breaker.arm(self.points, self._trigger, self._permanent)
        context.phase("armed", f"cut {', '.join(p.name for p in self.points)}: {self._trigger.text()}")
        happened = self._trigger.wait(context)
        if happened != self._trigger.text():
            context.recorder.record(ev.Note(at=context.now(), text=f"trigger: {happened}", subject=self.points[0].name))
        context.phase("cut")
        mark = context.recorder.mark()
        try:
            self._switch(False)
            context.wait_detached(self.victims, SEEN_WITHIN, since=mark)
            context.phase("hold")
        except BaseException as error:
            context.leaving(error)
            raise
        return self

    def _switch(self, on: bool) -> None:
        self._breaker.switch_all(tuple(zip(self._numbers, self.points, strict=True)), on)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._context.leaving(error)
        if self._permanent or kind is not None:
            return  # what is still off is healed when the scenario ends
        self._context.phase("return")
        self._switch(True)
        self._context.wait_attached(self.victims, BACK_WITHIN)
