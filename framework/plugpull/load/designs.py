"""What a study measures: which disks work at once, and how."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from plugpull.load.patterns import Pattern, sequential_read, sequential_write

T_co = TypeVar("T_co", covariant=True)
OnController_co = TypeVar("OnController_co", bound="HasController", covariant=True)
BOTH = (sequential_write, sequential_read)


@dataclass(frozen=True)
class Condition(Generic[T_co]):
    """The same load on ``disks``, at once. ``long``: long enough to see how the rate changes meanwhile."""

    disks: tuple[T_co, ...]
    pattern: Pattern
    long: bool = False


class HasController(Protocol):
    """A disk that knows its controller."""

    @property
    def controller(self) -> str:
        """Its name."""
        ...


Design = tuple[Condition[T_co], ...]


def each_alone(disks: Sequence[T_co], *patterns: Pattern) -> Design[T_co]:
    """Each disk by itself; writing and reading, unless patterns are given."""
    return tuple(Condition((disk,), pattern) for pattern in patterns or BOTH for disk in disks)


def more_and_more(disks: Sequence[T_co], *patterns: Pattern) -> Design[T_co]:
    """Each disk by itself, and the first 2, 3, ... of them at once."""
    groups = [tuple(disks[:count]) for count in range(2, len(disks) + 1)]
    together = tuple(Condition(group, pattern) for pattern in patterns or BOTH for group in groups)
    return each_alone(disks, *patterns) + together


def leave_one_out(disks: Sequence[T_co], *patterns: Pattern) -> Design[T_co]:
    """Each disk by itself, all at once, and all but one."""
    groups = [tuple(disks), *(tuple(disk for disk in disks if disk != out) for out in disks)]
    together = tuple(Condition(group, pattern) for pattern in patterns or BOTH for group in groups if len(group) > 1)
    return each_alone(disks, *patterns) + together


def side_by_side(disks: Sequence[OnController_co]) -> Design[OnController_co]:
    """As many disks at once on each controller, for rigs with several. Empty for a rig with one."""
    by_controller: dict[str, list[OnController_co]] = {}
    for disk in disks:
        by_controller.setdefault(disk.controller, []).append(disk)
    if len(by_controller) < 2:
        return ()
    count = min(map(len, by_controller.values()))
    return tuple(Condition(tuple(group[:count]), pattern) for pattern in BOTH for group in by_controller.values())


def all_at_once(disks: Sequence[T_co], *patterns: Pattern) -> Design[T_co]:
    """All disks at once; writing, unless patterns are given."""
    return tuple(Condition(tuple(disks), pattern) for pattern in patterns or (sequential_write,))


def all_for_long(disks: Sequence[T_co]) -> Design[T_co]:
    """All disks at once are written for long."""
    return (Condition(tuple(disks), sequential_write, long=True),)


def scaling_design(disks: Sequence[T_co]) -> Design[T_co]:
    """What shows how the rate grows with the number of disks, and which disks share a bottleneck. What disks share is
    looked for with writes only: leaving each disk out takes most of the time."""
    return tuple(dict.fromkeys(more_and_more(disks) + leave_one_out(disks, sequential_write)))


def interleaved(design: Design[T_co], repeats: int, draw: random.Random) -> Iterator[tuple[int, Condition[T_co]]]:
    """Each condition once in each of ``repeats`` rounds, in a new random order each: (round from 1, condition).

    So a slow change of the bench, such as its temperature, does not look like a difference of conditions.
    """
    for number in range(1, repeats + 1):
        for condition in draw.sample(design, len(design)):
            yield number, condition
