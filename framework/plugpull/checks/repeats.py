"""Measurements from several repeats."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import comb
from statistics import median

from plugpull.judging.results import Better, Measurement

CONFIDENCE = 0.95


def repeated(
    name: str,
    subject: str,
    samples: Sequence[float],
    unit: str,
    *,
    better: Better = "",
    parameters: Mapping[str, str | float] | None = None,
) -> Measurement:
    """The median of ``samples`` (at least one), with its confidence interval if there are enough of them."""
    low, high = median_interval(samples) or (None, None)
    return Measurement(
        name=name,
        subject=subject,
        value=round(median(samples), 6),
        unit=unit,
        low=low,
        high=high,
        n=len(samples),
        samples=tuple(round(sample, 6) for sample in samples),
        better=better,
        parameters=dict(parameters or {}),
    )


def median_interval(samples: Sequence[float]) -> tuple[float, float] | None:
    """The 95 % confidence interval of the median, whatever the distribution; ``None`` for fewer than 6 samples.

    It goes from the k-th lowest to the k-th highest sample. The number of samples below the true median is binomial
    with p = 1/2, so k is the largest for which both tails together are at most 5 % (David and Nagaraja, Order
    Statistics, 7.1).
    """
    ordered, count = sorted(samples), len(samples)
    rank, tail = 0, 1.0  # tail: ways in which at most ``rank`` samples are below the median, of 2 ** count
    while 2 * tail / 2**count <= 1 - CONFIDENCE:
        rank += 1
        tail += comb(count, rank)
    return (ordered[rank - 1], ordered[count - rank]) if rank else None
