"""A DUT whose devices are suspended while something else happens."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Self

from plugpull.dut.listener import SLEEPING
from plugpull.dut.scenario_context import ScenarioContext
from plugpull.errors import NotServed, RigError
from plugpull.history import events as ev

ASLEEP = 1.0
"""Seconds after the request in which the kernel freezes its processes and suspends its devices."""
ENDED_WITHIN = 90.0
"""Seconds until an agent that is awake must say how long it slept."""
LOOKED = 0.1
"""Seconds between two looks whether it is awake."""


class Suspended:
    """Suspends the DUT's devices when the ``with`` block begins. It wakes by itself after ``seconds``, and the block
    ends when it is awake."""

    def __init__(self, context: ScenarioContext, seconds: int) -> None:
        self._context = context
        self._seconds = seconds
        self._asked_at = 0.0
        self._recorded = False
        self._flushed: dict[str, int] = {}

    def __enter__(self) -> Self:
        why = self._context.bench.harmed_by_sleep(self._context.kernel)
        if why:
            raise NotServed(why, hint="it may sleep on a rig without hubs")
        self._flushed = dict(self._context.bench.flushes())
        self._asked_at = self._context.now()
        self._context.listener.let_sleep(self._seconds + ASLEEP)
        if not self._context.bench.link.call("suspend", seconds=self._seconds):
            raise NotServed("the DUT's kernel cannot test suspending", hint="it needs CONFIG_PM_SLEEP_DEBUG")
        self._context.pause(ASLEEP)
        return self

    def wait_awake(self) -> None:
        """Wait until the DUT is awake. How long that takes depends on how busy its host is, and on what was cut
        meanwhile. Raises RigError if it does not wake, or was not suspended."""
        context = self._context
        deadline = time.monotonic() + SLEEPING
        while context.listener.asleep and time.monotonic() < deadline:
            context.pause(LOOKED)
        said = context.bench.link.call("suspend.end", ENDED_WITHIN)
        flushed = context.bench.flushes()
        slept = ev.DutSuspended(
            at=said["begun"],
            until=said["until"],
            ok=said["ok"],
            detail=said["why"],
            flushes={disk: flushed[disk] - many for disk, many in self._flushed.items() if disk in flushed},
        )
        context.recorder.record(slept)
        self._recorded = True
        if not said["ok"]:
            raise RigError(f"the DUT was not suspended: {said['why'] or 'it is not awake yet'}", hint="see kernel.log")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        context = self._context
        context.leaving(error)
        if self._recorded:
            return
        if context.listener.lost:
            self._record_unknown("its agent fell silent")
            return
        try:
            self.wait_awake()
        except RigError as why:
            if not self._recorded:
                self._record_unknown(why.what)
            if kind is None:  # else the error that ended the block is the one to report
                raise

    def _record_unknown(self, why: str) -> None:
        """It was asked to sleep, so what its kernel said meanwhile is explained, whatever became of the agent."""
        until, detail = self._asked_at + ASLEEP + self._seconds, f"when it woke is not known: {why}"
        self._context.recorder.record(ev.DutSuspended(at=self._asked_at, until=until, ok=False, detail=detail))
