"""The rate of a disk before the first cut, and its spread.

The rate is the mean of half-second windows. Windows below a third of the highest one are left out: the disk stood still
or had not started, and including them would make the baseline too low. The spread of the other windows is the measure
of how far a later mean rate may differ by chance.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from statistics import fmean, pstdev

from plugpull.checks.survivors.track import Track

WINDOW = 0.5
"""Seconds of a window."""
LEAST = 1.0
"""The minimum length of a baseline, seconds."""
STEADY = 1 / 3
"""Windows below this share of the highest one do not count."""
STEADY_SPREAD = 0.1
"""The relative standard deviation up to which windows count as those of one pace. On a busy host it was 0.33 and
0.37, and windows that follow each other were alike, so that ranks prove nothing."""
SIGMAS = 2.0
"""Differences of up to this many standard errors count as chance: 95 % of cases."""


@dataclass(frozen=True)
class Baseline:
    """``rate`` in bytes per second; ``rates`` those of all windows, also of those that do not count; ``spread`` the
    standard deviation of a window as a share of the rate; ``block`` the bytes of one request."""

    rate: float
    rates: tuple[float, ...]
    seconds: float
    spread: float
    windows: int
    dropped: int
    block: int

    @property
    def stationary(self) -> bool:
        """False if some windows are so slow that the usual pace is not known."""
        return not self.dropped

    @property
    def steady_but_for_one(self) -> bool:
        """Whether all windows but the slowest one are of one pace."""
        others = sorted(self.rates)[1:]
        return len(others) > 1 and pstdev(others) <= STEADY_SPREAD * fmean(others)

    def noise(self, seconds: float) -> float:
        """Standard error of a mean rate over ``seconds``, as a share of the baseline rate."""
        # A sample counts whole requests, so both ends of a window are known to one request.
        grain = self.block / (self.rate * seconds * sqrt(6)) if seconds > 0 else 1.0
        return max(self.spread * sqrt(WINDOW / seconds), grain) if seconds > 0 else 1.0

    def margin(self, seconds: float) -> float:
        """How far the mean rate over ``seconds`` may differ by chance, as a share of this baseline."""
        return SIGMAS * sqrt(self.noise(seconds) ** 2 + self.noise(self.windows * WINDOW) ** 2)


def baseline(line: Track, end: float, block: int) -> Baseline | None:
    """The baseline of a time line up to the place ``end``; ``None`` if that is too short or nothing moved."""
    windows = line.windows(0.0, end, WINDOW) if end >= LEAST else ()
    highest = max(windows, default=0.0)
    if highest <= 0:
        return None
    kept = [rate for rate in windows if rate >= STEADY * highest]
    rate = fmean(kept)
    return Baseline(
        rate=rate,
        rates=windows,
        seconds=end,
        spread=pstdev(kept) * sqrt(len(kept) / max(1, len(kept) - 1)) / rate,
        windows=len(kept),
        dropped=len(windows) - len(kept),
        block=block,
    )
