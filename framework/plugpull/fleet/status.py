"""Every rig: free or taken by whom, its last verdict, and its health. No hardware is touched."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from plugpull.archive.trend import opened
from plugpull.cache import Cache
from plugpull.coordination.holders import LeaseHolder, PortLeftOff, lease_holders, ports_left_off
from plugpull.coordination.lease import resources
from plugpull.coordination.place_process import LabState, PlaceProcess
from plugpull.errors import PlugpullError
from plugpull.fleet.preflight import PreflightRecord, read_preflight
from plugpull.rig.load import load_rig
from plugpull.rig.model import LabgridPlace, Rig

LEFT_OUT = "-left-out"
"""How the directory of a night ends on which a rig could not be run."""


@dataclass(frozen=True)
class RigUser:
    """Who has a rig. ``since`` is a time in UTC, empty if not known; ``source`` is how this is known."""

    who: str
    since: str
    source: str
    run: str = ""


@dataclass(frozen=True)
class LastRun:
    """The newest run of a rig with a result."""

    verdict: str
    started: str
    run: str
    sentence: str


@dataclass(frozen=True)
class RigStatus:
    """A rig. ``state`` is free, taken, or unknown. ``users`` are those who have it; several may share a virtual rig."""

    rig: str
    file: str = ""
    kind: str = ""
    place: str = ""
    state: str = "free"
    users: tuple[RigUser, ...] = ()
    last: LastRun | None = None
    preflight: PreflightRecord | None = None
    left_off: tuple[PortLeftOff, ...] = ()
    troubles: tuple[str, ...] = ()


@dataclass(frozen=True)
class FleetStatus:
    """All rigs, and the ports left off that belong to none of them."""

    rigs: tuple[RigStatus, ...]
    left_off: tuple[PortLeftOff, ...] = ()


@dataclass
class Sources:
    """Where the state of rigs is read."""

    archive: Path | None
    leases: tuple[LeaseHolder, ...]
    left_off: tuple[PortLeftOff, ...]
    runs: Mapping[str, LastRun] = field(default_factory=dict)
    labs: dict[tuple[str, str], LabState | str] = field(default_factory=dict)

    def lab(self, place: LabgridPlace) -> LabState | str:
        """What a coordinator says, or why it says nothing. Each is asked once."""
        key = (place.coordinator or "", place.python or "")
        if key not in self.labs:
            try:
                with PlaceProcess(place) as process:
                    self.labs[key] = process.look()
            except PlugpullError as error:
                self.labs[key] = error.what
        return self.labs[key]


def fleet_status(files: Sequence[Path], archive: Path | None) -> FleetStatus:
    """The state of the rigs in these files; without any, of those that the archive and the lock files name.

    Raises UsageError for an archive that cannot be read.
    """
    runs = last_runs(archive) if archive is not None else {}
    sources = Sources(archive, lease_holders(), ports_left_off(Cache.default().journals(make=False)), runs)
    rigs = [_of_file(file, sources) for file in files]
    if not files:
        names = {*runs, *(one.rig for one in sources.leases)}
        rigs = [_of_name(name, sources) for name in sorted(names)]
    mine = {port for one in rigs for port in one.left_off}
    return FleetStatus(tuple(rigs), tuple(port for port in sources.left_off if port not in mine))


def last_runs(archive: Path) -> dict[str, LastRun]:
    """The newest run of each rig, by the archive's index. Raises UsageError."""
    found = {}
    with opened(archive) as (db, _):
        rows = db.execute(
            "SELECT run.id, rig, verdict, name, folder FROM run WHERE NOT dropped ORDER BY started, folder"
        ).fetchall()
        newest = {rig: (id, verdict, name, folder) for id, rig, verdict, name, folder in rows if not _left_out(folder)}
        for rig, (id, verdict, name, folder) in newest.items():
            counted = dict(
                db.execute("SELECT status, count(*) FROM result WHERE run_id = ? GROUP BY status", (id,)).fetchall()
            )
            words = ", ".join(f"{count} {status}" for status, count in sorted(counted.items()))
            found[rig] = LastRun(verdict, name, folder, words)
    return found


