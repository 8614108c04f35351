"""The index of an archive: run directories, and one SQLite file that can be made again from them.

The run directories are the truth. ``update`` brings the index in line with them: runs that were dropped in are read,
changed ones are read again, and those that are gone are forgotten. Writers wait for each other on a lock, which the
system releases if one is killed. Each update is one transaction; a new index is made beside the old one and renamed.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from plugpull.archive import tables
from plugpull.archive.reading import UnreadableRun, read_run
from plugpull.archive.store import FoundRun, Store, drop_empty_series, remove, uid_of
from plugpull.errors import RigError, UsageError
from plugpull.files import directory_inside, read_inside
from plugpull.judging.results_io import RESULTS_FILE
from plugpull.plain import clean_line
from plugpull.setup.place import lock

INDEX = "index.db"
LOCK = ".index.lock"
HALF_MADE = ".index-"
PATIENCE = 60.0
"""Seconds that SQLite waits for another reader or writer."""

Notify = Callable[[str], None]


@dataclass(frozen=True)
class Updated:
    """What an update did. ``unreadable`` are pairs of a directory's name and the reason, of all in the archive."""

    runs: int
    added: int
    removed: int
    unreadable: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class _Seen:
    size: int
    modified_ns: int


def rebuild(directory: Path, finish: Callable[[sqlite3.Connection], None] | None = None) -> Updated:
    """Make the index from nothing. ``finish`` may add derived rows before it replaces the old one.

    Raises UsageError if there is no such directory, RigError if the index cannot be written.
    """
    with writing(directory), _errors(directory):
        return _make(directory, finish)


def _make(directory: Path, finish: Callable[[sqlite3.Connection], None] | None) -> Updated:
    _recover(directory)
    half = directory / f"{HALF_MADE}{os.getpid()}.db"
    try:
        db = _connect(half)
        with contextlib.closing(db):
            # Nobody else sees this file, and it is thrown away if the process ends.
            db.executescript("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;")
            db.execute("BEGIN")
            _create(db)
            updated = _update(db, directory)
            for statement in _statements(tables.INDEXES):
                db.execute(statement)
            if finish is not None:
                finish(db)
            db.execute(f"PRAGMA user_version = {tables.VERSION}")
            db.execute("COMMIT")
        _sync(half)
        os.replace(half, directory / INDEX)
    finally:
        half.unlink(missing_ok=True)
    return updated


def in_memory(directory: Path) -> tuple[sqlite3.Connection, Updated]:
    """An index that is not written, for an archive that this user may only read."""
    _is_directory(directory)
    db = _connect(":memory:")
    db.execute("BEGIN")
    _create(db)
    updated = _update(db, directory)
    for statement in _statements(tables.INDEXES):
        db.execute(statement)
    db.execute("COMMIT")
    return db, updated


@contextmanager
def updated_index(directory: Path) -> Iterator[tuple[sqlite3.Connection, Updated]]:
    """The index, in line with the run directories. What the block writes is committed at its end, or not at all.

    An index that is missing, damaged or of another version is made from nothing first. Raises UsageError, RigError.
    """
    with writing(directory), _errors(directory):
        if not _usable(directory):
            _make(directory, None)
        with contextlib.closing(_connect(directory / INDEX)) as db:
            db.execute("BEGIN IMMEDIATE")
            try:
                yield db, _update(db, directory)
            except BaseException:
                db.execute("ROLLBACK")
                raise
            db.execute("COMMIT")


@contextmanager
def writing(directory: Path) -> Iterator[None]:
    """Wait until no other writer is at work, and keep others waiting in the block."""
    _is_directory(directory)
    try:
        fd = lock(str(directory / LOCK))
    except OSError as error:
        raise RigError(
            f"cannot write the index of {directory}: {error.strerror or error}", hint="make the directory writable"
        ) from error
    assert fd is not None
    try:
        for left in directory.glob(f"{HALF_MADE}*"):  # of a writer that was killed: nobody else holds the lock
            left.unlink(missing_ok=True)
        yield
    finally:
        os.close(fd)


@contextmanager
def _errors(directory: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, sqlite3.Error) as error:
        raise RigError(
            f"cannot write the index of {directory}: {error}",
            hint="free space on that file system, then: plugpull archive index DIR",
        ) from error


def _is_directory(directory: Path) -> None:
    if not directory.is_dir():
        raise UsageError(f"{directory} is not a directory", hint="name the directory that holds the run directories")


def _connect(path: Path | str) -> sqlite3.Connection:
    # Transactions are begun and ended explicitly.
    return sqlite3.connect(path, timeout=PATIENCE, isolation_level=None)


def _create(db: sqlite3.Connection) -> None:
    for statement in _statements(tables.TABLES):
        db.execute(statement)


def _statements(script: str) -> list[str]:
    return [part for part in script.split(";\n") if part.strip()]


def _usable(directory: Path) -> bool:
    """Whether the index is whole and of this version. Opening it also undoes what a killed writer left half done."""
    path = directory / INDEX
    if path.is_symlink() or not path.is_file():
        return False
    try:
        with contextlib.closing(_connect(path)) as db:
            (version,) = db.execute("PRAGMA user_version").fetchone()
            db.execute("SELECT id FROM run ORDER BY id LIMIT 1").fetchall()
            return bool(version == tables.VERSION)
    except sqlite3.Error:
        return False


