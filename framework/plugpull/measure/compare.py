"""Whether two sets of repeats differ: exact permutation test, Welch's test, Holm's correction, a practical floor."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import comb, fsum, sqrt
from statistics import fmean, variance
from typing import Literal

from plugpull.measure.estimate import CONFIDENCE, odd_ones
from plugpull.measure.student import t_quantile, two_sided

FLOOR = 0.03
"""Changes below this share of the first value do not matter in practice."""
SIGNIFICANT = 0.05
"""The probability of claiming a difference in a table that has none."""
MOST_SPLITS = 200_000
"""Above this number of splits, random ones are drawn instead. 10 against 10 repeats have 184,756."""
DRAWS = 9_999
ROUNDING = 1e-12
"""Relative: differences of means that are this close are equal."""

Answer = Literal["different", "alike", "unclear", "too few", "odd repeat"]
"""``different``: significant, and at least the floor. ``alike``: the interval of the change is within the floor.
``too few``: not even the largest possible difference would be significant. ``odd repeat``: a repeat is unlike the
others, so nothing is claimed."""


@dataclass(frozen=True)
class RelativeChange:
    """``change`` is (second - first) / first, ``low`` and ``high`` bound its 95 % interval (``None``: not known). ``p``
    is the probability of so large a difference by chance, corrected for the number of comparisons in its table."""

    change: float
    low: float | None
    high: float | None
    p: float
    answer: Answer


def permutation_test(one: Sequence[float], two: Sequence[float]) -> float:
    """The share of ways to split all values that give means at least as far apart: an exact two-sided p.

    For more than ``MOST_SPLITS`` ways, it is estimated from random splits (the same ones each time).

        >>> round(permutation_test([1, 2, 3, 4, 5], [6, 7, 8, 9, 10]), 4)
        0.0079
    """
    values, size = [*one, *two], len(one)
    if not one or not two:
        raise ValueError("a permutation test needs at least one value on each side")
    total, count = fsum(values), len(values)
    scale = max(map(abs, values)) * ROUNDING

    def apart(chosen: Sequence[float]) -> float:
        part = fsum(chosen)
        return abs(part / size - (total - part) / (count - size))

    observed = apart(one) - scale
    if comb(count, size) <= MOST_SPLITS:
        return sum(apart(chosen) >= observed for chosen in combinations(values, size)) / comb(count, size)
    draw = random.Random(count)
    extreme = sum(apart(draw.sample(values, size)) >= observed for _ in range(DRAWS))
    return (extreme + 1) / (DRAWS + 1)


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
    raw = [_difference(one, two) for one, two in pairs]
    corrected = holm([each.p for each in raw])
    return tuple(
        replace(each, p=p, answer=_answer(replace(each, p=p), one, two, floor, len(pairs)))
        for each, p, (one, two) in zip(raw, corrected, pairs, strict=True)
    )


def _difference(one: Sequence[float], two: Sequence[float]) -> RelativeChange:
    low, high = _interval_of_ratio(one, two) or (None, None)
    change = fmean(two) / fmean(one) - 1.0
    return RelativeChange(change, low, high, permutation_test(one, two), "unclear")


def _answer(found: RelativeChange, one: Sequence[float], two: Sequence[float], floor: float, table: int) -> Answer:
    if odd_ones(one) or odd_ones(two):
        return "odd repeat"
    if found.p < SIGNIFICANT and abs(found.change) >= floor:
        return "different"
    if found.low is not None and found.high is not None and -floor <= found.low and found.high <= floor:
        return "alike"
    return "too few" if min(1.0, table * smallest_p(len(one), len(two))) >= SIGNIFICANT else "unclear"


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
