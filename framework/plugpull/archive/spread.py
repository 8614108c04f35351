"""The spread that series of one kind have in common, which makes a test of a few nights surer.

The variance of one series is known badly from 20 nights. Series of one kind (all removal times, all write rates) have
similar relative variances, and the distribution of these gives a prior: the method of G. K. Smyth, "Linear models and
empirical Bayes methods", Statistical Applications in Genetics and Molecular Biology 3 (2004), section 6.2. If the
variances differ as much as chance explains, the prior is worth many nights; if they differ more, it is worth few.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, log
from statistics import fmean, variance

FEWEST = 8
"""Series of one kind below which nothing is said of their common spread."""
WORTH = 200.0
"""Degrees of freedom that a prior is worth at most."""


@dataclass(frozen=True)
class Prior:
    """``spread`` is the variance that series of this kind have, relative to the square of their mean. ``freedom`` is
    the number of degrees of freedom that it is worth."""

    spread: float
    freedom: float


def prior_of(variances: Sequence[tuple[float, int]]) -> Prior | None:
    """The prior of series with these relative variances, each with its degrees of freedom. ``None``: too few series."""
    known = [(spread, freedom) for spread, freedom in variances if spread > 0 and freedom > 0]
    if len(known) < FEWEST:
        return None
    logs = [log(spread) - digamma(freedom / 2) + log(freedom / 2) for spread, freedom in known]
    more = variance(logs) - fmean(trigamma(freedom / 2) for _, freedom in known)
    worth = min(2.0 * inverse_trigamma(more), WORTH) if more > 0 else WORTH
    return Prior(exp(fmean(logs) + digamma(worth / 2) - log(worth / 2)), worth)


def digamma(x: float) -> float:
    """The derivative of the logarithm of the gamma function (Abramowitz and Stegun, 6.3.5 and 6.3.18), for x > 0."""
    total = 0.0
    while x < 8.0:
        total -= 1.0 / x
        x += 1.0
    square = 1.0 / (x * x)
    return total + log(x) - 0.5 / x - square * (1 / 12 - square * (1 / 120 - square * (1 / 252 - square / 240)))


def trigamma(x: float) -> float:
    """The second derivative of the logarithm of the gamma function (the same, 6.4.6 and 6.4.12), for x > 0."""
    total = 0.0
    while x < 8.0:
        total += 1.0 / (x * x)
        x += 1.0
    square = 1.0 / (x * x)
    return total + (1.0 + 0.5 / x + square * (1 / 6 - square * (1 / 30 - square * (1 / 42 - square / 30)))) / x


def inverse_trigamma(y: float) -> float:
    """The x whose trigamma is ``y`` > 0, by bisection: trigamma falls from infinity to 0."""
    low, high = 1e-8, 1.0
    while trigamma(high) > y and high < 1e8:
        low, high = high, 4.0 * high
    for _ in range(80):
        middle = (low * high) ** 0.5
        low, high = (middle, high) if trigamma(middle) > y else (low, middle)
    return low
