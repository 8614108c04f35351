"""Brings the derived tables up to date: reads the runs that came since, rig by rig, from the oldest to the newest.

What is known after a run depends only on the runs up to it. It is stored, so the next update reads only the runs that
came since; a run that is dropped in between older ones makes its rig's runs be read again.
"""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import msgspec

from plugpull.archive.change_points import MEMORY, Segment, Spread, ValueChange, extend, grain_of, settled_spread
from plugpull.archive.disks import disks_of_run
from plugpull.archive.verdicts import Streaks, advance

FOLLOWING = 4
"""With more changes of the kernel than this in 10 nights, a rig follows a branch: a new kernel every night."""
OF_NIGHTS = 10


class LineState(msgspec.Struct, kw_only=True):
    """A rig with one kernel line. ``epoch`` counts the declared changes, and ``what`` names the last one.

    ``declared`` is what each run declares. ``new_kernels`` says for the last nights whether each had another kernel."""

    declared: dict[str, str] = {}
    new_kernels: list[bool] = []
    epoch: int = 0
    what: str = ""
    nights: int = 0


class RigState(msgspec.Struct, kw_only=True):
    """A rig. ``disks`` has, for scenarios by their key without a disk, the series that was counted last, and whether
    it has a disk. ``names`` has the identity of each disk by its name, as the newest run that says so gives it."""

    names: dict[str, str] = {}
    lines: dict[str, LineState] = {}
    disks: dict[str, tuple[int, bool]] = {}


class Values(msgspec.Struct, kw_only=True):
    """A measured series: its present segment. ``before`` is the mean of the segment before the declared change
    ``what``, at which the present one began, and ``earlier`` that segment's spread. Numbers in another ``unit``
    begin a segment, too, and are not compared with those before."""

    nights: list[int] = []
    values: list[float] = []
    epoch: int = 0
    last: int = 0
    before: float | None = None
    what: str = ""
    earlier: Spread | None = None
    unit: str | None = None


def segment_of(values: Values, grain: float) -> Segment:
    """The present segment of a measured series, ready for more nights."""
    return Segment.of(values.nights, values.values, grain, values.earlier)


class SeriesState(msgspec.Struct, kw_only=True, omit_defaults=True):
    """What is stored of a series: its verdicts, or its values. ``of`` is the series that it was counted to."""

    verdicts: Streaks | None = None
    values: Values | None = None
    of: int = 0


@dataclass(frozen=True)
class _Series:
    """The series of a rig: each as what it measures of which scenario (``group``), and the disk that it belongs to."""

    by_id: dict[int, tuple[str, str]]
    by_disk: dict[tuple[str, str], int]
    metrics: dict[int, str]
    units: dict[int, str]


@dataclass
class _Lane:
    """A rig while its runs are read."""

    id: int
    rig: RigState
    series: dict[int, SeriesState]
    known: _Series
    segments: dict[int, Segment] = field(default_factory=dict)
    touched: set[int] = field(default_factory=set)
    changes: list[tuple[int, ValueChange]] = field(default_factory=list)

    def verdicts_of(self, series: int) -> Streaks:
        self.touched.add(series)
        state = self.series.setdefault(series, SeriesState())
        if state.verdicts is None:
            state.verdicts = Streaks()
        return state.verdicts

    def values_of(self, series: int) -> tuple[Values, Segment]:
        self.touched.add(series)
        state = self.series.setdefault(series, SeriesState())
        if state.values is None:
            state.values = Values()
        if series not in self.segments:
            grain = grain_of(self.known.metrics[series])
            self.segments[series] = segment_of(state.values, grain)
        return state.values, self.segments[series]


@dataclass(frozen=True)
class _Run:
    id: int
    started: float
    folder: str
    name: str
    line: str
    declared: Mapping[str, str]


def bring_up_to_date(db: sqlite3.Connection) -> None:
    """Read all runs that are not yet part of the derived tables."""
    for (rig,) in db.execute("SELECT DISTINCT rig FROM run ORDER BY rig").fetchall():
        stored = db.execute("SELECT id, started, folder, state FROM lane WHERE name = ?", (rig,)).fetchone()
        after = (stored[1], stored[2]) if stored else (float("-inf"), "")
        runs = list(_runs(db, rig, after))
        if runs:
            _read_runs(db, rig, stored, runs)


