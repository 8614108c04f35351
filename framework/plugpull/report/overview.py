"""The overview at the top of the report: the whole run on one clock, every disk a row, every cut shaded.

The clock is the controller's, in seconds since the first scenario began. Each scenario's DUT times are mapped onto it
by the recorded exchanges (``ClockMapped``). A long run is broken into strips, between scenarios.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import chain

from plugpull.history.events import ClockMapped, Event, ScenarioBegun, ScenarioEnded
from plugpull.history.medians import ranked
from plugpull.history.tape import others_of
from plugpull.judging.results import ScenarioResult, Survivor
from plugpull.report import text
from plugpull.report.curves import curve
from plugpull.report.sampling import thin
from plugpull.report.svg import ceiling
from plugpull.report.timeline import DiskTimeline, Timeline, split

LEFT, RIGHT = 120, 988
HEAD = 22
"""Height of the row that names the scenarios."""
STRIP_SECONDS = 150.0
"""A run that is longer is broken into strips of at least this length."""
TALLEST = 640
"""Height of all strips together, if one is not taller."""
GAP = 3
CHARACTER = 6.3
"""Width of a character of a label."""
HALVES = 2
"""Units of the curves' paths in one unit of the drawing: half a unit is exact enough here."""
FOOT = 26
"""Height of the time axis, with the space below it."""


@dataclass(frozen=True, kw_only=True)
class Placed:
    """One scenario on the run's clock: its timeline begins at ``begin`` and ends at ``end`` seconds."""

    number: int
    anchor: str
    result: ScenarioResult
    timeline: Timeline
    begin: float

    @property
    def end(self) -> float:
        return self.begin + self.timeline.end - self.timeline.start


@dataclass(frozen=True, kw_only=True)
class Box:
    """A rectangle with what it says on hover. ``mark`` is its style: a hatch, a verdict or a role."""

    x: float
    y: float
    width: float
    height: float
    title: str
    mark: str = ""
    label: str = ""
    href: str = ""


@dataclass(frozen=True, kw_only=True)
class Row:
    """One disk in one strip. ``top`` is the rate at its upper edge."""

    name: str
    top: str
    y: float


@dataclass(frozen=True, kw_only=True)
class Strip:
    """A part of the run. ``curves`` are (class, path data in halves of a unit)."""

    top: float
    bottom: float
    rows: tuple[Row, ...]
    heads: tuple[Box, ...]
    shades: tuple[Box, ...]
    absent: tuple[Box, ...]
    curves: tuple[tuple[str, str], ...]
    cells: tuple[Box, ...]
    findings: tuple[Box, ...]
    axis: tuple[tuple[float, str], ...]


@dataclass(frozen=True, kw_only=True)
class Overview:
    width: int
    height: float
    left: int
    right: int
    row_height: int
    strips: tuple[Strip, ...]


