"""Disks that are plugged into other sockets: through another hub when theirs is dead, or in each other's place."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from plugpull.errors import UsageError
from plugpull.faults.compose import Fault, names_of
from plugpull.faults.script import (
    Arm,
    Back,
    Gone,
    Here,
    MovedAway,
    Opening,
    Relocate,
    Script,
    SwitchPorts,
    Until,
    Wait,
    until,
)
from plugpull.faults.triggers import After, Now, Trigger
from plugpull.rig.part import Part

NOTICED = 2.0
"""Seconds after which the kernel has noticed that a disk was unplugged, or never will."""


class MoveFault(Fault, msgspec.Struct, frozen=True, tag_field="kind", tag="move"):
    """Disks that are off are plugged into other sockets, and back into their own when the fault is healed.

    Raises UsageError without a disk.
    """

    sockets: tuple[tuple[str, str], ...]

    def __post_init__(self) -> None:
        if not self.sockets:
            raise UsageError("a move needs a disk to move", hint="give a disk and its new socket")

    def inject(self, held: list[Opening | MovedAway]) -> Script:
        placed = MovedAway(tuple(disk for disk, _ in self.sockets))
        held.append(placed)
        yield Relocate(self.sockets)
        yield until(Here(placed.disks))


class SwapFault(Fault, msgspec.Struct, frozen=True, tag_field="kind", tag="swap"):
    """Two disks lose their cables and get each other's, as fast as the bench can. Healing swaps them back.

    ``sockets`` are the (disk, new socket) pairs, ``points`` their cables.
    """

    sockets: tuple[tuple[str, str], ...]
    points: tuple[str, ...]
    when: Trigger = Now()

    def inject(self, held: list[Opening | MovedAway]) -> Script:
        placed = MovedAway(tuple(disk for disk, _ in self.sockets), self.points)
        held.append(placed)
        yield from replug(self.points, self.sockets, self.when)


def replug(points: tuple[str, ...], sockets: tuple[tuple[str, str], ...], when: Trigger) -> Script:
    """Open these points, plug the disks into these sockets, and close the points again."""
    opening = Opening(points, when)
    yield Arm((opening,))
    yield until(when, points[0])
    yield SwitchPorts(off=(opening,))
    yield Relocate(sockets)
    yield SwitchPorts(on=(opening,))
    yield Until((Wait(Gone(points)), Wait(After(NOTICED))))
    yield until(Back(points))


def move(sockets: Mapping[str, str]) -> MoveFault:
    """Plug these disks, which are off, into these sockets until the fault is healed.

    ``rig.sockets_elsewhere`` gives sockets that are free. Raises ``UsageError`` without a disk.

        with rig.cut("hub1.cable"), rig.fault(move({"disk1": "hub2.3"})):
            rig.wait(seconds=2)
    """
    return MoveFault(tuple(sockets.items()))


def swap(first: Part, second: Part, when: Trigger | None = None) -> SwapFault:
    """Plug two disks into each other's sockets, as fast as the bench can, when the trigger fires. Healing swaps back.

    Raises ``NotServed`` if one of them has no cable that can be cut.
    """
    sockets = ((first.name, second.socket), (second.name, first.socket))
    return SwapFault(sockets, names_of((first.cable, second.cable)), when or Now())
