"""A model of disks that share limits: max-min fair rates, and how well they agree with what was measured."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import fsum
from typing import NamedTuple

FULL = 1e-9
"""Relative: a disk or a limit that has less left than this is full."""
BINDS = 1 - 1e-6
"""Of a limit, what is used of it at least where it binds."""
FREE = 1 - 1e-6
"""Of its rate alone, what a disk has at least that no limit slows."""
EQUAL: Mapping[str, float] = {}
"""Weights of disks that all have the same."""


@dataclass(frozen=True)
class FairLimit:
    """What ``disks`` together can reach at most."""

    disks: frozenset[str]
    most: float

    def binds(self, rates: Mapping[str, float]) -> bool:
        """Whether these rates of working disks use it up."""
        return fsum(rate for disk, rate in rates.items() if disk in self.disks) >= BINDS * self.most


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
    inside = [(limit.disks.intersection(working), limit.most) for limit in limits]
    return _max_min(alone, [(disks, most) for disks, most in inside if len(disks) > 1], working, weights)


_Limits = Sequence[tuple[frozenset[str], float]]
"""The working disks of each limit, two at least, and what they can reach."""


def _max_min(
    alone: Mapping[str, float], limits: _Limits, working: Iterable[str], weights: Mapping[str, float]
) -> dict[str, float]:
    rates = {disk: alone[disk] for disk in working}
    slowing = [(disks, most) for disks, most in limits if fsum([alone[disk] for disk in disks]) > most]
    slowed = frozenset[str]().union(*(disks for disks, _ in slowing))
    if len(slowed) < sum(len(disks) for disks, _ in slowing):
        _fill_together(rates, slowing, slowed, weights)
    else:  # no disk is in two of them
        for disks, most in slowing:
            _fill_one(rates, disks, most, weights)
    return rates


def _fill_one(rates: dict[str, float], disks: Iterable[str], most: float, weights: Mapping[str, float]) -> None:
    """Give the disks of one limit their share of it: those that want least get it, the others share the rest."""
    shares = sorted((rates[disk] / weights.get(disk, 1.0), disk, weights.get(disk, 1.0)) for disk in disks)
    left, parts = most, fsum([share for _, _, share in shares])
    for number, (wanted, disk, share) in enumerate(shares):
        if wanted * parts > left:
            level = left / parts
            rates.update((disk, level * share) for _, disk, share in shares[number:])
            return
        left -= rates[disk]
        parts -= share


def _fill_together(
    rates: dict[str, float], limits: _Limits, slowed: frozenset[str], weights: Mapping[str, float]
) -> None:
    """The same for limits that have disks in common: all disks grow until the first of them is full, and so on."""
    alone = {disk: rates[disk] for disk in slowed}
    share = {disk: weights.get(disk, 1.0) for disk in slowed}
    growing, level = set(slowed), 0.0
    while growing:
        step = min([alone[disk] / share[disk] for disk in growing])
        for disks, most in limits:
            left = disks & growing
            if left:
                taken = fsum([rates[disk] for disk in disks - growing])
                step = min(step, (most - taken) / fsum([share[disk] for disk in left]))
        level = max(level, step)
        for disk in growing:
            rates[disk] = level * share[disk]
        full = {disk for disk in growing if alone[disk] - rates[disk] <= FULL * alone[disk]}
        for disks, most in limits:
            if disks & growing and most - fsum([rates[disk] for disk in disks]) <= FULL * most:
                full |= disks & growing
        growing -= full


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


class _Values(NamedTuple):
    """What a fit changes: rates alone, limits, weights."""

    alone: Mapping[str, float]
    limits: tuple[FairLimit, ...]
    weights: Mapping[str, float]


class Fitting:
    """Fits models to the rates of all conditions. It keeps what many models need: whose rates are in which sum."""

    def __init__(self, observed: Sequence[ObservedRates], noise: RunNoise) -> None:
        self.observed = observed
        self._variances = [_variances(one, noise) for one in observed]
        self._inside: dict[frozenset[str], list[tuple[frozenset[str], float]]] = {}
        self._steps: dict[Hashable, tuple[FairModel | None, _Values]] = {}

    def fit(self, limits: Sequence[FairLimit], *, weighted: bool = False) -> FairModel | None:
        """The best model with limits of these disks, beginning with these values; ``None`` if one of them never binds.

        A rate alone is the mean of what a disk has in all conditions in which no limit slows it. A limit is the mean of
        what its disks have together in all conditions in which it binds. A ``weighted`` model also has a weight for
        each disk: its usual share of what those that a limit slows have on average.
        """
        values = _Values(_first_guess(self.observed), tuple(limits), EQUAL)
        best: FairModel | None = None
        for _ in range(WEIGHTED_STEPS if weighted else STEPS):
            model, improved = self._step(values, weighted)
            if model is not None and (best is None or model.misfit < best.misfit):
                best = model
            if improved == values:
                break
            values = improved
        return best

    def _step(self, values: _Values, weighted: bool) -> tuple[FairModel | None, _Values]:
        """The model with these values, if each limit binds, and better values. Many fits come to the same values."""
        key = (weighted, tuple(values.alone.items()), values.limits, tuple(values.weights.items()))
        if key not in self._steps:
            self._steps[key] = self._computed(values, weighted)
        return self._steps[key]

    def _computed(self, values: _Values, weighted: bool) -> tuple[FairModel | None, _Values]:
        alone, limits, weights = values
        predicted = self._predicted(alone, limits, weights)
        misfit = fsum(map(_misfit, self.observed, predicted, self._variances))
        binding = [self._binding(limit, predicted) for limit in limits]
        shared = list(zip(limits, map(self._shared, limits, binding), strict=True))
        heavier = self._weights(predicted, alone, shared, weights) if weighted else weights
        moved = tuple(self._moved(*one) for one in shared)
        improved = _Values(_alone(self.observed, predicted, alone), moved, heavier)
        return FairModel(alone, limits, misfit, weights) if all(binding) else None, improved

    def _disks(self, limit: FairLimit) -> list[tuple[frozenset[str], float]]:
        """For each condition, which disks of a limit work in it, and the sum of their rates."""
        found = self._inside.get(limit.disks)
        if found is None:
            both = [(one, limit.disks.intersection(one.rates)) for one in self.observed]
            found = [(disks, fsum([one.rates[disk] for disk in disks])) for one, disks in both]
            self._inside[limit.disks] = found
        return found

    def _predicted(
        self, alone: Mapping[str, float], limits: Sequence[FairLimit], weights: Mapping[str, float]
    ) -> list[dict[str, float]]:
        inside = [(self._disks(limit), limit.most) for limit in limits]
        return [
            _max_min(
                alone,
                [(disks[number][0], most) for disks, most in inside if len(disks[number][0]) > 1],
                one.rates,
                weights,
            )
            for number, one in enumerate(self.observed)
        ]

    def _binding(self, limit: FairLimit, predicted: Sequence[Mapping[str, float]]) -> list[int]:
        """The conditions in which a limit is used up."""
        full = BINDS * limit.most
        return [
            number
            for number, ((disks, _), rates) in enumerate(zip(self._disks(limit), predicted, strict=True))
            if fsum([rates[disk] for disk in disks]) >= full
        ]

    def _shared(self, limit: FairLimit, binding: Sequence[int]) -> list[int]:
        """Those of these conditions in which two disks of a limit work at least."""
        inside = self._disks(limit)
        return [number for number in binding if len(inside[number][0]) > 1]

    def _moved(self, limit: FairLimit, shared: Sequence[int]) -> FairLimit:
        """The limit at the mean of what its disks have where they share it."""
        inside = self._disks(limit)
        weight = sum(self.observed[number].repeats for number in shared)
        total = fsum([self.observed[number].repeats * inside[number][1] for number in shared])
        return FairLimit(limit.disks, total / weight if weight else limit.most)

    def _weights(
        self,
        predicted: Sequence[Mapping[str, float]],
        alone: Mapping[str, float],
        shared: Sequence[tuple[FairLimit, Sequence[int]]],
        before: Mapping[str, float],
    ) -> dict[str, float]:
        found = []
        for limit, numbers in shared:
            for number in numbers:
                one, rates = self.observed[number], predicted[number]
                disks = self._disks(limit)[number][0]
                members = _slowed_most(disks, rates, alone, before)
                if len(members) > 1:
                    level = fsum([one.rates[disk] for disk in members]) / fsum([before.get(d, 1.0) for d in members])
                    found += [(disk, max(one.rates[disk] / level, LEAST_WEIGHT), one.repeats) for disk in members]
        weights = {**before, **_means(found)}
        usual = fsum(weights.values()) / len(weights) if weights else 1.0
        return {disk: weight / usual for disk, weight in weights.items()}


def _slowed_most(
    disks: Collection[str], rates: Mapping[str, float], alone: Mapping[str, float], weights: Mapping[str, float]
) -> list[str]:
    """Of the disks of a limit that is used up, those that this limit slows: others have less by a limit inside it."""
    levels = {disk: rates[disk] / weights.get(disk, 1.0) for disk in disks}
    highest = max(levels.values(), default=0.0)
    return [disk for disk in disks if rates[disk] < FREE * alone[disk] and levels[disk] >= FREE * highest]


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
        if rates[disk] >= FREE * before[disk]
    )
    return {**before, **_means(free)}


def _means(values: Iterable[tuple[str, float, int]]) -> dict[str, float]:
    sums: dict[str, float] = {}
    counts: dict[str, int] = {}
    for name, value, count in values:
        sums[name] = sums.get(name, 0.0) + count * value
        counts[name] = counts.get(name, 0) + count
    return {name: total / counts[name] for name, total in sums.items()}


def _variances(one: ObservedRates, noise: RunNoise) -> tuple[float, float]:
    """The squares of the noise that each mean rate of a condition has, and of the noise that all of them share."""
    usual = noise.common**2
    per_run = noise.own**2 / len(one.rates)
    if one.spread**2 > WILD**2 * (usual + per_run):
        usual = one.spread**2 - per_run
    return noise.own**2 / one.repeats + SYSTEMATIC**2, usual / one.repeats + SYSTEMATIC**2


def _misfit(one: ObservedRates, predicted: Mapping[str, float], variances: tuple[float, float]) -> float:
    """The squared deviation, with covariance: the repeats of a condition have noise that all its disks share."""
    own, common = variances
    off = [rate / predicted[disk] - 1.0 for disk, rate in one.rates.items()]
    return (fsum([each * each for each in off]) - common * fsum(off) ** 2 / (own + len(off) * common)) / own
