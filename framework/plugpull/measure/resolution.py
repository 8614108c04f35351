"""How well a rate is known from counters of whole requests."""

from __future__ import annotations

from collections.abc import Sequence
from math import floor, fsum, sqrt
from statistics import fmean

PHASES = 6
"""The places between two requests at which the samples are assumed to begin, one after the other."""
NEAR = (-0.6, -0.3, 0.0, 0.3, 0.6)
"""The true rate may be this many requests per measurement away from the one that was counted."""


def slope_spread(times: Sequence[float], rate: float, request: float) -> float:
    """The standard deviation of a slope through counters that count whole requests, in the unit of ``rate``.

    ``times`` are those of the samples, seconds; ``request`` the bytes of one request. It is larger at some rates than
    at others, where all samples are off by nearly the same.

        >>> times = [number / 10 for number in range(16)]
        >>> round(slope_spread(times, 2e6, 65536) / 2e6, 3)
        0.009
        >>> round(slope_spread(times, 20 * 65536, 65536) / 1.31e6, 3)
        0.01
    """
    length = times[-1] - times[0] if times else 0.0
    if length <= 0 or request <= 0:
        return 0.0
    middle = fmean(times)
    away = [at - middle for at in times]
    off = []
    for more in NEAR:
        steps = [max(0.0, rate / request + more / length) * (at - times[0]) for at in times]
        for number in range(PHASES):
            begin = (number + 0.5) / PHASES
            off.append(fsum(one * (floor(begin + step) - step) for one, step in zip(away, steps, strict=True)))
    return request * sqrt(fmean(one * one for one in off)) / fsum(one * one for one in away)
