"""The DUT with fewer processors, for faults that need several, or one."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from plugpull.dut.scenario_context import ScenarioContext
from plugpull.history import events as ev


class Processors:
    """Lets only ``count`` processors of the DUT run for the length of the ``with`` block."""

    def __init__(self, context: ScenarioContext, count: int) -> None:
        self._context = context
        self._count = count

    def __enter__(self) -> Self:
        said = self._context.bench.link.call("processors", count=self._count)
        self._note(f"{said['online']} of {said['of']} processors run")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._context.leaving(error)
        if not self._context.listener.lost:
            self._context.bench.link.call("processors", count=0)
            self._note("all processors run")

    def _note(self, text: str) -> None:
        self._context.recorder.record(ev.Note(at=self._context.now(), text=text))
