"""Rows of one run: put into the index, and taken out again."""

from __future__ import annotations

import json
import sqlite3
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from math import fsum, sqrt
from statistics import median

import msgspec

from plugpull.archive.records import Outcome, RunRecord, Value, kernel_line, series_key
from plugpull.measure.student import t_quantile

_EMPTY = (
    "SELECT id FROM series WHERE NOT EXISTS (SELECT 1 FROM result WHERE series_id = series.id) "
    "AND NOT EXISTS (SELECT 1 FROM measure WHERE series_id = series.id)"
)


@dataclass(frozen=True)
class FoundRun:
    """A ``results.json`` as found in the archive: its directory's name, size in bytes, time of change and content."""

    folder: str
    size: int
    modified_ns: int
    content: bytes

    @property
    def digest(self) -> str:
        return sha256(self.content).hexdigest()


class Store:
    """Writes runs into the tables. Series are remembered, because each run has the same ones."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._ids: dict[tuple[str, str], int] = {}
        self._units: dict[int, str] = {}
        for id, key, metric, unit in db.execute("SELECT id, key, metric, unit FROM series"):
            self._ids[key, metric], self._units[id] = id, unit

    def put(self, found: FoundRun, run: RunRecord) -> int:
        """Add a run and return its id."""
        columns = _columns(found, run)
        marks = ", ".join("?" * len(columns))
        cursor = self._db.execute(f"INSERT INTO run ({', '.join(columns)}) VALUES ({marks})", tuple(columns.values()))
        id = int(cursor.lastrowid or 0)
        self._db.executemany(
            "INSERT INTO result (run_id, series_id, status, reason_kind, reasons_json, detail, duration) "
            "VALUES (?, ?, ?, ?, ?, ?, ?)",
            [(id, *self._result(run, outcome)) for outcome in run.outcomes],
        )
        self._db.executemany(
            "INSERT INTO measure (run_id, series_id, value, n, mean, sd, ci_lo, ci_hi, p50, min, samples_json, "
            "other_unit) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [(id, *row) for row in self._measures(run)],
        )
        self._db.executemany(
            "INSERT INTO note (run_id, kind, text) VALUES (?, ?, ?)", [(id, *note) for note in run.notes]
        )
        return id

    def _result(self, run: RunRecord, outcome: Outcome) -> tuple[object, ...]:
        line = kernel_line(outcome.kernel) or run.line
        key = series_key(outcome.scenario, run.rig, line, outcome.disk)
        series = self._series(key, outcome.scenario, run.rig, line, outcome.disk)
        reasons = [[reason.check, reason.kind, reason.role] for reason in outcome.reasons]
        named = ", ".join(map(str, outcome.reasons))
        return series, outcome.status, named, json.dumps(reasons), outcome.detail, outcome.seconds

    def _measures(self, run: RunRecord) -> Iterator[tuple[object, ...]]:
        """One row per series: values of a scenario that is in the run several times are repeats."""
        alike: defaultdict[int, list[Value]] = defaultdict(list)
        for outcome in run.outcomes:
            line = kernel_line(outcome.kernel) or run.line
            for value in outcome.values:
                key = series_key(outcome.scenario, run.rig, line, value.subject, value.parameters)
                series = self._series(key, outcome.scenario, run.rig, line, value.subject, value)
                alike[series].append(value)
        for series, values in alike.items():
            unit = values[0].unit if values[0].unit != self._units[series] else None
            yield series, median(value.value for value in values), *_summary(values), unit

    def _series(self, key: str, scenario: str, rig: str, line: str, disk: str, value: Value | None = None) -> int:
        metric, unit, better, parameters = "", "", "", ""
        if value is not None:
            metric, unit, better, parameters = value.metric, value.unit, value.better, value.parameters
        id = self._ids.get((key, metric))
        if id is None:
            params = {"scenario": scenario.partition("[")[2].removesuffix("]"), "measurement": parameters}
            cursor = self._db.execute(
                "INSERT INTO series (name, key, scenario, params_json, rig, kernel_line, disk_identity, metric, unit, "
                "better) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    f"{metric}: {key}" if metric else key,
                    key,
                    scenario,
                    json.dumps({name: text for name, text in params.items() if text}),
                    *(rig, line, disk, metric, unit, better),
                ),
            )
            id = self._ids[key, metric] = int(cursor.lastrowid or 0)
            self._units[id] = unit
        return id


def uid_of(found: FoundRun, run: RunRecord) -> str:
    """What distinguishes runs: their content. A run whose content does not say when it was is another one if its
    directory's name says another time, or none: passing nights of a plain results file can be equal."""
    if run.dated:
        return found.digest
    return f"{found.digest} {run.started_text if run.started else found.folder}"


def _columns(found: FoundRun, run: RunRecord) -> dict[str, object]:
    """The columns of the table ``run``."""
    return {
        "uid": uid_of(found, run),
        "name": run.started_text or found.folder,
        "folder": found.folder,
        "started": run.started,
        "started_utc": run.started_text,
        "rig": run.rig,
        "bench": run.bench,
        "kernel": run.kernel,
        "kernel_line": run.line,
        "plugpull": run.plugpull,
        "seed": run.seed,
        "verdict": run.verdict,
        "seconds": run.seconds,
        "complete": int(run.complete),
        "cuts_done": run.cuts_done,
        "cuts_planned": run.cuts_planned,
        "declared": json.dumps(run.declared),
        "sha256": found.digest,
        "bytes": found.size,
        "modified_ns": found.modified_ns,
    }


def remove(db: sqlite3.Connection, run: int) -> None:
    """Take a run out of the tables."""
    for table in ("result", "measure", "note"):
        db.execute(f"DELETE FROM {table} WHERE run_id = ?", (run,))
    db.execute("DELETE FROM run WHERE id = ?", (run,))


def drop_empty_series(db: sqlite3.Connection) -> None:
    """Take out series of which no result and no value is left: an index that is made again does not have them, and
    they must not be taken for what a disk was called before."""
    for table in ("classified", "change_point", "progress", "series"):
        key = "series_id" if table == "change_point" else "id"
        db.execute(f"DELETE FROM {table} WHERE {key} IN ({_EMPTY})")


def _summary(values: list[Value]) -> tuple[object, ...]:
    samples = [sample for value in values for sample in (value.samples or (value.value,))]
    count = len(samples)
    if count == 1:
        return 1, samples[0], None, None, None, samples[0], samples[0], None
    # Not statistics.stdev: its exact fractions took more time than everything else together.
    mean = fsum(samples) / count
    spread = sqrt(fsum((sample - mean) ** 2 for sample in samples) / (count - 1))
    half = t_quantile(0.975, float(count - 1)) * spread / sqrt(count)
    written = msgspec.json.encode(samples).decode()
    return count, mean, spread, mean - half, mean + half, median(samples), min(samples), written
