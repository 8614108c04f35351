"""Whether a disk kept its power during a cut."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any

from plugpull.checks.raid.arrays import may_fail_from
from plugpull.history.cut import Cut
from plugpull.history.events import ArrayMade, Edge
from plugpull.history.story import Story

CUTS_VBUS = frozenset({"vbus", "data+vbus", "mains"})


class Power(StrEnum):
    """Whether a disk kept its power. ``UNSURE``: the rig file does not say enough to accuse the disk."""

    KEPT = "kept"
    LOST = "lost"
    UNSURE = "unsure"


def power_in(story: Story, cut: Cut, disk: str) -> Power:
    """The effect of one cut on a disk's power, by the rig file.

    A cut of the data lines alone does not affect a disk with its own supply. It may affect a disk fed by VBUS, because
    the port may turn VBUS off together with the link. A cut of VBUS may affect a disk with its own supply, because
    enclosures turn their disk off without VBUS.
    """
    if disk not in cut.armed.victims:
        return Power.KEPT
    tables = _tables(story)
    if _contradicts(story, tables, cut):
        return Power.UNSURE
    own = tables.get(disk)
    fed_by_bus = own is None or own.get("self_powered", True) is False
    for point in _at_one_outlet(tables, cut.armed.point):
        if point == f"{disk}.power":
            return Power.LOST
    if cut.armed.mechanism in CUTS_VBUS and own is not None and fed_by_bus:
        return Power.LOST
    return Power.KEPT if cut.armed.mechanism == "data" and not fed_by_bus else Power.UNSURE


def power_over(story: Story, disk: str, begin: float, end: float) -> tuple[Power, tuple[Cut, ...]]:
    """Whether a disk kept its power in [begin, end], and the cuts that took it then. Times are DUT seconds.

    An array lost its power if more members did than may be missing, at one time or one after the other. It is not sure
    whether it kept it if more members were gone than its level covers: when it is assembled again, md may take the data
    of a member that had missed the last writes."""
    made = next((one for one in story.of(ArrayMade) if one.array == disk), None)
    if made is not None:
        return _array_over(story, made, begin, end)
    if not story.attachments(disk):
        return Power.UNSURE, ()  # neither a disk nor an array whose making is on record
    cuts = tuple(
        cut
        for cut in story.cut_records
        if disk in cut.armed.victims and begin <= (cut.off.commanded_at or begin) + cut.error and _began(cut) <= end
    )
    found = {power_in(story, cut, disk) if cut.executed else Power.UNSURE for cut in cuts}
    for worst in (Power.LOST, Power.UNSURE):
        if worst in found:
            return worst, cuts
    return Power.KEPT, cuts


def _array_over(story: Story, made: ArrayMade, begin: float, end: float) -> tuple[Power, tuple[Cut, ...]]:
    each = [power_over(story, member, begin, end) for member in made.members]
    cuts = tuple(dict.fromkeys(cut for _, found in each for cut in found))
    lost = sum(power is Power.LOST for power, _ in each)
    unsure = sum(power is Power.UNSURE for power, _ in each)
    if lost > made.spare:
        return Power.LOST, cuts
    if may_fail_from(story, made.array) <= end:
        return Power.UNSURE, cuts
    return (Power.KEPT if lost + unsure <= made.spare else Power.UNSURE), cuts


def _began(cut: Cut) -> float:
    at = cut.off.commanded_at
    return float("-inf") if at is None else at - cut.error


def _tables(story: Story) -> Mapping[str, Mapping[str, Any]]:
    """The hubs and disks of the rig file, by name."""
    found: dict[str, Mapping[str, Any]] = {}
    for kind in ("hub", "disk"):
        tables = story.rig.get(kind, [])
        found.update((str(table.get("name")), table) for table in tables if isinstance(table, Mapping))
    return found


def _contradicts(story: Story, tables: Mapping[str, Mapping[str, Any]], cut: Cut) -> bool:
    """Whether the rig file has another mechanism or another switch for this cut point than the record."""
    name, _, kind = cut.armed.point.rpartition(".")
    switch, _, port = str(tables.get(name, {}).get(kind) or "").partition(".")
    declared = [table for table in story.rig.get("switch", []) if isinstance(table, Mapping)]
    mechanisms = {str(table.get("mechanism")) for table in declared if table.get("name") == switch}
    if not mechanisms:
        return False  # not in this rig file
    other_port = any(
        edge.cut == cut.armed.cut and (edge.switch, edge.port) != (switch, port) for edge in story.of(Edge)
    )
    return cut.armed.mechanism not in mechanisms or other_port


def _at_one_outlet(tables: Mapping[str, Mapping[str, Any]], point: str) -> Iterable[str]:
    """This cut point and all others on the same outlet."""
    name, _, kind = point.rpartition(".")
    outlet = tables.get(name, {}).get(kind)
    yield point
    for other, table in tables.items():
        for key in ("cable", "power"):
            if outlet and table.get(key) == outlet and f"{other}.{key}" != point:
                yield f"{other}.{key}"
