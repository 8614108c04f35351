"""Were the ports switched when the fault on record says so?

A contact that bounces has gaps, a fault that is held has a length, and a cut can be made some time after it was armed.
The bench takes these times by its own clock.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from plugpull.history.cut import Cut
from plugpull.history.events import CutArmed, Edge, FaultInjected
from plugpull.history.story import Story

EARLY = 0.05
"""Seconds by which a step may come too early, apart from the error of the clocks. In 46 bounces, 13 cuts at random and
3 held faults none did."""
LATE = 5.0
"""Seconds by which it may come too late: 0.02 s at most in 46 gaps. A busy host takes longer."""
GONE_WITHIN = 30.0
"""Seconds in which the bench waits for the disks of a held fault to go, before it counts how long that is held."""


def fault_times_doubted(story: Story) -> Iterator[str]:
    """A sentence for each step that was made at another time than its fault says."""
    for event in story.of(FaultInjected):
        own = sorted((cut for cut in story.cut_records if cut.armed.fault == event.number), key=_number)
        kind = event.fault.get("kind")
        if kind == "bounce":
            yield from _bounce(story, event.fault, own)
        elif kind == "held" and event.fault.get("fault", {}).get("kind") == "cut":
            yield from _held(story, float(event.fault.get("seconds") or 0.0), own)
        elif kind == "cut":
            yield from _armed_for(story, event.fault.get("when"), own)


def _number(cut: Cut) -> int:
    return cut.armed.cut


def _bounce(story: Story, fault: dict[str, Any], cuts: list[Cut]) -> Iterator[str]:
    """Gaps of a contact of one point: from an acknowledgement to the next command."""
    gaps, points = [float(gap) for gap in fault.get("gaps", ())], fault.get("points", ())
    if len(points) != 1 or len(cuts) != (len(gaps) + 1) // 2:
        return
    steps = [step for cut in cuts for step in ((cut.armed, "off"), (cut.armed, "on"))]
    for ((one, was), (two, now)), gap in zip(pairwise(steps), gaps, strict=False):
        done, begun = _at(story, one, was, "acknowledged"), _at(story, two, now, "commanded")
        if done is None or begun is None:
            continue
        took, error = _between(done, begun), max(begun.error, done.error)
        if not gap - EARLY - error <= took <= gap + LATE + error:
            yield f"{one.point} was to be {was} for {gap:g} s, and was for {took:.2f} s"
            return


def _held(story: Story, seconds: float, cuts: list[Cut]) -> Iterator[str]:
    """Cuts that were held for another time than their fault says."""
    for cut in cuts:
        done, begun = _at(story, cut.armed, "off", "acknowledged"), _at(story, cut.armed, "on", "commanded")
        if done is None or begun is None or cut.armed.permanent:
            continue
        took, error = _between(done, begun), max(begun.error, done.error)
        if not seconds - EARLY - error <= took <= seconds + GONE_WITHIN + error:
            yield f"{cut.armed.point} was to be off for {seconds:g} s, and was for {took:.2f} s"
            return


def _armed_for(story: Story, when: Any, cuts: list[Cut]) -> Iterator[str]:
    """Cuts that were not made when their trigger had it, counted from when they were armed."""
    if not isinstance(when, dict) or when.get("kind") not in ("after", "at_random"):
        return
    low = float(when.get("low", when.get("seconds")) or 0.0)
    high = float(when.get("high", when.get("seconds")) or 0.0)
    for cut in cuts:
        begun = _at(story, cut.armed, "off", "commanded")
        if begun is None or cut.armed.at is None:
            continue
        took = (begun.at or 0.0) - cut.armed.at
        if not low - EARLY - begun.error <= took <= high + LATE + begun.error:
            span = f"after {low:g} s" if low == high else f"within {low:g} to {high:g} s"
            yield f"{cut.armed.point} was to be cut {span}, and was after {took:.2f} s"
            return


def _at(story: Story, armed: CutArmed, state: str, phase: str) -> Edge | None:
    """The step of a cut of one port; ``None`` without one, or with several."""
    found = [
        edge
        for edge in story.of(Edge)
        if (edge.cut, edge.state, edge.phase) == (armed.cut, state, phase) and edge.at is not None
    ]
    return found[0] if len(found) == 1 else None


def _between(one: Edge, two: Edge) -> float:
    return (two.at or 0.0) - (one.at or 0.0)
