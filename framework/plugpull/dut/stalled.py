"""A disk that answers no command until the kernel gives one up and recovers it."""

from __future__ import annotations

import time
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

from plugpull.dut.conversation.link import AgentGone
from plugpull.dut.conversation.translation import timers_set
from plugpull.dut.scenario_context import ScenarioContext
from plugpull.errors import NotServed, RigError
from plugpull.history import events as ev

TIMEOUT = 2
"""Seconds after which the kernel gives a command of the disk up meanwhile."""
ROUNDED = 1.1
"""Seconds by which it may be later: the block layer rounds up to the next 1.02 s at 250 Hz (block/blk-timeout.c,
``blk_round_jiffies``), and the abort begins 10 ms later (drivers/scsi/scsi_error.c, ``scsi_abort_command``)."""
LONGER = 0.3
"""Seconds for which the disk stands still after a command was given up, so that the abort finds it unanswered."""
FROZEN = 0.5
"""Seconds without an answer after which the agent stands still. An emulated DUT stands still from the abort on until
the disk answers, so that it need not stand still any longer."""
MOST = 5.0
"""Seconds after the timeout for which the disk stands still at most, if the kernel gives no command up."""
LOOKS_EVERY = 0.1
TRIES = 3
"""How often this is tried until a command was given up: a DUT that its host does not run does not see time pass."""
RECOVERED_WITHIN = 20.0
"""Seconds until the kernel has tried everything (``eh_timeout`` and ``eh_deadline`` in ``dut/agent/timers.py``)."""


class Stalled:
    """The disk stands still ``times`` times when the ``with`` block begins, and answers again inside it. At its end the
    kernel has recovered it, or has had the time to."""

    def __init__(self, context: ScenarioContext, disk: str, times: int) -> None:
        if not context.bench.can_stall:
            raise NotServed("nobody can make a disk of this rig stand still", hint="an emulated one can")
        self._context = context
        self._disk = disk
        self._times = times
        self._spans: list[tuple[float, float]] = []
        self._before: int | None = None
        self._last: int | None = None

    def __enter__(self) -> Self:
        context = self._context
        said = context.bench.link.call("stall", disk=context.identity(self._disk), seconds=TIMEOUT)
        context.recorder.record(timers_set(said, "stalled"))
        self._before = self._last = said["given_up"]
        try:
            for _ in range(TRIES):
                for _ in range(self._times):
                    self._stand_still()
                if self._before is None or self._given_up(30.0) != self._before:
                    break
            context.bench.link.call("stall.over", within=RECOVERED_WITHIN)
        except BaseException as error:
            with suppress(RigError):  # the first error is the one to report
                self._end(error)
            raise
        return self

    def _stand_still(self) -> None:
        context = self._context
        begin = context.now()
        try:
            context.bench.stall(self._disk, True)
            self._wait_given_up()
        finally:
            try:
                context.bench.stall(self._disk, False)
            finally:  # the kernel may have reported that it gave a command up, also if the bench is gone now
                self._spans.append((begin, context.now()))

    def _wait_given_up(self) -> None:
        """Wait until the kernel has given a command up and begun to abort it."""
        context = self._context
        if self._before is None:
            context.pause(TIMEOUT + ROUNDED + LONGER)
            return
        try:
            known = self._given_up(FROZEN)
            context.pause(TIMEOUT)
            deadline = time.monotonic() + MOST
            while time.monotonic() < deadline and self._given_up(FROZEN) == known:
                context.pause(LOOKS_EVERY)
        except AgentGone:
            if context.listener.lost:
                raise
            return  # it stands still
        context.pause(LONGER)

    def _given_up(self, within: float) -> int | None:
        said: int | None = self._context.bench.link.call("stall.given_up", within)
        self._last = self._last if said is None else said
        return said

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end(error)

    def _end(self, error: BaseException | None) -> None:
        context = self._context
        context.leaving(error)
        if context.listener.lost:
            self._record({})
            return
        try:
            said = context.bench.link.call("stall.end", RECOVERED_WITHIN + 10.0)
        except RigError:
            self._record({})
            raise
        context.recorder.record(timers_set(said, "stalled"))
        self._record(said)

    def _record(self, said: dict[str, Any]) -> None:
        if not self._spans:
            return
        given_up = said.get("given_up")
        given_up = self._last if given_up is None else given_up
        more = None if given_up is None or self._before is None else given_up - self._before
        self._context.recorder.record(
            ev.DiskStalled(
                at=self._spans[0][0],
                disk=self._disk,
                until=said.get("until", self._spans[-1][1]),
                spans=tuple(self._spans),
                timeout=TIMEOUT,
                given_up=more,
                disk_state=said.get("disk", ""),
                host_state=said.get("host", ""),
                worked=said.get("worked", False),
            )
        )
