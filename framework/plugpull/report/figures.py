"""Pictures of a run's measurements: rates by disk and by number of disks, with every repeat and the error bars."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from plugpull.judging.results import Conclusion, Measurement, Results
from plugpull.measure.dips import USUAL, dips
from plugpull.report.heat import HeatMap, heat_maps
from plugpull.report.text import NONE, measure, natural

WIDTH, HEIGHT = 460, 250
LEFT, RIGHT, TOP, BOTTOM = 66, 12, 14, 34
"""Of the drawing: its margins, in its units."""
TICKS = 4
STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
MOST = 40
"""Marks of one picture at most."""


@dataclass(frozen=True, kw_only=True)
class Mark:
    """One measurement: its mean at ``y``, its interval from ``high`` to ``low``, its repeats at ``dots``."""

    x: float
    y: float
    low: float | None
    high: float | None
    dots: tuple[float, ...]
    label: str
    title: str


@dataclass(frozen=True, kw_only=True)
class Plot:
    """One picture. ``ticks`` are (y, label); ``line`` is the path through the means, empty where none belongs."""

    title: str
    axis: str
    marks: tuple[Mark, ...]
    ticks: tuple[tuple[float, str], ...]
    line: str
    mode: str
    windows: tuple[tuple[float, str], ...] = ()
    """Of a long transfer: (x, what to show there)."""
    gap: float = 0.0
    """The width of a window."""
    dips: tuple[tuple[float, float, str], ...] = ()
    """(left edge, width, what to show there)."""
    width: int = WIDTH
    height: int = HEIGHT
    left: int = LEFT
    floor: float = HEIGHT - BOTTOM
    right: float = WIDTH - RIGHT


@dataclass(frozen=True, kw_only=True)
class Figures:
    """The section of figures and conclusions."""

    plots: tuple[Plot, ...]
    conclusions: tuple[Conclusion, ...]
    maps: tuple[HeatMap, ...] = ()


def figures(results: Results) -> Figures | None:
    """The section for a run; ``None`` if it measured nothing and concluded nothing."""
    dipping = frozenset(one.subject for one in results.conclusions if one.kind in ("dip", "collapse"))
    plots = (*_plots(results.measurements, dipping), *_watts(results.measurements))
    maps = heat_maps(results.measurements)
    if not plots and not maps and not results.conclusions:
        return None
    return Figures(plots=plots, conclusions=results.conclusions, maps=maps)


def _plots(measurements: Sequence[Measurement], dipping: Collection[str]) -> Iterable[Plot]:
    """One plot per mode and kind: disks alone side by side, sums over the number of disks, long transfers by window,
    and per disk the rates over the size of a request. ``dipping`` are the disks with dips or a collapse."""
    groups: defaultdict[tuple[str, str], list[Measurement]] = defaultdict(list)
    for one in measurements:
        mode, _, kind = one.name.partition(" ")
        if one.unit == "B/s" and kind in ("alone", "together", "sustained"):
            groups[mode, kind].append(one)
        elif one.unit == "B/s" and kind == "by size":
            groups[mode, one.subject].append(one)
    for (mode, kind), found in groups.items():
        if kind == "sustained":
            yield from (_windows(mode, one, marked=one.subject in dipping) for one in found if len(one.samples) > 1)
        elif kind == "alone":
            newest = {one.subject: one for one in found}
            rows = [(subject, newest[subject]) for subject in sorted(newest, key=natural)]
            yield _plot(f"{mode}: each disk alone", "disk", mode, rows, joined=False)
        elif kind != "together":
            rows = [(_kib(one), one) for one in found]
            yield _plot(f"{mode}: {kind}, by the size of a request", "KiB", mode, rows, joined=True)
        else:
            first = [one for one in groups.get((mode, "alone"), ()) if found[0].subject.startswith(f"{one.subject},")]
            rows = [(_count(one), one) for one in (*first[-1:], *found)]
            yield _plot(f"{mode}: sum of more and more disks", "disks at once", mode, rows, joined=True)


def _watts(measurements: Sequence[Measurement]) -> Iterable[Plot]:
    """Per meter and mode, the watts over the number of disks at work. They are drawn below the rates."""
    groups: defaultdict[tuple[str, str], list[Measurement]] = defaultdict(list)
    for one in measurements:
        kind, _, rest = one.name.partition(", ")
        if kind == "watts" and one.unit == "W":
            groups[rest.partition(",")[0], one.subject].append(one)
    for (mode, meter), found in groups.items():
        idle = [one for one in measurements if (one.name, one.subject) == ("idle watts", meter)]
        rows = [*(("0", one) for one in idle[-1:]), *((_streams(one), one) for one in found)]
        computed = " (computed)" if "synthetic" in found[0].parameters else ""
        yield _plot(f"{mode}: watts that {meter} reads{computed}", "disks at work", mode, rows, joined=True)


def _streams(one: Measurement) -> str:
    streams = one.parameters.get("streams")
    return f"{streams:g}" if isinstance(streams, int | float) else NONE


def _kib(one: Measurement) -> str:
    block = one.parameters.get("block")
    return f"{block / 1024:g}" if isinstance(block, int | float) else NONE


def _count(one: Measurement) -> str:
    return f"{one.parameters.get('disks', NONE):g}" if isinstance(one.parameters.get("disks"), int | float) else NONE


def _plot(title: str, axis: str, mode: str, rows: Sequence[tuple[str, Measurement]], *, joined: bool) -> Plot:
    rows = rows[:MOST]
    most = max(max((one.value, one.high or 0.0, *one.samples)) for _, one in rows)
    step = _step(most)
    top = step * max(1, -(-most // step))
    gap = (WIDTH - LEFT - RIGHT) / len(rows)
    marks = tuple(_mark(LEFT + gap * (number + 0.5), top, label, one) for number, (label, one) in enumerate(rows))
    count = round(top / step)
    return Plot(
        title=title,
        axis=axis,
        mode=mode,
        marks=marks,
        ticks=tuple((_y(number * step, top), measure(number * step, rows[0][1].unit)) for number in range(count + 1)),
        line="".join(f"M{a.x:.1f} {a.y:.1f}L{b.x:.1f} {b.y:.1f}" for a, b in pairwise(marks)) if joined else "",
    )


def _windows(mode: str, one: Measurement, *, marked: bool) -> Plot:
    """The windows of a long transfer, one after the other, with its dips if they are ``marked``."""
    step = _step(max(one.samples))
    top = step * max(1, -(-max(one.samples) // step))
    gap = (WIDTH - LEFT - RIGHT) / len(one.samples)
    window = one.parameters.get("window")
    size = window if isinstance(window, int | float) else 0.0
    places = [(LEFT + gap * (number + 0.5), _y(rate, top)) for number, rate in enumerate(one.samples)]
    return Plot(
        title=f"{mode} for long: {one.subject}, in windows of {size / (1 << 20):.3g} MiB",
        axis=f"{len(one.samples) * size / (1 << 20):.3g} MiB",
        mode=mode,
        marks=(),
        ticks=tuple((_y(number * step, top), measure(number * step, "B/s")) for number in range(round(top / step) + 1)),
        line="".join(f"M{a[0]:.1f} {a[1]:.1f}L{b[0]:.1f} {b[1]:.1f}" for a, b in pairwise(places)),
        windows=tuple(
            (round(x, 1), f"from {number * size / (1 << 20):.3g} MiB on: {measure(rate, 'B/s')}")
            for number, ((x, _), rate) in enumerate(zip(places, one.samples, strict=True))
        ),
        gap=round(gap, 2),
        dips=tuple(
            (round(LEFT + gap * dip.first, 1), round(gap * dip.length, 1), f"{dip.depth:.0%} below the usual rate")
            for dip in (dips(one.samples).dips if marked and len(one.samples) >= USUAL else ())
        ),
    )


def _mark(x: float, top: float, label: str, one: Measurement) -> Mark:
    bounds = "" if one.low is None or one.high is None else f" ({measure(one.low, one.unit)} to "
    bounds += "" if not bounds else f"{measure(one.high, one.unit)})"
    each = ", ".join(measure(sample, one.unit) for sample in one.samples)
    return Mark(
        x=round(x, 1),
        y=_y(one.value, top),
        low=None if one.low is None else _y(one.low, top),
        high=None if one.high is None else _y(one.high, top),
        dots=tuple(_y(sample, top) for sample in one.samples),
        label=label,
        title=f"{one.subject}: {measure(one.value, one.unit)}{bounds}, repeats: {each}",
    )


def _y(value: float, top: float) -> float:
    share = min(max(value / top, 0.0), 1.0) if top > 0 else 0.0
    return round(HEIGHT - BOTTOM - share * (HEIGHT - BOTTOM - TOP), 1)


def _step(most: float) -> float:
    """A round distance of about ``TICKS`` ticks."""
    if most <= 0:
        return 1.0
    scale = 1.0
    while scale * 10 <= most / TICKS:
        scale *= 10
    while scale > most / TICKS:
        scale /= 10
    return next(scale * step for step in STEPS if scale * step >= most / TICKS)
