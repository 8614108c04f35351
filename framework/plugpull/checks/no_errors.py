"""Were the survivors left without an I/O error?"""

from __future__ import annotations

import re

from plugpull.checks.base import Check, Disks, Judgement, disk_names
from plugpull.errors import Finding
from plugpull.history.events import KernelMessage, LoadBegun, LogLost
from plugpull.history.reader import Story
from plugpull.kernel.classify import classify

ERRORS = frozenset({"block.error", "scsi.error", "scsi.offline"})
SHOWN = 5
"""Kernel lines given as evidence at most."""

_PARTITION = re.compile(r"^(sd[a-z]+)\d+$|^((?:nvme\d+n|mmcblk|md|loop)\d+)p\d+$")


class NoErrors(Check, frozen=True, tag="no_errors"):
    """No I/O error on any of ``disks``: neither met by its load nor told of by the kernel, under its name then."""

    disks: tuple[str, ...]

    def judge(self, story: Story) -> Judgement:
        findings: list[Finding] = []
        unknowns: list[str] = [_gap(story)] if _gap(story) else []
        complaints = _complaints(story)
        for disk in self.disks:
            if not story.attachments(disk):
                unknowns.append(f"{disk} was never seen, so whether it had errors is not known")
            findings.extend(self._load_errors(story, disk, unknowns))
            lines = complaints.get(disk, [])
            if lines:
                more = f" (and {len(lines) - 1} more)" if len(lines) > 1 else ""
                findings.append(
                    Finding(
                        check="no_errors",
                        subject=disk,
                        summary=f"the kernel reported an error on {disk}: {lines[0].text}{more}",
                        at=lines[0].at,
                        evidence=tuple(line.text for line in lines[:SHOWN]),
                    )
                )
        if not self.disks:
            unknowns.append("no_errors was asked about no disk")
        worst = "" if findings or unknowns else f"no errors on {len(self.disks)} disk{'s' * (len(self.disks) != 1)}"
        return Judgement(findings=tuple(findings), unknowns=tuple(unknowns), worst=worst, subject=", ".join(self.disks))

    def _load_errors(self, story: Story, disk: str, unknowns: list[str]) -> list[Finding]:
        findings = []
        for load in story.of(LoadBegun):
            if load.disk != disk:
                continue
            ended = story.load_end(load)
            if ended is None:
                unknowns.append(f"how the load on {disk} ended was not recorded")
            elif ended.errno:
                said = ended.message or f"errno {ended.errno}"
                what = f"the load on {disk} met an I/O error: {said}"
                findings.append(Finding(check="no_errors", subject=disk, summary=what, at=ended.at))
            elif not ended.asked and ended.exit_status:
                unknowns.append(f"the load on {disk} ended by itself with exit status {ended.exit_status}")
        return findings


def no_errors(disks: Disks) -> NoErrors:
    """None of ``disks`` may have an I/O error."""
    return NoErrors(disk_names(disks))


def _gap(story: Story) -> str:
    if story.heard_until is None:
        return "the agent was never heard, so the kernel log is not known"
    if story.evidence_until is not None:
        return f"the kernel log is known only until {story.evidence_until:.2f} s: the DUT fell silent"
    lost = sum(event.count for event in story.of(LogLost))
    return f"{lost} records of the kernel log were lost" if lost else ""


def _complaints(story: Story) -> dict[str, list[KernelMessage]]:
    """The kernel's error messages by disk."""
    found: dict[str, list[KernelMessage]] = {}
    for message in story.of(KernelMessage):
        event = classify(message.text)
        if event is None or event.kind not in ERRORS or message.at is None:
            continue
        part = _PARTITION.match(event.subject)
        kname = next((name for name in part.groups() if name), "") if part else event.subject
        disk = story.disk_at(kname, message.at)
        if disk:
            found.setdefault(disk, []).append(message)
    return found
