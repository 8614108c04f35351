"""When a measured value changed from one night on: change points, and suspicions from the first night.

The nights of a series are read once, from the oldest to the newest, so adding a night never changes what was said of
the nights before. A segment is the nights since the last change point or declared change (another kernel, firmware,
rig or plugpull). Each new night splits the segment at several places, and the mean of the nights before the split is
compared with the mean of those after it:

- ``changed``: Welch's test, at least ``LEAST`` nights on each side, at least ``FLOOR`` apart, p below ``SURE``. With
  fewer than ``FEW`` nights before, Student's test decides. The segment then begins at the split. p is corrected for the
  number of splits that were looked at (Bonferroni), because the largest of many differences is reported.
- ``suspected``: the newest nights, one of them at least, are unlike those before. Student's test with the spread of
  the segment, which needs only one night, at limits that depend on the number of nights. It ends when the next nights
  do not confirm it.

Both rates of false alarms are measured by ``framework/benchmarks/false_changes.py``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import gcd, sqrt
from statistics import fmean, quantiles
from typing import Literal

from plugpull.archive.spread import Prior
from plugpull.measure.compare import FLOOR
from plugpull.measure.student import two_sided

SURE = 0.001
"""The probability of a change point by chance must be below this."""
LEAST = 3
"""Nights on each side of a change point, at least."""
TAILS = (3, 4, 5, 6, 7, 8, 10, 12, 15, 20, 25, 30, 40)
"""Numbers of nights after a split that are tried each night. A split is tried again as it grows older."""
MEMORY = 120
"""Nights of a segment that are compared with newer ones. Older ones are forgotten."""
FEW = 5
"""With fewer nights than this before a change, their own spread says too little for Welch's test."""
PLAUSIBLE = 0.05
"""The limit of Welch's test there."""
SUSPECT = {1: 2e-5, 2: 2e-5, 3: 3e-5, 4: 3e-4, 5: 1e-3, 6: 2e-4}
"""Limits of p for suspicions, by the number of newest nights. Few nights rarely show a change of 5 % in 2 % of noise,
and would give most of the false alarms. A change is to be named within five nights, so most of them are allowed there.
"""
SUSPECT_MORE = 1e-5
"""The limit for more nights, of which each change of interest is far below it."""
AFTER_FEW = 0.3
"""The share of these limits that counts with fewer than ``FEW`` nights before."""
LONGEST_SUSPICION = 20
NEWEST = 6
"""Nights that may belong to a change that is not yet proved."""
GRAIN = 0.002
"""Values closer than this share of their mean are rounded: a spread below it is not believed."""

STEPS = 1.1
"""A change is more than one step of the grid that the values are on: 0.20 and 0.21 s are neighbours, if all have two
decimals."""
ROUNDED = 0.5
"""The least spread of values on a grid, in its steps."""
SCALE = 1_000_000
"""Six decimals of a value are looked at for its grid."""
DIFFERENT = 4
"""With so many different values, what divides all their differences is the step of their grid."""

SAMPLED = frozenset({"longest stall", "all stalls", "recovered after"})
SAMPLING = 0.04
"""Seconds of spread that these times have at least: each of their ends is known to a sample, and there are 10 a second
(0.1 s / sqrt(12) for each end, and both together 0.04 s)."""

State = Literal["changed", "suspected"]
Spread = tuple[float, int]
"""A relative variance, and its degrees of freedom."""


@dataclass(frozen=True)
class ValueChange:
    """A change of a measured value from the night ``at`` (the id of its run) on, from mean to mean."""

    at: int
    before: float
    after: float
    p: float
    state: State


@dataclass(frozen=True)
class Declared:
    """A step at a declared change. ``after`` is the mean so far. ``what`` changed, such as ``kernel 6.1.0-57``."""

    at: int
    before: float
    what: str


