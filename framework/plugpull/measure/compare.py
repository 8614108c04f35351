"""Whether two sets of repeats differ: exact permutation test, corrected for the comparisons of a table; Welch's test; a
practical floor."""

from __future__ import annotations

import random
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import comb, fsum, sqrt
from statistics import fmean, variance
from typing import Literal

from plugpull.measure.estimate import CONFIDENCE, odd_ones
from plugpull.measure.student import t_quantile, two_sided

FLOOR = 0.03
"""Changes below this share of the first value do not matter in practice."""
SIGNIFICANT = 0.03
"""The probability of claiming a difference in a table that has none: one in 30 runs. 4 repeats on each side can reach
it (0.029)."""
MOST_SPLITS = 200_000
"""Above this number of splits, random ones are drawn instead. 10 against 10 repeats have 184,756."""
DRAWS = 9_999
ROUNDING = 1e-12
"""Relative: differences of means that are this close are equal."""

POWER = 0.80
"""The probability with which as many repeats as are called needed would show a difference."""
MOST_REPEATS = 100

Answer = Literal["different", "alike", "unclear", "too few", "odd repeat"]
"""``different``: significant, and at least the floor. ``alike``: the interval of the change is within the floor.
``too few``: the exact test cannot be significant with so few repeats. ``odd repeat``: a repeat is unlike the others, so
nothing is claimed."""


@dataclass(frozen=True)
class RelativeChange:
    """``change`` is (second - first) / first, ``low`` and ``high`` bound its 95 % interval (``None``: not known). ``p``
    is the probability of so large a difference by chance, corrected for the number of comparisons in its table."""

    change: float
    low: float | None
    high: float | None
    p: float
    answer: Answer


@dataclass(frozen=True)
class PermutedSplits:
    """How far apart the means of two sets are, and would be with their values split in other ways: the share of the
    whole variation that is between them, as a correlation from 0 to 1. ``splits`` are sorted."""

    observed: float
    splits: Sequence[float]
    exact: bool

    def probability(self, apart: float) -> float:
        """The share of splits whose means are at least so far apart."""
        extreme = len(self.splits) - bisect_left(self.splits, apart - ROUNDING)
        return extreme / len(self.splits) if self.exact else (extreme + 1) / (len(self.splits) + 1)


def permuted(one: Sequence[float], two: Sequence[float]) -> PermutedSplits:
    """All ways to split the values of both sets into sets of the same sizes. For more than ``MOST_SPLITS``, random ones
    (the same ones each time)."""
    if not one or not two:
        raise ValueError("a permutation test needs at least one value on each side")
    middle = fsum((*one, *two)) / (len(one) + len(two))
    values, size = [value - middle for value in (*one, *two)], len(one)
    count = len(values)
    whole = fsum(value * value for value in values) * size * (count - size) / count
    if sqrt(whole) <= ROUNDING * max(map(abs, (*one, *two)), default=0.0) * count:
        return PermutedSplits(0.0, (0.0,), exact=True)  # all are equal
    scale = 1 / sqrt(whole)
    exact = comb(count, size) <= MOST_SPLITS
    chosen: Iterable[Sequence[float]] = combinations(values, size)
    if not exact:
        draw = random.Random(count)
        chosen = (draw.sample(values, size) for _ in range(DRAWS))
    # The values add up to 0, so the sum of one part says how far apart the means of both are.
    return PermutedSplits(
        abs(fsum(values[:size])) * scale, array("d", sorted(abs(sum(part)) * scale for part in chosen)), exact
    )


def permutation_test(one: Sequence[float], two: Sequence[float]) -> float:
    """The share of ways to split all values that give means at least as far apart: an exact two-sided p.

    >>> round(permutation_test([1, 2, 3, 4, 5], [6, 7, 8, 9, 10]), 4)
    0.0079
    """
    found = permuted(one, two)
    return found.probability(found.observed)


def step_down(table: Sequence[PermutedSplits]) -> tuple[float, ...]:
    """The probability of each comparison of a table, corrected for their number: how often chance would make any of
    those that are left at least as extreme (Westfall and Young, Resampling-Based Multiple Testing, 1993).

    The clearest goes first, as in Holm's correction. That one multiplies the p by the number that is left, as if all of
    them could be as extreme: with 5 repeats, no difference could be shown in a table of 7.
    """
    order = sorted(range(len(table)), key=lambda index: -table[index].observed)
    corrected, highest = [0.0] * len(table), 0.0
    for rank, index in enumerate(order):
        apart = table[index].observed
        highest = max(highest, min(1.0, fsum(table[other].probability(apart) for other in order[rank:])))
        corrected[index] = highest
    return tuple(corrected)


