"""One turn of a soak: loads run for a random time, then comes a fault, and what it came to is judged."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from types import TracebackType

from plugpull.checks import Check, data_intact, kept_pace
from plugpull.errors import RigError
from plugpull.faults.compose import Fault
from plugpull.faults.expected import expected, judged_by
from plugpull.history import events as ev
from plugpull.judging.results import ScenarioResult
from plugpull.load.running import SAMPLE_INTERVAL
from plugpull.run import OpenScenario
from plugpull.scenario import ScenarioRig
from plugpull.soak.draw import draw_fault, draw_wait
from plugpull.soak.length import length_text
from plugpull.streams import FAULTS, TRIGGERS

RARELY = 1.0
"""Seconds between two samples while nothing is judged."""
WORTHWHILE = 5.0
"""Seconds of a wait from which on fewer samples are taken."""
BACK_WITHIN = 60.0
"""Seconds that a disk gets to come back before it is set aside. The checks judge a shorter time."""
SAMPLE_WITHIN = 30.0


class Turn:
    """One turn: ``with turn as rig`` gives its bench, as other scenarios have it.

    Whatever fails in the block is recorded and judged as in any scenario, and does not end the soak. A signal does.
    """

    def __init__(
        self, opened: OpenScenario, rig: ScenarioRig, length: float, left: float, ended: Callable[[Turn], None]
    ) -> None:
        self._opened, self._rig, self._ended = opened, rig, ended
        streams = rig.context.streams
        self.fault: Fault = draw_fault(streams.of(FAULTS), rig.context.topology)
        """What is done to the rig in this turn."""
        self.wait = min(draw_wait(streams.of(TRIGGERS), length), left)
        """Seconds that the loads run before."""
        self.lost: dict[str, str] = {}
        """The disks that are gone at the end, with since when."""
        self._missing: tuple[str, ...] = ()
        self.result: ScenarioResult | None = None

    def __enter__(self) -> ScenarioRig:
        return self._rig

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if error is not None:
            self._opened.failed(error)
        if error is None or isinstance(error, Exception):
            self._set_aside()
        self.close()
        return isinstance(error, Exception)

    def run_until_fault(self) -> None:
        """Let the loads run until the random moment of this turn. Raises ``RigError`` if the DUT is lost meanwhile.

        Meanwhile the disks are sampled less often."""
        context = self._rig.context
        context.phase("soak", f"the loads run for {length_text(self.wait)}")
        if self.wait < WORTHWHILE:
            context.pause(self.wait)
            return
        context.recorder.record(ev.SamplingSet(at=context.now(), interval=RARELY))
        context.bench.link.call("sample", interval=RARELY)
        context.pause(self.wait)
        context.bench.link.call("sample", interval=SAMPLE_INTERVAL)
        # The sample that the agent waits for comes when it was due before.
        sample = context.wait_for(lambda event: isinstance(event, ev.Sampled), SAMPLE_WITHIN)
        if sample is None:
            raise RigError(f"the agent sent no sample for {SAMPLE_WITHIN:g} s")
        context.recorder.record(ev.SamplingSet(at=sample.at, interval=SAMPLE_INTERVAL))

    def checks(self) -> tuple[Check, ...]:
        """What must have been true of the fault of this turn, for ``rig.judge``. Waits first for disks to come back."""
        rig, context = self._rig.context.rig, self._rig.context
        due = expected(self.fault, rig)
        self._missing = missing = context.wait_attached(due.returned, BACK_WITHIN)
        # fio does not record what it flushed: nothing is known of its data on a disk that lost its power.
        sound = tuple(disk for disk in (*due.survivors, *due.returned) if disk not in (*due.unpowered, *missing))
        checks = list(judged_by(self.fault, rig))
        if due.survivors:
            checks.append(kept_pace(due.survivors))
        if sound:
            checks.append(data_intact(sound))
        return tuple(checks)

    def close(self) -> None:
        """Heal, close the bench, and judge. May be called twice."""
        if self.result is None:
            self.result = self._opened.close()
            self._ended(self)

    def _set_aside(self) -> None:
        """Record the disks that are gone although everything is on again."""
        context = self._rig.context
        if context.listener.lost:
            return
        with suppress(RigError):
            self._rig.breaker.heal()
            others = tuple(disk.name for disk in context.rig.disk if disk.name not in self._missing)
            lost = (*context.wait_attached(self._missing, 0.0), *context.wait_attached(others, BACK_WITHIN))
            cut = set(expected(self.fault, context.rig).removed) if self._opened.cut else set()
            for disk in lost:
                since, cause = wall(), _cause(disk in cut)
                context.recorder.record(ev.DiskSetAside(at=context.now(), disk=disk, wall=since, cause=cause))
                self.lost[disk] = since


def _cause(cut: bool) -> ev.LossCause:
    return "cut" if cut else "alone"


def wall() -> str:
    """Now, in UTC."""
    return datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