@dataclass
class Segment:
    """The newest nights without a change: their runs, and values less the first one, as running sums.

    ``grain`` is the spread that the measurement itself has at least, in its unit. ``earlier`` is the spread of the
    segment before, as ``settled_spread`` gives it."""

    grain: float = 0.0
    earlier: Spread | None = None
    nights: list[int] = field(default_factory=list)
    values: list[float] = field(default_factory=list)
    sums: list[float] = field(default_factory=lambda: [0.0])
    squares: list[float] = field(default_factory=lambda: [0.0])

    @classmethod
    def of(
        cls, nights: Sequence[int], values: Sequence[float], grain: float = 0.0, earlier: Spread | None = None
    ) -> Segment:
        """The newest of these nights."""
        segment = cls(grain, earlier)
        for night, value in zip(nights[-MEMORY:], values[-MEMORY:], strict=True):
            segment.add(night, value)
        return segment

    def add(self, night: int, value: float) -> None:
        self.nights.append(night)
        self.values.append(value)
        off = value - self.values[0]
        self.sums.append(self.sums[-1] + off)
        self.squares.append(self.squares[-1] + off * off)
        if len(self.values) >= 2 * MEMORY:
            shorter = Segment.of(self.nights, self.values, self.grain)
            self.nights, self.values, self.sums, self.squares = (
                shorter.nights,
                shorter.values,
                shorter.sums,
                shorter.squares,
            )

    def mean(self, begin: int, end: int) -> float:
        return self.values[0] + (self.sums[end] - self.sums[begin]) / (end - begin)

    def grid(self) -> float:
        """The step of the grid that the newest values are on: 0.01 for 0.2 and 0.21. Without one, it is tiny."""
        return grid_of(self.values[-MEMORY:])

    def scatter(self, begin: int, end: int) -> float:
        """The sum of squared distances from the mean."""
        total = self.sums[end] - self.sums[begin]
        return max(self.squares[end] - self.squares[begin] - total * total / (end - begin), 0.0)


def grid_of(values: Iterable[float]) -> float:
    """The step of the grid that values are on: what divides all their differences, or the last decimal that they have
    if they are few."""
    known = sorted({round(value * SCALE) for value in values})
    if len(known) >= DIFFERENT:
        return gcd(*(two - one for one, two in pairwise(known))) / SCALE
    step = SCALE
    while any(number % step for number in known):
        step //= 10
    return step / SCALE


def grain_of(metric: str) -> float:
    """The spread that a measurement itself has at least, in its unit."""
    return SAMPLING if metric in SAMPLED else 0.0


def extend(segment: Segment, night: int, value: float) -> tuple[Segment, ValueChange | None]:
    """The segment with one more night, and the change point that this night proved, if any."""
    segment.add(night, value)
    found = _best_split(segment)
    if found is None:
        return segment, None
    split, change = found
    before = Segment.of(segment.nights[:split], segment.values[:split], segment.grain, segment.earlier)
    return Segment.of(segment.nights[split:], segment.values[split:], segment.grain, settled_spread(before)), change


def _best_split(segment: Segment) -> tuple[int, ValueChange] | None:
    size = len(segment.values)
    begin = max(0, size - MEMORY)
    whole, first = segment.sums, segment.values[0]
    total = whole[size] - whole[begin]
    best: tuple[float, int, float] | None = None
    for tail in TAILS:
        split = size - tail
        if split - begin < LEAST:
            break
        part = whole[size] - whole[split]
        base = first + (total - part) / (split - begin)
        gap = first + part / tail - base
        # Most splits end here: this loop runs for every value of every night.
        if abs(gap) < FLOOR * abs(base) or gap == 0.0:
            continue
        p = _welch(segment, begin, split, size, gap, abs(base))
        if p * len(TAILS) < SURE or (split - begin < FEW and p < PLAUSIBLE):
            student = _student(segment, begin, split, size, grid=segment.grid())
            p = max(p, student) if split - begin >= FEW else student
        if p * len(TAILS) < SURE and (best is None or _misfit(segment, begin, split, size) < best[0]):
            best = (_misfit(segment, begin, split, size), split, p * len(TAILS))
    if best is None:
        return None
    _, split, p = best
    change = ValueChange(segment.nights[split], segment.mean(begin, split), segment.mean(split, size), p, "changed")
    return split, change


