"""Which nights an archive has, and which series are gone from the newest one.

A night is one run of a rig with a kernel line. Runs within ``TOGETHER`` belong to one date, on which a scenario that
only one of them has was run.
"""

from __future__ import annotations

import sqlite3
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import median

from plugpull.archive.disks import disks_by_run

TOGETHER = 12 * 3600.0
"""Seconds before the newest run of a rig that belong to the same date as it."""
WITHOUT = 3
"""Dates on which a rig ran without a kernel line, or other rigs ran without a rig, after which it is gone."""
HABIT = 20
"""Newest dates of a rig that say how often it runs."""
RARE = 20
"""Nights after which the series of one disk is gone, although its scenario still runs with other disks."""
RECENT = 10
"""Nights of a rig and kernel line without a value, after which nothing is suspected of the value any more."""

NEWS = 30
"""Nights of a rig and kernel line for which texts and the page show a change, or that a series is gone."""

Lane = tuple[str, str]
"""A rig and a kernel line."""


@dataclass(frozen=True)
class Night:
    """A run: when it started, and whether it says which scenarios there are."""

    id: int
    name: str
    started: float
    whole: bool


@dataclass
class Nights:
    """The runs of an archive by rig and kernel line, in order. ``series`` has the nights of each series."""

    lanes: dict[Lane, list[Night]]
    names: dict[int, str]
    series: dict[int, set[int]]
    siblings: dict[tuple[Lane, str], set[int]]
    recent: set[int] = field(default_factory=set)
    disks: dict[int, dict[str, str]] = field(default_factory=dict)
    """The disks of the runs that say which they had: names by identity."""
    newest: set[str] = field(default_factory=set)
    """When the newest runs of each rig and kernel line started: what happened since is news."""
    ended: dict[Lane, str] = field(default_factory=dict)
    """The first night without a rig, or without a kernel line, for those that are gone."""

    @property
    def most(self) -> int:
        """The number of nights of the rig and kernel line that has most."""
        return max(map(len, self.lanes.values()), default=0)

    def name(self, run: int) -> str:
        """When a run started, as it says."""
        return self.names.get(run, "")

    def is_recent(self, run: int) -> bool:
        return run in self.recent

    def gone_since(self, series: int, lane: Lane, scenario: str, disk: str = "") -> str:
        """The first night without a series that is not in the newest one; empty if it is there. ``disk`` is what it
        belongs to: a disk that is not in the rig any more will not come back with its scenario."""
        of_lane = self.lanes.get(lane, [])
        whole = [night for night in of_lane if night.whole]
        if not whole:
            return ""
        if lane in self.ended:
            return self.ended[lane]
        if removed := self._removed(disk, whole):
            return removed
        mine = self.series.get(series, set())
        tonight = [night for night in of_lane if night.started > whole[-1].started - TOGETHER or night is whole[-1]]
        others: set[int] = set().union(*(self.series.get(one, ()) for one in self.siblings.get((lane, scenario), ())))
        here = any(night.id in others for night in tonight)
        if any(night.id in mine for night in tonight) or (here and any(night.id in mine for night in of_lane[-RARE:])):
            return ""
        last = max((night.started for night in of_lane if night.id in (mine if here else others)), default=0.0)
        return next((night.name for night in whole if night.started > last + TOGETHER), whole[-1].name)

    def _removed(self, disk: str, nights: list[Night]) -> str:
        """The first night on which a disk was not in its rig any more; empty if it still is, or nobody knows."""
        known = [night for night in nights if night.id in self.disks]
        present = [number for number, night in enumerate(known) if disk in self.disks[night.id]]
        after = present[-1] + 1 if present else len(known)
        return known[after].name if after < len(known) else ""


def nights_of(db: sqlite3.Connection) -> Nights:
    """The nights of an archive."""
    judged = {run for (run,) in db.execute("SELECT DISTINCT run_id FROM result")}
    lanes: defaultdict[Lane, list[Night]] = defaultdict(list)
    names = {}
    rows = db.execute("SELECT id, name, started, complete, rig, kernel_line FROM run ORDER BY started, folder")
    for id, name, started, complete, rig, line in rows:
        lanes[rig, line].append(Night(id, name, started, bool(complete) and id in judged))
        names[id] = name
    series: defaultdict[int, set[int]] = defaultdict(set)
    recent = {night.id for night in _last(lanes.values(), RECENT)}
    for id, run in db.execute("SELECT series_id, run_id FROM result"):
        series[id].add(run)
    siblings: defaultdict[tuple[Lane, str], set[int]] = defaultdict(set)
    for id, rig, line, scenario in db.execute("SELECT id, rig, kernel_line, scenario FROM series WHERE metric = ''"):
        siblings[(rig, line), scenario].add(id)
    newest = {night.name for night in _last(lanes.values(), NEWS)}
    ended = _ended_rigs(lanes) | _ended_lines(lanes)
    return Nights(dict(lanes), names, dict(series), dict(siblings), recent, disks_by_run(db), newest, ended)


def _ended_lines(lanes: Mapping[Lane, list[Night]]) -> dict[Lane, str]:
    """When a rig first ran without a kernel line, for the lines without which it has since run several times."""
    of_rig: defaultdict[str, list[Night]] = defaultdict(list)
    for (rig, _), nights in lanes.items():
        of_rig[rig] += nights
    ended = {}
    for lane, nights in lanes.items():
        dates = _dates(of_rig[lane[0]], after=nights[-1].started) if len(of_rig[lane[0]]) > len(nights) else []
        if len(dates) >= WITHOUT:
            ended[lane] = dates[0].name
    return ended


def _ended_rigs(lanes: Mapping[Lane, list[Night]]) -> dict[Lane, str]:
    """When other rigs first ran without a rig, for the rigs that several times in a row did not run when they should
    have, such as one that was renamed. A rig that runs once a week is missed later than one that runs every night."""
    everyone = [night for nights in lanes.values() for night in nights]
    ended = {}
    for rig in {rig for rig, _ in lanes}:
        own = _dates([night for (name, _), nights in lanes.items() if name == rig for night in nights], whole=False)
        later = _dates(everyone, after=own[-1].started)
        usual = median([two.started - one.started for one, two in pairwise(own[-HABIT:])] or [0.0])
        if len(later) >= WITHOUT and later[-1].started - own[-1].started > (WITHOUT - 0.5) * usual:
            ended.update({lane: later[0].name for lane in lanes if lane[0] == rig})
    return ended


def _dates(nights: Iterable[Night], *, after: float = float("-inf"), whole: bool = True) -> list[Night]:
    """The first run of each date later than the date of ``after``. ``whole``: only of runs that judged."""
    dates: list[Night] = []
    for night in sorted(nights, key=lambda one: (one.started, one.name)):
        if night.started > after + TOGETHER and (night.whole or not whole):
            dates.append(night)
            after = night.started
    return dates


def _last(lanes: Iterable[list[Night]], count: int) -> Iterable[Night]:
    return (night for nights in lanes for night in nights[-count:])


def verdicts_by_night(db: sqlite3.Connection, runs: Iterable[int]) -> dict[int, Counter[str]]:
    """How often each verdict was given, for each of these runs."""
    counted: dict[int, Counter[str]] = {run: Counter() for run in runs}
    for run, status, count in db.execute("SELECT run_id, status, count(*) FROM result GROUP BY run_id, status"):
        if run in counted:
            counted[run][status] += count
    return counted
