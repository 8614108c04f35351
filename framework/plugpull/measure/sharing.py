"""Which disks share a bottleneck, without a model: let all work at once, then leave one out. Those that it slowed get
faster. For disks that do not share fairly."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import fsum
from statistics import fmean

from plugpull.measure.compare import FLOOR, holm, welch_test
from plugpull.measure.estimate import Estimate, estimate
from plugpull.measure.scaling import LIMITED, SURELY

SURE = 0.01
"""The probability of claiming any group where there is none."""

Rates = Mapping[str, Sequence[float]]
"""Samples by disk, one per repeat."""


@dataclass(frozen=True)
class Group:
    """``disks`` that share something: together they reach ``ceiling``, one by one the sum ``demand``."""

    disks: tuple[str, ...]
    ceiling: Estimate
    demand: float


def groups(alone: Rates, together: Rates, without: Mapping[str, Rates]) -> tuple[Group, ...]:
    """The groups of disks that share a bottleneck, in the order of ``alone``, each with at least 2 disks.

    ``together`` has the samples of each disk while all work, and ``without[x]`` those while all but x do, each with at
    least 2 repeats. Two disks share a bottleneck if one gets faster when the other one is left out. This finds the
    outermost bottleneck that is saturated; a narrower one inside it shows only when the others of its group rest.
    """
    pairs = list(combinations(alone, 2))
    tests = [_pair(one, two, together, without) for one, two in pairs]
    sure = holm([p for p, _ in tests])
    linked = [pair for pair, (_, gain), p in zip(pairs, tests, sure, strict=True) if p < SURE and gain >= FLOOR]
    found = []
    for disks in _components(alone, linked):
        ceiling = estimate([fsum(rates) for rates in zip(*(together[disk] for disk in disks), strict=True)])
        demand = fsum(fmean(alone[disk]) for disk in disks)
        if ceiling.mean < LIMITED * demand and (ceiling.high or 0.0) < SURELY * demand:
            found.append(Group(disks, ceiling, demand))
    return tuple(found)


def _pair(one: str, two: str, together: Rates, without: Mapping[str, Rates]) -> tuple[float, float]:
    """(p, gain) of two disks, each when the other one is left out, relative to its rate while all work. Of both, or of
    one of them: a disk that takes what it wants gets no faster, and slows the other one down."""
    sides = []
    for stays, rests in ((one, two), (two, one)):
        mean = fmean(together[stays])
        if mean <= 0:
            return 1.0, 0.0
        sides.append(([rate / mean for rate in together[stays]], [rate / mean for rate in without[rests][stays]]))
    sides.append((sides[0][0] + sides[1][0], sides[0][1] + sides[1][1]))
    tests = [(min(1.0, 3 * welch_test(*side)), fmean(side[1]) - fmean(side[0])) for side in sides]
    return min((test for test in tests if test[1] >= 0), default=(1.0, 0.0))


def _components(names: Iterable[str], linked: Sequence[tuple[str, str]]) -> list[tuple[str, ...]]:
    """The connected components with more than one member, in the order of ``names``."""
    order = list(names)
    home = {name: name for name in order}
    for one, two in linked:
        old, new = home[two], home[one]
        home = {name: new if place == old else place for name, place in home.items()}
    members = [tuple(name for name in order if home[name] == place) for place in dict.fromkeys(home.values())]
    return [component for component in members if len(component) > 1]
