"""A scenario's measurements in words, for the table of its section."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from plugpull.judging.results import Measurement
from plugpull.report.text import NONE, measure

SHOWN = 6
"""Repeats that are shown at most; ``results.json`` has all."""


@dataclass(frozen=True, kw_only=True)
class MeasurementRow:
    """One row of the table."""

    name: str
    conditions: str
    subject: str
    value: str
    interval: str
    n: int
    each: str
    better: str
    check: str


def rows_of(measurements: Iterable[Measurement]) -> tuple[MeasurementRow, ...]:
    """The rows in the order in which they were measured."""
    return tuple(map(_row, measurements))


def _row(one: Measurement) -> MeasurementRow:
    bounds = one.low is not None and one.high is not None
    each = ", ".join(measure(sample, one.unit) for sample in one.samples[:SHOWN])
    return MeasurementRow(
        name=one.name,
        conditions=", ".join(f"{name} {value}" for name, value in one.parameters.items()),
        subject=one.subject or NONE,
        value=measure(one.value, one.unit),
        interval=f"{measure(one.low, one.unit)} to {measure(one.high, one.unit)}" if bounds else NONE,
        n=one.n,
        each=f"{each} …" if len(one.samples) > SHOWN else each or NONE,
        better={"up": "higher", "down": "lower"}.get(one.better, NONE),
        check=one.check or NONE,
    )
