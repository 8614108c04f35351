"""Plugs with Tasmota, or with OpenBeken, which answers in the same way.

``GET /cm?cmnd=Status%208`` has ``StatusSNS.ENERGY`` with ``Power`` in W, ``Voltage`` in V, ``Current`` in A and
``Total`` in kWh, lists for devices with several channels, and the device's time; old versions call it ``StatusPWR``
(https://tasmota.github.io/docs/Commands/). Power has no decimals unless ``WattRes`` is set. A device with a password
answers ``WARNING`` without it.
"""

from __future__ import annotations

from typing import Annotated
from urllib.parse import quote_plus

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
"""Seconds that a value can be old: the driver reads its chip every second."""
CLOCK = 5.0
"""Seconds that the device's time, which has seconds, may stand still."""
KWH = 3.6e6
"""Joules."""

Figure = float | list[float] | None
"""A number, or one for each channel."""


class TasmotaOptions(WebOptions):
    """Keys of a plug with Tasmota."""

    channel: Annotated[int, Field(ge=0, le=31)] = 0
    """Which of its channels, if it measures several."""


class _Figures(msgspec.Struct):
    power: Figure = msgspec.field(name="Power", default=None)
    voltage: Figure = msgspec.field(name="Voltage", default=None)
    current: Figure = msgspec.field(name="Current", default=None)
    total: Figure = msgspec.field(name="Total", default=None)


class _Sensors(msgspec.Struct):
    time: str | None = msgspec.field(name="Time", default=None)
    energy: _Figures | None = msgspec.field(name="ENERGY", default=None)


class _Status(msgspec.Struct):
    sensors: _Sensors | None = msgspec.field(name="StatusSNS", default=None)
    power: _Figures | None = msgspec.field(name="StatusPWR", default=None)
    warning: str | None = msgspec.field(name="WARNING", default=None)


class Tasmota(DeviceMeter):
    def __init__(self, context: MeterContext, options: TasmotaOptions) -> None:
        refuse_dut(context)
        self._device = WebDevice(options)
        self._options = options
        self._clock = Progress(CLOCK)
        identity = Identity("tasmota", "Tasmota", place=self._device.place)
        super().__init__(context, identity, MeterCapabilities(rate=1.0, age=AGE, resolution=1.0))

    def _measure(self, deadline: float) -> PowerValue:
        said = decoded(self._device.get(self._path(), deadline), _Status)
        if said.warning is not None:
            raise NoReading(f"it refuses: {self._device.text_of(said.warning)}: is the password right?")
        sensors = said.sensors or _Sensors(energy=said.power)
        figures, channel = sensors.energy, self._options.channel
        watts = None if figures is None else _of(figures.power, channel)
        if figures is None or watts is None:
            raise NoReading(f"it has no power meter on channel {channel}")
        self._clock.check(sensors.time, "its time")
        total = _of(figures.total, channel)
        joules = None if total is None else total * KWH
        return PowerValue(watts, _shared(figures.voltage, channel), _of(figures.current, channel), joules)

    def _path(self) -> str:
        """The request. Tasmota takes the password as a part of it, and in no safer way."""
        login = ""
        if self._options.password is not None:
            login = f"&user={quote_plus(self._options.user)}&password={quote_plus(self._options.password)}"
        return f"/cm?cmnd=Status%208{login}"


def _of(figure: Figure, channel: int) -> float | None:
    """The number of one channel. A device with a single channel sends a number."""
    if isinstance(figure, list):
        return figure[channel] if channel < len(figure) else None
    return figure if channel == 0 else None


def _shared(figure: Figure, channel: int) -> float | None:
    """As ``_of``, for what all channels of a device can have in common."""
    return _of(figure, channel) if isinstance(figure, list) else figure


KIND = MeterKind("tasmota", "plugs with Tasmota or OpenBeken", TasmotaOptions, Tasmota, "mains")
