"""What a study measures: which disks work at once, and how."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from plugpull.load.patterns import Pattern, sequential_read, sequential_write

D = TypeVar("D")
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


def power_design(disks: Sequence[T_co]) -> Design[T_co]:
    """One, two, four and all of the disks at once; written and read: what shows how the power grows with streams."""
    counts = sorted({1, 2, 4, len(disks)} & set(range(1, len(disks) + 1)))
    return tuple(Condition(tuple(disks[:count]), pattern) for pattern in BOTH for count in counts)


def all_at_once(disks: Sequence[T_co], *patterns: Pattern) -> Design[T_co]:
    """All disks at once; writing, unless patterns are given."""
    return tuple(Condition(tuple(disks), pattern) for pattern in patterns or (sequential_write,))


def all_for_long(disks: Sequence[T_co]) -> Design[T_co]:
    """All disks at once are written for long."""
    return (Condition(tuple(disks), sequential_write, long=True),)


def part_by_part(disks: Sequence[T_co], *patterns: Pattern) -> Design[T_co]:
    """The disks below each hub and controller at once, and all others at once: what shows a limit inside another one.
    Empty for disks that do not know their place."""
    parts = _parts(disks)
    rests = [tuple(disk for disk in disks if disk not in part) for part in parts]
    groups = [group for pair in zip(parts, rests, strict=True) for group in pair if len(group) > 1]
    return tuple(Condition(group, pattern) for pattern in patterns or BOTH for group in groups)


def _parts(disks: Sequence[T_co]) -> list[tuple[T_co, ...]]:
    """The disks below each hub and controller, where these are several and not all."""
    below: dict[str, list[T_co]] = {}
    for disk in disks:
        for holder in getattr(disk, "above", ()):
            below.setdefault(holder, []).append(disk)
    return [tuple(part) for part in below.values() if 1 < len(part) < len(disks)]


def scaling_design(disks: Sequence[T_co]) -> Design[T_co]:
    """What shows how the rate grows with the number of disks, and which disks share a bottleneck. Of reading, only the
    disks of each hub are measured besides: leaving each disk out takes most of the time."""
    parts = leave_one_out(disks, sequential_write) + part_by_part(disks, sequential_write)
    reading = tuple(Condition(part, sequential_read) for part in _parts(disks))
    return tuple(dict.fromkeys(more_and_more(disks) + parts + reading))


def interleaved(design: Design[T_co], repeats: int, draw: random.Random) -> Iterator[tuple[int, Condition[T_co]]]:
    """Each condition once in each of ``repeats`` rounds, in a new random order each: (round from 1, condition).

    So a slow change of the bench, such as its temperature, does not look like a difference of conditions.
    """
    return in_rounds(design, repeats, draw)


def in_rounds(design: Sequence[D], repeats: int, draw: random.Random | None) -> Iterator[tuple[int, D]]:
    """Each part of a design once in each of ``repeats`` rounds: (round from 1, part). In a new random order each, or
    always in its own without ``draw``."""
    for number in range(1, repeats + 1):
        for part in design if draw is None else draw.sample(design, len(design)):
            yield number, part
