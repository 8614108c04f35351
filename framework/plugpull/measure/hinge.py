"""The hinge X(d) = min(b d, C): a rate that follows the demand up to a knee, and stays at a ceiling from there on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import fsum
from statistics import fmean

RISES = 0.20
"""A line through the origin does not describe rates of which one is further from it, as a share of itself."""
FLAT = 0.10
"""And a ceiling does not describe rates of which one is further from it."""


@dataclass(frozen=True)
class Hinge:
    """``slope`` b, and ``ceiling`` C; the ceiling is ``None`` if the line alone fits best. ``error`` is the sum of
    squared residuals."""

    slope: float
    ceiling: float | None
    error: float

    @property
    def knee(self) -> float | None:
        """The demand at which the ceiling is reached."""
        return None if self.ceiling is None else self.ceiling / self.slope


def fit(demands: Sequence[float], rates: Sequence[float]) -> Hinge:
    """The least-squares hinge through these points, of ascending demand. Raises ValueError without any.

    Points up to the knee give the line through the origin, those beyond it the ceiling. Every place for the knee
    between two points is tried.

        >>> found = fit([1, 2, 3, 4], [30.0, 60.0, 75.0, 75.0])
        >>> found.ceiling, found.knee
        (75.0, 2.5)
    """
    if not demands or len(demands) != len(rates) or demands[0] <= 0:
        raise ValueError("a hinge needs points, each with a demand above 0")
    return min((_split(demands, rates, on_line) for on_line in range(len(demands), 0, -1)), key=lambda one: one.error)


def describes(demands: Sequence[float], repeats: Sequence[Sequence[float]]) -> bool:
    """Whether a hinge is what these repeats look like on average: each point up to the knee is near its line, and each
    one beyond it is near its ceiling. The best of all hinges can be far from rates that fall before they rise, or that
    rise in steps.

        >>> describes([1, 2, 3, 4], [[30.0, 60.0, 75.0, 75.0]])
        True
        >>> describes([1, 2, 4], [[1.4, 1.0, 2.0]])
        False
    """
    means = [fmean(column) for column in zip(*repeats, strict=True)]
    hinge = fit(demands, means)
    for demand, rate in zip(demands, means, strict=True):
        beyond = hinge.knee is not None and demand >= hinge.knee
        due = hinge.ceiling if beyond and hinge.ceiling is not None else hinge.slope * demand
        if abs(rate - due) > (FLAT if beyond else RISES) * due:
            return False
    return True


def _split(demands: Sequence[float], rates: Sequence[float], on_line: int) -> Hinge:
    products = fsum(d * x for d, x in zip(demands[:on_line], rates, strict=False))
    slope = products / fsum(d * d for d in demands[:on_line])
    flat = rates[on_line:]
    ceiling = fsum(flat) / len(flat) if flat else None
    bound = float("inf") if ceiling is None else ceiling
    error = fsum((x - min(slope * d, bound)) ** 2 for d, x in zip(demands, rates, strict=True))
    return Hinge(slope, ceiling, error)


def count_at(knee: float, shares: Sequence[float]) -> float:
    """How many disks make up the demand ``knee``, if they are added in this order and each demands its share.

    For equal disks of the share b it is ``knee / b``. A fraction means a part of the next disk.

        >>> count_at(75.0, [30.0, 30.0, 30.0])
        2.5
    """
    below = 0.0
    for number, (total, share) in enumerate(zip(accumulate(shares), shares, strict=True)):
        if total >= knee:
            return number + (knee - below) / share
        below = total
    return float(len(shares))
