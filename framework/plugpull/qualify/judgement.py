"""Judges whether a port cuts what it claims: pure functions of the measurements."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from math import ceil

from plugpull.qualify.measured import MeasuredPort, Vbus
from plugpull.qualify.qualification import Spread, Verdict
from plugpull.rig.model import Mechanism

VBUS_GONE = 0.8
"""Volts. USB 2.0, 7.1.5 and 7.2.1: a device may treat VBUS as absent below 0.8 V (vSafe0V of USB PD)."""
VBUS_THERE = 4.0
"""Volts. USB 2.0, 7.2.2: a low-power port supplies 4.40 V, minus the drop in cable and meter. A lower reading while the
port is on is not of this port's VBUS."""
SLOWEST = 2.0
"""Seconds from an edge's command to its acknowledgement. A slower port cannot cut in the middle of a transfer."""


CUT_VBUS = frozenset({Mechanism.VBUS, Mechanism.DATA_VBUS})
"""Mechanisms that claim to cut VBUS."""


def findings(measured: MeasuredPort) -> list[str]:
    """The defects of the port, in sentences."""
    found = []
    stayed = sum(cycle.off.seen is None for cycle in measured.cycles)
    count = len(measured.cycles)
    disks = ", ".join(measured.victims)
    if stayed:
        found.append(f"it did not cut: {disks} stayed, {stayed} of {count} times")
    lost = sum(cycle.on.seen is None for cycle in measured.cycles)
    if lost:
        found.append(f"{disks} did not come back, {lost} of {count} times")
    lies = sum(cycle.off.reads is True for cycle in measured.cycles) + sum(
        cycle.on.reads is False for cycle in measured.cycles
    )
    if lies:
        found.append(f"its read-back is wrong, {lies} of {2 * count} times")
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
        found.append(
            f"it took {slowest:.1f} s to acknowledge; a cut in the middle of a transfer needs {SLOWEST:g} s or less"
        )
    return found


def _vbus_findings(measured: MeasuredPort) -> list[str]:
    vbus, off = measured.vbus, None if measured.vbus is None else measured.vbus.volts_off
    if vbus is None or not _is_measured(vbus):
        return []
    if measured.mechanism in CUT_VBUS:
        if off is not None and off > VBUS_GONE:
            return [f"VBUS is still there when it is off: {off:.2f} V"]
        return ["VBUS is still there when it is off, as a person saw"] if vbus.powered_off else []
    if measured.mechanism is Mechanism.DATA and off is not None and off <= VBUS_GONE:
        return [f"VBUS goes too when it is off ({off:.2f} V): that is data+vbus, but it claims data"]
    return []


def _is_measured(vbus: Vbus) -> bool:
    """Whether this is a measurement of the port. A meter that reads too little while the port is on is not at it."""
    return bool(vbus.text()) and (vbus.volts_on is None or vbus.volts_on >= VBUS_THERE)


def unknowns(measured: MeasuredPort) -> list[str]:
    """What was not measured, in sentences."""
    missing = list(measured.lost)
    if not measured.cycles:
        missing.append("no cycle was measured")
    if not measured.victims:
        missing.append(f"no disk is behind {measured.point}, so no cut could be seen")
    if measured.held <= 0:
        missing.append("whether power comes back by itself was not measured")
    vbus = measured.vbus
    if vbus is not None and vbus.text() and not _is_measured(vbus):
        missing.append(f"the meter reads {vbus.volts_on:.2f} V with the port on: it is not at this port's VBUS")
    elif measured.mechanism in CUT_VBUS and (vbus is None or not vbus.text()):
        missing.append("whether VBUS goes was not measured: use --vbus-command, or --ask")
    return missing


def verdict(measured: MeasuredPort) -> Verdict:
    """FAIL if there are findings, UNKNOWN if something was not measured, PASS otherwise."""
    if findings(measured):
        return "FAIL"
    return "UNKNOWN" if unknowns(measured) else "PASS"


def spread(values: Iterable[float]) -> Spread:
    """The spread of at least one value."""
    ordered = sorted(values)
    return Spread(
        least=ordered[0],
        median=statistics.median(ordered),
        p95=ordered[ceil(0.95 * len(ordered)) - 1],
        most=ordered[-1],
        count=len(ordered),
    )


def latencies(measured: MeasuredPort) -> dict[str, Spread]:
    """The spread of each edge's times, in seconds from its command."""
    series = {
        "off acknowledged": [cycle.off.acknowledged for cycle in measured.cycles],
        "off seen": [cycle.off.seen for cycle in measured.cycles if cycle.off.seen is not None],
        "on acknowledged": [cycle.on.acknowledged for cycle in measured.cycles],
        "on seen": [cycle.on.seen for cycle in measured.cycles if cycle.on.seen is not None],
    }
    return {name: spread(values) for name, values in series.items() if values}
