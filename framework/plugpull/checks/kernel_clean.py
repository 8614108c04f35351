"""Did the DUT's kernel stay healthy: no panic, oops, BUG, hung task, lockup, stall or WARNING?"""

from __future__ import annotations

from dataclasses import dataclass, field

from plugpull.checks.base import Check, Judgement
from plugpull.errors import Finding
from plugpull.history.events import (
    ConsoleLine,
    DiskAttached,
    DiskDetached,
    DutDied,
    DutReady,
    KernelMessage,
    LogLost,
)
from plugpull.history.reader import Story
from plugpull.kernel.classify import classify
from plugpull.kernel.fold import LONGEST, fold
from plugpull.kernel.headline import panic_headline

ONE_REPORT = 5.0
"""Seconds between two fatal lines up to which they are taken for one report."""
SHOWN = 12
"""Lines of a report given as evidence at most."""


class KernelClean(Check, frozen=True, tag="kernel_clean"):
    """Nothing fatal and no warning in the kernel log, and the DUT lived."""

    def judge(self, story: Story) -> Judgement:
        died = story.of(DutDied)
        findings = list(death(story))
        findings += [report.finding() for report in _reports(story) if not (died and report.is_of(died[0]))]
        findings.sort(key=lambda finding: float("inf") if finding.at is None else finding.at)
        unknowns = _missing(story)
        worst = "" if findings or unknowns else "kernel log clean"
        return Judgement(findings=tuple(findings), unknowns=tuple(unknowns), worst=worst, subject="kernel")


def kernel_clean() -> KernelClean:
    """The kernel log must hold nothing fatal, and all of it must have been read."""
    return KernelClean()


def death(story: Story) -> tuple[Finding, ...]:
    """The finding that the DUT died, if it did: that is wrong whatever a scenario asked for."""
    return tuple(
        Finding(
            check="kernel_clean",
            subject="kernel",
            summary=_of_death(died.headline),
            at=died.at,
            evidence=died.evidence,
        )
        for died in story.of(DutDied)[:1]
    )


def _of_death(headline: str) -> str:
    """A sentence of our own about the DUT stands for itself; the kernel's last words are introduced."""
    return headline if headline.startswith("the DUT ") else f"the DUT's kernel died: {headline or 'it said nothing'}"


@dataclass
class _Report:
    """Fatal lines that belong together. A console line carries no time of its own."""

    at: float | None
    lines: list[str] = field(default_factory=list)
    last: float | None = None

    def is_of(self, died: DutDied) -> bool:
        """Whether these are the DUT's last words."""
        if died.at is None or self.last is None or set(self.lines) & set(died.evidence):
            return True
        return abs(died.at - self.last) <= ONE_REPORT

    def finding(self) -> Finding:
        headline = panic_headline(self.lines) or self.lines[0]
        folded = fold(self.lines)
        frames = folded[0].frames if folded else ()
        # Registers and module lists fill a screen; what matters comes first.
        told = [line for report in folded for line in report.lines]
        evidence = tuple(told[:SHOWN] or self.lines[:SHOWN]) + ((f"in {' < '.join(frames)}",) if frames else ())
        return Finding(check="kernel_clean", subject="kernel", summary=headline, at=self.at, evidence=evidence)


def _reports(story: Story) -> list[_Report]:
    reports: list[_Report] = []
    for event in story.events:
        if not isinstance(event, KernelMessage | ConsoleLine):
            continue
        if event.at is not None and story.begun.at is not None and event.at < story.begun.at:
            continue  # an older scenario's
        known = classify(event.text)
        if known is not None and known.alarming:
            last = reports[-1].last if reports else None
            if not reports or (event.at is not None and last is not None and event.at - last > ONE_REPORT):
                reports.append(_Report(event.at))
            reports[-1].last = last if event.at is None and len(reports[-1].lines) else event.at
            reports[-1].lines.append(event.text)
        elif reports and len(reports[-1].lines) < LONGEST and _follows(event, reports[-1]):
            reports[-1].lines.append(event.text)
    return reports


def _follows(event: KernelMessage | ConsoleLine, report: _Report) -> bool:
    """The registers and the call trace come within the second."""
    return event.at is None or report.last is None or event.at - report.last < 1.0


def _missing(story: Story) -> list[str]:
    missing = []
    if story.heard_until is None:
        missing.append("the agent was never heard, so the kernel log is not known")
    if story.evidence_until is not None:
        missing.append(f"the kernel log is known only until {story.evidence_until:.2f} s: the DUT fell silent")
    lost = sum(event.count for event in story.of(LogLost))
    if lost:
        missing.append(f"{lost} records of the kernel log were lost")
    if not story.of(KernelMessage) and _moved(story):
        missing.append("disks came or went and not a line of the kernel log was recorded")
    return missing


def _moved(story: Story) -> bool:
    """Did a disk come or go while the log was followed? A real DUT's disks are there before its agent is."""
    begun = max((ready.at or 0.0 for ready in story.of(DutReady) if ready.kind != "virtual"), default=float("-inf"))
    events = (*story.of(DiskAttached), *story.of(DiskDetached))
    return any(event.at is None or event.at > begun for event in events)
