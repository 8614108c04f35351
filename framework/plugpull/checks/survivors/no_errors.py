"""Whether the survivors had no I/O error."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from plugpull.checks.accusation import Accusation
from plugpull.checks.base import Check, Disks, Judgement, disk_names
from plugpull.checks.claims import Claim, Evidence
from plugpull.checks.collector import Collector
from plugpull.checks.dut.complaints import accusations_of, by_disk, explained_by_cuts, load_error, unexplained
from plugpull.checks.evidence import judged_span
from plugpull.history.events import LoadBegun
from plugpull.history.reader import Story

CRASHED = (-4, -6, -7, -8, -11)
"""Exit statuses in ``subprocess`` of programs ended by SIGILL, SIGABRT, SIGBUS, SIGFPE or SIGSEGV."""


class NoErrors(Check, frozen=True, tag="no_errors"):
    """Neither the loads on ``disks`` nor the kernel had an I/O error on them. The kernel may name a disk by its block
    device or SCSI address at that time, its port, a hub or controller above it, or an array that it is in.

    Messages about a disk from its own cut until its return are expected, also those about a hub or controller that the
    cut disk shares with others. An uncatalogued message counts if it is a warning or worse and names the disk."""

    disks: tuple[str, ...]

    def judge(self, story: Story) -> Judgement:
        said = Collector(self, self.disks)
        complaints = by_disk(unexplained(story, *explained_by_cuts(story)))
        for disk in self.disks:
            if not story.attachments(disk):
                said.doubt(f"{disk} was never seen, so whether it had errors is not known")
            said.take(*_load_errors(story, disk))
            said.take(*accusations_of(disk, complaints.get(disk, [])))
        if not self.disks:
            said.doubt("no_errors was asked about no disk")
        count = len(self.disks)
        return said.judgement(f"no errors on {count} disk{'s' * (count != 1)}" if said.clean else "")

    def claims(self, story: Story) -> Iterable[Claim]:
        begin, end = judged_span(story)
        what = f"{', '.join(self.disks)} had errors"
        yield Claim(what=what, evidence=(Evidence.LOG,), begin=begin, end=end)


def _load_errors(story: Story, disk: str) -> Iterator[Accusation | str]:
    """Errors of the loads on a disk, and doubts about loads that ended unexpectedly."""
    for load in story.of(LoadBegun):
        if load.disk != disk:
            continue
        ended = story.load_end(load)
        if ended is None:
            yield f"how the load on {disk} ended was not recorded"
        elif ended.errno:
            yield load_error(load, ended)
        elif not ended.asked and ended.exit_status:
            yield f"the load on {disk} ended by itself with exit status {ended.exit_status}"
        elif ended.exit_status is not None and ended.exit_status in CRASHED:
            yield f"the load on {disk} crashed: signal {-ended.exit_status}"


def no_errors(disks: Disks) -> NoErrors:
    """None of ``disks`` may have an I/O error."""
    return NoErrors(disk_names(disks))
