"""What every power meter can do, and the base class that drivers share."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from plugpull.errors import PlugpullError, RigError
from plugpull.rig.credentials import without_userinfo
from plugpull.rig.mistakes import quote
from plugpull.rig.model import MeterSide
from plugpull.switches.base import Identity
from plugpull.switches.host import Closing, Host

MOST: Mapping[MeterSide, float] = {"usb": 240.0, "mains": 4000.0}
"""Watts that a meter on this side can read at most: 48 V at 5 A over USB (USB PD 3.1, EPR), and 16 A at 240 V behind a
socket, with some room. More is not a measurement."""
LONGEST_REASON = 200
"""Characters of the reason why there is no reading."""


class NoReading(RigError):
    """A meter has no usable value at this moment. ``what`` is a clause for messages. It never ends anything."""


@dataclass(frozen=True)
class MeterCapabilities:
    """What a meter can do. It decides what its readings can show."""

    rate: float
    """Readings per second that make sense: faster ones would only repeat values."""
    age: float = 0.0
    """Seconds that a value can be old when the device sends it, at most."""
    resolution: float = 0.0
    """Watts; 0 if it is not known."""
    synthetic: bool = False
    """Its watts are computed from what the disks do. Nothing is measured."""


@dataclass(frozen=True)
class PowerValue:
    """What a meter says: watts, and if it has them volts, amperes, and its own energy counter in joules."""

    watts: float
    volts: float | None = None
    amps: float | None = None
    joules: float | None = None


@dataclass(frozen=True)
class PowerReading:
    """One reading: what, when, and how sure.

    ``at`` is the middle of the request, in seconds of the controller's ``time.monotonic()``; the value belongs to an
    instant at most ``uncertainty`` seconds away. ``power`` is ``None`` if there is no usable value, and ``why`` says
    the reason then: a missing reading is never 0 W.
    """

    at: float
    uncertainty: float
    power: PowerValue | None
    why: str = ""


class Meter(Protocol):
    """A device that measures the power which disks draw.

    ``read`` returns within the meter's deadline and does not raise: a device that does not answer, or answers nonsense,
    gives a reading without ``power``. ``close`` may be called twice.
    """

    @property
    def name(self) -> str:
        """Its name in the rig file."""
        ...

    @property
    def capabilities(self) -> MeterCapabilities:
        """What it can do."""
        ...

    @property
    def identity(self) -> Identity:
        """Which device it is, for messages and the record of the run."""
        ...

    def read(self) -> PowerReading:
        """Ask the device for the power at this moment."""
        ...

    def close(self) -> None:
        """Release the device. May be called twice."""
        ...


class DiskWork(NamedTuple):
    """What one disk does: bytes per second, and whether it has requests to work on."""

    rate: float
    busy: bool


class DiskActivity(Protocol):
    """What the disks of a virtual bench do, for the meter that computes watts from it."""

    def rates(self, disks: tuple[str, ...]) -> tuple[float, Mapping[str, DiskWork | None]]:
        """What each disk does, ``None`` for one that is not attached; and the controller's time to which that belongs,
        seconds of ``time.monotonic()``. Raises ``NoReading`` if it is not known."""
        ...

    def attached_for(self, disk: str) -> float | None:
        """Seconds since the disk was attached. ``None`` if it is not."""
        ...


@dataclass(frozen=True)
class MeterContext:
    """What a driver is opened with, apart from the keys of its own."""

    name: str
    side: MeterSide
    disks: tuple[str, ...]
    host: Host
    timeout: float = 2.0
    """Seconds the device gets for one reading."""
    activity: DiskActivity | None = None
    """Only during a run on a virtual bench."""


class DeviceMeter(Closing):
    """The base of drivers: name, deadline, times, and the rejection of impossible values.

    A driver implements ``_measure``, and ``close`` if there is something to release.
    """

    capabilities: MeterCapabilities
    identity: Identity

    def __init__(self, context: MeterContext, identity: Identity, capabilities: MeterCapabilities) -> None:
        self._context = context
        self.identity = identity
        self.capabilities = capabilities

    @property
    def name(self) -> str:
        return self._context.name

    def close(self) -> None:
        """Release the device. By default there is nothing to release."""

    def read(self) -> PowerReading:
        begun = time.monotonic()
        power, why = None, ""
        try:
            power = self._measure(begun + self._context.timeout)
            why = impossible_power(power, self._context.side)
        except PlugpullError as error:
            why = error.what
        half = (time.monotonic() - begun) / 2
        return PowerReading(
            begun + half, half + self.capabilities.age, None if why else power, without_userinfo(why)[:LONGEST_REASON]
        )

    def _measure(self, deadline: float) -> PowerValue:
        """Ask the device. ``deadline`` is in seconds of ``time.monotonic()``. Raises NoReading and RigError."""
        raise NotImplementedError


def impossible_power(power: PowerValue, side: MeterSide) -> str:
    """Why this cannot be a measurement; empty if it can."""
    for what, value in (("watts", power.watts), ("volts", power.volts), ("amperes", power.amps)):
        if value is not None and not math.isfinite(value):
            return f"it says {value} {what}"
    if power.joules is not None and not (math.isfinite(power.joules) and power.joules >= 0):
        return f"its energy counter says {power.joules}"
    if power.watts < 0:
        return f"it says {power.watts:g} W, and disks do not feed power back: is it connected the wrong way round?"
    if power.watts > MOST[side]:
        return f"it says {power.watts:g} W, more than the {MOST[side]:g} W that are possible on the {side} side"
    return ""


def device_text(text: object) -> str:
    """Text from a device for a message: in quotes, on one line, not endless."""
    return quote(str(text)[:LONGEST_REASON])


@dataclass
class Progress:
    """Notices that a device repeats an old answer: something in it that has to change, such as its clock, stands still.

    ``limit`` is how many seconds it may stand still.
    """

    limit: float
    _value: object = None
    _since: float = field(default=0.0)

    def check(self, value: object, what: str) -> None:
        """Note the value of this answer. Raises ``NoReading`` if it has not changed for too long."""
        now = time.monotonic()
        if value is None or value != self._value:
            self._value, self._since = value, now
        elif now - self._since > self.limit:
            raise NoReading(f"it repeats an old answer: {what} has been {device_text(value)} for over {self.limit:g} s")