def smallest_p(one: int, two: int) -> float:
    """The smallest p of the exact test for this many repeats: 0.1 for 3 against 3, 0.0079 for 5 against 5."""
    return (2 if one == two else 1) / comb(one + two, one)


def welch_test(one: Sequence[float], two: Sequence[float]) -> float:
    """Welch's two-sided test of equal means, each with at least 2 values. Not exact, but can be very sure with few."""
    error = variance(one) / len(one) + variance(two) / len(two)
    gap = fmean(two) - fmean(one)
    if error == 0:
        return float(gap == 0)
    return two_sided(gap / sqrt(error), _freedom(one, two))


def holm(probabilities: Sequence[float]) -> tuple[float, ...]:
    """Holm's correction: the same probabilities, in the same order, for a table of as many comparisons.

    >>> [round(p, 3) for p in holm([0.01, 0.04, 0.03])]
    [0.03, 0.06, 0.06]
    """
    order = sorted(range(len(probabilities)), key=probabilities.__getitem__)
    corrected, highest = [0.0] * len(probabilities), 0.0
    for rank, index in enumerate(order):
        highest = max(highest, min(1.0, (len(probabilities) - rank) * probabilities[index]))
        corrected[index] = highest
    return tuple(corrected)


def compare(one: Sequence[float], two: Sequence[float], *, floor: float = FLOOR) -> RelativeChange:
    """Compare one pair of sets of repeats."""
    return compare_all([(one, two)], floor=floor)[0]


def compare_all(
    pairs: Sequence[tuple[Sequence[float], Sequence[float]]], *, floor: float = FLOOR
) -> tuple[RelativeChange, ...]:
    """Compare the pairs of one table. Each side needs at least one value, and the first mean must not be 0."""
    corrected = step_down([permuted(one, two) for one, two in pairs])
    return tuple(_difference(one, two, p, floor) for p, (one, two) in zip(corrected, pairs, strict=True))


def repeats_needed(one: Sequence[float], two: Sequence[float], table: int = 1) -> int | None:
    """How many repeats would show a difference like that of these two sets, in a table of so many comparisons; ``None``
    for more than ``MOST_REPEATS``, or with less than 2 values."""
    if min(len(one), len(two)) < 2:
        return None
    spread, gap = sqrt(variance(one) + variance(two)), abs(fmean(two) - fmean(one))
    for count in range(2, MOST_REPEATS + 1):
        sure = t_quantile(1 - SIGNIFICANT / 2 / table, 2 * (count - 1)) + t_quantile(POWER, 2 * (count - 1))
        if smallest_p(count, count) < SIGNIFICANT and sure * spread <= gap * sqrt(count):
            return count
    return None


def _difference(one: Sequence[float], two: Sequence[float], p: float, floor: float) -> RelativeChange:
    low, high = _interval_of_ratio(one, two) or (None, None)
    found = RelativeChange(fmean(two) / fmean(one) - 1.0, low, high, p, "unclear")
    return replace(found, answer=_answer(found, one, two, floor))


def _answer(found: RelativeChange, one: Sequence[float], two: Sequence[float], floor: float) -> Answer:
    if odd_ones(one) or odd_ones(two):
        return "odd repeat"
    if found.p < SIGNIFICANT and abs(found.change) >= floor:
        return "different"
    if found.low is not None and found.high is not None and -floor <= found.low and found.high <= floor:
        return "alike"
    return "too few" if smallest_p(len(one), len(two)) >= SIGNIFICANT else "unclear"


def _freedom(one: Sequence[float], two: Sequence[float]) -> float:
    """The degrees of freedom of Welch and Satterthwaite."""
    a, b = variance(one) / len(one), variance(two) / len(two)
    return (a + b) ** 2 / (a**2 / (len(one) - 1) + b**2 / (len(two) - 1))


def _interval_of_ratio(one: Sequence[float], two: Sequence[float]) -> tuple[float, float] | None:
    """The 95 % interval of mean(two) / mean(one) - 1, by Fieller's theorem with Welch's degrees of freedom."""
    if min(len(one), len(two)) < 2:
        return None
    first, second = fmean(one), fmean(two)
    a, b = variance(one) / len(one), variance(two) / len(two)
    ratio = second / first
    if a + b == 0:
        return ratio - 1.0, ratio - 1.0
    t = t_quantile((1 + CONFIDENCE) / 2, _freedom(one, two))
    g = (t / first) ** 2 * a
    if g >= 1:
        return None
    half = abs(t / first) * sqrt(b + ratio**2 * a - g * b)
    return (ratio - half) / (1 - g) - 1.0, (ratio + half) / (1 - g) - 1.0