def _runs(db: sqlite3.Connection, rig: str, after: tuple[float, str]) -> Iterator[_Run]:
    columns = "id, started, folder, name, kernel_line, declared"
    order = "WHERE rig = ? AND (started, folder) > (?, ?) ORDER BY started, folder"
    for id, started, folder, name, line, declared in db.execute(f"SELECT {columns} FROM run {order}", (rig, *after)):
        yield _Run(id, started, folder, name, line, msgspec.json.decode(declared, type=dict[str, str]))


def _read_runs(db: sqlite3.Connection, rig: str, stored: tuple[int, float, str, str] | None, runs: list[_Run]) -> None:
    lane = _load(db, rig, stored)
    for run in runs:
        line = lane.rig.lines.setdefault(run.line, LineState())
        _declare(line, run.declared)
        disks = disks_of_run(db, run.id)
        lane.rig.names |= {name: identity for identity, name in disks.items()}
        _read_verdicts(db, lane, run, disks)
        _read_values(db, lane, run, line, disks)
    _save(db, lane, runs[-1])


def _load(db: sqlite3.Connection, rig: str, stored: tuple[int, float, str, str] | None) -> _Lane:
    known = _series_of(db, rig)
    if stored is None:
        cursor = db.execute("INSERT INTO lane (name, started, folder, state) VALUES (?, 0, '', '')", (rig,))
        return _Lane(int(cursor.lastrowid or 0), RigState(), {}, known)
    decoder = msgspec.json.Decoder(SeriesState)
    rows = db.execute("SELECT id, state FROM progress WHERE lane_id = ?", (stored[0],))
    series = {id: decoder.decode(state) for id, state in rows}
    return _Lane(stored[0], msgspec.json.decode(stored[3], type=RigState), series, known)


def _series_of(db: sqlite3.Connection, rig: str) -> _Series:
    columns = "id, scenario, kernel_line, disk_identity, metric, params_json, unit"
    known = _Series({}, {}, {}, {})
    for id, scenario, line, disk, metric, params, unit in db.execute(
        f"SELECT {columns} FROM series WHERE rig = ?", (rig,)
    ):
        group = f"{line} {scenario} {metric} {params}" if metric else f"{line} {scenario}"
        known.by_id[id], known.by_disk[group, disk], known.metrics[id] = (group, disk), id, metric
        known.units[id] = unit
    return known


def _save(db: sqlite3.Connection, lane: _Lane, last: _Run) -> None:
    state = msgspec.json.encode(lane.rig).decode()
    row = (last.started, last.folder, state, lane.id)
    db.execute("UPDATE lane SET started = ?, folder = ?, state = ? WHERE id = ?", row)
    for series, segment in lane.segments.items():
        values = lane.series[series].values
        assert values is not None
        values.nights, values.values = segment.nights[-MEMORY:], segment.values[-MEMORY:]
        values.earlier = segment.earlier
    encode = msgspec.json.Encoder().encode
    db.executemany(
        "INSERT OR REPLACE INTO progress (id, lane_id, state) VALUES (?, ?, ?)",
        [(series, lane.id, encode(lane.series[series]).decode()) for series in sorted(lane.touched)],
    )
    db.executemany(
        "INSERT INTO change_point (series_id, run_id, before, after, p) VALUES (?, ?, ?, ?, ?)",
        [(series, change.at, change.before, change.after, change.p) for series, change in lane.changes],
    )


# --- declared changes ------------------------------------------------------------------------------------------------


def _declare(line: LineState, declared: Mapping[str, str]) -> None:
    """Begin a new epoch if a run declares something else than the runs before it. Unknown is not a change."""
    changed = [name for name, value in declared.items() if line.declared.get(name, value) != value]
    line.new_kernels = [*line.new_kernels, "kernel" in changed][-OF_NIGHTS:]
    if sum(line.new_kernels) > FOLLOWING:
        changed = [name for name in changed if name != "kernel"]
    if changed:
        line.epoch += 1
        line.what = ", ".join(f"{name} {declared[name]}" if name != "rig" else "rig" for name in changed)
    line.declared = {**line.declared, **declared}
    line.nights += 1


# --- verdicts --------------------------------------------------------------------------------------------------------


