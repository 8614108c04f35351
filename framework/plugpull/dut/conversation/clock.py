"""The controller's clock mapped onto the DUT's, with a bound on the error.

One exchange: the controller notes its time, asks the agent for CLOCK_MONOTONIC, and notes its time again. The DUT's
answer belongs to an instant between the two, so half the round trip bounds the error (Cristian, 1989).
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass

from plugpull.errors import RigError
from plugpull.history.events.dut import CLOCK_DRIFT


class ClockNotMapped(RigError):
    """No exchange with the agent has taken place yet."""


@dataclass(frozen=True)
class Exchange:
    """One exchange: the controller's times of sending and receiving, and the DUT's time in between, seconds."""

    sent: float
    received: float
    dut: float

    @property
    def middle(self) -> float:
        return (self.sent + self.received) / 2

    def error_at(self, moment: float) -> float:
        half = (self.received - self.sent) / 2
        # The answer may be as much as half the round trip away from the middle, and drifts over that too.
        return half + CLOCK_DRIFT * (abs(moment - self.middle) + half)


class DutClock:
    """Collects exchanges and maps with whichever bounds the error best at the moment asked for."""

    def __init__(self, keep: int = 64) -> None:
        self._exchanges: list[Exchange] = []
        self._keep = keep
        self._lock = threading.Lock()

    def add(self, exchange: Exchange) -> None:
        with self._lock:
            self._exchanges = [*self._exchanges, exchange][-self._keep :]

    @property
    def mapped(self) -> bool:
        return bool(self._exchanges)

    def at(self, controller: float) -> tuple[float, float]:
        """(DUT time, bound on its error) of a controller time, both in seconds. Raises ClockNotMapped before the
        first exchange."""
        with self._lock:
            exchanges = self._exchanges
        if not exchanges:
            raise ClockNotMapped("the DUT's clock is not mapped yet")
        best = min(exchanges, key=lambda exchange: exchange.error_at(controller))
        return best.dut + (controller - best.middle), best.error_at(controller)

    def now(self) -> tuple[float, float]:
        return self.at(time.monotonic())
