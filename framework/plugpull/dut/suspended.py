"""A DUT whose devices are suspended while something else happens."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from plugpull.dut.scenario_context import ScenarioContext
from plugpull.errors import NotServed, RigError
from plugpull.history import events as ev

ASLEEP = 1.0
"""Seconds after the request in which the kernel freezes its processes and suspends its devices."""


class Suspended:
    """Suspends the DUT's devices when the ``with`` block begins. It wakes by itself after ``seconds``, and the block
    ends when it is awake."""

    def __init__(self, context: ScenarioContext, seconds: int) -> None:
        self._context = context
        self._seconds = seconds
        self._asked_at = 0.0

    def __enter__(self) -> Self:
        self._asked_at = self._context.now()
        self._context.listener.let_sleep(self._seconds + ASLEEP)
        if not self._context.bench.link.call("suspend", seconds=self._seconds):
            raise NotServed("the DUT's kernel cannot test suspending", hint="it needs CONFIG_PM_SLEEP_DEBUG")
        self._context.pause(ASLEEP)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        context = self._context
        context.leaving(error)
        if context.listener.lost:
            # It was asked to, so what its kernel said meanwhile is explained, whatever became of the agent.
            until, why = self._asked_at + ASLEEP + self._seconds, "when it woke is not known: its agent fell silent"
            context.recorder.record(ev.DutSuspended(at=self._asked_at, until=until, ok=False, detail=why))
            return
        said = context.bench.link.call("suspend.end", 90.0)
        slept = ev.DutSuspended(at=said["begun"], until=said["until"], ok=said["ok"], detail=said["why"])
        context.recorder.record(slept)
        if kind is None and not said["ok"]:
            raise RigError(f"the DUT was not suspended: {said['why'] or 'it is not awake yet'}", hint="see kernel.log")
