"""Switching cut points: every edge commanded, acknowledged, read back and put on record."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from plugpull.dut.conversation.clock import ClockNotMapped
from plugpull.dut.scenario_context import ScenarioContext
from plugpull.errors import RigError
from plugpull.faults.parallel import at_once, raise_all, words_of
from plugpull.faults.triggers import Trigger
from plugpull.history import events as ev
from plugpull.rig.topology import CutPoint
from plugpull.switches.base import Acknowledged, Switch

Planned = tuple[int, CutPoint]
"""A cut's number, and what it cuts."""


@dataclass(frozen=True)
class _Gang:
    """The ports that one switch has to switch, each with the cuts that it is switched for. An outlet that feeds several
    things is switched for several cuts."""

    switch: Switch
    ports: dict[str, list[Planned]]


class Breaker:
    """Switches cut points of one scenario and remembers which are off, so that all can be healed.

    An outlet that several cuts hold off comes back on with the last of them.
    """

    def __init__(self, context: ScenarioContext) -> None:
        self._context = context
        self._off: dict[str, tuple[Planned, ...]] = {}
        """The outlets that are off, each with every cut that was made there since it was on."""
        self._holding: dict[str, frozenset[int]] = {}
        """The cuts that hold each outlet off. Empty once its restoration was tried."""
        self._lock = threading.Lock()
        self._cuts = 0
        self._faults = 0
        context.restore = self.heal

    def announce(self, fault: dict[str, Any]) -> int:
        """Record a fault as data, before anything of it is done. Returns its number."""
        self._faults += 1
        self._context.recorder.record(ev.FaultInjected(at=self._context.now(), number=self._faults, fault=fault))
        return self._faults

    def arm(self, points: Sequence[CutPoint], trigger: Trigger, permanent: bool, fault: int = 0) -> tuple[int, ...]:
        """Record the cuts before anything is done. Returns their numbers. ``fault`` is what ``announce`` returned."""
        numbers = []
        group = self._cuts + 1 if len(points) > 1 else 0
        for point in points:
            self._cuts += 1
            numbers.append(self._cuts)
            self._context.recorder.record(
                ev.CutArmed(
                    at=self._context.now(),
                    cut=self._cuts,
                    point=point.name,
                    mechanism=point.mechanism.value,
                    trigger=trigger.text(),
                    victims=point.victims,
                    permanent=permanent,
                    group=group,
                    fault=fault,
                )
            )
        return tuple(numbers)

    def switch(self, cut: int, point: CutPoint, on: bool) -> None:
        """One edge, as ``switch_all``."""
        self.switch_all(((cut, point),), on)

    def victims_off(self) -> frozenset[str]:
        """The disks that are cut off now."""
        with self._lock:
            return frozenset(disk for cuts in self._off.values() for _, point in cuts for disk in point.victims)

    def switch_all(self, planned: Sequence[Planned], on: bool) -> None:
        """Switch all of these at once: one command for the ports of a switch, the switches in parallel.

        An outlet that another cut holds stays off. It is restored with the last of them, for all of them.

        Raises RigError when switches fail, naming each; the others have switched. A read-back that disagrees is put on
        record for the checks. Nothing is cut that cannot be put on record first, but power is restored without.
        """
        if on:
            planned = self._let_go(planned)
            if not planned:
                return
        gangs = self._gangs(planned)
        if not on:
            # Before the command: a failure halfway must find the ports on the list of what has to be healed.
            self._hold(planned)
        try:
            moment = time.monotonic()
            for each in planned:
                self._record(each, on, "commanded", moment)
        except RigError:
            if on:
                self._restore_unrecorded(gangs)
            raise
        edges: list[Acknowledged] = []
        failures = at_once({name: partial(self._command, gang, on, edges) for name, gang in gangs.items()})
        raise_all(failures, len(gangs))
        if len(edges) > 1:
            self._record_skew(planned, tuple(gangs), on, edges)

    def _hold(self, planned: Sequence[Planned]) -> None:
        with self._lock:
            for each in planned:
                cut, point = each
                self._off[point.outlet] = (*self._off.get(point.outlet, ()), each)
                self._holding[point.outlet] = self._holding.get(point.outlet, frozenset()) | {cut}

    def _let_go(self, planned: Sequence[Planned]) -> tuple[Planned, ...]:
        """The cuts whose outlets can be restored once these are healed. An outlet that another cut holds stays off."""
        due: dict[Planned, None] = {}
        with self._lock:
            for cut, point in planned:
                self._holding[point.outlet] = self._holding.get(point.outlet, frozenset()) - {cut}
            for each in planned:
                outlet = each[1].outlet
                if not self._holding[outlet]:
                    due.update(dict.fromkeys((*self._off.get(outlet, ()), each)))
        return tuple(due)

    def _gangs(self, planned: Sequence[Planned]) -> dict[str, _Gang]:
        gangs: dict[str, _Gang] = {}
        for cut, point in planned:
            if point.switch not in gangs:
                gangs[point.switch] = _Gang(self._context.bench.switch(point.switch), {})
            gangs[point.switch].ports.setdefault(point.port, []).append((cut, point))
        return gangs

    def _command(self, gang: _Gang, on: bool, edges: list[Acknowledged]) -> None:
        """Everything one switch has to do. Runs beside those of the other switches."""
        ports = tuple(gang.ports)
        single = len(ports) == 1
        acknowledged = (gang.switch.set(ports[0], on),) if single else gang.switch.set_many(ports, on)
        edges.extend(acknowledged)
        for edge in acknowledged:
            for each in gang.ports[edge.port]:
                self._record(each, on, "acknowledged", edge.acknowledged, sent=edge.commanded)
        for port, cuts in gang.ports.items():
            state = gang.switch.read(port)
            if state is not None:
                asked = time.monotonic()
                for each in cuts:
                    self._record(each, on, "read-back", asked, agrees=state == on)
            if on and state is not False:
                self._restored(cuts)

    def _restored(self, cuts: Sequence[Planned]) -> None:
        with self._lock:
            for _, point in cuts:
                self._off.pop(point.outlet, None)
                self._holding.pop(point.outlet, None)

    def _restore_unrecorded(self, gangs: dict[str, _Gang]) -> None:
        for gang in gangs.values():
            for port, cuts in gang.ports.items():
                with suppress(Exception):  # it stays on the list, and the recorder's failure is raised already
                    gang.switch.set(port, True)
                    self._restored(cuts)

    def _at(self, moment: float) -> tuple[float | None, float]:
        """A time of the controller's on the DUT's clock, and the bound on its error. There is none yet for a DUT that
        was just reached again; that must not keep anything off."""
        try:
            return self._context.bench.link.clock.at(moment)
        except ClockNotMapped:
            return None, 0.0

    def _record(
        self,
        planned: Planned,
        on: bool,
        phase: ev.EdgePhase,
        moment: float,
        *,
        agrees: bool = True,
        sent: float | None = None,
    ) -> None:
        """One step of an edge. ``moment`` and ``sent`` are the controller's times."""
        at, error = self._at(moment)
        cut, point = planned
        self._context.recorder.record(
            ev.Edge(
                at=at,
                cut=cut,
                point=point.name,
                switch=point.switch,
                port=point.port,
                state="on" if on else "off",
                phase=phase,
                agrees=agrees,
                error=error,
                sent=None if sent is None else self._at(sent)[0],
            )
        )

    def _record_skew(
        self, planned: Sequence[Planned], switches: tuple[str, ...], on: bool, edges: Sequence[Acknowledged]
    ) -> None:
        times = [edge.acknowledged for edge in edges]
        self._context.recorder.record(
            ev.CutSwitched(
                at=self._at(max(times))[0],
                cuts=tuple(cut for cut, _ in planned),
                state="on" if on else "off",
                switches=switches,
                ports=len(edges),
                skew=max(times) - min(times),
            )
        )

    def heal(self) -> frozenset[str]:
        """Turn on whatever is off. Never raises: what fails is tried once more, then put on record, and the rest is
        healed all the same. Returns the disks that have their power and their cable again."""
        outlets, off = tuple(self._off), self.victims_off()
        if not outlets:
            return frozenset()
        failed = self._heal(outlets)
        again = tuple(outlet for outlet in failed if outlet in self._off)
        if again:
            # By now everything else is on: the hub, perhaps, that a switch itself is plugged into.
            failed = {outlet: why for outlet, why in failed.items() if outlet not in again} | self._heal(again)
        detail = "; ".join(f"{outlet}: {why}" for outlet, why in failed.items())
        healed = ev.Healed(at=self._at(time.monotonic())[0], ports=outlets, ok=not failed, detail=detail)
        with suppress(RigError):  # the recorder keeps its failure and raises it again when it is closed
            self._context.recorder.record(healed)
        return off - self.victims_off()

    def _heal(self, outlets: Sequence[str]) -> dict[str, str]:
        """Turn these on, the switches in parallel and each port by itself. Returns the error of each that failed."""
        failed: dict[str, str] = {}
        by_switch: dict[str, list[str]] = {}
        for outlet in outlets:
            by_switch.setdefault(self._off[outlet][0][1].switch, []).append(outlet)
        at_once({name: partial(self._heal_each, its, failed) for name, its in by_switch.items()})
        return {outlet: failed[outlet] for outlet in outlets if outlet in failed}

    def _heal_each(self, outlets: Sequence[str], failed: dict[str, str]) -> None:
        for outlet in outlets:
            try:
                self.switch_all(self._off[outlet], True)
            except Exception as error:
                failed[outlet] = words_of(error)
            else:
                if outlet in self._off:
                    failed[outlet] = "it was switched on and reads back off"
