"""Whether every declared disk was found at its place, and how soon."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from plugpull.checks.base import Check, Disks, Judgement, disk_names
from plugpull.checks.claims import Claim, Evidence
from plugpull.checks.collector import Collector
from plugpull.checks.evidence import limit, seconds
from plugpull.checks.limits import discovered as limit_of
from plugpull.checks.starved import awake, excused
from plugpull.history.events import DiskAttached, DiskProperties, DutReady, Phase
from plugpull.history.reader import Story
from plugpull.judging.results import Measurement


class Discovered(Check, frozen=True, tag="discovered"):
    """Each of ``disks`` is announced at most ``within`` seconds after it was plugged, at the place the rig file gives.

    The time starts with the last phase ``plug`` before, or when the DUT was ready. The place is the chain of USB ports,
    and the PCI address of the controller if declared; all disks of one controller must have the same PCI address.
    ``within=None``: the disk's limit in the rig file, or the default of the kind of bench.
    """

    disks: tuple[str, ...]
    within: float | None = None

    def judge(self, story: Story) -> Judgement:
        said = Collector(self, self.disks)
        ready: dict[str, float] = {}
        for disk in self.disks:
            attachments = story.attachments(disk)
            if not attachments:
                self._missing(story, disk, said)
                continue
            found, within = attachments[0], limit_of(story, disk, self.within)
            begin = _begin(story, found)
            took = 0.0 if begin is None or found.at is None else max(0.0, found.at - begin)
            ready[disk] = took
            what = f"{disk} was found only after {seconds(took)} {limit(within)}"
            if begin is not None and found.at is not None and awake(story, begin, found.at) > within:
                said.accuse(disk, what, found.at)
            elif took > within and not (begin is not None and found.at and excused(story, begin, found.at, within)):
                said.doubt(f"{what}, but the DUT was starved meanwhile")
            self._place(story, found, said)
        if not self.disks:
            said.doubt("discovered was asked about no disk")
        return self._judgement(story, ready, said)

    def _judgement(self, story: Story, ready: dict[str, float], said: Collector) -> Judgement:
        if not ready:
            return said.judgement()
        for disk, took in ready.items():
            said.measure(Measurement(name="found after", subject=disk, value=took, unit="s", better="down"))
        slowest = max(ready, key=lambda disk: ready[disk])
        within = limit_of(story, slowest, self.within)
        each = ", ".join(f"{disk} {seconds(took)}" for disk, took in ready.items())
        found_all = f"{len(ready)} disk{'s' * (len(ready) != 1)} found, the last after"
        return said.timed(f"{found_all} {seconds(ready[slowest])} ({each}; limit {within:g} s)", ready[slowest], within)

    def claims(self, story: Story) -> Iterable[Claim]:
        for disk in self.disks:
            found = next(iter(story.attachments(disk)), None)
            begin = None if found is None else _begin(story, found)
            if found is not None and found.at is not None and begin is not None:
                what = f"{disk} was found in time"
                yield Claim(what=what, evidence=(Evidence.UEVENTS,), begin=begin, end=found.at, disk=disk)

    def _missing(self, story: Story, disk: str, said: Collector) -> None:
        begin, within = _plugged_at(story, None), limit_of(story, disk, self.within)
        if begin is None or not story.covers(begin, begin + within):
            why = "when it was plugged" if begin is None else story.why_not_covered(begin, begin + within)
            said.doubt(f"{disk} was not found, but the evidence is incomplete: {why}")
            return
        if any(read.disk == disk and read.values for read in story.of(DiskProperties)):
            said.doubt(f"that {disk} was found is not on record, though it was read how it was driven")
            return
        seen = tuple(f"{one.kname}: serial {one.serial} at {one.place}" for one in story.all_attachments)
        what = f"{disk} was not found {limit(within)}"
        said.accuse(disk, what, begin + within, seen)

    def _place(self, story: Story, found: DiskAttached, said: Collector) -> None:
        wanted = declared_place(story.rig, found.disk)
        if wanted is None or not found.place:
            said.doubt(f"the place of {found.disk} cannot be compared: the rig file or the DUT does not say it")
            return
        controller, chain = wanted
        address, got = _parse_place(found.place)
        expected = _controller_address(story, controller)
        if got != chain:
            what = f"{found.disk} was found at ports {got or '(none)'} instead of {chain}"
            said.accuse(found.disk, what, found.at)
        elif expected and address != expected:
            what = f"{found.disk} was found on controller {address} instead of {expected} ({controller})"
            said.accuse(found.disk, what, found.at)


def discovered(disks: Disks, within: float | None = None) -> Discovered:
    """Each of ``disks`` must be found at its declared place ``within`` seconds."""
    return Discovered(disk_names(disks), within)


def declared_place(rig: dict[str, Any], disk: str) -> tuple[str, str] | None:
    """The controller and the chain of ports of ``disk`` in the rig file, such as ("usb0", "1.2")."""
    hubs = {hub.get("name"): hub.get("at") for hub in rig.get("hub", ())}
    at = next((one.get("at") for one in rig.get("disk", ()) if one.get("name") == disk), None)
    ports: list[str] = []
    while isinstance(at, str) and len(ports) <= len(hubs):
        parent, _, port = at.rpartition(".")
        ports.insert(0, port)
        if parent not in hubs:
            return parent, ".".join(ports)
        at = hubs[parent]
    return None


def _parse_place(place: str) -> tuple[str, str]:
    """("0000:00:05.0", "1.2") from "0000:00:05.0/1.2:0"."""
    address, _, ports = place.rpartition("/")
    return address, ports.partition(":")[0]


def _controller_address(story: Story, controller: str) -> str:
    """The declared PCI address, or the one at which the first disk of this controller was found."""
    for one in story.rig.get("controller", ()):
        if one.get("name") == controller and one.get("path"):
            return str(one["path"])
    for found in story.all_attachments:
        wanted = declared_place(story.rig, found.disk)
        if wanted is not None and wanted[0] == controller and found.place:
            return _parse_place(found.place)[0]
    return ""


def _plugged_at(story: Story, before: float | None) -> float | None:
    phases = [event.at for event in story.of(Phase) if event.name == "plug" and event.at is not None]
    plugs = [at for at in phases if before is None or at <= before]
    if plugs:
        return plugs[-1]
    ready = [event.at for event in story.of(DutReady) if event.at is not None]
    return ready[0] if ready else story.begun.at


def _begin(story: Story, found: DiskAttached) -> float | None:
    """When the disk was plugged in; ``None`` if it was already attached."""
    if found.at is None or found in story.before:
        return None
    return _plugged_at(story, found.at)
