"""What the page of an archive shows, worked out from the index: links to reports, grids of nights, curves of values."""

from __future__ import annotations

import os
import sqlite3
import stat
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

from plugpull.archive.disks import counted_to, names_of
from plugpull.archive.records import JUDGED
from plugpull.archive.trend import SeriesTrend, Trend, ValueTrend
from plugpull.report.text import title_of

SHOWN = 90
"""The newest nights of a rig and kernel line in its grid."""
DRAWN = 60
"""The newest nights in a curve."""
MOST_CURVES = 1200
"""Curves beside those of the changes; more would make the page too large."""
MOST_ROWS = 400
"""Rows of a grid."""
CELL, ROW, LABEL = 9, 15, 330
"""Width of a night, height of a row and width of its label in a grid, in units of its SVG."""
WIDE, HIGH = 132, 22
"""Size of a curve."""
REPORT = "report.html"


@dataclass(frozen=True)
class NightLink:
    """A run. ``href`` is its report as seen from the page, empty if there is none."""

    id: int
    name: str
    verdict: str
    href: str
    lane: tuple[str, str]


@dataclass(frozen=True)
class GridRow:
    """A series in a grid. The texts are paths of an SVG, for the nights with each kind of result."""

    label: str
    key: str
    name: str
    y: int
    passed: str
    failed: str
    unknown: str


@dataclass(frozen=True)
class NightGrid:
    """The newest nights of a rig with a kernel line: ``columns`` with their x. ``more`` rows are left out."""

    rig: str
    line: str
    rows: tuple[GridRow, ...]
    columns: tuple[tuple[int, NightLink], ...]
    width: int
    height: int
    more: int


@dataclass(frozen=True)
class ValueCurve:
    """The newest values of a measured series as a path of an SVG. ``at`` is the x of a change, if it is in view."""

    path: str
    at: int | None = None


@dataclass(frozen=True)
class ValueRow:
    """A measured series in the table of all of them."""

    metric: str
    disk: str
    newest: float
    unit: str
    curve: ValueCurve


@dataclass
class PageData:
    """Everything on the page beside the trend itself."""

    nights: dict[str, NightLink] = field(default_factory=dict)
    grids: list[NightGrid] = field(default_factory=list)
    curves: dict[int, ValueCurve] = field(default_factory=dict)
    values: dict[str, list[ValueRow]] = field(default_factory=dict)
    left_out: int = 0


def page_data(db: sqlite3.Connection, trend: Trend, archive: Path, page: Path) -> PageData:
    """Work out what the page at ``page`` shows of ``archive``."""
    links = list(_links(db, archive, page.parent))
    lanes: defaultdict[tuple[str, str], list[NightLink]] = defaultdict(list)
    for link in links:
        lanes[link.lane].append(link)
    data = PageData(nights={link.name: link for link in links})
    statuses = _statuses(db, (link.id for nights in lanes.values() for link in nights[-SHOWN:]))
    for lane, nights in sorted(lanes.items()):
        if grid := _grid(lane, nights[-SHOWN:], [one for one in trend.series if (one.rig, one.line) == lane], statuses):
            data.grids.append(grid)
    _curves(db, trend, lanes.values(), data)
    return data


def _links(db: sqlite3.Connection, archive: Path, of_page: Path) -> Iterator[NightLink]:
    way = os.path.relpath(archive.resolve(), of_page.resolve())
    columns = "id, name, folder, verdict, rig, kernel_line"
    for id, name, folder, verdict, rig, line in db.execute(f"SELECT {columns} FROM run ORDER BY started, folder"):
        there = _is_file(archive / folder, REPORT)
        path = f"{folder}/{REPORT}" if way == "." else f"{way}/{folder}/{REPORT}"
        yield NightLink(id, name, verdict, quote(path) if there else "", (rig, line))


def _is_file(folder: Path, name: str) -> bool:
    """Whether a directory that is not a link has an ordinary file of this name."""
    try:
        return stat.S_ISDIR(folder.lstat().st_mode) and stat.S_ISREG((folder / name).lstat().st_mode)
    except OSError:
        return False


# --- grids -----------------------------------------------------------------------------------------------------------


def _statuses(db: sqlite3.Connection, runs: Iterable[int]) -> dict[int, dict[int, str]]:
    """For each series: what it was in each of these runs. The worst of several counts."""
    wanted = set(runs)
    worst: defaultdict[int, dict[int, str]] = defaultdict(dict)
    others = counted_to(db)
    order = {"PASS": 0, "UNKNOWN": 1, "FAIL": 2}
    for series, run, status in db.execute("SELECT series_id, run_id, status FROM result WHERE status != 'SKIP'"):
        if run in wanted:
            series = others.get(series, series)
            kind = status if status in JUDGED else "UNKNOWN"
            before = worst[series].get(run)
            if before is None or order[kind] > order[before]:
                worst[series][run] = kind
    return worst


