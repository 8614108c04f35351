"""What a number of cuts says about the probability of rare losses."""

from __future__ import annotations

import math

CONFIDENCE = 0.95


def loss_bound(lost: int, cuts: int, confidence: float = CONFIDENCE) -> float:
    """The largest loss probability per cut that is compatible with ``lost`` losses in ``cuts`` cuts.

    It is the upper end of the one-sided exact interval (Clopper and Pearson, 1934). With no loss in n cuts it is about
    3/n (the rule of three). 1.0 if nothing was cut. Raises ValueError for impossible counts.
    """
    if not 0 <= lost <= cuts or not 0 < confidence < 1:
        raise ValueError(f"impossible counts: {lost} of {cuts} cuts, with confidence {confidence}")
    if lost == cuts:
        return 1.0
    if lost == 0:
        return -math.expm1(math.log1p(-confidence) / cuts)
    low, high = lost / cuts, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        if _at_most(lost, cuts, middle) > 1 - confidence:
            low = middle
        else:
            high = middle
    return high


def _at_most(lost: int, cuts: int, probability: float) -> float:
    """The probability of no more than ``lost`` losses in ``cuts``."""
    log, other = math.log(probability), math.log1p(-probability) if probability < 1 else -math.inf
    terms = (
        math.lgamma(cuts + 1) - math.lgamma(k + 1) - math.lgamma(cuts - k + 1) + k * log + (cuts - k) * other
        for k in range(lost + 1)
    )
    return math.fsum(math.exp(term) for term in terms)
