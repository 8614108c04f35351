"""Were the survivors left without an I/O error?"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from plugpull.checks.base import Check, Disks, Judgement, disk_names
from plugpull.errors import Finding
from plugpull.history.events import KernelMessage, LoadBegun, LogLost
from plugpull.history.reader import Story
from plugpull.kernel.classify import classify
from plugpull.kernel.scope import WARNING, About, Level, Scope, comes_up, expected_of, usual

ERRORS = frozenset(
    {
        "block.error",
        "fs.error",
        "fs.readonly",
        "hcd.died",
        "hcd.error",
        "md.failure",
        "scsi.error",
        "scsi.offline",
        "scsi.reset",
        "storage.cache-error",
        "uas.error",
        "usb.disconnect",
        "usb.enumeration-error",
        "usb.link-error",
        "usb.overcurrent",
        "usb.reset",
    }
)
"""What is nothing to be told of a disk that nobody touched."""
SHOWN = 5
"""Kernel lines given as evidence at most."""


class NoErrors(Check, frozen=True, tag="no_errors"):
    """No I/O error on any of ``disks``: neither met by its load nor told of by the kernel, whatever it calls the disk:
    by its name or SCSI address then, its port, the hub or controller it is behind, the array it is in.

    What the kernel says of a disk from its own cut until a little after its return is expected, and so is what it says
    then of the hub or controller that the cut disk shares with others. A message that is not in the catalogue counts if
    it is a warning or worse and names the disk: it should be in the catalogue."""

    disks: tuple[str, ...]

    def judge(self, story: Story) -> Judgement:
        findings: list[Finding] = []
        unknowns: list[str] = [_gap(story)] if _gap(story) else []
        complaints = _complaints(story)
        for disk in self.disks:
            if not story.attachments(disk):
                unknowns.append(f"{disk} was never seen, so whether it had errors is not known")
            findings.extend(self._load_errors(story, disk, unknowns))
            said = complaints.get(disk, [])
            for known in (True, False):
                lines = [one for one in said if one.known is known]
                if lines:
                    findings.append(_finding(disk, lines))
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


@dataclass(frozen=True)
class Complaint:
    """A kernel message that is held against a disk. ``known`` tells whether it is in the catalogue."""

    message: KernelMessage
    about: About
    known: bool


def _finding(disk: str, lines: list[Complaint]) -> Finding:
    first = lines[0]
    more = f" (and {len(lines) - 1} more)" if len(lines) > 1 else ""
    what = "reported an error on" if first.known else "warned, in words that are in no catalogue, of"
    where = "" if first.about.level is Level.DISK else f" ({first.about.level} {first.about.name})"
    return Finding(
        check="no_errors",
        subject=disk,
        summary=f"the kernel {what} {disk}{where}: {first.message.text}{more}",
        at=first.message.at,
        evidence=tuple(line.message.text for line in lines[:SHOWN]),
    )


def _gap(story: Story) -> str:
    if story.heard_until is None:
        return "the agent was never heard, so the kernel log is not known"
    if story.evidence_until is not None:
        return f"the kernel log is known only until {story.evidence_until:.2f} s: the DUT fell silent"
    lost = sum(event.count for event in story.of(LogLost))
    return f"{lost} records of the kernel log were lost" if lost else ""


def _complaints(story: Story) -> dict[str, list[Complaint]]:
    """What the kernel said against each disk."""
    found: defaultdict[str, list[Complaint]] = defaultdict(list)
    for complaint, at in _found(story):
        about = complaint.about
        if any(expected_of(story, disk, at) for disk in about.disks):
            # Several disks are meant where they share a hub or controller: one of them going disturbs all of that.
            about = About(about.level, about.name, ())
        for disk in about.disks:
            if not _comes_up(story, disk, complaint, at):
                found[disk].append(complaint)
    return found


def _found(story: Story) -> Iterator[tuple[Complaint, float]]:
    scope = Scope(story)
    for message in story.of(KernelMessage):
        if message.at is None or (story.begun.at is not None and message.at < story.begun.at):
            continue
        event = classify(message.text)
        if event is None:
            if message.level > WARNING:
                continue
        elif event.kind not in ERRORS:
            continue
        about = scope.about(message.text, message.at)
        # What is not known to be an error has to name the disk itself: hubs and controllers speak of much.
        if about.disks and (event is not None or about.level is Level.DISK):
            yield Complaint(message, about, event is not None), message.at


def _comes_up(story: Story, disk: str, complaint: Complaint, at: float) -> bool:
    """Whether this is what every disk causes when it comes up. What is in no catalogue is not held against it then."""
    return (not complaint.known or usual(complaint.message.text)) and comes_up(story, disk, at)
