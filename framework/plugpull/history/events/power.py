"""Power meters: which were read, and what they said."""

from __future__ import annotations

from typing import Literal

from plugpull.history.events.base import Event


class MeterOpened(Event, frozen=True, kw_only=True, tag="meter.opened"):
    """A power meter is read from here on. ``disks`` are behind it, ``side`` is where it measures, ``device`` its name.

    ``rate`` is how often it is read, per second; ``age`` how old its values can be, seconds; ``resolution`` in W, 0 if
    it is not known. ``synthetic``: its watts are computed from what the disks do, and nothing is measured."""

    meter: str
    driver: str
    disks: tuple[str, ...]
    side: Literal["mains", "usb"]
    rate: float
    device: str = ""
    age: float = 0.0
    resolution: float = 0.0
    synthetic: bool = False


class PowerSampled(Event, frozen=True, kw_only=True, tag="power"):
    """One reading of a meter. ``at`` is the middle of the request; the value belongs to an instant at most
    ``uncertainty`` seconds away, with the error of the mapping of clocks.

    ``watts`` is ``None`` if there was no usable value, and ``why`` says the reason: that is not 0 W. ``joules`` is the
    meter's own counter of energy."""

    meter: str
    uncertainty: float = 0.0
    watts: float | None = None
    volts: float | None = None
    amps: float | None = None
    joules: float | None = None
    why: str = ""
