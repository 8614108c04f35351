"""Student's t distribution, for intervals of means and for Welch's test."""

from __future__ import annotations

import math
from functools import lru_cache

PRECISION = 1e-14
"""Relative precision of the continued fraction."""
STEPS = 500
"""The maximum number of its steps. It takes about sqrt(max(a, b)) of them."""
TINY = 1e-300


def t_probability(t: float, freedom: float) -> float:
    """The probability that a t variable with ``freedom`` degrees of freedom is at most ``t``."""
    if not freedom > 0:
        raise ValueError(f"{freedom} degrees of freedom")
    if math.isinf(t):
        return float(t > 0)
    tail = 0.5 * _incomplete_beta(freedom / 2, 0.5, freedom / (freedom + t * t), t * t / (freedom + t * t))
    return 1.0 - tail if t > 0 else tail


def two_sided(t: float, freedom: float) -> float:
    """The probability of a t variable at least as far from 0 as ``t``."""
    return 2.0 * t_probability(-abs(t), freedom)


@lru_cache(maxsize=1024)
def t_quantile(probability: float, freedom: float) -> float:
    """The value that a t variable exceeds with probability 1 - ``probability``."""
    if not 0 < probability < 1:
        raise ValueError(f"a probability of {probability} has no quantile")
    if probability < 0.5:
        return -t_quantile(1.0 - probability, freedom)
    low, high = 0.0, 1.0
    while t_probability(high, freedom) < probability:
        low, high = high, 2.0 * high
    for _ in range(200):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        if t_probability(middle, freedom) < probability:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _incomplete_beta(a: float, b: float, x: float, y: float) -> float:
    """The regularised incomplete beta function (NIST, Digital Library of Mathematical Functions, 8.17).

    ``y`` is 1 - x, which the caller knows more exactly where x is close to 1.
    """
    if x <= 0.0 or y <= 0.0:
        return float(y <= 0.0)
    log = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log(y)
    front = math.exp(log)
    if x < (a + 1.0) / (a + b + 2.0):
        return front * _continued_fraction(a, b, x) / a
    return 1.0 - front * _continued_fraction(b, a, y) / b


def _continued_fraction(a: float, b: float, x: float) -> float:
    """The continued fraction 8.17.22, by the modified method of Lentz."""
    c, d = 1.0, 1.0 / _not_zero(1.0 - (a + b) * x / (a + 1.0))
    value = d
    for m in range(1, STEPS):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        step = 1.0
        for term in (even, odd):
            d = 1.0 / _not_zero(1.0 + term * d)
            c = _not_zero(1.0 + term / c)
            step = c * d
            value *= step
        if abs(step - 1.0) < PRECISION:
            break
    return value


def _not_zero(value: float) -> float:
    return value if abs(value) > TINY else TINY
