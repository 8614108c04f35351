"""Whether the bystanders, which the rig file does not declare as scratch, were never written."""

from __future__ import annotations

from collections.abc import Iterable

from plugpull.checks.accusation import Accusation
from plugpull.checks.base import Check, Disks, Judgement, disk_names
from plugpull.checks.claims import Claim, Evidence
from plugpull.checks.collector import Collector
from plugpull.history.events import CutArmed, LedgerBegun, LoadBegun, LoadEnded, SeenFromOutside
from plugpull.history.reader import Reading, Story


class Untouched(Check, frozen=True, tag="untouched"):
    """Not a byte was written to any of ``disks``, according to the kernel's counters and, if the bench can read the
    medium without the DUT, to its contents."""

    disks: tuple[str, ...]

    def judge(self, story: Story) -> Judgement:
        said = Collector(self, self.disks)
        said.take(*trespasses(story, self.disks))
        for disk in self.disks:
            if not story.readings(disk) and not _views(story, disk):
                said.doubt(f"nothing shows whether {disk} was written: it was neither sampled nor read from outside")
        if not self.disks:
            said.doubt("untouched was asked about no disk")
        outside = all(_views(story, disk) for disk in self.disks)
        how = " (proved from outside the DUT)" if outside else " (by the kernel's count)"
        return said.judgement(f"untouched: {', '.join(self.disks)}{how}" if said.clean else "")

    def claims(self, story: Story) -> Iterable[Claim]:
        """The kernel's counters must cover all the time in which something was written or cut."""
        busy = [*story.of(LoadBegun), *story.of(LoadEnded), *story.of(LedgerBegun), *story.of(CutArmed)]
        times = [event.at for event in busy if event.at is not None]
        for disk in self.disks:
            if times and not _views(story, disk):
                what = f"{disk} was never written"
                yield Claim(what=what, evidence=(Evidence.SAMPLES,), begin=min(times), end=max(times), disk=disk)


def untouched(disks: Disks) -> Untouched:
    """Not a byte may have been written to ``disks``, the bystanders."""
    return Untouched(disk_names(disks))


def bystanders_of(story: Story) -> tuple[str, ...]:
    """The disks of the rig that may not be written."""
    disks = story.rig.get("disk", [])
    return tuple(str(disk.get("name")) for disk in disks if isinstance(disk, dict) and disk.get("scratch") is not True)


def trespasses(story: Story, disks: Iterable[str]) -> tuple[Accusation, ...]:
    """An accusation for each of ``disks`` that was written."""
    found = []
    for disk in disks:
        for view in _views(story, disk):
            if not view.ok:
                what = f"{disk} is not scratch and was written: {view.detail}"
                found.append(Accusation(subject=disk, summary=what, at=view.at, evidence=(view.method,)))
        first = _first_written(story, disk)
        if first is not None and not any(finding.subject == disk for finding in found):
            what = f"{disk} is not scratch and was written: {first.written} bytes by {first.at:.2f} s"
            evidence = (f"sectors written in /sys/block/{first.kname}/stat",)
            found.append(Accusation(subject=disk, summary=what, at=first.at, evidence=evidence))
    return tuple(found)


def _first_written(story: Story, disk: str) -> Reading | None:
    """The first reading of a disk by which something was written to it."""
    for part in story.readings(disk).parts:
        for place, written in enumerate(part.column(1)):
            if written > 0:
                return part[place]
    return None


def _views(story: Story, disk: str) -> tuple[SeenFromOutside, ...]:
    return tuple(view for view in story.of(SeenFromOutside) if view.disk == disk)
