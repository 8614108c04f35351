"""Heat maps of a run's measurements: arrays by level and number of members, and by chunk."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from plugpull.judging.results import Measurement
from plugpull.report.text import NONE, measure

LEFT, TOP = 96, 22
"""Of the drawing: room for the labels of rows and of columns, in its units."""
WIDTH, HEIGHT = 88, 26
"""Of a cell."""
FAINTEST = 0.08
"""The opacity of a cell with a rate of 0; that of the largest is 1."""
PALE = 0.55
"""A cell that is less opaque has dark text."""


@dataclass(frozen=True, kw_only=True)
class HeatCell:
    """One measurement at (``x``, ``y``). ``share`` is its part of the largest value, as an opacity."""

    x: int
    y: int
    share: float
    label: str
    title: str

    @property
    def pale(self) -> bool:
        return self.share < PALE


@dataclass(frozen=True, kw_only=True)
class HeatMap:
    """One picture. ``rows`` are (y, label), ``columns`` (x, label)."""

    title: str
    mode: str
    cells: tuple[HeatCell, ...]
    rows: tuple[tuple[int, str], ...]
    columns: tuple[tuple[int, str], ...]
    width: int
    height: int
    cell_width: int = WIDTH
    cell_height: int = HEIGHT
    left: int = LEFT


def heat_maps(measurements: Iterable[Measurement]) -> tuple[HeatMap, ...]:
    """One heat map per mode of the arrays that were measured."""
    found: defaultdict[str, list[Measurement]] = defaultdict(list)
    for one in measurements:
        mode, _, kind = one.name.partition(" ")
        if kind == "array" and one.unit == "B/s":
            found[mode].append(one)
    return tuple(_map(mode, each) for mode, each in found.items())


def _map(mode: str, found: Sequence[Measurement]) -> HeatMap:
    cells = {(_row(one), _number(one, "chunk")): one for one in found}
    rows = sorted({row for row, _ in cells})
    columns = sorted({column for _, column in cells})
    most = max(one.value for one in found) or 1.0
    return HeatMap(
        title=f"{mode}: arrays by level and number of disks, and by chunk",
        mode=mode,
        cells=tuple(
            HeatCell(
                x=LEFT + columns.index(column) * WIDTH,
                y=TOP + rows.index(row) * HEIGHT,
                share=round(FAINTEST + (1 - FAINTEST) * max(0.0, one.value) / most, 3),
                label=measure(one.value, one.unit),
                title=_title(one),
            )
            for (row, column), one in cells.items()
        ),
        rows=tuple((TOP + place * HEIGHT, f"{level} of {count}") for place, (level, count) in enumerate(rows)),
        columns=tuple(
            (LEFT + place * WIDTH + WIDTH // 2, f"{chunk >> 10} KiB" if chunk else NONE)
            for place, chunk in enumerate(columns)
        ),
        width=LEFT + len(columns) * WIDTH + 4,
        height=TOP + len(rows) * HEIGHT + 4,
    )


def _row(one: Measurement) -> tuple[str, int]:
    return str(one.parameters.get("level", NONE)), _number(one, "members")


def _number(one: Measurement, key: str) -> int:
    value = one.parameters.get(key, 0)
    return int(value) if isinstance(value, int | float) else 0


def _title(one: Measurement) -> str:
    bounds = ""
    if one.low is not None and one.high is not None:
        bounds = f" ({measure(one.low, one.unit)} to {measure(one.high, one.unit)})"
    each = ", ".join(measure(sample, one.unit) for sample in one.samples)
    return f"{one.subject}: {measure(one.value, one.unit)}{bounds}, repeats: {each}"
