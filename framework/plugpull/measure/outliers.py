"""Disks that are unlike the others of a rig."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from math import fsum, sqrt
from statistics import fmean, median, variance

from plugpull.measure.estimate import odd_ones
from plugpull.measure.student import two_sided

OFF = 0.10
"""An outlier is at least this share off the median of those that agree. Those agree within as much."""
APART = 1.5
"""Outliers are this many times as far from the nearest other disk as all others are from each other: disks that are all
different have none."""
LEAST_RANGE = 0.02
"""The others count as at least so far from each other, as a share of their median, ..."""
LEAST_ERRORS = 2.0
"""... and as at least so many standard errors."""
SURE = 0.01
"""The probability of so large a difference from the others by the chance of the repeats, for any disk of a rig."""
RANGE = 4.0
"""Disks also agree within this many standard errors: the usual range of the means of 9 equal disks is 3."""
WIDEST = 0.25
"""But not within more than this share."""
WILD = 3.0
"""A disk whose repeats vary so many times as much as those of the others is judged by its own noise."""
STALLED = 0.2
"""A repeat does not count if it is unlike the others and at least this share below their median, ..."""
FEW = 0.1
"""... and if no more than this share of all repeats of all disks is, or one. Otherwise that is how the disks are: they
have two rates, for example."""
KIND = 0.5
"""Disks that agree with each other are another kind, if they are at least so many times as many as the others."""


@dataclass(frozen=True)
class Outlier:
    """``value`` is its mean, ``usual`` the median of the means of those that agree."""

    name: str
    value: float
    usual: float

    @property
    def change(self) -> float:
        return self.value / self.usual - 1.0


def outliers(samples: Mapping[str, Sequence[float]]) -> tuple[Outlier, ...]:
    """The disks whose mean is far from those of the others, given at least 2 repeats of each.

    More than half of the disks must agree: of disks that are all different, none is unusual. Slow and fast disks are
    named. Of three, only a slow one: which of two fast disks and one slow one is unusual cannot be known, but a slow
    one spoils a series. Of two, none.
    """
    kept = _without_stalls(samples)
    means = {name: fmean(values) for name, values in kept.items()}
    if len(means) < 3 or min(means.values()) <= 0:
        return ()
    noise, freedom = _noise(kept)
    error = noise / sqrt(min(map(len, kept.values())))
    within = min(WIDEST, max(OFF, RANGE * error))
    agreeing = _agreeing(means, within)
    if not agreeing or freedom < 1:
        return ()
    usual = median(means[name] for name in agreeing)
    apart = _apart(means, agreeing, max(LEAST_RANGE, LEAST_ERRORS * error) * usual)
    found = [name for name in apart if _surely(means[name] / usual, _own_noise(name, kept), len(agreeing), len(means))]
    return tuple(
        Outlier(name, mean, usual)
        for name, mean in means.items()
        if name in found
        and not _another_kind(name, found, means, agreeing, within)
        and (mean < usual or len(means) > 3)
    )


def _without_stalls(samples: Mapping[str, Sequence[float]]) -> Mapping[str, Sequence[float]]:
    """Without the repeats that stalled, if they are few."""
    stalled = {name: _stalled(values) for name, values in samples.items()}
    if sum(map(len, stalled.values())) > max(1.0, FEW * sum(map(len, samples.values()))):
        return samples
    return {
        name: [value for place, value in enumerate(values) if place not in stalled[name]]
        for name, values in samples.items()
    }


def _stalled(values: Sequence[float]) -> list[int]:
    usual = median(values)
    return [place for place in odd_ones(values) if values[place] <= (1.0 - STALLED) * usual]


def _noise(samples: Mapping[str, Sequence[float]]) -> tuple[float, float]:
    """The relative standard deviation of a repeat, of all disks together, and its degrees of freedom."""
    several = [values for values in samples.values() if len(values) > 1]
    freedom = sum(len(values) - 1 for values in several)
    squares = fsum((len(values) - 1) * variance(values) / fmean(values) ** 2 for values in several)
    return (sqrt(squares / freedom) if freedom else 0.0), freedom


def _own_noise(name: str, samples: Mapping[str, Sequence[float]]) -> tuple[float, float]:
    """The relative standard error of the mean of a disk, and its degrees of freedom: of all disks together, unless its
    own repeats vary much more."""
    own = _noise({name: samples[name]})
    others = _noise({other: values for other, values in samples.items() if other != name})
    noise, freedom = own if own[0] > WILD * others[0] > 0 else _noise(samples)
    return noise / sqrt(min(map(len, samples.values()))), freedom


def _agreeing(means: Mapping[str, float], within: float) -> Collection[str]:
    """The disks that agree, if they are more than half of all; empty if not."""
    order = sorted(means, key=means.__getitem__)
    sets = [
        [name for name in order[place:] if means[name] <= means[low] * (1 + within)] for place, low in enumerate(order)
    ]
    most = max(sets, key=len)
    return frozenset(most) if 2 * len(most) > len(order) else frozenset()


def _apart(means: Mapping[str, float], agreeing: Collection[str], least: float) -> Collection[str]:
    """The disks that are far from all others, and these are close to each other."""
    far = set(means) - set(agreeing)
    while True:
        near = [mean for name, mean in means.items() if name not in far]
        low, high = min(near), max(near)
        gap = APART * max(high - low, least)
        still = {name for name in far if low - means[name] > gap or means[name] - high > gap}
        if still == far:
            return far
        far = still


def _surely(share: float, noise: tuple[float, float], agreeing: int, disks: int) -> bool:
    """Whether a mean is off by more than ``OFF`` of the usual one, and not by the chance of the repeats."""
    error, freedom = noise
    off, whole = abs(share - 1.0), error * sqrt(share**2 + 1 / agreeing)
    return off > OFF and (not whole or two_sided(off / whole, freedom) * disks < SURE)


def _another_kind(
    name: str, found: Collection[str], means: Mapping[str, float], agreeing: Collection[str], within: float
) -> bool:
    """Whether this disk and others that are off as well agree with each other, and are many."""
    alike = [other for other in found if abs(means[other] / means[name] - 1.0) <= within]
    return len(alike) > 1 and len(alike) >= KIND * len(agreeing)
