"""Disks that are unlike the others of a rig."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median

from plugpull.measure.compare import welch_test

OFF = 0.10
"""An outlier is at least this share off the median of the others."""
SCORE = 3.5
"""The modified z score from which a value is an outlier (Iglewicz and Hoaglin, How to Detect and Handle Outliers)."""
LEAST_SPREAD = 0.01
"""The median deviation counts as at least this share of the median: identical disks have none."""
SURE = 0.01
"""The probability of so large a difference from the others by the chance of the repeats."""
APART = 3.0
"""Of three disks, the slow one is an outlier if it is this many times farther from the others than they are apart."""


@dataclass(frozen=True)
class Outlier:
    """``value`` is its mean, ``usual`` the median of the means of the others."""

    name: str
    value: float
    usual: float

    @property
    def change(self) -> float:
        return self.value / self.usual - 1.0


def outliers(samples: Mapping[str, Sequence[float]]) -> tuple[Outlier, ...]:
    """The disks whose mean is far from those of the others, given at least 2 repeats of each.

    Of four disks or more, slow and fast ones are named. Of three, only one that is slower than two that agree: which
    of two fast disks and one slow one is unusual cannot be known, but a slow one spoils a series. Of two, none.
    """
    means = {name: fmean(values) for name, values in samples.items()}
    if len(means) < 3 or min(means.values()) <= 0:
        return ()
    return tuple(
        Outlier(name, mean, usual)
        for name, mean in means.items()
        if (usual := median(other for each, other in means.items() if each != name)) > 0
        and abs(mean / usual - 1.0) > OFF
        and (_stands_out(name, means) if len(means) > 3 else _is_slowest(name, means))
        and _beyond_noise(name, samples)
    )


def _stands_out(name: str, means: Mapping[str, float]) -> bool:
    middle = median(means.values())
    spread = max(median(abs(mean - middle) for mean in means.values()), LEAST_SPREAD * middle)
    return 0.6745 * abs(means[name] - middle) / spread > SCORE


def _is_slowest(name: str, means: Mapping[str, float]) -> bool:
    slower, faster = sorted(mean for each, mean in means.items() if each != name)
    return means[name] < (1 - OFF) * slower and slower - means[name] > APART * (faster - slower)


def _beyond_noise(name: str, samples: Mapping[str, Sequence[float]]) -> bool:
    others = [fmean(values) for each, values in samples.items() if each != name]
    return len(samples[name]) > 1 and welch_test(samples[name], others) < SURE
