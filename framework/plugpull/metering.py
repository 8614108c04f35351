"""The power meters of a rig while a scenario runs: opened on the machine that each is plugged into, and recorded."""

from __future__ import annotations

from collections.abc import Callable

from plugpull.dut.real.dut_host import DutHost
from plugpull.dut.scenario_context import ScenarioContext
from plugpull.meters.activity import RecordedActivity
from plugpull.meters.base import Meter
from plugpull.meters.kinds import open_meter
from plugpull.meters.sampling import MeterSampling
from plugpull.rig.model import DeclaredMeter
from plugpull.switches.host import Host
from plugpull.switches.host_local import LocalHost


class MeterWatch:
    """Reads every meter of the rig from ``start`` to ``stop``. Does nothing for a rig without meters."""

    def __init__(self, context: ScenarioContext) -> None:
        self._context = context
        self._sampling: MeterSampling | None = None
        self._deaf: Callable[[], None] | None = None

    def start(self, *, virtual: bool) -> None:
        """Begin to read and record. Call it when the DUT's clock is mapped."""
        context = self._context
        if not context.rig.meter:
            return
        activity = RecordedActivity() if virtual else None
        if activity is not None:
            self._deaf = context.recorder.subscribe(activity.hear)

        def open_one(declared: DeclaredMeter) -> Meter:
            return open_meter(declared, self._host(declared), activity)

        clock = context.bench.link.clock
        self._sampling = MeterSampling(context.rig.meter, open_one, context.recorder.record, clock.at)
        self._sampling.start()

    def _host(self, declared: DeclaredMeter) -> Host:
        on_dut = declared.via == "dut" and self._context.rig.dut.kind == "ssh"
        return DutHost(self._context.bench.link) if on_dut else LocalHost()

    def stop(self) -> None:
        """Read no more. May be called twice."""
        if self._sampling is not None:
            self._sampling.stop()
        if self._deaf is not None:
            self._deaf()
