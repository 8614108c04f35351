"""What an enclosure shows besides the disks of the rig, such as a false CD-ROM with its drivers."""

from __future__ import annotations

from collections.abc import Iterable

from plugpull.checks.base import Check, Disks, Judgement, disk_names
from plugpull.checks.claims import Claim, Evidence
from plugpull.checks.collector import Collector
from plugpull.checks.evidence import judged_span
from plugpull.checks.limits import bench_kind
from plugpull.finding import Finding
from plugpull.history.events import DiskAttached, LedgerBegun, LoadBegun
from plugpull.history.reader import Story

KINDS = {0: "disk", 1: "tape", 5: "CD-ROM", 7: "optical disk", 8: "changer", 13: "enclosure services"}
"""SCSI peripheral device types (SPC-4, 6.4.2)."""


class OtherUnits(Check, frozen=True, tag="other_units"):
    """The devices of ``disks`` show other logical units. They are named, and nothing was written to one of them.

    ``returned`` judges that they come back with their disk."""

    disks: tuple[str, ...]

    def judge(self, story: Story) -> Judgement:
        said, shown = Collector(self, self.disks), dict[str, None]()
        for disk in self.disks:
            units = _beside(story, disk)
            for unit in units:
                shown[
                    f"{disk} also shows a {KINDS.get(unit.scsi_type, f'unit of type {unit.scsi_type}')}, {unit.kname}"
                ] = None
                if _used(story, unit):
                    said.doubt(f"the run used {unit.kname} at {unit.place}, which is not a disk of the rig")
                _judge_written(story, unit, disk, said)
            if not units:
                said.doubt(f"no other unit beside {disk} is on record")
        return said.judgement("; ".join(shown))

    def claims(self, story: Story) -> Iterable[Claim]:
        begin, end = judged_span(story)
        what = "other units were left alone"
        yield Claim(what=what, evidence=(Evidence.UEVENTS,), begin=begin, end=end)


def written_units(story: Story) -> tuple[Finding, ...]:
    """What was written to units beside the rig's disks, which nothing may do in any scenario. A disk that the rig file
    does not have may be somebody else's on a real bench."""
    disks = tuple(dict.fromkeys(one.disk for one in story.all_attachments if one.disk))
    said = Collector(OtherUnits(disks), disks)
    units = {unit: disk for disk in disks for unit in _beside(story, disk)}
    for unit, beside in units.items():
        if unit.scsi_type or bench_kind(story) == "virtual":
            _judge_written(story, unit, beside, said)
    return said.judgement("").findings


def other_units(disks: Disks) -> OtherUnits:
    """The devices of ``disks`` show other units, such as a false CD-ROM, which are reported and never written."""
    return OtherUnits(disk_names(disks))


def _beside(story: Story, disk: str) -> list[DiskAttached]:
    """The attachments of units in the device of a disk that are not of the rig."""
    devices = {one.place.rpartition(":")[0] for one in story.attachments(disk) if one.place}
    return [one for one in story.all_attachments if not one.disk and one.place.rpartition(":")[0] in devices]


def _used(story: Story, unit: DiskAttached) -> bool:
    """Whether a load or a writer worked on the unit while it was there."""
    gone = story.detached_at(unit)
    loads: tuple[LoadBegun | LedgerBegun, ...] = (*story.of(LoadBegun), *story.of(LedgerBegun))
    names = [load for load in loads if load.kname == unit.kname and (load.at or 0.0) >= (unit.at or 0.0)]
    return any(gone is None or (load.at or 0.0) < gone for load in names)


def _judge_written(story: Story, unit: DiskAttached, disk: str, said: Collector) -> None:
    written = _written(story, unit)
    if written:
        said.accuse(disk, f"{written} bytes were written to {unit.kname}, another unit of {disk}", unit.at)


def _written(story: Story, unit: DiskAttached) -> int:
    """Bytes that were written to the unit, by its counters."""
    stream = story.samples.streams.get((unit.kname, unit.diskseq))
    return max(stream.columns[1].numbers) if stream is not None else 0
