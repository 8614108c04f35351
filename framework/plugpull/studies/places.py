"""The hubs and controllers of a rig file, and the disks below each."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from plugpull.checks.victims.discovered import declared_place
from plugpull.history.story import Story


@dataclass(frozen=True)
class RigPart:
    """A hub or a controller with the scratch ``disks`` below it. ``rate`` is its declared limit, if any."""

    name: str
    kind: str
    disks: tuple[str, ...]
    rate: int | None = None
    expect: dict[str, float] | None = None

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


def parts_of(story: Story) -> tuple[RigPart, ...]:
    """The hubs and controllers of the rig file that have scratch disks below them, the ones with fewest disks first."""
    above = {disk: _above(story, disk) for disk in scratch_disks(story)}
    found = []
    for kind in ("hub", "controller"):
        for table in story.rig.get(kind, ()):
            name = str(table.get("name"))
            disks = tuple(disk for disk, holders in above.items() if name in holders)
            if disks:
                found.append(RigPart(name, kind, disks, table.get("rate"), table.get("expect")))
    return tuple(sorted(found, key=lambda part: len(part.disks)))


def scratch_disks(story: Story) -> tuple[str, ...]:
    """The disks of the rig file that may be written, in its order."""
    return tuple(str(one.get("name")) for one in story.rig.get("disk", ()) if one.get("scratch"))


def explained(story: Story, disks: Collection[str]) -> tuple[RigPart | None, bool]:
    """The smallest part of the rig that all these disks are below, and whether it has no others."""
    for part in parts_of(story):
        if set(disks) <= set(part.disks):
            return part, set(disks) == set(part.disks)
    return None, False


def _above(story: Story, disk: str) -> tuple[str, ...]:
    """The hubs and the controller above a disk."""
    place = declared_place(story.rig, disk)
    hubs = {str(hub.get("name")): str(hub.get("at", "")) for hub in story.rig.get("hub", ())}
    at = next((str(one.get("at", "")) for one in story.rig.get("disk", ()) if one.get("name") == disk), "")
    holders: list[str] = []
    holder = at.rpartition(".")[0]
    while holder in hubs and holder not in holders:
        holders.append(holder)
        holder = hubs[holder].rpartition(".")[0]
    return (*holders, place[0]) if place is not None else tuple(holders)