def _with_identity(lane: _Lane, series: int, disks: Mapping[str, str]) -> int:
    """The series that a result is counted to: that of its disk's identity, if that is known. ``disks`` are the names of
    the run's disks by their identities.

    What was counted to a name until its disk's identity was known belongs to that disk.
    """
    group, disk = lane.known.by_id[series]
    name = disks.get(disk)
    if name is None:
        identity = lane.rig.names.get(disk) if disk not in disks.values() else None
        later = lane.known.by_disk.get((group, identity)) if identity is not None else None
        if later is None or later not in lane.series:  # of a run that comes later still
            return series
        _adopt(lane, group, series, later)
        return later
    earlier = lane.known.by_disk.get((group, name))
    if earlier is not None:
        _adopt(lane, group, earlier, series)
    return series


def _adopt(lane: _Lane, group: str, earlier: int, later: int) -> None:
    """Go on with the state of a series that was known by its disk's name."""
    was, now = lane.series.get(earlier), lane.series.get(later, SeriesState())
    if was is not None and was.of == later:
        return
    if was is not None and not was.of and now.verdicts is None and now.values is None:
        lane.series[later] = SeriesState(verdicts=was.verdicts, values=was.values)
        if earlier in lane.segments:
            lane.segments[later] = lane.segments.pop(earlier)
        if lane.rig.disks.get(group, (0, False))[0] == earlier:
            lane.rig.disks[group] = (later, True)
        lane.touched.add(later)
    if was is None or not was.of:
        lane.segments.pop(earlier, None)
        lane.series[earlier] = SeriesState(of=later)
        lane.touched.add(earlier)


def _read_verdicts(db: sqlite3.Connection, lane: _Lane, run: _Run, disks: Mapping[str, str]) -> None:
    statuses: defaultdict[int, set[str]] = defaultdict(set)
    reasons: defaultdict[int, dict[str, None]] = defaultdict(dict)
    rows = db.execute("SELECT series_id, status, reason_kind FROM result WHERE run_id = ? ORDER BY id", (run.id,))
    for series, status, reason in rows:
        series = _with_identity(lane, series, disks)
        group, disk = lane.known.by_id[series]
        counted = _counted_to(lane, series, group, bool(disk))
        statuses[counted].add(status)
        if status == "FAIL":
            reasons[counted] |= dict.fromkeys(reason.split(", "))
    for series, found in statuses.items():
        advance(lane.verdicts_of(series), run.name, found, list(reasons[series]))


def _counted_to(lane: _Lane, series: int, scenario: str, with_disk: bool) -> int:
    """The series that a result is counted to: itself, or that of the disk that this scenario cut last, if the scenario
    ended before it cut one. Results before the first cut of all belong to the first disk that was cut."""
    known = lane.rig.disks.get(scenario)
    if with_disk or known is None:
        if known is not None and not known[1]:
            lane.series[series] = SeriesState(verdicts=lane.series[known[0]].verdicts)
            lane.series[known[0]] = SeriesState(of=series)
            lane.touched |= {known[0], series}
        lane.rig.disks[scenario] = (series, with_disk)
        return series
    if known[0] != series:
        lane.series[series] = SeriesState(of=known[0])
        lane.touched.add(series)
    return known[0]


# --- values ----------------------------------------------------------------------------------------------------------


def _read_values(db: sqlite3.Connection, lane: _Lane, run: _Run, line: LineState, disks: Mapping[str, str]) -> None:
    rows = db.execute("SELECT series_id, value, other_unit FROM measure WHERE run_id = ?", (run.id,))
    for series, value, unit in rows:
        unit = lane.known.units[series] if unit is None else unit
        series = _with_identity(lane, series, disks)
        values, segment = lane.values_of(series)
        values.last = run.id
        if values.epoch != line.epoch:
            if segment.values:
                values.before, values.what = segment.mean(0, len(segment.values)), line.what
                lane.segments[series] = segment = Segment(segment.grain, settled_spread(segment))
            values.epoch = line.epoch
        if unit != values.unit:
            if segment.values and values.unit is not None:
                values.before, values.what = None, ""
                lane.segments[series] = segment = Segment(segment.grain, settled_spread(segment))
            values.unit = unit
        after, change = extend(segment, run.id, value)
        if change is not None:
            lane.segments[series] = after
            lane.changes.append((series, change))
            values.before, values.what = None, ""
