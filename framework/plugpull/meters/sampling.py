"""Reads meters again and again while a scenario runs, and records every reading."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress

from plugpull.errors import PlugpullError, RigError
from plugpull.history.events import Event, MeterOpened, PowerSampled
from plugpull.meters.base import Meter, PowerReading
from plugpull.rig.model import DeclaredMeter

RETRY = 5.0
"""Seconds until a meter that cannot be opened is tried again."""
LEAVING = 2.0
"""Seconds beyond its own deadline that a meter gets to end."""

Moment = Callable[[float], tuple[float, float]]
"""(DUT time, bound on its error) of a time of the controller's ``time.monotonic()``. Raises RigError."""


class MeterSampling:
    """A thread for each meter, from ``start`` to ``stop``.

    A meter that fails does not accuse the DUT and does not end the scenario: its readings have no watts.
    """

    def __init__(
        self,
        meters: Iterable[DeclaredMeter],
        open_one: Callable[[DeclaredMeter], Meter],
        record: Callable[[Event], None],
        moment: Moment,
    ) -> None:
        self._meters = tuple(meters)
        self._open = open_one
        self._record = record
        self._moment = moment
        self._stop = threading.Event()
        self._threads: list[threading.Thread] = []

    def start(self) -> None:
        """Begin to read."""
        for declared in self._meters:
            thread = threading.Thread(target=self._run, args=(declared,), name=f"meter {declared.name}", daemon=True)
            self._threads.append(thread)
            thread.start()

    def stop(self) -> None:
        """Read no more. May be called twice."""
        self._stop.set()
        for declared, thread in zip(self._meters, self._threads, strict=False):
            thread.join(declared.timeout + LEAVING)

    def _run(self, declared: DeclaredMeter) -> None:
        # The recorder keeps its failure and raises it where somebody can act on it.
        with suppress(RigError):
            while not self._stop.is_set():
                meter = self._opened(declared)
                if meter is None:
                    self._stop.wait(RETRY)
                    continue
                try:
                    self._read(declared, meter)
                finally:
                    with suppress(Exception):  # a driver may raise anything
                        meter.close()

    def _opened(self, declared: DeclaredMeter) -> Meter | None:
        begun = time.monotonic()
        try:
            meter = self._open(declared)
        except PlugpullError as error:
            self._note(declared, PowerReading(begun, 0.0, None, error.what))
            return None
        except Exception as error:
            self._note(declared, PowerReading(begun, 0.0, None, f"its driver failed: {error!r:.100}"))
            return None
        at, _ = self._moment(time.monotonic())
        can = meter.capabilities
        self._record(
            MeterOpened(
                at=at,
                meter=declared.name,
                driver=declared.driver,
                disks=declared.disks,
                side=declared.side,
                rate=declared.rate or can.rate,
                device=str(meter.identity),
                age=can.age,
                resolution=can.resolution,
                synthetic=can.synthetic,
            )
        )
        return meter

    def _read(self, declared: DeclaredMeter, meter: Meter) -> None:
        """Read until the end. Returns early if the driver itself fails: then it is opened again."""
        interval = 1 / (declared.rate or meter.capabilities.rate)
        due = time.monotonic()
        while not self._stop.wait(max(0.0, due - time.monotonic())):
            due = max(due + interval, time.monotonic())
            try:
                reading = meter.read()
            except Exception as error:  # a driver may raise anything
                now = time.monotonic()
                self._note(declared, PowerReading(now, 0.0, None, f"its driver failed: {error!r:.100}"))
                self._stop.wait(RETRY)
                return
            if not self._stop.is_set():
                self._note(declared, reading)

    def _note(self, declared: DeclaredMeter, reading: PowerReading) -> None:
        at, error = self._moment(reading.at)
        power = reading.power
        self._record(
            PowerSampled(
                at=at,
                meter=declared.name,
                uncertainty=reading.uncertainty + error,
                watts=None if power is None else power.watts,
                volts=None if power is None else power.volts,
                amps=None if power is None else power.amps,
                joules=None if power is None else power.joules,
                why=reading.why,
            )
        )
