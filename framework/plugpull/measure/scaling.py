"""What happens to the sum of the rates when more and more disks work at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import fsum
from statistics import fmean
from typing import Literal

from plugpull.measure.compare import holm, welch_test
from plugpull.measure.estimate import Estimate, estimate
from plugpull.measure.hinge import count_at, fit

LIMITED = 0.95
"""Disks limit each other if together they reach less than this share of what they reach one by one, ..."""
SURELY = 0.97
"""... and if the whole interval of that share is below this."""
FREE = 0.90
"""They do not if its mean is at least ``SURELY`` and its whole interval above this."""
DROP = 0.10
"""The rate collapses if one more disk takes away at least this share of it."""
SURE = 0.01
"""The probability of claiming a collapse where there is none."""

Answer = Literal["limited", "free", "unclear"]


@dataclass(frozen=True)
class Repeat:
    """One repeat: the rate of each disk alone, and the sums of the first 1, 2, ... disks at once, in the same order."""

    alone: tuple[float, ...]
    together: tuple[float, ...]

    @property
    def share(self) -> float:
        """What all disks reach together, as a share of what they reach one by one."""
        return self.together[-1] / fsum(self.alone)


@dataclass(frozen=True)
class Collapse:
    """The sum falls from ``before`` with ``disks - 1`` disks to ``after`` with ``disks``."""

    disks: int
    before: Estimate
    after: Estimate

    @property
    def change(self) -> float:
        return self.after.mean / self.before.mean - 1.0


@dataclass(frozen=True)
class Scaling:
    """``share`` is what all disks reach together, as a share of what they reach one by one. ``knee`` (in disks) and
    ``ceiling`` are ``None`` unless the answer is ``limited``."""

    answer: Answer
    share: Estimate
    knee: Estimate | None = None
    ceiling: Estimate | None = None
    collapse: Collapse | None = None


def scaling(repeats: Sequence[Repeat]) -> Scaling:
    """Judge at least 2 repeats, each with the same disks in the same order.

    A hinge is fitted to each repeat by itself, so that the intervals of knee and ceiling come from the spread between
    repeats. The demand of n disks is the sum of their rates alone: disks need not be equally fast. Points from a
    collapse on are not part of the hinge.
    """
    share = estimate([one.share for one in repeats])
    collapse = _collapse(repeats)
    if not is_limited(share) and collapse is None:
        free = share.low is not None and share.mean >= SURELY and share.low >= FREE
        return Scaling("free" if free else "unclear", share)
    count = len(repeats[0].alone) if collapse is None else collapse.disks - 1
    found = [_hinge(one, count) for one in repeats]
    if any(one is None for one in found):
        return Scaling("limited" if is_limited(share) else "unclear", share, collapse=collapse)
    known = [one for one in found if one is not None]
    knees, ceilings = estimate([knee for knee, _ in known]), estimate([ceiling for _, ceiling in known])
    return Scaling("limited", share, knees, ceilings, collapse)


def is_limited(share: Estimate) -> bool:
    """Whether disks surely reach less together than one by one, given that share."""
    return share.high is not None and share.mean < LIMITED and share.high < SURELY


def _hinge(one: Repeat, count: int) -> tuple[float, float] | None:
    """(knee in disks, ceiling) of the first ``count`` disks; ``None`` if the line alone fits best."""
    if count < 2:
        return None
    shares = one.alone[:count]
    demands = [fsum(shares[: number + 1]) for number in range(count)]
    hinge = fit(demands, one.together[:count])
    if hinge.ceiling is None or hinge.knee is None:
        return None
    return count_at(hinge.knee, shares), hinge.ceiling


def _collapse(repeats: Sequence[Repeat]) -> Collapse | None:
    """The first number of disks at which the sum falls."""
    columns = [tuple(one.together[number] for one in repeats) for number in range(len(repeats[0].together))]
    steps = list(pairwise(columns))
    if len(repeats) < 3 or not steps:
        return None
    sure = holm([welch_test(one, two) for one, two in steps])
    for number, ((one, two), p) in enumerate(zip(steps, sure, strict=True)):
        before, after = estimate(one), estimate(two)
        odd = before.odd or after.odd
        if p < SURE and not odd and fmean(two) < (1 - DROP) * fmean(one):
            return Collapse(number + 2, before, after)
    return None
