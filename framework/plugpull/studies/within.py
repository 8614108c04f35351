"""Rates that change in the course of each measurement: caches that take the beginning, or disks that start slowly."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import fmean

from plugpull.measure.steady import LEAST
from plugpull.studies.figures import rate
from plugpull.studies.measured import MeasuredRates, Series

CHANGED = 0.18
"""The second half of the time differs from the first by at least this share, on average. In 630 measurements of
emulated disks on busy hosts, no condition changed by more than 13 %, and all but one by less than 10 %."""
EACH = 0.10
"""And in each repeat by at least this share, in the same direction."""


def changing(series: Series) -> str:
    """What was measured whose rate changed in each repeat, a sentence; empty if nothing was. Nothing can be concluded
    from such rates: they depend on how long was measured."""
    conditions = list(dict.fromkeys(one.disks for one in series.readings))
    found = [each for disks in conditions for each in _changes(list(series.of(disks).values()))]
    if not found:
        return ""
    _, readings = max(found, key=lambda one: abs(one[0]))
    first, second = (fmean(one.halves[half] for one in readings if one.halves is not None) for half in (0, 1))
    return (
        f"the {series.mode} rate of {', '.join(readings[0].event.disks)} changes in each measurement, from "
        f"{rate(first)} in its first half to {rate(second)}: a cache may take the beginning"
    )


def _changes(readings: list[MeasuredRates]) -> Iterator[tuple[float, list[MeasuredRates]]]:
    """The mean change of these repeats, if they changed."""
    changes = [two / one - 1.0 for one, two in (each.halves for each in readings if each.halves is not None) if one > 0]
    if len(changes) < LEAST:
        return
    mean = fmean(changes)
    if abs(mean) >= CHANGED and all(change * mean > 0 and abs(change) >= EACH for change in changes):
        yield mean, readings
