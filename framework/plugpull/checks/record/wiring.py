"""Whether the recorded cuts agree with the rig file on outlets and victims.

If they do not, the bench is wired or was switched differently, and nothing that happened to a disk is its fault.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from plugpull.checks.evidence import cuts_of, miswired, unbidden
from plugpull.checks.record.log_arrivals import connected_early
from plugpull.history.events import CutArmed, DiskDetached, Edge
from plugpull.history.reader import Story

ARMED_LATE = 0.1
"""Seconds by which a cut may be on record as armed later than its port was switched. It is armed before."""


def wiring_doubts(story: Story) -> tuple[str, ...]:
    """Sentences on why it is not known which disks were cut; empty if record and rig file agree."""
    return story.once(_wiring_doubts)


def _wiring_doubts(story: Story) -> tuple[str, ...]:
    doubts = [*_names(story), miswired(story), *_edges(story), *_twice(story), *_mechanisms(story), *_victims(story)]
    doubts += _unbidden(story)
    doubts += [f"an edge of {edge.point} has a negative error" for edge in story.of(Edge) if edge.error < 0]
    return tuple(dict.fromkeys(doubt for doubt in doubts if doubt))


def _names(story: Story) -> Iterator[str]:
    """Victims that are not in the rig file, and removals of one disk under the name of another."""
    declared = {str(disk.get("name")) for disk in story.rig.get("disk", ())}
    named = {victim for cut in story.of(CutArmed) for victim in cut.victims}
    if declared and named - declared:
        yield f"the rig file on record does not have {', '.join(sorted(named - declared))}"
    holders = {(one.kname, one.diskseq): one.disk for one in story.all_attachments if one.diskseq}
    for event in story.of(DiskDetached):
        holder = holders.get((event.kname, event.diskseq), event.disk)
        if holder != event.disk:
            yield f"the record contradicts itself: {event.kname} was attached as {holder} and removed as {event.disk}"


def _edges(story: Story) -> Iterator[str]:
    armed = {cut.cut: cut for cut in story.of(CutArmed)}
    for edge in story.of(Edge):
        where = f"{edge.switch} port {edge.port}"
        cut = armed.get(edge.cut)
        declared = declared_outlet(story.rig, edge.point)
        if cut is None:
            yield f"{where} was switched {edge.state} for {edge.point}, a cut that was never armed"
        elif edge.at is not None and cut.at is not None and edge.at < cut.at - ARMED_LATE:
            early = cut.at - edge.at
            yield f"{where} was switched {edge.state} {early:.2f} s before its cut {cut.cut} was armed"
        elif cut.point != edge.point:
            yield f"cut {cut.cut} was armed for {cut.point}, and {edge.point} was switched {edge.state}"
        elif declared is not None and declared != f"{edge.switch}.{edge.port}":
            yield f"{edge.point} was switched {edge.state} by {where}, and the rig file says {declared}"


def _twice(story: Story) -> Iterator[str]:
    """Ports that were switched off more than once for one cut, so that it is not known when the cut was made."""
    edges = (edge for edge in story.of(Edge) if (edge.state, edge.phase) == ("off", "commanded"))
    times = Counter((edge.cut, edge.point, edge.switch, edge.port) for edge in dict.fromkeys(edges))
    for (cut, point, switch, port), count in times.items():
        if count > 1:
            yield f"{switch} port {port} was switched off {count} times for cut {cut} of {point}"


def _mechanisms(story: Story) -> Iterator[str]:
    """Cuts with another mechanism than the switch has in the rig file."""
    switches = {str(one.get("name")): str(one.get("mechanism") or "") for one in story.rig.get("switch", ())}
    for cut in story.of(CutArmed):
        outlet = declared_outlet(story.rig, cut.point)
        declared = switches.get(outlet.rpartition(".")[0], "") if outlet else ""
        if declared and cut.mechanism and declared != cut.mechanism:
            yield f"{cut.point} was armed to cut {cut.mechanism}, and the rig file says {declared}"


def _victims(story: Story) -> Iterator[str]:
    for cut in story.of(CutArmed):
        declared = declared_victims(story.rig, cut.point)
        if declared is not None and set(declared) != set(cut.victims):
            says = ", ".join(declared) or "no disk"
            yield f"{cut.point} was armed to take {', '.join(cut.victims) or 'no disk'}, and the rig file says {says}"


def _unbidden(story: Story) -> Iterator[str]:
    """Disks that came back, or began to, while the switch was off, because of the switch or its wiring."""
    for disk in dict.fromkeys(victim for cut in story.cut_records for victim in cut.armed.victims):
        yield connected_early(story, disk)
    for cut in story.cut_records:
        for disk in cut.armed.victims:
            # Of cuts that held the disk off together, the first one stands for all.
            for whole in cuts_of(story, disk):
                if whole.armed is cut.armed and (doubt := unbidden(story, whole, disk)):
                    yield doubt


def declared_outlet(rig: dict[str, Any], point: str) -> str | None:
    """The ``switch.port`` of a cut point such as ``disk1.cable`` in the rig file; ``None`` if it has none."""
    name, _, kind = point.rpartition(".")
    if kind not in ("cable", "power"):
        return None
    outlet = next((thing.get(kind) for thing in _things(rig) if thing.get("name") == name), None)
    return str(outlet) if outlet else None


def declared_victims(rig: dict[str, Any], point: str) -> tuple[str, ...] | None:
    """The disks at or below everything that the outlet of a cut point feeds; ``None`` if the outlet is not known."""
    outlet = declared_outlet(rig, point)
    if outlet is None:
        return None
    fed = {thing.get("name") for thing in _things(rig) if outlet in (thing.get("cable"), thing.get("power"))}
    return tuple(str(disk.get("name")) for disk in rig.get("disk", ()) if fed & set(_above(rig, disk)))


def _things(rig: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield from (*rig.get("hub", ()), *rig.get("disk", ()))


def _above(rig: dict[str, Any], thing: dict[str, Any]) -> Iterator[str]:
    """The names of a disk and of the hubs above it."""
    hubs = {hub.get("name"): hub for hub in rig.get("hub", ())}
    here: dict[str, Any] | None = thing
    for _ in range(len(hubs) + 1):
        if here is None:
            return
        yield str(here.get("name"))
        here = hubs.get(str(here.get("at", "")).rpartition(".")[0])
