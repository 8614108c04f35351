"""A disk that the kernel recovers again and again while something else happens."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from plugpull.dut.scenario_context import ScenarioContext
from plugpull.errors import NotServed, RigError
from plugpull.history import events as ev


class Recovering:
    """Has the DUT's kernel reset one disk as its error handler does, for the length of the ``with`` block."""

    def __init__(self, context: ScenarioContext, disk: str) -> None:
        self._context = context
        self._disk = disk

    def __enter__(self) -> Self:
        cannot = self._context.bench.link.call("recover", disk=self._context.identity(self._disk))
        if cannot:
            raise NotServed(
                f"the kernel cannot be asked to reset {self._disk}: {cannot}", hint="a disk on USB can be reset"
            )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        context = self._context
        context.leaving(error)
        if context.listener.lost:
            return
        said = context.bench.link.call("recover.end", 90.0)
        context.recorder.record(
            ev.DiskRecovered(
                at=said["begun"],
                disk=self._disk,
                until=said["until"],
                resets=said["resets"],
                failed=said["failed"],
                detail=said["why"],
            )
        )
        if kind is None and not said["resets"]:
            raise RigError(
                f"the kernel did not recover {self._disk}: {said['why'] or 'its reset took longer than the cut'}",
                hint="its driver has no error handler that can be asked to reset a disk; take another disk",
            )
