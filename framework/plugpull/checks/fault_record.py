"""Do the faults on record and the cuts on record belong together? A run is made again from its faults."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from plugpull.history.events import (
    AgentLost,
    CutArmed,
    DutDied,
    FaultInjected,
    RigFault,
    ScenarioError,
    ScenarioSkipped,
)
from plugpull.history.story import Story

STOPPED = (AgentLost, DutDied, RigFault, ScenarioError, ScenarioSkipped)
"""A scenario with one of these may have stopped before all cuts of a fault were armed."""
STOCK = frozenset({"cut", "bounce", "pause", "in_sequence", "together", "held", "repeated"})
"""Kinds of faults that name their cut points in ``points`` (``faults/compose.py``, ``faults/bouncing.py``)."""


def fault_doubts(story: Story) -> Iterator[str]:
    """Why the faults and the cuts of a scenario do not fit together, a sentence each. Earlier versions recorded no
    faults, and cuts without a number of one."""
    faults = {event.number: event.fault for event in story.of(FaultInjected)}
    armed: dict[int, set[str]] = {}
    for cut in story.of(CutArmed):
        if cut.fault:
            armed.setdefault(cut.fault, set()).add(cut.point)
    for number in sorted(armed.keys() - faults.keys()):
        yield f"fault {number}, to which the cut of {', '.join(sorted(armed[number]))} belongs, is not on record"
    for number, fault in faults.items():
        points, cut_points = points_of(fault), armed.get(number, set())
        if points is None:
            continue
        other = sorted(cut_points - points)
        if other:
            yield f"fault {number} was to cut {', '.join(sorted(points))}, and {', '.join(other)} was cut"
        left = sorted(points - cut_points)
        if left and story.ended is not None and not any(story.of(kind) for kind in STOPPED):
            yield f"fault {number} was to cut {', '.join(left)}, and no such cut is on record"


def points_of(fault: dict[str, Any]) -> set[str] | None:
    """The cut points that a recorded fault names; ``None`` if it holds a kind of a test suite's own."""
    if fault.get("kind") not in STOCK:
        return None
    found = {str(point) for point in fault.get("points", ())}
    inner = [*fault.get("faults", ()), *([fault["fault"]] if "fault" in fault else [])]
    for part in (points_of(one) if isinstance(one, dict) else None for one in inner):
        if part is None:
            return None
        found |= part
    return found
