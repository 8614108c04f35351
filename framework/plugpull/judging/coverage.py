"""Coverage of a run: which parts of its rig were cut, by which mechanism, under which driver and load.

Pure: it uses the history alone. Only executed cuts count.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from typing import NamedTuple

import msgspec

from plugpull.errors import UsageError
from plugpull.history.cut import Cut
from plugpull.history.events import DiskAttached, LedgerBegun, LedgerEnded
from plugpull.history.reader import History, Story
from plugpull.judging.results import Coverage, CoveredCell
from plugpull.rig.model import Rig
from plugpull.rig.topology import CutPoint, Topology

LOADS = ("idle", "reading", "writing", "stamped writing")
NAMED = 6
"""The maximum number of items named in one line."""


class _Seen(NamedTuple):
    """One victim of one executed cut."""

    point: str
    mechanism: str
    disk: str
    driver: str
    controller: str
    load: str


class _Bench(NamedTuple):
    """The parts of a rig file that matter for coverage."""

    points: dict[str, CutPoint]
    controllers: dict[str, str]
    """By disk."""


def coverage_of(history: History) -> Coverage:
    """The coverage of this run's cuts. If the rig cannot be read, it holds only what was cut."""
    bench = _bench(history)
    drivers = _drivers(history.stories)
    cuts = [(story, cut) for story in history.stories for cut in story.cut_records if cut.executed]
    seen = [victim for story, cut in cuts for victim in _victims(story, cut, bench, drivers)]
    mechanisms = [str(point.mechanism) for point in bench.points.values()]
    reachable = {disk for point in bench.points.values() for disk in point.victims}
    return Coverage(
        points=_count(bench.points, (cut.armed.point for _, cut in cuts)),
        mechanisms=_count(mechanisms, (cut.armed.mechanism for _, cut in cuts)),
        disks=_count(_in_order(bench, reachable), (one.disk for one in seen)),
        drivers=_count(sorted({drivers.get(disk, "") for disk in reachable} - {""}), (one.driver for one in seen)),
        controllers=_count(
            dict.fromkeys(bench.controllers[disk] for disk in _in_order(bench, reachable)),
            (one.controller for one in seen),
        ),
        loads=_count(LOADS, (one.load for one in seen)),
        cells=_cells(bench, drivers, seen),
    )


def sentences(coverage: Coverage) -> list[str]:
    """A few lines on what was cut and what was not, for the end of a run; none if nothing could be cut."""
    if not coverage.points:
        return []
    cut = sum(map(bool, coverage.points.values()))
    lines = [f"coverage: {cut} of {len(coverage.points)} cut points were cut{_never(coverage.points)}"]
    for noun, counts in (("driver", coverage.drivers), ("mechanism", coverage.mechanisms)):
        lines += [f"coverage: {noun} {name} was never cut" for name, count in counts.items() if not count]
    bare = [cell for cell in coverage.cells if not cell.cuts]
    if bare and cut:
        named = "; ".join(f"{cell.driver}, {cell.mechanism}, {cell.load}" for cell in bare[:NAMED])
        more = f"; and {len(bare) - NAMED} more" if len(bare) > NAMED else ""
        lines.append(f"coverage: {len(bare)} of {len(coverage.cells)} combinations not cut: {named}{more}")
    return lines


def _never(counts: dict[str, int]) -> str:
    names = [name for name, count in counts.items() if not count]
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return f"; not {', '.join(names[:NAMED])}{more}" if names else ""


def _bench(history: History) -> _Bench:
    try:
        rig = Rig.model_validate_json(msgspec.json.encode(history.begun.rig if history.begun else {}))
        topology = Topology(rig)
        points = {name: point for name, point in topology.cut_points().items() if point.victims}
        controllers = {disk.name: topology.path_of(disk.name).controller for disk in rig.disk}
    except (ValueError, UsageError, RecursionError):  # pydantic's ValueError: a rig file of a version with other keys
        return _Bench({}, {})
    return _Bench(points, controllers)


def _drivers(stories: Iterable[Story]) -> dict[str, str]:
    """The driver that each disk had when it was first attached."""
    found: dict[str, str] = {}
    for story in stories:
        for attached in story.of(DiskAttached):
            if attached.disk and attached.driver:
                found.setdefault(attached.disk, attached.driver)
    return found


def _victims(story: Story, cut: Cut, bench: _Bench, drivers: dict[str, str]) -> Iterator[_Seen]:
    at = cut.off.commanded_at or 0.0
    for disk in cut.armed.victims:
        attached = story.attachment_at(disk, at - cut.error)
        driver = attached.driver if attached is not None else drivers.get(disk, "")
        controller = bench.controllers.get(disk, "")
        yield _Seen(cut.armed.point, cut.armed.mechanism, disk, driver, controller, _load(story, disk, at))


def _load(story: Story, disk: str, at: float) -> str:
    if any(load.disk == disk and _promises(load) and _runs(story, load, at) for load in story.of(LedgerBegun)):
        return "stamped writing"
    if story.files_over(disk, at) is not None:
        return "writing"
    load = story.load_over(disk, at)
    if load is None:
        return "idle"
    return "reading" if load.mode in ("read", "randread") else "writing"


def _promises(load: LedgerBegun) -> bool:
    """True if the load was made to test promises. Every other load is stamped too, but writes at an even pace."""
    return bool(load.fill or load.flush_writes or load.flush_ms or load.fua)


def _runs(story: Story, load: LedgerBegun, at: float) -> bool:
    if load.at is None or load.at > at:
        return False
    ends = [end for end in story.of(LedgerEnded) if (end.disk, end.job) == (load.disk, load.job)]
    return all(end.at is None or end.at >= at for end in ends)


def _cells(bench: _Bench, drivers: dict[str, str], seen: Sequence[_Seen]) -> tuple[CoveredCell, ...]:
    """Every combination of driver, mechanism and load in which this rig can be cut."""
    possible = {
        (drivers[disk], str(point.mechanism))
        for point in bench.points.values()
        for disk in point.victims
        if disk in drivers
    }
    counts = Counter((one.driver, one.mechanism, one.load) for one in seen)
    keys = [(*pair, load) for pair, load in product(sorted(possible), LOADS)]
    return tuple(
        CoveredCell(driver=driver, mechanism=mechanism, load=load, cuts=counts[driver, mechanism, load])
        for driver, mechanism, load in keys
    )


def _count(possible: Iterable[str], seen: Iterable[str]) -> dict[str, int]:
    """How often each was seen: first all possible ones in their order, then any others."""
    counts = Counter(seen)
    return {name: counts[name] for name in dict.fromkeys((*possible, *counts)) if name}


def _in_order(bench: _Bench, disks: set[str]) -> list[str]:
    return [disk for disk in bench.controllers if disk in disks]
