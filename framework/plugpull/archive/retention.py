"""Removes old runs from an archive, by age, number and size, and never the runs that are still needed.

Needed are the newest run of each rig and kernel line, and the first failing run of each failure that is still open.
What was learned from a run stays in the index until the index is made again.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from plugpull.archive.trend import opened, read_trend

OPEN = ("new", "ongoing", "flaky")
HALF_GONE = ".removing-"
DAY = 86400.0


@dataclass(frozen=True)
class Retention:
    """How much is kept: runs of so many ``days``, so many ``runs``, so many ``bytes``. ``None``: no limit."""

    days: float | None = None
    runs: int | None = None
    bytes: int | None = None

    @property
    def limited(self) -> bool:
        return (self.days, self.runs, self.bytes) != (None, None, None)


@dataclass(frozen=True)
class _Kept:
    id: int
    folder: str
    started: float
    size: int


def prune(directory: Path, retention: Retention, now: float) -> list[str]:
    """Remove the oldest runs beyond the limits, and return their names. ``now`` is seconds since the epoch.

    Raises UsageError, RigError.
    """
    if not retention.limited:
        return []
    with opened(directory) as (db, updated):
        for left in directory.glob(f"{HALF_GONE}*"):  # of a removal that was killed
            shutil.rmtree(left, ignore_errors=True)
        needed = _needed(db, {one.since for one in read_trend(db, updated).series if one.name in OPEN})
        gone = list(_beyond(_runs(db, directory), retention, needed, now))
        # The index first: a run that is marked and still there is read again, and one that is only gone would take
        # what was learned from it along.
        db.executemany("UPDATE run SET dropped = 1 WHERE id = ?", [(run.id,) for run in gone])
    for run in gone:
        half = directory / f"{HALF_GONE}{run.folder}"
        with suppress(OSError):
            (directory / run.folder).rename(half)
            shutil.rmtree(half, ignore_errors=True)
    return [run.folder for run in gone]


def _runs(db: sqlite3.Connection, directory: Path) -> list[_Kept]:
    rows = db.execute("SELECT id, folder, started FROM run WHERE NOT dropped ORDER BY started, folder")
    return [_Kept(id, folder, started, _size(directory / folder)) for id, folder, started in rows]


def _needed(db: sqlite3.Connection, since: set[str]) -> set[int]:
    newest = db.execute(
        "SELECT id FROM run WHERE NOT EXISTS (SELECT 1 FROM run AS later WHERE later.rig = run.rig AND "
        "later.kernel_line = run.kernel_line AND (later.started, later.folder) > (run.started, run.folder))"
    )
    first = (row for row in db.execute("SELECT id, name FROM run") if row[1] in since)
    return {id for (id,) in newest} | {id for id, _ in first}


def _beyond(runs: list[_Kept], retention: Retention, needed: set[int], now: float) -> Iterator[_Kept]:
    count, size = len(runs), sum(run.size for run in runs)
    for run in runs:  # the oldest first
        old = retention.days is not None and run.started and now - run.started > retention.days * DAY
        many = retention.runs is not None and count > retention.runs
        large = retention.bytes is not None and size > retention.bytes
        if (old or many or large) and run.id not in needed:
            count, size = count - 1, size - run.size
            yield run


def _size(folder: Path) -> int:
    total = 0
    for path, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                total += os.lstat(os.path.join(path, name)).st_blocks * 512
    return total
