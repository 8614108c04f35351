"""What changed in an archive: the class of each series, changes of measured values, and the state of the benches."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec

from plugpull.archive.advance import SeriesState, bring_up_to_date, segment_of
from plugpull.archive.bench import BenchTrouble, bench_troubles
from plugpull.archive.change_points import Segment, ValueChange, grain_of, settled_spread, suspicion, usual_step
from plugpull.archive.disks import names_of
from plugpull.archive.index import Updated, in_memory, rebuild, updated_index
from plugpull.archive.present import Nights, nights_of
from plugpull.archive.spread import FEWEST, Prior, prior_of
from plugpull.archive.verdicts import SeriesClass, standing
from plugpull.errors import RigError
from plugpull.measure.estimate import odd_ones


class SeriesTrend(msgspec.Struct, frozen=True, kw_only=True):
    """A series of verdicts. ``since`` and ``last`` are when runs started; ``reason`` is why it failed last.

    ``k`` of ``n``: passes of three if passing again, otherwise failures among the newest results."""

    id: int
    key: str
    name: SeriesClass
    since: str
    last: str
    k: int
    n: int
    reason: str
    scenario: str = ""
    rig: str = ""
    line: str = ""
    disk: str = ""
    detail: str = ""
    news: bool = True
    """For a series that is gone: it is so for a few nights only."""


class ValueTrend(msgspec.Struct, frozen=True, kw_only=True):
    """A change of a measured series. ``declared``: what was declared to have changed; such a step is not a change."""

    series: int
    key: str
    measurement: str
    at: str
    before: float
    after: float
    p: float
    state: str
    unit: str = ""
    better: str = ""
    usual: float | None = None
    declared: str = ""
    news: bool = True
    """It happened within the newest nights."""

    @property
    def share(self) -> float | None:
        """The change as a share of the value before."""
        return self.after / self.before - 1.0 if self.before else None


@dataclass(frozen=True)
class Trend:
    """Everything that ``plugpull trend`` says of an archive. ``steps`` are differences at declared changes."""

    nights: int
    series: tuple[SeriesTrend, ...]
    changes: tuple[ValueTrend, ...]
    bench: tuple[BenchTrouble, ...]
    steps: tuple[ValueTrend, ...]
    updated: Updated


def trend_of(directory: Path) -> Trend:
    """The trend of an archive, whose index is brought up to date first. Raises UsageError."""
    with opened(directory) as (db, updated):
        return read_trend(db, updated)


@contextmanager
def opened(directory: Path) -> Iterator[tuple[sqlite3.Connection, Updated]]:
    """The index of an archive with all that is derived, up to date. Raises UsageError.

    Of an archive that cannot be written, because it is somebody else's or its disk is full, one is made in memory.
    """
    with ExitStack() as stack:
        try:
            db, updated = stack.enter_context(updated_index(directory))
            bring_up_to_date(db)
        except RigError:
            db, updated = in_memory(directory)
            stack.enter_context(closing(db))
            bring_up_to_date(db)
        yield db, updated


def make_index(directory: Path) -> Updated:
    """Make the index from nothing, with everything that is derived. Raises UsageError, RigError."""
    return rebuild(directory, bring_up_to_date)


def read_trend(db: sqlite3.Connection, updated: Updated) -> Trend:
    """The trend from derived tables that are up to date. Stores the classes, for those who read with SQL."""
    nights = nights_of(db)
    states = _states(db)
    series = tuple(sorted(_series(db, nights, states), key=lambda one: one.key))
    db.execute("DELETE FROM classified")
    db.executemany(
        "INSERT INTO classified (id, class, since, last, k, n, reason) VALUES (?, ?, ?, ?, ?, ?, ?)",
        [(one.id, one.name, one.since or None, one.last or None, one.k, one.n, one.reason) for one in series],
    )
    changes, steps = _changes(db, nights, states)
    return Trend(nights.most, series, changes, bench_troubles(db, nights), steps, updated)


def _states(db: sqlite3.Connection) -> dict[int, SeriesState]:
    decoder = msgspec.json.Decoder(SeriesState)
    return {id: decoder.decode(state) for id, state in db.execute("SELECT id, state FROM progress")}


# --- verdicts --------------------------------------------------------------------------------------------------------


def _series(db: sqlite3.Connection, nights: Nights, states: dict[int, SeriesState]) -> Iterator[SeriesTrend]:
    rows = db.execute(
        "SELECT id, key, scenario, rig, kernel_line, disk_identity FROM series WHERE metric = ''"
    ).fetchall()
    names = names_of(db)
    for id, key, scenario, rig, line, disk in rows:
        state = states.get(id)
        if state is None or state.verdicts is None:
            continue
        now = standing(state.verdicts)
        name, since = now.name, now.since
        if gone := nights.gone_since(id, (rig, line), scenario, disk):
            name, since = "gone", gone
        yield SeriesTrend(
            id=id,
            key=key,
            name=name,
            since=since,
            last=now.last,
            k=now.k,
            n=now.n,
            reason=now.reason,
            scenario=scenario,
            rig=rig,
            line=line,
            disk=names.get((rig, disk), disk),
            detail=_detail(db, id) if name in ("new", "ongoing", "flaky") else "",
            news=name != "gone" or since in nights.newest,
        )


def _detail(db: sqlite3.Connection, series: int) -> str:
    """What the last failure of a series was, in words."""
    row = db.execute(
        "SELECT detail FROM result JOIN run ON run.id = run_id WHERE series_id = ? AND status = 'FAIL' "
        "ORDER BY started DESC, folder DESC, result.id DESC LIMIT 1",
        (series,),
    ).fetchone()
    return str(row[0]) if row else ""


# --- values ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Measured:
    key: str
    metric: str
    unit: str
    better: str


def _changes(
    db: sqlite3.Connection, nights: Nights, states: dict[int, SeriesState]
) -> tuple[tuple[ValueTrend, ...], tuple[ValueTrend, ...]]:
    names = {
        id: _Measured(key, metric, unit, better)
        for id, key, metric, unit, better in db.execute(
            "SELECT id, key, metric, unit, better FROM series WHERE metric != ''"
        )
    }
    segments = {
        id: segment_of(state.values, grain_of(names[id].metric))
        for id, state in states.items()
        if state.values is not None
    }
    proved = [
        (series, ValueChange(at, before, after, p, "changed"))
        for series, at, before, after, p in db.execute(
            "SELECT series_id, run_id, before, after, p FROM change_point ORDER BY id"
        )
    ]
    suspected = list(_suspicions(db, names, segments, nights))
    found = [_value(names[id], id, change, segments.get(id), nights) for id, change in (*proved, *suspected)]
    steps = [
        _step(names[id], id, state, segments[id], nights)
        for id, state in states.items()
        if state.values is not None and state.values.before is not None and len(segments[id].values) >= 1
    ]
    return (
        tuple(sorted(found, key=lambda one: (one.at, one.key, one.measurement))),
        tuple(step for step in steps if step is not None),
    )


def _suspicions(
    db: sqlite3.Connection, names: dict[int, _Measured], segments: dict[int, Segment], nights: Nights
) -> Iterator[tuple[int, ValueChange]]:
    priors = _priors(names, segments)
    for id, segment in segments.items():
        if segment.nights and not nights.is_recent(segment.nights[-1]):
            continue
        change = suspicion(segment, priors.get(names[id].metric))
        if change is not None and change.at == segment.nights[-1] and _odd(db, id, change.at):
            change = suspicion(segment, priors.get(names[id].metric), alone=False)
        if change is not None:
            yield id, change


def _priors(names: dict[int, _Measured], segments: dict[int, Segment]) -> dict[str, Prior | None]:
    """The spread of the series of each measurement. One with few series takes that of its unit."""
    by_metric: defaultdict[str, list[tuple[float, int]]] = defaultdict(list)
    by_unit: defaultdict[str, list[tuple[float, int]]] = defaultdict(list)
    units = {}
    for id, segment in segments.items():
        if spread := settled_spread(segment):
            by_metric[names[id].metric].append(spread)
            by_unit[names[id].unit].append(spread)
        units[names[id].metric] = names[id].unit
    return {
        metric: prior_of(by_metric[metric] if len(by_metric[metric]) >= FEWEST else by_unit[unit])
        for metric, unit in units.items()
    }


def _odd(db: sqlite3.Connection, series: int, run: int) -> bool:
    """Whether a repeat of this night was unlike the others: its value is a mixture, and proves nothing alone."""
    row = db.execute("SELECT samples_json FROM measure WHERE series_id = ? AND run_id = ?", (series, run)).fetchone()
    samples: Sequence[float] = msgspec.json.decode(row[0]) if row and row[0] else ()
    return bool(odd_ones(samples))


def _value(of: _Measured, id: int, change: ValueChange, segment: Segment | None, nights: Nights) -> ValueTrend:
    return ValueTrend(
        series=id,
        key=of.key,
        measurement=of.metric,
        at=nights.name(change.at),
        before=change.before,
        after=change.after,
        p=change.p,
        state=change.state,
        unit=of.unit,
        better=of.better,
        usual=usual_step(segment.values) if segment else None,
        news=nights.name(change.at) in nights.newest,
    )


def _step(of: _Measured, id: int, state: SeriesState, segment: Segment, nights: Nights) -> ValueTrend | None:
    """The difference at a declared change, if it is larger than what a night varies."""
    values = state.values
    assert values is not None
    assert values.before is not None
    after = segment.mean(0, len(segment.values))
    usual = max(usual_step(segment.values) or 0.0, 0.03)
    if abs(after - values.before) < usual * abs(values.before) or after == values.before:
        return None
    at = ValueChange(segment.nights[0], values.before, after, 1.0, "suspected")
    return msgspec.structs.replace(_value(of, id, at, segment, nights), state="declared", declared=values.what)


# --- as JSON ---------------------------------------------------------------------------------------------------------


def as_object(trend: Trend) -> dict[str, object]:
    """What ``plugpull trend --json`` prints."""
    series = ("key", "since", "last", "k", "n", "reason")
    changes = ("key", "measurement", "at", "before", "after", "p", "state")
    return {
        "nights": trend.nights,
        "series": [
            {"key": one.key, "class": one.name, **{name: getattr(one, name) for name in series[1:]}}
            for one in trend.series
        ],
        "changes": [{name: getattr(one, name) for name in changes} for one in trend.changes],
        "bench": [msgspec.to_builtins(one) for one in trend.bench],
    }
