"""What happens to the sum of the rates when more and more disks work at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import fsum, sqrt
from statistics import fmean, variance
from typing import Literal

from plugpull.measure.estimate import Estimate, estimate
from plugpull.measure.hinge import count_at, describes, fit
from plugpull.measure.student import two_sided

LIMITED = 0.95
"""Disks limit each other if together they reach less than this share of what they reach one by one, ..."""
SURELY = 0.97
"""... and if the whole interval of that share is below this."""
FREE = 0.90
"""They do not if its mean is at least ``SURELY`` and its whole interval above this."""
DROP = 0.10
"""The rate collapses if more disks reach at least this share less than fewer of them."""
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
    """The sum is ``after`` with ``disks`` disks, and was ``before`` with fewer: the highest one of these."""

    disks: int
    before: Estimate
    after: Estimate

    @property
    def change(self) -> float:
        return self.after.mean / self.before.mean - 1.0


@dataclass(frozen=True)
class Scaling:
    """``share`` is what all disks reach together, as a share of what they reach one by one. ``knee`` (in disks) and
    ``ceiling`` are ``None`` unless the answer is ``limited`` and the sums follow a hinge."""

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
    if any(one is None for one in found) or not _is_hinge(repeats, count):
        return Scaling("limited" if is_limited(share) else "unclear", share, collapse=collapse)
    known = [one for one in found if one is not None]
    knees, ceilings = estimate([knee for knee, _ in known]), estimate([ceiling for _, ceiling in known])
    if collapse is not None and ceilings.mean >= LIMITED * fmean([fsum(one.alone[:count]) for one in repeats]):
        # Before it collapsed, nothing limited them.
        return Scaling("limited" if is_limited(share) else "unclear", share, collapse=collapse)
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


def _is_hinge(repeats: Sequence[Repeat], count: int) -> bool:
    """Whether the sums of the first ``count`` disks have that shape on average: they do not if the disks are behind
    several limits, and one of these is reached before the other has work."""
    shares = [fmean(column) for column in zip(*(one.alone[:count] for one in repeats), strict=True)]
    return describes(tuple(accumulate(shares)), [one.together[:count] for one in repeats])


def _collapse(repeats: Sequence[Repeat]) -> Collapse | None:
    """The first number of disks at which the sum is surely, and by ``DROP``, below the highest one before."""
    columns = [tuple(one.together[number] for one in repeats) for number in range(len(repeats[0].together))]
    if len(repeats) < 3 or len(columns) < 2:
        return None
    noise, freedom = _noise(columns)
    for number in range(1, len(columns)):
        highest, after = max(columns[:number], key=fmean), columns[number]
        fell = 1.0 - fmean(after) / fmean(highest)
        if fell < DROP or max(after) >= min(highest):  # a repeat that stalled is no collapse
            continue
        error = noise * sqrt((1 + (1 - fell) ** 2) / len(repeats))
        if not error or two_sided(fell / error, freedom) * (len(columns) - 1) < SURE:
            return Collapse(number + 1, estimate(highest), estimate(after))
    return None


def _noise(columns: Sequence[Sequence[float]]) -> tuple[float, float]:
    """The relative standard deviation of all sums from repeat to repeat, and its degrees of freedom."""
    squares = fsum(variance(column) / fmean(column) ** 2 for column in columns if fmean(column) > 0)
    return sqrt(squares / len(columns)), len(columns) * (len(columns[0]) - 1)
