"""Which disk a name of the rig file was, run by run.

A series belongs to a disk and not to its name: when another disk takes its place, the series of the old one is gone and
a new one begins. ``results.json`` says since 0.1.0 which disks a rig had; in older files a disk is known by its name.
"""

from __future__ import annotations

import re
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping

from plugpull.archive.foreign import Object, number, parts, text

MOST = 120
"""Characters of a serial number that are kept."""
DISK = "disk"
"""The kind of the notes that say which disks a rig had: a name and an identity, with a space between them."""
MODEL = "model"
"""The kind of the notes with a name and a model."""
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")


def identities_of(found: Object) -> dict[str, str]:
    """The identity of each disk of a run by its name: its serial number, and its logical unit if it is not the first.

    Disks that share an identity, as cheap adapters without serial numbers do, have none.
    """
    identities = {}
    for disk in parts(found, "disks"):
        name, serial, lun = text(disk, "name"), text(disk, "serial", MOST).strip(), number(disk.get("lun"))
        if _NAME.fullmatch(name) and serial:
            identities[name] = f"{serial} unit {lun:.0f}" if lun else serial
    alike = Counter(identities.values())
    # A serial number that is also a name would be taken for it.
    return {name: one for name, one in identities.items() if alike[one] == 1 and one not in identities}


def disk_notes(found: Object, identities: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """The notes of a run on its disks."""
    for name, identity in identities.items():
        yield DISK, f"{name} {identity}"
    for disk in parts(found, "disks"):
        name, model = text(disk, "name"), text(disk, "model", MOST)
        if name in identities and model:
            yield MODEL, f"{name} {model}"


def disks_by_run(db: sqlite3.Connection) -> dict[int, dict[str, str]]:
    """The names of the disks of each run that says so, by their identities."""
    found: defaultdict[int, dict[str, str]] = defaultdict(dict)
    for run, note in db.execute("SELECT run_id, text FROM note WHERE kind = ?", (DISK,)):
        name, _, identity = note.partition(" ")
        found[run][identity] = name
    return dict(found)


def disks_of_run(db: sqlite3.Connection, run: int) -> dict[str, str]:
    """The names of a run's disks by their identities; empty if it does not say."""
    rows = db.execute("SELECT text FROM note WHERE run_id = ? AND kind = ?", (run, DISK))
    pairs = (note.partition(" ") for (note,) in rows)
    return {identity: name for name, _, identity in pairs}


def names_of(db: sqlite3.Connection) -> dict[tuple[str, str], str]:
    """What each disk is called, by its rig and its identity: its newest name, with its identity if that name has been
    another disk's too."""
    order = "SELECT rig, text FROM note JOIN run ON run.id = run_id WHERE kind = ? ORDER BY started, folder"
    names: dict[tuple[str, str], str] = {}
    had: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    for rig, note in db.execute(order, (DISK,)):
        name, _, identity = note.partition(" ")
        names[rig, identity] = name
        had[rig, name].add(identity)
    return {
        (rig, identity): name if len(had[rig, name]) == 1 else f"{name} ({identity})"
        for (rig, identity), name in names.items()
    }


def counted_to(db: sqlite3.Connection) -> dict[int, int]:
    """For series whose results are counted to another one: that one, such as the series of the disk's identity."""
    column = "json_extract(state, '$.of')"
    return dict(db.execute(f"SELECT id, {column} FROM progress WHERE {column} IS NOT NULL").fetchall())
