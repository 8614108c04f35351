"""What a fault must do to the disks of a rig: pure functions of the fault and the rig."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from plugpull.checks import Check, kernel_clean, no_errors, nothing_left, nothing_stuck, removed, returned
from plugpull.faults.compose import Fault
from plugpull.faults.script import (
    Arm,
    MovedAway,
    Opening,
    Relocate,
    Script,
    ScriptRun,
    SwitchPorts,
    Until,
    Wait,
    heal,
    points_of,
)
from plugpull.faults.triggers import Trigger
from plugpull.rig.model import Rig
from plugpull.rig.topology import Topology


class Planned(NamedTuple):
    """Openings that are opened and closed ``at`` seconds after the fault began, at the earliest."""

    at: float
    off: tuple[Opening, ...]
    on: tuple[Opening, ...]


def rehearse(script: Script) -> tuple[Planned, ...]:
    """The ports that a script switches, and when, if each trigger fires as early as it can and the kernel takes no
    time."""
    now, due, plan = 0.0, dict[Wait, float](), list[Planned]()
    run = ScriptRun(script)
    while run.step is not None:
        match run.step:
            case Arm() | Relocate():
                run.advance()
            case SwitchPorts(off, on):
                plan.append(Planned(now, off, on))
                run.advance()
            case Until(waits):
                for wait in waits:
                    seconds = wait.until.earliest() if isinstance(wait.until, Trigger) else 0.0
                    due.setdefault(wait, now + seconds)
                now = min(due[wait] for wait in waits)
                run.advance(frozenset(wait for wait in waits if due[wait] <= now))
    return tuple(plan)


def whole(fault: Fault) -> Script:
    """A fault from its injection to its healing."""
    held: list[Opening | MovedAway] = []
    yield from fault.inject(held)
    yield from heal(held)


def points_cut(*faults: Fault) -> tuple[str, ...]:
    """The names of all cut points that these faults open."""
    plan = [step for fault in faults for step in rehearse(whole(fault))]
    return points_of(opening for step in plan for opening in step.off)


@dataclass(frozen=True)
class ExpectedOutcome:
    """What faults mean for the disks of a rig, once they are healed. Names are in the order of the rig file."""

    removed: tuple[str, ...]
    """Taken by some cut: they must leave the kernel's list."""
    returned: tuple[str, ...]
    """Of these, the disks that must be back: nothing that was cut for good takes them."""
    gone: tuple[str, ...]
    """Of these, the disks that stay away until the scenario ends."""
    unpowered: tuple[str, ...]
    """Of these, the disks that lose their power as well, and their volatile caches with it."""
    survivors: tuple[str, ...]
    """The scratch disks that no cut takes: nothing may happen to them."""


def expected(faults: Fault | Iterable[Fault], rig: Rig) -> ExpectedOutcome:
    """What these faults mean for the disks of a rig. Raises UsageError for a cut point that the rig does not have."""
    topology = Topology(rig)
    plan = [step for fault in _several(faults) for step in rehearse(whole(fault))]
    openings = [opening for step in plan for opening in step.off]
    closed = {opening for step in plan for opening in step.on}
    every = [topology.cut_point(name) for name in points_of(openings)]
    for_good = [topology.cut_point(name) for name in points_of(one for one in openings if one not in closed)]
    taken = {disk for point in every for disk in point.victims}
    gone = {disk for point in for_good for disk in point.victims}
    unpowered = {disk for point in every for disk in point.unpowered}
    return ExpectedOutcome(
        removed=tuple(disk.name for disk in rig.disk if disk.name in taken),
        returned=tuple(disk.name for disk in rig.disk if disk.name in taken - gone),
        gone=tuple(disk.name for disk in rig.disk if disk.name in gone),
        unpowered=tuple(disk.name for disk in rig.disk if disk.name in unpowered),
        survivors=tuple(disk.name for disk in rig.disk if disk.scratch and disk.name not in taken),
    )


def judged_by(faults: Fault | Iterable[Fault], rig: Rig) -> tuple[Check, ...]:
    """The checks that faults call for on a rig, whatever load runs. A load calls for more, such as ``kept_pace``."""
    due = expected(faults, rig)
    checks: list[Check] = []
    if due.removed:
        checks.append(removed(due.removed))
    if due.returned:
        checks.append(returned(due.returned))
    if due.survivors:
        checks.append(no_errors(due.survivors))
    return (*checks, kernel_clean(), nothing_left(), nothing_stuck())


def _several(faults: Fault | Iterable[Fault]) -> tuple[Fault, ...]:
    return (faults,) if isinstance(faults, Fault) else tuple(faults)