def _grid(
    lane: tuple[str, str],
    nights: Sequence[NightLink],
    series: Sequence[SeriesTrend],
    statuses: Mapping[int, Mapping[int, str]],
) -> NightGrid | None:
    order = ("new", "ongoing", "flaky", "passing again", "fixed", "passing", "never run", "gone")
    there = [one for one in series if one.id in statuses]
    there.sort(key=lambda one: (order.index(one.name), one.key))
    rows = [_row(one, y, nights, statuses[one.id]) for y, one in enumerate(there[:MOST_ROWS])]
    if not rows:
        return None
    columns = tuple((LABEL + CELL * number, night) for number, night in enumerate(nights))
    size = (LABEL + CELL * len(nights), ROW * len(rows))
    return NightGrid(*lane, tuple(rows), columns, *size, len(there) - len(rows))


def _row(one: SeriesTrend, number: int, nights: Sequence[NightLink], said: Mapping[int, str]) -> GridRow:
    def marks(status: str, shape: str) -> str:
        places = [x for x, night in enumerate(nights) if said.get(night.id) == status]
        return "".join(f"M{LABEL + CELL * x + 1} {ROW * number + 2}{shape}" for x in places)

    return GridRow(
        label=_short(one),
        key=one.key,
        name=one.name,
        y=ROW * number + 11,
        passed=marks("PASS", "m3 3v5"),
        failed=marks("FAIL", "h7v11h-7z"),
        unknown=marks("UNKNOWN", "h7v11h-7z"),
    )


def _short(one: SeriesTrend) -> str:
    """A label that fits: the scenario in words, and its disk."""
    label = title_of(one.scenario) + (f", {one.disk}" if one.disk else "")
    return label if len(label) <= 52 else f"{label[:51]}\u2026"


# --- curves ----------------------------------------------------------------------------------------------------------


def _curves(db: sqlite3.Connection, trend: Trend, lanes: Iterable[Sequence[NightLink]], data: PageData) -> None:
    places = {night.id: (x, night.name) for nights in lanes for x, night in enumerate(nights[-DRAWN:])}
    points: defaultdict[int, dict[int, float]] = defaultdict(dict)
    others, names = counted_to(db), names_of(db)
    for series, run, value in db.execute("SELECT series_id, run_id, value FROM measure"):
        if run in places:
            points[others.get(series, series)][places[run][0]] = value
    x_of = {name: x for x, name in places.values()}
    for change in (*trend.changes, *trend.steps):
        data.curves[change.series] = _curve(points.get(change.series, {}), x_of.get(change.at))
    columns = "id, metric, disk_identity, unit, scenario, rig, kernel_line"
    rows = db.execute(
        f"SELECT {columns} FROM series WHERE metric != '' ORDER BY scenario, rig, kernel_line, metric, key"
    )
    for number, (id, metric, disk, unit, scenario, rig, line) in enumerate(rows):
        if not points.get(id):
            continue
        if number >= MOST_CURVES:
            data.left_out += 1
            continue
        heading = f"{scenario}, {rig}, kernel {line}"
        newest = points[id][max(points[id])]
        disk = names.get((rig, disk), disk)
        data.values.setdefault(heading, []).append(ValueRow(metric, disk, newest, unit, _curve(points[id])))


def _curve(points: Mapping[int, float], at: int | None = None) -> ValueCurve:
    """A curve over ``DRAWN`` nights; nights without a value are gaps."""
    if not points:
        return ValueCurve("", at)
    low, high = min(points.values()), max(points.values())
    scale = (HIGH - 4) / (high - low) if high > low else 0.0
    path, before = [], None
    for x in sorted(points):
        y = round(HIGH - 2 - (points[x] - low) * scale) if scale else HIGH // 2
        if before is not None and x - before[0] == 1:
            path.append(f"l2 {y - before[1]}" if y != before[1] else "h2")
        else:
            path.append(f"M{2 * x + 2} {y}h1h-1")
        before = (x, y)
    return ValueCurve("".join(path), None if at is None else 2 * at + 2)


def changed_value(one: ValueTrend, data: PageData) -> ValueCurve:
    """The curve of a change."""
    return data.curves.get(one.series, ValueCurve(""))