def _left_out(folder: str) -> bool:
    return folder.endswith(LEFT_OUT)


def _of_file(file: Path, sources: Sources) -> RigStatus:
    try:
        rig = load_rig(file)
    except PlugpullError as error:
        wrong = tuple(error.what.splitlines())
        return replace(_of_name(file.stem, sources), file=str(file), state="unknown", troubles=wrong)
    wanted = set(resources(rig, file))
    users = list(_leased(one for one in sources.leases if one.resource in wanted))
    troubles: list[str] = []
    state = "free"
    if rig.labgrid is not None:
        lab = sources.lab(rig.labgrid)
        if isinstance(lab, str):
            state, troubles = "unknown", [lab]
        else:
            users += _of_place(rig.labgrid, lab)
            troubles += _place_troubles(rig.labgrid, lab)
    name = rig.rig.name
    return RigStatus(
        name,
        file=str(file),
        kind=rig.dut.kind,
        place=rig.labgrid.place if rig.labgrid else "",
        state="taken" if users else state,
        users=tuple(users),
        last=sources.runs.get(name),
        preflight=read_preflight(sources.archive, name) if sources.archive is not None else None,
        left_off=tuple(port for port in sources.left_off if _is_of(port, name, rig)),
        troubles=tuple(troubles),
    )


def _of_name(name: str, sources: Sources) -> RigStatus:
    users = tuple(_leased(one for one in sources.leases if one.rig == name))
    return RigStatus(
        name,
        state="taken" if users else "free",
        users=users,
        last=sources.runs.get(name),
        preflight=read_preflight(sources.archive, name) if sources.archive is not None else None,
        left_off=tuple(port for port in sources.left_off if _is_of(port, name)),
    )


def _leased(leases: Iterable[LeaseHolder]) -> Iterable[RigUser]:
    """Each process once: it holds a lock for each disk and each switch."""
    by_process: defaultdict[int, list[LeaseHolder]] = defaultdict(list)
    for one in leases:
        by_process[one.pid].append(one)
    for pid, held in by_process.items():
        yield RigUser(f"pid {pid} as rig {held[0].rig}", held[0].since, "lock file", held[0].run)


def _of_place(declared: LabgridPlace, lab: LabState) -> Iterable[RigUser]:
    place = lab.places.get(declared.place)
    if place is None:
        return
    if place.acquired:
        yield RigUser(place.acquired, _utc(place.changed), "labgrid, acquired")
        return
    for one in lab.reservations:
        if one.token == place.reservation:
            yield RigUser(one.owner, _utc(one.created), "labgrid, reserved")


def _place_troubles(declared: LabgridPlace, lab: LabState) -> Iterable[str]:
    place = lab.places.get(declared.place)
    if place is None:
        yield f"labgrid has no place {declared.place}"
        return
    yield from (f"no exporter has a resource for {match} of the place {declared.place}" for match in place.unmatched)
    waiting = sum(one.place == declared.place and one.state == "waiting" for one in lab.reservations)
    if waiting:
        yield f"{waiting} more {'waits' if waiting == 1 else 'wait'} for the place {declared.place}"


def _is_of(port: PortLeftOff, name: str, rig: Rig | None = None) -> bool:
    """Whether a run of this rig left a port off, by the name of its directory (``run_directory.py``), or by that of the
    switch."""
    run = Path(port.run).name.partition("-")[2]
    if re.fullmatch(rf"{re.escape(name)}(-\d{{1,3}})?", run):  # a second run in one second has a number
        return True
    return rig is not None and not run and any(one.name == port.switch for one in rig.switch)


def _utc(moment: float) -> str:
    try:
        return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (ValueError, OverflowError, OSError):
        return ""
