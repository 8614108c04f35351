"""Whether repeated rounds of a measurement have reached a steady state, by SNIA's rule."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, linear_regression

WINDOW = 5
"""Rounds in the measurement window (SNIA, Solid State Storage Performance Test Specification)."""
LEAST = 3
"""With fewer rounds a slope means nothing."""
RANGE = 0.20
"""The highest round minus the lowest one, as a share of their mean, at most."""
EXCURSION = 0.10
"""The rise or fall of the best line over the window, as a share of the mean, at most."""


@dataclass(frozen=True)
class Steadiness:
    """``spread`` is the range of the last rounds, ``drift`` the rise (negative: the fall) of their best line, both as a
    share of their mean."""

    spread: float
    drift: float
    rounds: int

    @property
    def steady(self) -> bool:
        return self.spread <= RANGE and abs(self.drift) <= EXCURSION

    def __str__(self) -> str:
        return (
            f"the last {self.rounds} rounds range over {self.spread:.0%} of their mean (limit {RANGE:.0%}) "
            f"and drift by {self.drift:+.0%} (limit {EXCURSION:.0%})"
        )


def steadiness(rounds: Sequence[float]) -> Steadiness | None:
    """The steadiness of the last ``WINDOW`` rounds, in order of time; ``None`` for fewer than ``LEAST``."""
    window = rounds[-WINDOW:]
    if len(window) < LEAST:
        return None
    mean = fmean(window)
    if mean <= 0:
        return Steadiness(float("inf"), 0.0, len(window))
    slope, _ = linear_regression(range(len(window)), window)
    return Steadiness((max(window) - min(window)) / mean, slope * (len(window) - 1) / mean, len(window))