def _misfit(segment: Segment, begin: int, split: int, end: int) -> float:
    """How badly two means describe the nights: the split that fits best is where the change was."""
    return segment.scatter(begin, split) + segment.scatter(split, end)


def _welch(segment: Segment, begin: int, split: int, end: int, gap: float, size: float) -> float:
    one, two = split - begin, end - split
    grain = max(GRAIN * size, segment.grain) ** 2
    a = max(segment.scatter(begin, split) / (one - 1), grain) / one
    b = max(segment.scatter(split, end) / (two - 1), grain) / two
    if a + b == 0.0:
        return 0.0
    t = abs(gap) / sqrt(a + b)
    if t < (3.29 if one >= FEW else 1.96):  # above SURE or PLAUSIBLE with any degrees of freedom
        return 1.0
    return two_sided(t, (a + b) ** 2 / (a * a / (one - 1) + b * b / (two - 1)))


def settled_spread(segment: Segment) -> Spread | None:
    """The relative variance of the nights before the newest ones, and its degrees of freedom: for ``prior_of``.

    Of a young segment it is that of the segment before, or else what its neighbouring nights differ: a change among
    them matters less there."""
    end = len(segment.values) - NEWEST
    begin = max(0, end - MEMORY)
    if end - begin <= NEWEST:
        return segment.earlier or _spread_of_neighbours(segment.values)
    mean = segment.mean(begin, end)
    return (segment.scatter(begin, end) / (end - begin - 1) / mean**2, end - begin - 1) if mean else None


def _spread_of_neighbours(values: Sequence[float]) -> Spread | None:
    """Half the mean square of the differences of neighbours, relative to the mean (J. von Neumann, 1941)."""
    mean = fmean(values) if len(values) >= FEW else 0.0
    if mean == 0.0:
        return None
    steps = fmean((two - one) ** 2 for one, two in pairwise(values))
    return steps / 2 / mean**2, 2 * (len(values) - 1) // 3


def suspicion(segment: Segment, prior: Prior | None = None, *, alone: bool = True) -> ValueChange | None:
    """Whether the newest nights are unlike those before. ``prior`` is the spread of series of this kind, if known.
    ``alone``: a single night may be suspected."""
    size = len(segment.values)
    begin = max(0, size - MEMORY)
    best: tuple[float, float, int] | None = None
    grid = segment.grid()
    for tail in range(1 if alone else 2, min(LONGEST_SUSPICION, size - begin - LEAST) + 1):
        split = size - tail
        p = _student(segment, begin, split, size, prior, grid)
        share = p / SUSPECT.get(tail, SUSPECT_MORE) / (1.0 if split - begin >= FEW else AFTER_FEW)
        if share < 1.0 and (best is None or share < best[0]):
            best = (share, p, split)
    if best is None:
        return None
    _, p, split = best
    return ValueChange(segment.nights[split], segment.mean(begin, split), segment.mean(split, size), p, "suspected")


def _student(
    segment: Segment, begin: int, split: int, end: int, prior: Prior | None = None, grid: float = 0.0
) -> float:
    base = segment.mean(begin, split)
    gap = segment.mean(split, end) - base
    if abs(gap) < max(FLOOR * abs(base), STEPS * grid) or gap == 0.0:
        return 1.0
    one, two = split - begin, end - split
    freedom, scatter = float(one + two - 2), _misfit(segment, begin, split, end)
    if prior is not None:
        freedom += prior.freedom
        scatter += prior.freedom * prior.spread * base * base
    spread = max(scatter / freedom, max(GRAIN * abs(base), segment.grain, ROUNDED * grid) ** 2)
    if spread == 0.0:
        return 0.0
    return two_sided(gap / sqrt(spread * (1 / one + 1 / two)), freedom)


def usual_step(values: Iterable[float]) -> float | None:
    """What a night normally varies: the third quartile plus three interquartile ranges of the relative steps between
    neighbours (the threshold of perf.rust-lang.org). ``None`` with fewer than 5 nights."""
    each = list(values)
    steps = [abs(two - one) / abs(one) for one, two in pairwise(each) if one]
    if len(steps) < 4:
        return None
    low, _, high = quantiles(steps, n=4)
    return high + 3.0 * (high - low)
