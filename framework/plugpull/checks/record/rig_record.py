"""Whether the record is about the disks of the rig file: by their names, and by the ports that they are plugged in.

If it is not, the rig file on record is that of another bench or another day, and blast radii cannot be trusted.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from plugpull.checks.limits import bench_kind
from plugpull.checks.victims.discovered import declared_place
from plugpull.history.events import (
    DiskAttached,
    DiskMoved,
    Edge,
    LedgerBegun,
    LoadBegun,
    Phase,
    ReadBackBegun,
)
from plugpull.history.story import Story
from plugpull.kernel.diagnosis.scope import place_of

PLUGGED = "every disk gets its cable"
"""How the text of the phase begins in which all disks of an emulated rig are plugged in."""

_USB = re.compile(r"[\da-f]{4}:[\da-f]{2}:[\da-f]{2}\.\d/[\d.]+:\d+")
"""The place of a disk on a USB controller."""


def rig_doubts(story: Story) -> Iterator[str]:
    """What the record says otherwise than the rig file, one clause per disk. Nothing where no rig is on record."""
    if not story.rig:
        return
    names = [str(part.get("name")) for part in (*story.rig.get("hub", ()), *story.rig.get("disk", ()))]
    declared = {str(disk.get("name")) for disk in story.rig.get("disk", ())}
    yield from (f"the rig file has {name} {count} times" for name, count in Counter(names).items() if count > 1)
    for name in dict.fromkeys(one.disk for one in story.of(DiskAttached) if one.disk):
        if name not in declared and name not in story.begun.without:
            yield f"{name} was announced, and the rig file does not have it"
    yield from _two_places(story)
    yield from _set_aside(story)
    yield from _units(story)
    yield from _ports_of_switches(story)
    if bench_kind(story) == "virtual":
        yield from _never_seen(story, declared)
        yield from _elsewhere(story, declared)


def _two_places(story: Story) -> Iterator[str]:
    """Disks whose place is not that of their path in sysfs, from which it was made (``dut/agent/disks.py``)."""
    for one in story.of(DiskAttached):
        usb = place_of(one.sysfs).usb
        if one.disk and usb and _USB.fullmatch(one.place) and _ports(one.place) != usb.partition("-")[2]:
            yield f"{one.disk} was announced at {one.place}, and is at {usb} in sysfs"


def _set_aside(story: Story) -> Iterator[str]:
    """Disks that the scenario was to do without, and that it used."""
    uses: list[LoadBegun | LedgerBegun | ReadBackBegun] = [*story.of(LoadBegun), *story.of(LedgerBegun)]
    used = {event.disk for event in (*uses, *story.of(ReadBackBegun))}
    for name in story.begun.without:
        if name in used:
            yield f"{name} was set aside before the scenario, and was used in it"


def _units(story: Story) -> Iterator[str]:
    """Disks that were announced as another logical unit than the rig file's."""
    units = {str(disk.get("name")): disk.get("lun") for disk in story.rig.get("disk", ())}
    for one in story.of(DiskAttached):
        wanted = units.get(one.disk)
        if wanted is not None and _USB.fullmatch(one.place) and one.place.rpartition(":")[2] != str(wanted):
            yield f"{one.disk} was announced at {one.place}, and its LUN is {wanted} by the rig file"


def _ports_of_switches(story: Story) -> Iterator[str]:
    """Ports that were switched and that the switch does not have."""
    switches = {str(switch.get("name")): switch.get("ports") for switch in story.rig.get("switch", ())}
    for name, port in dict.fromkeys((edge.switch, edge.port) for edge in story.of(Edge)):
        count = switches.get(name)
        if isinstance(count, int) and count > 0 and port.isdecimal() and not 0 < int(port) <= count:
            yield f"port {port} of {name} was switched, and the rig file has {count} ports there"


def _ports(place: str) -> str:
    return place.partition("/")[2].partition(":")[0]


def _never_seen(story: Story, declared: set[str]) -> Iterator[str]:
    plugged = any(phase.name == "plug" and phase.text.startswith(PLUGGED) for phase in story.of(Phase))
    for name in sorted(declared) if plugged else ():
        if not story.attachments(name):
            yield f"{name} of the rig file was plugged in, and never announced"


def _elsewhere(story: Story, declared: set[str]) -> Iterator[str]:
    """Disks that were first announced in another port than the rig file's. An emulated disk is where it is put."""
    if story.of(DiskMoved):
        return
    for name in sorted(declared):
        first = next(iter(story.attachments(name)), None)
        if first is None or not _USB.fullmatch(first.place):
            continue
        wanted, got = declared_place(story.rig, name), _ports(first.place)
        if wanted is not None and wanted[1] != got:
            yield f"{name} was announced at port {got}, and is at port {wanted[1]} by the rig file"
