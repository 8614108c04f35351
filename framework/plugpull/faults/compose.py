"""Faults as data: cuts, and what is composed of them."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from plugpull.errors import UsageError
from plugpull.faults.script import Arm, Gone, MovedAway, Opening, Script, SwitchPorts, heal, side_by_side, until
from plugpull.faults.triggers import After, Now, Trigger
from plugpull.rig.topology import CutPoint

Point = CutPoint | str
"""A cut point, such as ``disk.cable``, or its name, such as "disk1.cable"."""


class Fault:
    """Something that is done to the rig, as data. Every kind is a frozen struct; ``codec.py`` reads and writes them."""

    __slots__ = ()

    def inject(self, held: list[Opening | MovedAway]) -> Script:
        """The steps that make it. What stays open is added to ``held``; ``script.heal(held)`` closes it."""
        raise NotImplementedError


class CutFault(Fault, msgspec.Struct, frozen=True, tag_field="kind", tag="cut"):
    """Cut points, all at once, when the trigger fires. It holds until it is healed; a permanent one, until the scenario
    ends. Raises UsageError without a point."""

    points: tuple[str, ...]
    when: Trigger = Now()
    permanent: bool = False

    def __post_init__(self) -> None:
        if not self.points:
            raise UsageError("a cut needs a point to cut", hint="name one, such as disk.cable")

    def inject(self, held: list[Opening | MovedAway]) -> Script:
        # Cuts that are armed with the same trigger and healed together are one group.
        opening = Opening(self.points, self.when, self.permanent, group=(self.when, self.permanent, id(held)))
        yield Arm((opening,))
        yield until(self.when, self.points[0])
        held.append(opening)
        yield SwitchPorts(off=(opening,))
        yield until(Gone(self.points))


class Pause(Fault, msgspec.Struct, frozen=True, tag_field="kind", tag="pause"):
    """Do nothing until the trigger fires."""

    until: Trigger

    def inject(self, held: list[Opening | MovedAway]) -> Script:
        yield until(self.until)


class InSequence(Fault, msgspec.Struct, frozen=True, tag_field="kind", tag="in_sequence"):
    """Faults one after the other. What one of them leaves open stays open while the next are made."""

    faults: tuple[Fault, ...]

    def inject(self, held: list[Opening | MovedAway]) -> Script:
        for fault in self.faults:
            yield from fault.inject(held)


class Together(Fault, msgspec.Struct, frozen=True, tag_field="kind", tag="together"):
    """Faults that begin at the same moment. Each goes on at its own pace."""

    faults: tuple[Fault, ...]

    def inject(self, held: list[Opening | MovedAway]) -> Script:
        yield from side_by_side(fault.inject(held) for fault in self.faults)


class Held(Fault, msgspec.Struct, frozen=True, tag_field="kind", tag="held"):
    """A fault that is healed after ``seconds``."""

    fault: Fault
    seconds: float

    def __post_init__(self) -> None:
        After(self.seconds)

    def inject(self, held: list[Opening | MovedAway]) -> Script:
        own: list[Opening | MovedAway] = []
        yield from self.fault.inject(own)
        yield until(After(self.seconds))
        yield from heal(own)


class Repeated(Fault, msgspec.Struct, frozen=True, tag_field="kind", tag="repeated"):
    """A fault made ``times`` times, with ``gap`` seconds between two of them. One that is not held opens its points
    once more each time."""

    fault: Fault
    times: int
    gap: float = 0.0

    def __post_init__(self) -> None:
        After(self.gap)
        if self.times < 1:
            raise UsageError(f"a fault cannot be repeated {self.times} times", hint="give 1 or more")

    def inject(self, held: list[Opening | MovedAway]) -> Script:
        for number in range(self.times):
            if number:
                yield until(After(self.gap))
            yield from self.fault.inject(held)


def cut(*points: Point, when: Trigger | None = None, permanent: bool = False) -> CutFault:
    """Cut these points, all at once, when the trigger fires: at once if there is none.

    It holds until it is healed, a ``permanent`` cut until the scenario ends. Raises ``UsageError`` without a point.
    """
    return CutFault(names_of(points), when or Now(), permanent)


def pause(until: float | Trigger) -> Pause:
    """Let so many seconds pass, or wait for a trigger."""
    return Pause(until if isinstance(until, Trigger) else After(until))


def in_sequence(*faults: Fault) -> InSequence:
    """These faults one after the other. What one of them leaves open stays open while the next are made."""
    return InSequence(faults)


def together(*faults: Fault) -> Together:
    """These faults side by side. Cuts with equal triggers are made at the same moment, even a random one."""
    return Together(faults)


def held(fault: Fault, seconds: float) -> Held:
    """This fault, healed after so many seconds."""
    return Held(fault, seconds)


def repeated(fault: Fault, times: int, gap: float = 0.0) -> Repeated:
    """This fault so many times, with ``gap`` seconds between two of them.

    One that is not held opens its points once more each time. Raises ``UsageError`` for less than one time.

        with rig.fault(repeated(held(cut("disk1.cable"), seconds=0.5), times=3, gap=1)):
            pass
    """
    return Repeated(fault, times, gap)


def names_of(points: Iterable[Point]) -> tuple[str, ...]:
    """The names of cut points, each once."""
    return tuple(dict.fromkeys(point if isinstance(point, str) else point.name for point in points))
