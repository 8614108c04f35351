"""Were the survivors left without an I/O error?"""

from __future__ import annotations

from collections.abc import Iterable

from plugpull.checks.base import Check, Disks, Judgement, disk_names
from plugpull.checks.claims import Claim, Evidence
from plugpull.checks.complaints import by_disk, explained_by_cuts, findings_about, load_error, unexplained
from plugpull.checks.evidence import judged_span
from plugpull.errors import Finding
from plugpull.history.events import LoadBegun
from plugpull.history.reader import Story

CRASHED = (-4, -6, -7, -8, -11)
"""What ``subprocess`` says of a program that SIGILL, SIGABRT, SIGBUS, SIGFPE or SIGSEGV ended: nobody asked it to."""


class NoErrors(Check, frozen=True, tag="no_errors"):
    """No I/O error on any of ``disks``: neither met by its load nor reported by the kernel, whatever it calls the disk:
    by its name or SCSI address then, its port, the hub or controller it is behind, the array it is in.

    What the kernel reports about a disk from its own cut until its return is expected, and so is what it reports then
    about the hub or controller that the cut disk shares with others. A message that is not in the catalogue counts if
    it is a warning or worse and names the disk: it should be in the catalogue."""

    disks: tuple[str, ...]

    def judge(self, story: Story) -> Judgement:
        findings: list[Finding] = []
        unknowns: list[str] = []
        complaints = by_disk(unexplained(story, *explained_by_cuts(story)))
        for disk in self.disks:
            if not story.attachments(disk):
                unknowns.append(f"{disk} was never seen, so whether it had errors is not known")
            findings.extend(self._load_errors(story, disk, unknowns))
            findings.extend(findings_about("no_errors", disk, complaints.get(disk, [])))
        if not self.disks:
            unknowns.append("no_errors was asked about no disk")
        worst = "" if findings or unknowns else f"no errors on {len(self.disks)} disk{'s' * (len(self.disks) != 1)}"
        return Judgement(findings=tuple(findings), unknowns=tuple(unknowns), worst=worst, subject=", ".join(self.disks))

    def claims(self, story: Story) -> Iterable[Claim]:
        begin, end = judged_span(story)
        what = f"{', '.join(self.disks)} had errors"
        yield Claim(what=what, evidence=(Evidence.LOG,), begin=begin, end=end)

    def _load_errors(self, story: Story, disk: str, unknowns: list[str]) -> list[Finding]:
        findings = []
        for load in story.of(LoadBegun):
            if load.disk != disk:
                continue
            ended = story.load_end(load)
            if ended is None:
                unknowns.append(f"how the load on {disk} ended was not recorded")
            elif ended.errno:
                findings.append(load_error("no_errors", load, ended))
            elif not ended.asked and ended.exit_status:
                unknowns.append(f"the load on {disk} ended by itself with exit status {ended.exit_status}")
            elif ended.exit_status is not None and ended.exit_status in CRASHED:
                unknowns.append(f"the load on {disk} crashed: signal {-ended.exit_status}")
        return findings


def no_errors(disks: Disks) -> NoErrors:
    """None of ``disks`` may have an I/O error."""
    return NoErrors(disk_names(disks))
