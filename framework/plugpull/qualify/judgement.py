"""Does a port cut what it claims? Judged from what was measured and nothing else."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from dataclasses import dataclass
from math import ceil

from plugpull.qualify.qualification import Spread
from plugpull.rig.model import Mechanism

VBUS_GONE = 0.8
"""Volts. USB 2.0, 7.1.5 and 7.2.1: a device may take VBUS for absent below 0.8 V (vSafe0V of USB PD)."""
VBUS_THERE = 4.0
"""Volts. USB 2.0, 7.2.2: a low-power port supplies 4.40 V, and cable and meter get some of it. What reads less while
the port is on is not this port's VBUS."""
SLOWEST = 2.0
"""Seconds between the commands and the acknowledgements of an edge beyond which a port is no use for cuts in the middle
of a transfer."""


CUT_VBUS = frozenset({Mechanism.VBUS, Mechanism.DATA_VBUS})
"""Mechanisms that claim to."""


@dataclass(frozen=True)
class Edge:
    """One edge, in seconds from its command. None: it did not happen before the deadline."""

    acknowledged: float
    seen: float | None
    """When the kernel took the disks off its list, or had them all back."""
    reads: bool | None
    """What the port read back as, once acknowledged; None without read-back."""


@dataclass(frozen=True)
class Cycle:
    """Off and on again. ``others`` are disks and USB devices outside the blast radius that went away meanwhile,
    ``errors`` kernel messages about them."""

    off: Edge
    on: Edge
    others: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()


@dataclass(frozen=True)
class Vbus:
    """VBUS at the device's end: volts from a meter, or what the person saw (is there still power?)."""

    volts_off: float | None = None
    volts_on: float | None = None
    powered_off: bool | None = None

    def text(self) -> str:
        if self.volts_off is not None:
            on = f", {self.volts_on:.2f} V on" if self.volts_on is not None else ""
            return f"by a meter: {self.volts_off:.2f} V off{on}"
        return "" if self.powered_off is None else f"by a person: {'still there' if self.powered_off else 'gone'}"


@dataclass(frozen=True)
class Measured:
    """Everything that was found out about one port. ``came_back`` is after how many of the ``held`` seconds it had
    power again though nobody turned it on; ``went`` and ``returned`` are whether the disks went for that, and were
    there again afterwards. ``lost`` says which evidence there is none of, in sentences."""

    point: str
    mechanism: Mechanism
    victims: tuple[str, ...]
    cycles: tuple[Cycle, ...]
    held: float = 0.0
    came_back: float | None = None
    vbus: Vbus | None = None
    went: bool | None = None
    returned: bool | None = None
    lost: tuple[str, ...] = ()


def findings(measured: Measured) -> list[str]:
    """What is wrong with the port."""
    found = []
    stayed = sum(cycle.off.seen is None for cycle in measured.cycles)
    count = len(measured.cycles)
    disks = ", ".join(measured.victims)
    if stayed:
        found.append(f"it did not cut: {disks} stayed, {stayed} times of {count}")
    lost = sum(cycle.on.seen is None for cycle in measured.cycles)
    if lost:
        found.append(f"{disks} did not come back, {lost} times of {count}")
    lies = sum(cycle.off.reads is True for cycle in measured.cycles) + sum(
        cycle.on.reads is False for cycle in measured.cycles
    )
    if lies:
        found.append(f"its read-back is wrong, {lies} times of {2 * count}")
    gone = sorted({other for cycle in measured.cycles for other in cycle.others})
    if gone:
        found.append(f"it is ganged with others, or disturbs them: {', '.join(gone)} went away too")
    errors = [error for cycle in measured.cycles for error in cycle.errors]
    if errors:
        found.append(
            f"it disturbs its neighbours: {errors[0]}" + (f" (and {len(errors) - 1} more)" if errors[1:] else "")
        )
    if measured.came_back is not None:
        found.append(f"power came back by itself after {measured.came_back:.1f} s")
    if measured.went is False:
        found.append(f"it did not cut: {disks} stayed when it was left off")
    if measured.returned is False:
        found.append(f"{disks} did not come back after {measured.held:g} s without power")
    found += _vbus_findings(measured)
    slowest = max((edge.acknowledged for cycle in measured.cycles for edge in (cycle.off, cycle.on)), default=0.0)
    if slowest > SLOWEST:
        found.append(f"it took {slowest:.1f} s to acknowledge, and {SLOWEST:g} s is the most that can be aimed with")
    return found


def _vbus_findings(measured: Measured) -> list[str]:
    vbus, off = measured.vbus, None if measured.vbus is None else measured.vbus.volts_off
    if vbus is None or not _is_measured(vbus):
        return []
    if measured.mechanism in CUT_VBUS:
        if off is not None and off > VBUS_GONE:
            return [f"VBUS is still there when it is off: {off:.2f} V"]
        return ["VBUS is still there when it is off, by what the person saw"] if vbus.powered_off else []
    if measured.mechanism is Mechanism.DATA and off is not None and off <= VBUS_GONE:
        return [f"VBUS goes too when it is off ({off:.2f} V): that is data+vbus, and it claims data"]
    return []


def _is_measured(vbus: Vbus) -> bool:
    """Does this tell anything? A meter that reads nothing while the port is on is not at this port."""
    return bool(vbus.text()) and (vbus.volts_on is None or vbus.volts_on >= VBUS_THERE)


def unknowns(measured: Measured) -> list[str]:
    """What keeps it from being called good."""
    missing = list(measured.lost)
    if not measured.cycles:
        missing.append("no cycle was measured")
    if not measured.victims:
        missing.append(f"nothing hangs behind {measured.point} that could be seen to go")
    if measured.held <= 0:
        missing.append("whether power comes back by itself was not looked at")
    vbus = measured.vbus
    if vbus is not None and vbus.text() and not _is_measured(vbus):
        missing.append(f"the meter reads {vbus.volts_on:.2f} V with the port on: it is not at this port's VBUS")
    elif measured.mechanism in CUT_VBUS and (vbus is None or not vbus.text()):
        missing.append("whether VBUS goes was not measured: use --vbus-command, or --ask")
    return missing


def verdict(measured: Measured) -> str:
    """FAIL when something is wrong, UNKNOWN when something was not measured, PASS otherwise."""
    if findings(measured):
        return "FAIL"
    return "UNKNOWN" if unknowns(measured) else "PASS"


def spread(values: Iterable[float]) -> Spread:
    """Of at least one value."""
    ordered = sorted(values)
    return Spread(
        least=ordered[0],
        median=statistics.median(ordered),
        p95=ordered[ceil(0.95 * len(ordered)) - 1],
        most=ordered[-1],
        count=len(ordered),
    )


def latencies(measured: Measured) -> dict[str, Spread]:
    """Of each edge, from its command on."""
    series = {
        "off acknowledged": [cycle.off.acknowledged for cycle in measured.cycles],
        "off seen": [cycle.off.seen for cycle in measured.cycles if cycle.off.seen is not None],
        "on acknowledged": [cycle.on.acknowledged for cycle in measured.cycles],
        "on seen": [cycle.on.seen for cycle in measured.cycles if cycle.on.seen is not None],
    }
    return {name: spread(values) for name, values in series.items() if values}