def overview(placed: Sequence[Placed]) -> Overview | None:
    """The overview of a run; ``None`` if nothing was sampled and nothing was cut."""
    disks = sorted({disk.name for one in placed for disk in one.timeline.disks}, key=text.natural)
    if not disks:
        return None
    row = 26 if len(disks) <= 4 else 18 if len(disks) <= 9 else 12
    tall = HEAD + FOOT + GAP + len(disks) * (row + GAP)
    parts = _parts(placed, max(min(TALLEST // tall, 4), 1))
    longest = max(part[-1].end - part[0].begin for part in parts)
    scale = (RIGHT - LEFT) / max(longest, 1.0)
    tops = _tops(placed)
    strips, top = [], 0.0
    for part in parts:
        strip = _StripDrawing(part, disks, tops, scale, top, row).drawn()
        strips.append(strip)
        top = strip.bottom + FOOT
    return Overview(width=1000, height=top, left=LEFT, right=RIGHT, row_height=row, strips=tuple(strips))


def place(
    parts: Sequence[tuple[int, str, ScenarioResult, Timeline, Sequence[Event]]], *, one_bench: bool = True
) -> list[Placed]:
    """Put scenarios (number, anchor, result, timeline, events) onto the run's clock, in order, without overlaps.

    Those of several benches ran at the same time: without ``one_bench``, each begins where the one before it ends.
    """
    starts = [_controller_start(timeline, events) if one_bench else None for _, _, _, timeline, events in parts]
    walls = [_wall_start(events) if one_bench else None for *_, events in parts]
    known = [start - wall for start, wall in zip(starts, walls, strict=True) if start is not None and wall is not None]
    placed: list[Placed] = []
    first: float | None = None
    for (number, anchor, result, timeline, _), start, wall in zip(parts, starts, walls, strict=True):
        if start is None and wall is not None and known:
            start = wall + known[0]
        first = start if first is None else first
        after = placed[-1].end if placed else 0.0
        begin = after if start is None or first is None else max(start - first, after)
        placed.append(Placed(number=number, anchor=anchor, result=result, timeline=timeline, begin=begin))
    return placed


def _controller_start(timeline: Timeline, events: Sequence[Event]) -> float | None:
    """The timeline's start on the controller's clock."""
    before, own = split(others_of(events))
    exchanges = [e for e in own if isinstance(e, ClockMapped)] or [e for e in before if isinstance(e, ClockMapped)][-1:]
    mapped = next((e for e in exchanges if e.at is not None), None)
    return None if mapped is None or mapped.at is None else timeline.start + mapped.controller - mapped.at


def _wall_start(events: Sequence[Event]) -> float | None:
    """When the scenario began, by the wall clock; from its end and its length if only these are known."""
    for event in others_of(events):
        if isinstance(event, ScenarioBegun | ScenarioEnded):
            try:
                wall = datetime.fromisoformat(event.wall).timestamp()
            except ValueError:
                continue
            return wall - event.seconds if isinstance(event, ScenarioEnded) else wall
    return None


def _parts(placed: Sequence[Placed], most: int) -> list[list[Placed]]:
    """The scenarios of each strip: strips of about equal length, at most ``most`` of them."""
    total = placed[-1].end - placed[0].begin
    count = min(max(math.ceil(total / STRIP_SECONDS), 1), most, len(placed))
    parts: list[list[Placed]] = [[] for _ in range(count)]
    for one in placed:
        middle = (one.begin + one.end) / 2 - placed[0].begin
        parts[min(int(middle / total * count) if total > 0 else 0, count - 1)].append(one)
    return [part for part in parts if part]


def _tops(placed: Iterable[Placed]) -> dict[str, float]:
    """The rate at the top of each disk's row. One short burst in a run must not flatten everything else: nine tenths of
    the samples in which the disk moved something fit, the others may be clipped."""
    moved: dict[str, list[float]] = {}
    for one in placed:
        for disk in one.timeline.disks:
            moved.setdefault(disk.name, []).extend(filter(None, chain(disk.read, disk.write)))
    return {name: ceiling(ranked(rates, len(rates) * 9 // 10) if rates else 0.0) for name, rates in moved.items()}


class _StripDrawing:
    """Draws the scenarios of one strip, from ``top`` down."""

    def __init__(
        self,
        part: Sequence[Placed],
        disks: Sequence[str],
        tops: Mapping[str, float],
        scale: float,
        top: float,
        row: int,
    ) -> None:
        self._part, self._tops, self._scale, self._row = part, tops, scale, row
        self._start = part[0].begin
        self._head = top
        self._top = top + HEAD
        self._rows = {name: self._top + GAP + index * (row + GAP) for index, name in enumerate(disks)}
        self._bottom = self._top + GAP + len(disks) * (row + GAP)

    def _x(self, one: Placed, at: float) -> float:
        since = one.begin + at - one.timeline.start - self._start
        return round(min(max(LEFT + since * self._scale, LEFT), RIGHT), 1)

    def drawn(self) -> Strip:
        part = self._part
        return Strip(
            top=self._top,
            bottom=self._bottom,
            rows=tuple(Row(name=name, y=y, top=text.rate(self._tops[name])) for name, y in self._rows.items()),
            heads=tuple(_readable(self._scenario(one) for one in part)),
            shades=tuple(box for one in part for box in self._cuts(one)),
            absent=tuple(box for one in part for disk in one.timeline.disks for box in self._absences(one, disk)),
            curves=tuple(path for one in part for path in self._curves(one)),
            cells=tuple(self._cell(one, disk) for one in part for disk in one.timeline.disks),
            findings=tuple(box for one in part for box in self._findings(one)),
            axis=self._axis(),
        )

    def _scenario(self, one: Placed) -> Box:
        x, end = self._x(one, one.timeline.start), self._x(one, one.timeline.end)
        title = text.title_of(one.result.id)
        fits = int((end - x - 22) / CHARACTER)
        short = title if len(title) <= fits else f"{title[: fits - 1].rstrip()}…" if fits > 5 else ""
        return Box(
            x=x,
            y=self._head,
            width=round(max(end - x - 1.5, 2), 1),
            height=self._bottom - self._head,
            title=f"{one.number} {title}: {one.result.verdict}, {text.duration(one.result.seconds)}",
            mark=str(one.result.verdict),
            label=f"{one.number} {short}".strip(),
            href=f"#{one.anchor}",
        )

    def _cuts(self, one: Placed) -> Iterable[Box]:
        for cut in one.timeline.cuts:
            x, end = self._x(one, cut.begin), self._x(one, cut.end)
            result = one.result.cuts[cut.number - 1]
            yield Box(
                x=x,
                y=self._top,
                width=round(max(end - x, 1.2), 1),
                height=self._bottom - self._top,
                title=f"cut {cut.number} of scenario {one.number}: {cut.point} ({cut.mechanism}), takes "
                f"{', '.join(result.victims) or 'no disk'}; {cut.begin - one.timeline.start:.2f} s after its begin, "
                + ("not restored" if cut.open_ended else f"for {text.duration(cut.end - cut.begin)}"),
                mark=text.hatch_of(cut.mechanism),
            )

    def _absences(self, one: Placed, disk: DiskTimeline) -> Iterable[Box]:
        for begin, end in disk.absent:
            x, right = self._x(one, begin), self._x(one, end)
            y, width = self._rows[disk.name], round(max(right - x, 1.0), 1)
            yield Box(x=x, y=y, width=width, height=self._row, title=f"{disk.name} absent")

    def _curves(self, one: Placed) -> Iterable[tuple[str, str]]:
        timeline = one.timeline
        if not timeline.grid:
            return
        points = max(int((timeline.end - timeline.start) * self._scale / 3), 12)
        columns = [column for disk in timeline.disks for column in (disk.read, disk.write)]
        grid, thinned = thin(timeline.grid, columns, points)
        xs = [self._x(one, at) for at in grid]
        for index, disk in enumerate(timeline.disks):
            y, top = self._rows[disk.name], self._tops[disk.name]
            for kind, column in (("write", thinned[2 * index + 1]), ("read", thinned[2 * index])):
                if any(column):
                    yield kind, curve(xs, column, y, self._row, top, area=kind == "write", unit=HALVES)

    def _cell(self, one: Placed, disk: DiskTimeline) -> Box:
        x = self._x(one, one.timeline.start)
        survivor = next((s for s in one.result.survivors if s.disk == disk.name), None)
        return Box(
            x=x,
            y=self._rows[disk.name],
            width=round(self._x(one, one.timeline.end) - x, 1),
            height=self._row,
            title="\n".join(_said(one, disk, survivor)),
            mark=disk.role,
        )

    def _findings(self, one: Placed) -> Iterable[Box]:
        for finding in one.result.findings:
            if finding.at is not None and one.timeline.start <= finding.at <= one.timeline.end:
                said = text.one_line(f"{finding.check}: {finding.subject} {finding.summary}", 200)
                x = self._x(one, finding.at)
                yield Box(x=x, y=self._top, width=9, height=9, title=said, mark="finding")

    def _axis(self) -> tuple[tuple[float, str], ...]:
        length = self._part[-1].end - self._start
        step = next((s for s in (1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600) if length / s <= 12), 7200)
        first = math.ceil(self._start / step) * step
        ticks = [first + index * step for index in range(int((self._start + length - first) / step) + 1)]
        return tuple((round(LEFT + (at - self._start) * self._scale, 1), _clock(at)) for at in ticks)


def _said(one: Placed, disk: DiskTimeline, survivor: Survivor | None) -> Iterable[str]:
    yield f"{disk.name}, {disk.role} in scenario {one.number}"
    for name, column in (("write", disk.write), ("read", disk.read)):
        moved = list(filter(None, column))
        if moved:
            yield f"{name}: mean {text.rate(sum(moved) / len(moved))} while active, peak {text.rate(max(moved))}"
    for begin, end in disk.absent:
        yield f"absent {text.duration(end - begin)}, from {begin - one.timeline.start:.2f} s of the scenario on"
    if survivor is not None and survivor.final_ratio is not None:
        yield f"final pace {text.ratio(survivor.final_ratio)} of its baseline {text.rate(survivor.baseline_bps)}"


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}:{rest:02}"


def _readable(boxes: Iterable[Box]) -> Iterator[Box]:
    """Boxes without the labels that would be drawn over the one before."""
    free = 0.0
    for box in boxes:
        if box.x < free:
            yield replace(box, label="")
        else:
            free = box.x + CHARACTER * (len(box.label) + 0.5)
            yield box
