"""The power of emulated disks, computed from what they do. It is synthetic: nothing is measured.

A disk that is attached takes ``idle`` W, ``active`` W more while it is busy, ``per_rate`` W more for each MB/s, and
``startup`` W more in the first ``startup_seconds`` after it was attached. A disk that is not attached takes nothing.
"""

from __future__ import annotations

import time

from pydantic import Field

from plugpull.errors import RigError
from plugpull.meters.base import DeviceMeter, DiskWork, MeterCapabilities, MeterContext, NoReading, PowerValue
from plugpull.meters.kinds import MeterKind
from plugpull.rig.model import Table
from plugpull.switches.base import Identity

RATE = 10.0
"""Readings per second: as many as there are samples of the disks' counters."""
AGE = 0.2
"""Seconds that the newest rates can be old: they are those between the last two samples."""
STALE = 1.0
"""Seconds after which the last samples say nothing any more. A starved guest is late."""
MEGABYTE = 1e6


class VirtualOptions(Table):
    """Keys of the synthetic meter: watts of each disk."""

    idle: float = Field(default=5.0, ge=0, le=100)
    active: float = Field(default=2.0, ge=0, le=100)
    per_rate: float = Field(default=0.0, ge=0, le=10)
    """Per MB/s."""
    startup: float = Field(default=0.0, ge=0, le=100)
    startup_seconds: float = Field(default=2.0, gt=0, le=60)


class SyntheticMeter(DeviceMeter):
    def __init__(self, context: MeterContext, options: VirtualOptions) -> None:
        if context.activity is None:
            raise RigError("it computes watts from what emulated disks do, and they exist only during a run")
        self._activity = context.activity
        self._options = options
        identity = Identity("virtual", "synthetic", place="the virtual bench")
        super().__init__(context, identity, MeterCapabilities(RATE, AGE, synthetic=True))

    def _measure(self, deadline: float) -> PowerValue:
        heard, rates = self._activity.rates(self._context.disks)
        silent = time.monotonic() - heard
        if silent > STALE:
            raise NoReading(f"the disks' counters were last heard of {silent:.1f} s ago")
        return PowerValue(sum(self._of(disk, work) for disk, work in rates.items()))

    def _of(self, disk: str, work: DiskWork | None) -> float:
        attached = self._activity.attached_for(disk)
        if attached is None or work is None:
            return 0.0
        options = self._options
        watts = options.idle + (options.startup if attached < options.startup_seconds else 0.0)
        if work.busy:
            watts += options.active + options.per_rate * work.rate / MEGABYTE
        return watts


KIND = MeterKind(
    "virtual", "computed from what emulated disks do", VirtualOptions, SyntheticMeter, "mains", virtual=True
)
