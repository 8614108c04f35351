"""What a turn of a soak does to the rig and when, drawn at random: pure functions of a stream and the rig."""

from __future__ import annotations

import math
from random import Random

from plugpull.errors import NotServed
from plugpull.faults import cut, held, together
from plugpull.faults.compose import Fault
from plugpull.rig.topology import CutPoint, Topology

SHORTEST_HELD, LONGEST_HELD = 0.5, 10.0
"""Seconds that a fault lasts. Short ones are more frequent: the logarithm is drawn."""
TWO_AT_ONCE = 0.2
"""The share of turns in which two points are cut at once, where two can be."""
TURNS = 50
"""A soak is to have about so many turns or more: in a short one, faults follow each other sooner."""
APART = 45.0
"""Seconds that a turn takes beside its wait on an emulated bench: a new guest, settling, a return, reading."""
MOST_WAITED = 300.0
"""Seconds of undisturbed load before a fault in the long run: the mean."""
LEAST_WAITED = 10.0
DUT = "dut"
"""The DUT's own power is not cut: what the others do without it could not be seen."""
AT_MOST = 3.0
"""The longest wait, as a multiple of the mean."""


def points_to_cut(topology: Topology) -> tuple[CutPoint, ...]:
    """The points that a soak may cut: those that take scratch disks and no others. Points that leave a disk to survive
    come first; if there are any, they are all.

    Raises NotServed if there is none.
    """
    scratch = {disk.name for disk in topology.rig.disk if disk.scratch}
    known = topology.cut_points().values()
    points = [one for one in known if one.victims and scratch >= set(one.victims) and one.device != DUT]
    if not points:
        raise NotServed(
            "nothing of this rig can be cut that takes scratch disks only",
            hint="give a scratch disk a cable or power outlet in the rig file",
        )
    some = tuple(point for point in points if set(point.victims) < scratch)
    return some or tuple(points)


def draw_fault(stream: Random, topology: Topology) -> Fault:
    """One or two cuts, each held for a random time. Raises NotServed if nothing can be cut."""
    points = points_to_cut(topology)
    first = stream.choice(points)
    two, other = stream.random() < TWO_AT_ONCE, stream.random()
    lasting = [_held(stream), _held(stream)]
    scratch = {disk.name for disk in topology.rig.disk if disk.scratch}
    apart = [
        point
        for point in points
        if not set(point.victims) & set(first.victims) and set(point.victims) | set(first.victims) < scratch
    ]
    if two and apart:
        second = apart[int(other * len(apart))]
        return together(held(cut(first), lasting[0]), held(cut(second), lasting[1]))
    return held(cut(first), lasting[0])


def _held(stream: Random) -> float:
    return round(math.exp(stream.uniform(math.log(SHORTEST_HELD), math.log(LONGEST_HELD))), 3)


def mean_wait(seconds: float) -> float:
    """The mean wait before a fault in a soak of this length, in seconds."""
    return min(MOST_WAITED, max(LEAST_WAITED, seconds / TURNS - APART))


def draw_wait(stream: Random, seconds: float) -> float:
    """How long the loads run before the fault of a turn, for a soak of this length: faults come at random moments."""
    mean = mean_wait(seconds)
    return round(min(stream.expovariate(1.0 / mean), AT_MOST * mean), 3)
