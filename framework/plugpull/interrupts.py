"""What signals do while something is off: they end it as Ctrl-C does, and wait while power is put back."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

_ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


@contextmanager
def signals_raise() -> Iterator[None]:
    """SIGTERM ends a run as Ctrl-C does: as an exception that unwinds everything. SIGHUP too, unless whoever started it
    has it ignored (nohup(1))."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt(f"ended by {signal.Signals(number).name}")

    kept = {signal.SIGHUP} if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN else set()
    before = {number: signal.signal(number, interrupt) for number in _ENDING if number not in kept}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def signals_held(*, then_raise: bool = True) -> Iterator[None]:
    """While the bench is healed and put away, a signal waits: that takes seconds and must not be cut short."""
    waiting: list[int] = []

    def hold(number: int, frame: FrameType | None) -> None:
        if not waiting:
            print("plugpull: putting the bench away first; this takes a few seconds", file=sys.stderr)
        waiting.append(number)

    before: dict[int, Any] = {number: signal.signal(number, hold) for number in _ENDING}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if waiting and then_raise:
            raise KeyboardInterrupt(f"ended by {signal.Signals(waiting[0]).name}")
