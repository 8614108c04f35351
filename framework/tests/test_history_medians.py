"""The median of many numbers is that of all of them sorted."""

from __future__ import annotations

import random
from collections.abc import Callable
from statistics import median

import pytest

from plugpull.history.medians import FEW, median_of, ranked


@pytest.mark.parametrize("count", [1, 2, FEW, FEW + 1, 20_000, 20_001])
@pytest.mark.parametrize("kind", ["normal", "few values", "one value", "rising", "falling", "two halves"])
def test_the_median_is_that_of_the_sorted_numbers(count: int, kind: str) -> None:
    dice = random.Random(count)
    kinds: dict[str, Callable[[int], float]] = {
        "normal": lambda i: dice.gauss(0.1, 0.002),
        "few values": lambda i: float(dice.randrange(3)),
        "one value": lambda i: 0.1,
        "rising": lambda i: i / 2,
        "falling": lambda i: -float(i),
        "two halves": lambda i: float(i < count // 2),
    }
    made = [kinds[kind](i) for i in range(count)]
    assert median_of(iter(made)) == median(made)
    for rank in (0, count // 3, count // 2, count - 1):
        assert ranked(made, rank) == sorted(made)[rank]
