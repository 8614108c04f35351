"""Shelly plugs and relays that measure power, of both generations.

From the second generation on: ``GET /rpc/Switch.GetStatus?id=0`` (``PM1``, ``EM1``) has ``apower`` (``act_power``) in
W, ``voltage`` in V, ``current`` in A and ``aenergy.total`` in Wh; models without a meter leave them out
(https://shelly-api-docs.shelly.cloud/gen2/). The first generation: ``GET /meter/0`` has ``power`` in W, ``is_valid``
and ``total`` in watt-minutes (https://shelly-api-docs.shelly.cloud/gen1/). ``GET /shelly`` needs no password; its
``gen`` is missing in the first generation. Values are about a second old, and can stand still for long while the load
is steady.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from pydantic import Field

from plugpull.meters.base import (
    DeviceMeter,
    MeterCapabilities,
    MeterContext,
    NoReading,
    PowerValue,
    Progress,
)
from plugpull.meters.kinds import MeterKind
from plugpull.meters.web import WebDevice, WebOptions, decoded, refuse_dut
from plugpull.switches.base import Identity

AGE = 1.0
"""Seconds that a value can be old (measured by users: about 1 s)."""
CLOCK = 90.0
"""Seconds that the time of the energy counter may stand still: it is updated once per minute."""
METHODS = {"switch": "Switch", "pm1": "PM1", "em1": "EM1"}
WH, WATT_MINUTE = 3600.0, 60.0
"""Joules."""


class ShellyOptions(WebOptions):
    """Keys of a Shelly."""

    channel: Annotated[int, Field(ge=0, le=15)] = 0
    """Which of its outputs."""
    component: Literal["switch", "pm1", "em1"] = "switch"
    """The part that measures, from the second generation on: an output, or a meter without one."""


class _Energy(msgspec.Struct):
    total: float | None = None
    minute_ts: int | None = None


class _Status(msgspec.Struct):
    id: int
    apower: float | None = None
    act_power: float | None = None
    voltage: float | None = None
    current: float | None = None
    aenergy: _Energy | None = None
    errors: tuple[str, ...] = ()


class _OldMeter(msgspec.Struct):
    power: float
    is_valid: bool
    timestamp: int | None = None
    total: float | None = None


class _About(msgspec.Struct):
    gen: int = 1
    model: str = ""
    type: str = ""


class Shelly(DeviceMeter):
    """A Shelly. Which generation it is of is found out with the first reading."""

    def __init__(self, context: MeterContext, options: ShellyOptions) -> None:
        refuse_dut(context)
        self._device = WebDevice(options)
        self._options = options
        self._generation = 0
        self._clock = Progress(CLOCK)
        identity = Identity("shelly", "Shelly", place=self._device.place)
        super().__init__(context, identity, MeterCapabilities(rate=1.0, age=AGE, resolution=0.1))

    def _measure(self, deadline: float) -> PowerValue:
        if not self._generation:
            about = decoded(self._device.get("/shelly", deadline), _About)
            model = about.model or about.type
            self.identity = Identity("shelly", f"Shelly {model}".strip()[:60], place=self._device.place)
            self._generation = about.gen
        return self._old(deadline) if self._generation == 1 else self._new(deadline)

    def _new(self, deadline: float) -> PowerValue:
        channel, component = self._options.channel, METHODS[self._options.component]
        said = decoded(self._device.get(f"/rpc/{component}.GetStatus?id={channel}", deadline), _Status)
        if said.errors:
            raise NoReading(f"it reports an error: {self._device.text_of(', '.join(said.errors))}")
        if said.id != channel:
            raise NoReading(f"it answers for channel {said.id}, not {channel}")
        watts = said.apower if said.act_power is None else said.act_power
        if watts is None:
            raise NoReading(f"it has no power meter on channel {channel}")
        energy = said.aenergy or _Energy()
        self._clock.check(energy.minute_ts, "the time of its energy counter")
        return PowerValue(watts, said.voltage, said.current, None if energy.total is None else energy.total * WH)

    def _old(self, deadline: float) -> PowerValue:
        said = decoded(self._device.get(f"/meter/{self._options.channel}", deadline, basic=True), _OldMeter)
        if not said.is_valid:
            raise NoReading("it says that its measurement is not valid")
        self._clock.check(said.timestamp or None, "its time")  # 0: its clock is not set
        return PowerValue(said.power, joules=None if said.total is None else said.total * WATT_MINUTE)


KIND = MeterKind("shelly", "Shelly plugs and relays that measure power", ShellyOptions, Shelly, "mains")