def _recover(directory: Path) -> None:
    """Make sure that no journal of the old index is left: SQLite would apply it to the new one."""
    path = directory / INDEX
    leftovers = [path.with_name(f"{INDEX}{suffix}") for suffix in ("-journal", "-wal", "-shm")]
    if not any(left.exists() for left in leftovers):
        return
    if not _usable(directory):
        path.unlink(missing_ok=True)  # first, or a kill would leave it half changed and without its journal
    for left in leftovers:
        left.unlink(missing_ok=True)


def _sync(path: Path) -> None:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


# --- the runs --------------------------------------------------------------------------------------------------------


def _update(db: sqlite3.Connection, directory: Path) -> Updated:
    there = _scan(directory)
    known = {
        folder: (id, _Seen(size, modified))
        for id, folder, size, modified in db.execute("SELECT id, folder, bytes, modified_ns FROM run WHERE NOT dropped")
    }
    bad = {name: _Seen(size, at) for name, size, at in db.execute("SELECT name, bytes, modified_ns FROM unreadable")}
    gone = [(folder, id) for folder, (id, seen) in known.items() if there.get(folder) != seen]
    for _, id in gone:
        _forget(db, id)
    for name, seen in bad.items():
        if there.get(name) != seen:
            db.execute("DELETE FROM unreadable WHERE name = ?", (name,))
    store, added = Store(db), 0
    for folder, seen in there.items():
        if seen not in (known.get(folder, (0, None))[1], bad.get(folder)):
            added += _add(db, store, directory, folder, seen)
    if known:  # not in an index that is made from nothing
        drop_empty_series(db)
    (runs,) = db.execute("SELECT count(*) FROM run WHERE NOT dropped").fetchone()
    unreadable = tuple(db.execute("SELECT name, reason FROM unreadable ORDER BY name").fetchall())
    return Updated(runs, added, sum(folder not in there for folder, _ in gone), unreadable)


def _scan(directory: Path) -> dict[str, _Seen]:
    """The run directories with a ``results.json``. Links such as ``latest`` are not followed."""
    found = {}
    for entry in sorted(os.scandir(directory), key=lambda entry: entry.name):
        if entry.name.startswith(".") or not entry.is_dir(follow_symlinks=False) or not _is_text(entry.name):
            continue
        try:
            status = os.stat(os.path.join(entry.path, RESULTS_FILE), follow_symlinks=False)
        except OSError:
            continue  # a run that has not ended
        found[entry.name] = _Seen(status.st_size, status.st_mtime_ns)
    return found


def _is_text(name: str) -> bool:
    """Whether a file name can be stored and shown as it is."""
    return clean_line(name) == name


def _add(db: sqlite3.Connection, store: Store, directory: Path, folder: str, seen: _Seen) -> bool:
    try:
        with directory_inside(directory, folder) as inside:
            _, content = read_inside(inside, RESULTS_FILE)
        found = FoundRun(folder, seen.size, seen.modified_ns, content)
        run = read_run(content, folder)
        # Its removal was interrupted: it is here again, and counts again.
        for (again,) in db.execute("SELECT id FROM run WHERE folder = ? AND dropped", (folder,)).fetchall():
            _forget(db, again)
        same = db.execute("SELECT folder FROM run WHERE uid = ?", (uid_of(found, run),)).fetchone()
        if same is not None:
            raise UnreadableRun(f"the same run as {same[0]}")
    except (OSError, UnreadableRun) as error:
        reason = clean_line((error.strerror or str(error)) if isinstance(error, OSError) else str(error))
        row = (folder, reason, seen.size, seen.modified_ns)
        db.execute("INSERT OR REPLACE INTO unreadable (name, reason, bytes, modified_ns) VALUES (?, ?, ?, ?)", row)
        return False
    store.put(found, run)
    _drop_lanes(db, run.rig, run.started, folder)
    return True


def _forget(db: sqlite3.Connection, run: int) -> None:
    """Remove a run, and what was derived from it."""
    rig, started, folder = db.execute("SELECT rig, started, folder FROM run WHERE id = ?", (run,)).fetchone()
    _drop_lanes(db, rig, started, folder)
    remove(db, run)


def _drop_lanes(db: sqlite3.Connection, rig: str, started: float, folder: str) -> None:
    """Drop what was derived from runs that come after this one: it has to be derived again from the first run on."""
    later = "SELECT id FROM lane WHERE name = ? AND (started, folder) >= (?, ?)"
    for (lane,) in db.execute(later, (rig, started, folder)).fetchall():
        _drop_lane(db, lane)


def _drop_lane(db: sqlite3.Connection, lane: int) -> None:
    of_lane = "IN (SELECT id FROM progress WHERE lane_id = ?)"
    db.execute(f"DELETE FROM change_point WHERE series_id {of_lane}", (lane,))
    db.execute(f"DELETE FROM classified WHERE id {of_lane}", (lane,))
    db.execute("DELETE FROM progress WHERE lane_id = ?", (lane,))
    db.execute("DELETE FROM lane WHERE id = ?", (lane,))
