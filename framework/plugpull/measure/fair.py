"""A model of disks that share limits: max-min fair rates, and how well they agree with what was measured."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import fsum

FULL = 1e-9
"""Relative: a disk or a limit that has less left than this is full."""
EQUAL: Mapping[str, float] = {}
"""Weights of disks that all have the same."""


@dataclass(frozen=True)
class FairLimit:
    """What ``disks`` together can reach at most."""

    disks: frozenset[str]
    most: float

    def binds(self, rates: Mapping[str, float]) -> bool:
        """Whether these rates of working disks use it up."""
        return fsum(rate for disk, rate in rates.items() if disk in self.disks) >= (1 - 1e-6) * self.most


def fair_rates(
    alone: Mapping[str, float],
    limits: Iterable[FairLimit],
    working: Collection[str],
    weights: Mapping[str, float] = EQUAL,
) -> dict[str, float]:
    """The max-min fair rates of the working disks (Bertsekas and Gallager, Data Networks, 6.5.2).

    All grow equally until a disk or a limit is full. What a disk reaches alone is its own rate, whatever limits that.
    Disks with ``weights`` grow by so much instead of 1.

        >>> fair_rates({"a": 5.0, "b": 30.0, "c": 30.0}, [FairLimit(frozenset("abc"), 35.0)], "abc")
        {'a': 5.0, 'b': 15.0, 'c': 15.0}
        >>> fair_rates({"a": 30.0, "b": 30.0}, [FairLimit(frozenset("ab"), 36.0)], "ab", {"a": 2.0})
        {'a': 24.0, 'b': 12.0}
    """
    rates = dict.fromkeys(working, 0.0)
    growing = set(rates)
    open_limits = [(limit.disks.intersection(rates), limit.most) for limit in limits]
    open_limits = [(disks, most) for disks, most in open_limits if len(disks) > 1]
    share = {disk: weights.get(disk, 1.0) for disk in rates}
    level = 0.0
    while growing:
        step = min(alone[disk] / share[disk] for disk in growing)
        for disks, most in open_limits:
            left = disks & growing
            if left:
                taken = fsum(rates[disk] for disk in disks - growing)
                step = min(step, (most - taken) / fsum(share[disk] for disk in left))
        level = max(level, step)
        for disk in growing:
            rates[disk] = level * share[disk]
        full = {disk for disk in growing if alone[disk] - rates[disk] <= FULL * alone[disk]}
        for disks, most in open_limits:
            if disks & growing and most - fsum(rates[disk] for disk in disks) <= FULL * most:
                full |= disks & growing
        growing -= full
    return rates


@dataclass(frozen=True)
class ObservedRates:
    """The mean rates of one condition: the disks that worked, and ``repeats`` of each. ``spread`` is the relative
    standard deviation of the runs, each the mean of its disks."""

    rates: Mapping[str, float]
    repeats: int
    spread: float = 0.0


@dataclass(frozen=True)
class RunNoise:
    """Relative standard deviations: ``own`` of each rate from repeat to repeat, ``common`` of all rates of a repeat.
    ``freedom`` are the degrees of freedom with which they are known."""

    own: float
    common: float
    freedom: float


@dataclass(frozen=True)
class FairModel:
    """Rates alone, the limits, and the weights with which disks share them. ``misfit`` is the sum of squares of what it
    does not explain, in units of noise."""

    alone: Mapping[str, float]
    limits: tuple[FairLimit, ...]
    misfit: float
    weights: Mapping[str, float] = field(default_factory=dict)

    def rates(self, working: Collection[str]) -> dict[str, float]:
        """What it predicts of the working disks."""
        return fair_rates(self.alone, self.limits, working, self.weights)


SYSTEMATIC = 0.01
"""Relative: how far conditions differ from each other without any limit. A load costs the DUT something too."""
WILD = 2.0
"""If the runs of a condition are spread this many times as far as noise explains, their own spread counts."""
STEPS = 6
"""Of the iteration. Most models need 2 or 3."""
WEIGHTED_STEPS = 8
"""With weights, which depend on each other."""
LEAST_WEIGHT = 0.01
"""Of a disk that has next to nothing while others work."""


def fit(
    observed: Sequence[ObservedRates], noise: RunNoise, limits: Sequence[FairLimit], *, weighted: bool = False
) -> FairModel | None:
    """The best model with limits of these disks, beginning with these values; ``None`` if one of them never binds.

    A rate alone is the mean of what a disk has in all conditions in which no limit slows it. A limit is the mean of
    what its disks have together in all conditions in which it binds. A ``weighted`` model also has a weight for each
    disk: its usual share of what those that a limit slows have on average.
    """
    alone, weights = _first_guess(observed), EQUAL
    best: FairModel | None = None
    for _ in range(WEIGHTED_STEPS if weighted else STEPS):
        predicted = [fair_rates(alone, limits, one.rates, weights) for one in observed]
        misfit = fsum(_misfit(one, rates, noise) for one, rates in zip(observed, predicted, strict=True))
        if all(any(limit.binds(rates) for rates in predicted) for limit in limits) and (
            best is None or misfit < best.misfit
        ):
            best = FairModel(alone, tuple(limits), misfit, weights)
        heavier = _weights(observed, predicted, alone, limits, weights) if weighted else weights
        changed = _alone(observed, predicted, alone), _limits(observed, predicted, limits), heavier
        if changed == (alone, limits, weights):
            break
        alone, limits, weights = changed
    return best


def _weights(
    observed: Sequence[ObservedRates],
    predicted: Sequence[Mapping[str, float]],
    alone: Mapping[str, float],
    limits: Sequence[FairLimit],
    before: Mapping[str, float],
) -> dict[str, float]:
    found = []
    for one, rates in zip(observed, predicted, strict=True):
        slowed = {disk for disk in rates if rates[disk] < (1 - 1e-6) * alone[disk]}
        for limit in limits:
            members = slowed & limit.disks
            if len(members) > 1 and limit.binds(rates):
                level = fsum(one.rates[disk] for disk in members) / fsum(before.get(disk, 1.0) for disk in members)
                found += [(disk, max(one.rates[disk] / level, LEAST_WEIGHT), one.repeats) for disk in members]
    weights = {**before, **_means(found)}
    usual = fsum(weights.values()) / len(weights) if weights else 1.0
    return {disk: weight / usual for disk, weight in weights.items()}


def _first_guess(observed: Sequence[ObservedRates]) -> dict[str, float]:
    return _means(
        (disk, rate, one.repeats) for one in observed if len(one.rates) == 1 for disk, rate in one.rates.items()
    )


def _alone(
    observed: Sequence[ObservedRates], predicted: Sequence[Mapping[str, float]], before: Mapping[str, float]
) -> dict[str, float]:
    free = (
        (disk, rate, one.repeats)
        for one, rates in zip(observed, predicted, strict=True)
        for disk, rate in one.rates.items()
        if rates[disk] >= (1 - 1e-6) * before[disk]
    )
    return {**before, **_means(free)}


def _limits(
    observed: Sequence[ObservedRates], predicted: Sequence[Mapping[str, float]], before: Sequence[FairLimit]
) -> list[FairLimit]:
    found = []
    for limit in before:
        sums = [
            (one.repeats, fsum(rate for disk, rate in one.rates.items() if disk in limit.disks))
            for one, rates in zip(observed, predicted, strict=True)
            if len(limit.disks.intersection(rates)) > 1 and limit.binds(rates)
        ]
        weight = sum(count for count, _ in sums)
        most = fsum(count * each for count, each in sums) / weight if weight else limit.most
        found.append(FairLimit(limit.disks, most))
    return found


def _means(values: Iterable[tuple[str, float, int]]) -> dict[str, float]:
    sums: dict[str, float] = {}
    counts: dict[str, int] = {}
    for name, value, count in values:
        sums[name] = sums.get(name, 0.0) + count * value
        counts[name] = counts.get(name, 0) + count
    return {name: total / counts[name] for name, total in sums.items()}


def _misfit(one: ObservedRates, predicted: Mapping[str, float], noise: RunNoise) -> float:
    """The squared deviation, with covariance: the repeats of a condition have noise that all its disks share."""
    usual = noise.common**2
    per_run = noise.own**2 / len(one.rates)
    if one.spread**2 > WILD**2 * (usual + per_run):
        usual = one.spread**2 - per_run
    own = noise.own**2 / one.repeats + SYSTEMATIC**2
    common = usual / one.repeats + SYSTEMATIC**2
    off = [rate / predicted[disk] - 1.0 for disk, rate in one.rates.items()]
    return (fsum(each * each for each in off) - common * fsum(off) ** 2 / (own + len(off) * common)) / own
