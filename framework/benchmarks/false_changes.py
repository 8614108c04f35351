"""How often is a change of a measured value claimed that is none, and how soon is a planted one named?

Series of nights with normal noise around a mean. A false change is one that is proved or suspected, on any night, in a
series that never changed; it counts once, however many nights it lasts. A planted change is named on the first night on
which it is proved or suspected, counted from 1. Night by night, as ``plugpull trend`` reads them, all series of a kind
together. With ``--repeats 5``, each night's value is the median of five samples with that noise.

Beside the shares stands what no test can surpass, however much it knows (``most_nameable``), and what a test names that
knows the noise and looks at the newest nights in the same way every night (``nameable_nightly``).
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import accumulate, pairwise
from math import sqrt
from statistics import NormalDist, median

from rich.table import Table

from benchmarks.measure import console
from plugpull.archive.change_points import Segment, extend, settled_spread, suspicion
from plugpull.archive.spread import prior_of

NIGHTS = 60
LIMIT = 1.0
"""False changes per 1,000 nights of series, at most."""
SOON = 5
"""Nights within which a planted change is to be named."""


@dataclass
class Watched:
    """One series while it is read. ``begin`` is the night of its change, ``None`` if it has none."""

    shift: float = 0.0
    begin: int | None = None
    segment: Segment = field(default_factory=Segment)
    doubted: bool = False
    proved: int = 0
    suspected: int = 0
    named: int | None = None

    def mean(self, night: int) -> float:
        return 100.0 * (1.0 + (self.shift if self.begin is not None and night >= self.begin else 0.0))


def read(series: Sequence[Watched], noise: float, nights: int, seed: int, repeats: int = 1) -> None:
    """Read all nights of all series."""
    draw = random.Random(seed)
    for night in range(nights):
        proved = []
        for one in series:
            mean = one.mean(night)
            value = median(draw.gauss(mean, noise * mean) for _ in range(repeats))
            one.segment, change = extend(one.segment, night, value)
            proved.append(change is not None)
        prior = prior_of([spread for one in series if (spread := settled_spread(one.segment))])
        for one, sure in zip(series, proved, strict=True):
            doubt = suspicion(one.segment, prior) is not None
            one.proved += sure
            one.suspected += doubt and not one.doubted
            one.doubted = doubt
            if (sure or doubt) and one.begin is not None and night >= one.begin and one.named is None:
                one.named = night - one.begin + 1


def false_changes(count: int, noise: float, seed: int, repeats: int = 1) -> tuple[float, float]:
    """Proved and suspected changes of ``count`` series without any, per 1,000 nights of series."""
    series = [Watched() for _ in range(count)]
    read(series, noise, NIGHTS, seed, repeats)
    nights = count * NIGHTS / 1000
    return sum(one.proved for one in series) / nights, sum(one.suspected for one in series) / nights


def named_within(count: int, noise: float, shift: float, begin: int, seed: int, repeats: int = 1) -> list[float]:
    """The shares of planted changes that are named within 1, 2, ... nights. As many series have no change."""
    planted = [Watched(shift=shift, begin=begin) for _ in range(count)]
    read([*planted, *(Watched() for _ in range(count))], noise, begin + SOON + 3, seed, repeats)
    return [
        sum(one.named is not None and one.named <= nights for one in planted) / count for nights in range(1, SOON + 4)
    ]


def most_nameable(shift: float, noise: float, before: int, nights: int, repeats: int = 1) -> float:
    """The largest share of changes that any test can name within so many ``nights``, with ``before`` nights of the old
    value and ``LIMIT`` false changes.

    A test with that limit claims a false change within ``nights`` nights in at most ``nights`` / 1,000 of the series.
    Among all tests of that level, the one with the greatest power compares the means of the nights before and after,
    given the night of the change and the noise (J. Neyman and E. S. Pearson, 1933); that test is what is calculated."""
    apart = abs(shift) / noise / sqrt((1.0 / before + (1.0 + shift) ** 2 / nights) / repeats)
    limit = -NormalDist().inv_cdf(LIMIT / 1000.0 * nights / 2.0)
    return NormalDist().cdf(apart - limit) + NormalDist().cdf(-apart - limit)


@cache
def nightly_limit(nights: int) -> float:
    """The number of standard errors of the newest ``nights`` nights beyond which ``LIMIT`` false changes are claimed in
    1,000 nights, if each night is tested and those that follow each other count once. Of 400,000 nights."""
    draw = random.Random(5)
    sums = list(accumulate((draw.gauss(0.0, 1.0) for _ in range(400_000)), initial=0.0))
    errors = [abs(two - one) / sqrt(nights) for one, two in zip(sums, sums[nights:], strict=False)]
    low, high = 2.0, 5.0
    for _ in range(12):
        middle = (low + high) / 2.0
        claimed = sum(one <= middle < two for one, two in pairwise(errors))
        low, high = (middle, high) if claimed > LIMIT / 1000.0 * len(errors) else (low, middle)
    return high


def nameable_nightly(shift: float, noise: float, before: int, nights: int, repeats: int = 1) -> float:
    """The share of changes that a test names on the last of so many ``nights`` which knows the noise, compares the mean
    of the newest ``nights`` nights with that of those before on each night, and makes ``LIMIT`` false changes."""
    apart = abs(shift) / noise / sqrt((1.0 / before + (1.0 + shift) ** 2 / nights) / repeats)
    limit = nightly_limit(nights)
    return NormalDist().cdf(apart - limit) + NormalDist().cdf(-apart - limit)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--series", type=int, default=400, help="series of 60 nights for each noise (default: 400)")
    parser.add_argument("--repeats", type=int, default=1, help="samples of each night (default: 1)")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    table = Table(title=f"False changes per 1,000 nights of series, at most {LIMIT:g} wanted")
    for heading in ("noise", "nights of series", "changed", "suspected", "together"):
        table.add_column(heading, justify="right")
    for noise in (0.01, 0.02, 0.04, 0.08):
        proved, suspected = false_changes(arguments.series, noise, arguments.seed, arguments.repeats)
        nights = f"{arguments.series * NIGHTS:,}"
        table.add_row(f"{noise:.0%}", nights, f"{proved:.2f}", f"{suspected:.2f}", f"{proved + suspected:.2f}")
    console.print(table)
    table = Table(title="Planted changes with 2 % of noise: share named within so many nights")
    for heading in (
        "change",
        "nights before",
        *map(str, range(1, SOON + 4)),
        f"each night, {SOON}",
        f"at most, {SOON}",
    ):
        table.add_column(heading, justify="right")
    for shift in (-0.05, 0.05, -0.1):
        for begin in (12, 20, 40):
            shares = named_within(arguments.series // 2, 0.02, shift, begin, arguments.seed, arguments.repeats)
            most = most_nameable(shift, 0.02, begin, SOON, arguments.repeats)
            nightly = nameable_nightly(shift, 0.02, begin, SOON, arguments.repeats)
            table.add_row(f"{shift:+.0%}", str(begin), *(f"{share:.1%}" for share in (*shares, nightly, most)))
    console.print(table)


if __name__ == "__main__":
    main()
