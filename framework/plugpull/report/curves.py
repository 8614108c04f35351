"""Curves as SVG path data: relative and in whole fractions of a unit, so small, and exact enough for print."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from plugpull.report.sampling import Column


def curve(
    xs: Sequence[float],
    column: Column,
    y: float,
    height: float,
    top: float,
    *,
    area: bool,
    last: float | None = None,
    unit: int = 10,
) -> str:
    """The path of ``column`` at ``xs``, between ``y`` (the rate ``top``) and ``y + height`` (0).

    An ``area`` begins and ends at the floor, so that it can be filled. Where a stretch reaches ``last``, it ends beyond
    it, where the drawing is clipped: the last sample is not a drop to zero. ``unit`` is the number of path
    units in one unit of the drawing.
    """
    bottom = round((y + height) * unit)
    drawn: list[str] = []
    for run in _stretches(xs, column, y, height, top, unit):
        (x, first), steps = run[0], []
        for (x0, y0), (x1, y1) in pairwise(run):
            steps.append(f"{x1 - x0}{y1 - y0}" if y1 < y0 else f"{x1 - x0} {y1 - y0}")
        tail = f"l{' '.join(steps)}" if steps else "h4"
        edge = "h40" if last is not None and run[-1][0] >= round(last * unit) else ""
        drawn.append(f"M{x} {bottom}V{first}{tail}{edge}V{bottom}" if area else f"M{x} {first}{tail}")
    return "".join(drawn)


def _stretches(
    xs: Sequence[float], column: Column, y: float, height: float, top: float, unit: int
) -> list[list[tuple[int, int]]]:
    """Points of unbroken stretches; points on a straight level line between two others are left out."""
    runs: list[list[tuple[int, int]]] = []
    unbroken = False
    for x, value in zip(xs, column, strict=True):
        if value is None:
            unbroken = False
            continue
        point = (round(x * unit), round((y + height * (1 - min(value / top, 1.0))) * unit))
        if not unbroken:
            runs.append([point])
            unbroken = True
        elif len(runs[-1]) > 1 and runs[-1][-1][1] == runs[-1][-2][1] == point[1]:
            runs[-1][-1] = point
        else:
            runs[-1].append(point)
    return runs
