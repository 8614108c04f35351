"""Cycling a port, and watching through the DUT's agent what goes and comes back."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from plugpull.dut.conversation.hello import ANSWER
from plugpull.dut.conversation.link import AgentLink
from plugpull.dut.real.dut_host import DutHost
from plugpull.dut.real.opened_switches import OpenedSwitches
from plugpull.errors import RigError
from plugpull.qualify.measured import MeasuredPort, PortCycle, PortEdge, Vbus
from plugpull.qualify.observer import PortObserver, PortScope, device_at, tops_of
from plugpull.rig.model import Rig
from plugpull.rig.topology import CutPoint
from plugpull.switches.base import Acknowledged, Switch
from plugpull.switches.host import Person
from plugpull.switches.usb_hub import halves_of

ANSWER_WITHIN = 300.0
"""Seconds a person gets to look and answer."""


@dataclass(frozen=True)
class Plan:
    """Which port to qualify, and how. All times are in seconds."""

    rig: Rig
    file: Path
    point: str
    cycles: int = 10
    hold: float = 30.0
    ask: bool = False
    vbus_command: str | None = None
    seen_within: float = 10.0
    """The time the kernel gets to remove the disks from its list."""
    back_within: float = 30.0
    """The time the disks get to be on the list again: some have to spin up."""
    settling: float = 1.0
    """The time between two edges. Disturbances show within it."""


@dataclass(frozen=True)
class PortBench:
    """The port that is measured, its switch, and the observer of what it does."""

    plan: Plan
    point: CutPoint
    switches: OpenedSwitches
    observer: PortObserver
    link: AgentLink
    person: Person
    report: Callable[[str], None]
    """Shows one line of progress."""

    @property
    def switch(self) -> Switch:
        return self.switches.switch(self.point.switch)

    def see(self, serials: frozenset[str], there: bool, timeout: float) -> float | None:
        """When the kernel had all of these disks on its list, or none of them. None after ``timeout`` seconds.

        Raises RigError if the DUT's list of disks contradicts the events that it reported.
        """
        seen = self.observer.wait(serials, there, timeout)
        if seen is None:
            listed = {disk["serial"] for disk in self.link.call("disks", ANSWER)}
            if serials <= listed if there else not serials & listed:
                raise RigError(
                    f"the DUT did not report when {', '.join(self.point.victims)} {'came' if there else 'went'}",
                    hint="it may have been too busy; try again",
                )
        return seen


def measure(bench: PortBench) -> MeasuredPort:
    """Cycle the port and watch the DUT. Raises RigError if the bench fails meanwhile: then there is no result."""
    plan, point = bench.plan, bench.point
    serials = frozenset(disk.serial for disk in plan.rig.disk if disk.name in point.victims)
    bench.switches.power(point.switch, (point.port,))
    if bench.see(serials, True, plan.back_within) is None:
        raise RigError(
            f"{', '.join(point.victims)} cannot be seen although {point.outlet} is on",
            hint="is it plugged in there, is it powered, and are the serial numbers right?",
        )
    scope = _scope(bench, serials)
    cycles: list[PortCycle] = []
    for number in range(plan.cycles if serials else 0):
        cycles.append(_cycle(bench, scope))
        last = cycles[-1]
        seen = f"off seen after {_seconds(last.off.seen)}, on seen after {_seconds(last.on.seen)}"
        bench.report(f"cycle {number + 1} of {plan.cycles}: {seen}")
        if last.off.seen is None or last.on.seen is None:
            break  # the next cycles would fail too
    off = _leave_off(bench, scope, cuts=all(cycle.off.seen is not None for cycle in cycles))
    return MeasuredPort(
        point=point.name,
        mechanism=point.mechanism,
        victims=point.victims,
        cycles=tuple(cycles),
        held=plan.hold,
        came_back=off.came_back,
        vbus=off.vbus,
        went=off.went,
        returned=off.returned,
        lost=bench.observer.lost,
    )


def _scope(bench: PortBench, serials: frozenset[str]) -> PortScope:
    """What the port may take away, with both halves of each socket."""
    tops = tops_of(bench.plan.rig, bench.point, bench.observer.disks)
    host = DutHost(bench.link)
    both = {device_at(half) for top in tops for half in halves_of(host, *_socket(top))}
    return PortScope(serials, frozenset(tops | both))


def _socket(name: str) -> tuple[str, int]:
    """The hub and the port that a device is plugged into: 2 of hub 1-3 for "1-3.2", 3 of root hub 1 for "1-3"."""
    above, _, port = name.rpartition("." if "." in name else "-")
    return above, int(port)


def _cycle(bench: PortBench, scope: PortScope) -> PortCycle:
    plan, begun = bench.plan, time.monotonic()
    off = _edge(bench, False, lambda: bench.see(scope.serials, False, plan.seen_within))
    time.sleep(plan.settling)  # disturbances show late, and there is no event if there is none
    on = _edge(bench, True, lambda: bench.see(scope.serials, True, plan.back_within))
    time.sleep(plan.settling)  # as above
    return PortCycle(off, on, bench.observer.others(scope, begun), bench.observer.errors(scope, begun))


def _edge(bench: PortBench, on: bool, wait: Callable[[], float | None]) -> PortEdge:
    port = bench.point.port
    done: Acknowledged = bench.switch.set(port, on)
    seen = wait()
    # The kernel may be faster than the acknowledgement, so both times count from the command.
    return PortEdge(
        acknowledged=done.acknowledged - done.commanded,
        seen=None if seen is None else max(0.0, seen - done.commanded),
        reads=bench.switch.read(port),
    )


@dataclass(frozen=True)
class _LeftOff:
    """What was measured while the port was off for long; the fields are those of ``MeasuredPort``."""

    vbus: Vbus | None = None
    came_back: float | None = None
    went: bool | None = None
    returned: bool | None = None


def _leave_off(bench: PortBench, scope: PortScope, *, cuts: bool) -> _LeftOff:
    """Leave the port off, measure VBUS, and see whether power comes back by itself."""
    plan, point = bench.plan, bench.point
    volts_on = _volts(plan)
    off_since = time.monotonic()
    bench.switch.set(point.port, False)
    watched = bool(scope.serials) and cuts  # a port that does not cut is already a finding
    went = bench.see(scope.serials, False, plan.seen_within) is not None if watched else None
    vbus = _vbus(plan, bench.person, volts_on) if plan.ask or plan.vbus_command else None
    came_back = None
    if plan.hold > 0 and went is not False:
        bench.report(f"left off for {plan.hold:g} s to see whether power comes back by itself")
        came_back = _came_back(bench, scope, off_since)
    bench.switches.power(point.switch, (point.port,))
    returned = bench.see(scope.serials, True, plan.back_within) is not None if watched else None
    return _LeftOff(vbus, came_back, went, returned)


def _came_back(bench: PortBench, scope: PortScope, since: float) -> float | None:
    """After how many seconds power came back. None if it did not."""
    if scope.serials:
        back = bench.observer.wait(scope.serials, True, bench.plan.hold)
        if back is not None:
            return back - since
    else:
        time.sleep(bench.plan.hold)  # there is no disk to wait for: only the read-back can show it
    return time.monotonic() - since if bench.switch.read(bench.point.port) is True else None


def _vbus(plan: Plan, person: Person, volts_on: float | None) -> Vbus:
    if plan.vbus_command is not None:
        return Vbus(volts_off=_volts(plan), volts_on=volts_on)
    said = person.ask(
        "Is there still power on the USB port? Look at a meter, or at the lamp of a device without a power adapter.",
        ("yes", "no", "unsure"),
        ANSWER_WITHIN,
    )
    return Vbus(powered_off={"yes": True, "no": False}.get(said))


def _volts(plan: Plan) -> float | None:
    if plan.vbus_command is None:
        return None
    from plugpull.switches.host_local import LocalHost

    done = LocalHost().run(["sh", "-c", plan.vbus_command], 30.0)
    with suppress(ValueError, IndexError):
        if done.status == 0:
            return float(done.stdout.split()[-1].removesuffix("V"))
    raise RigError(
        f"{plan.vbus_command!r} does not print volts (status {done.status}): "
        f"{(done.stdout or done.stderr).strip()[:80]!r}",
        hint="let it print a number as its last word",
    )


def _seconds(value: float | None) -> str:
    return "never" if value is None else f"{value:.2f} s"
