"""Do the faults on record and the cuts on record belong together? A run is made again from its faults."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from plugpull.history.events import (
    AgentLost,
    CutArmed,
    DutDied,
    Edge,
    FaultInjected,
    LoadBegun,
    Phase,
    RigFault,
    ScenarioError,
    ScenarioSkipped,
)
from plugpull.history.story import Story

STOPPED = (AgentLost, DutDied, RigFault, ScenarioError, ScenarioSkipped)
"""A scenario with one of these may have stopped before all cuts of a fault were armed."""
COUNTED = 0.5
"""Seconds after the cut in which a sample may still show what was moved before it."""
HEALING = 1.0
"""Seconds before the bench is healed in which its ports may have been switched on for that."""
STOCK = frozenset({"cut", "bounce", "pause", "in_sequence", "together", "held", "repeated"})
"""Kinds of faults that name their cut points in ``points`` (``faults/compose.py``, ``faults/bouncing.py``)."""


def fault_doubts(story: Story) -> Iterator[str]:
    """Why the faults and the cuts of a scenario do not fit together, a sentence each. Earlier versions recorded no
    faults, and cuts without a number of one."""
    yield from _restored_early(story)
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
        yield from _lasting(story, number, fault)
        yield from _unmet(story, number, fault)
        left = sorted(points - cut_points)
        if left and story.ended is not None and not any(story.of(kind) for kind in STOPPED):
            yield f"fault {number} was to cut {', '.join(left)}, and no such cut is on record"


def _restored_early(story: Story) -> Iterator[str]:
    """A permanent cut that was restored while the scenario went on. 25 of 25 were restored as it healed the bench."""
    heals = [event.at for event in story.of(Phase) if event.name == "heal" and event.at is not None]
    lasting = {cut.cut for cut in story.of(CutArmed) if cut.permanent} if heals else set()
    for edge in story.of(Edge) if lasting else ():
        early = edge.at is not None and edge.at < heals[0] - HEALING
        if early and edge.cut in lasting and (edge.state, edge.phase) == ("on", "commanded"):
            yield f"cut {edge.cut} was to last until the end, and was restored at {edge.at:.2f} s, while it went on"


def _lasting(story: Story, number: int, fault: dict[str, Any]) -> Iterator[str]:
    """A fault that was to last otherwise than its cuts do."""
    wanted = fault.get("permanent")
    if fault.get("kind") != "cut" or not isinstance(wanted, bool):
        return
    words = {False: "for a while", True: "for good"}
    for cut in story.of(CutArmed):
        if cut.fault == number and cut.permanent != wanted:
            yield f"fault {number} was to cut {words[wanted]}, and {cut.point} was cut {words[cut.permanent]}"


def _unmet(story: Story, number: int, fault: dict[str, Any]) -> Iterator[str]:
    """A cut that was made although the bytes that were to trigger it had not been moved (``faults/triggers.py``)."""
    when = fault.get("when")
    if fault.get("kind") != "cut" or not isinstance(when, dict) or when.get("kind") != "moved":
        return
    disk, size = str(when.get("disk")), int(when.get("size") or 0)
    begins = [cut.off.commanded_at for cut in story.cut_records if cut.armed.fault == number]
    begin = min((at for at in begins if at is not None), default=None)
    here = None if begin is None else story.attachment_at(disk, begin)
    if begin is None or here is None:
        return
    since = _counted_since(story, disk, begin)
    own = story.readings(disk).of((here.kname, here.diskseq))
    before = own.between(float("-inf"), since)
    moved_before = before[-1].moved if before else 0
    during = [one.moved for one in own[len(before) :].between(since, begin + COUNTED)]
    if during and max(during) - moved_before < size:
        moved = f"{disk} had moved only {max(during) - moved_before} by then"
        yield f"fault {number} was to cut when {size} bytes had been moved on {disk}, and {moved}"


def _counted_since(story: Story, disk: str, begin: float) -> float:
    """The time since which the trigger counted at the latest: the phase of the disk's load, or the attachment."""
    loads = [event.at for event in story.of(LoadBegun) if event.disk == disk and (event.at or 0.0) <= begin]
    last = max((at for at in loads if at is not None), default=None)
    phases = [event.at or 0.0 for event in story.of(Phase) if event.name == "load"]
    if last is None:
        return float("-inf")
    return max((at for at in phases if at <= last), default=float("-inf")) - COUNTED


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
