"""The kernel's own reports that something is wrong with it, each put together from the lines that belong to it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from plugpull.checks.complaints import from_the_kernel
from plugpull.checks.starved import HZ, Span, ran, starved
from plugpull.errors import Finding
from plugpull.history.events import ConsoleLine, DutDied, DutReady, KernelMessage
from plugpull.history.story import Story
from plugpull.kernel.catalogue.classify import KernelEvent, classify
from plugpull.kernel.catalogue.entry import Severity
from plugpull.kernel.catalogue.prefix import split_prefix
from plugpull.kernel.diagnosis.headline import panic_headline
from plugpull.kernel.diagnosis.reports import LONGEST, fold

ONE_REPORT = 5.0
"""Seconds between two fatal lines up to which they are taken for one report."""
SHOWN = 12
"""Lines of a report given as evidence at most."""
STALLED = 20.0
"""Seconds that a lockup took at most that does not say so: twice the default of kernel.watchdog_thresh."""
SHORTEST = 3.0
"""Seconds that the host must not have run the DUT for, to explain one that does not say how long it took."""
RAN = 0.5
"""Share of the time that the DUT's CPUs must have counted for them to have run: those of a guest that its host does not
run count nothing, those that spin in the kernel count all of it."""

_SECONDS = re.compile(r"stuck for (\d+)s|for more than (\d+) seconds")
_WAITS = frozenset({"fatal.lockup", "fatal.hung-task", "cpu.hog"})
_CGROUP = re.compile(r"CONSTRAINT_MEMCG|^Memory cgroup out of memory")


@dataclass
class KernelReport:
    """Lines that belong together; ``at`` is when the first was logged, ``last`` when the last alarming one was. A
    console line carries no time of its own."""

    at: float | None
    event: KernelEvent
    lines: list[str] = field(default_factory=list)
    last: float | None = None

    def is_of(self, died: DutDied) -> bool:
        """Whether these are the DUT's last words."""
        if died.at is None or self.last is None or set(self.lines) & set(died.evidence):
            return True
        return abs(died.at - self.last) <= ONE_REPORT

    def finding(self) -> Finding:
        headline = panic_headline(self.lines) or split_prefix(self.lines[0])[1].strip()
        folded = fold(self.lines)
        frames = folded[0].frames if folded else ()
        # Registers and module lists fill a screen; what matters comes first.
        said = [line for report in folded for line in report.lines]
        evidence = tuple(said[:SHOWN] or self.lines[:SHOWN]) + ((f"in {' < '.join(frames)}",) if frames else ())
        return Finding(check="kernel_clean", subject="kernel", summary=headline, at=self.at, evidence=evidence)

    @property
    def of_a_container(self) -> bool:
        """Whether it only says that a container reached the limit of memory that somebody set for it."""
        fatal = any((event := classify(line)) is not None and event.severity is Severity.FATAL for line in self.lines)
        return not fatal and any(_CGROUP.search(split_prefix(line)[1]) for line in self.lines)


def kernel_reports(story: Story) -> list[KernelReport]:
    """The reports of a story, in order."""
    reports: list[KernelReport] = []
    for event in _lines(story):
        known = classify(event.text)
        if known is not None and known.alarming:
            last = reports[-1].last if reports else None
            if not reports or (event.at is not None and last is not None and event.at - last > ONE_REPORT):
                reports.append(KernelReport(event.at, known))
            reports[-1].last = last if event.at is None and reports[-1].lines else event.at
            reports[-1].lines.append(event.text)
        elif reports and len(reports[-1].lines) < LONGEST and _follows(event, reports[-1]):
            reports[-1].lines.append(event.text)
    return [report for report in reports if not report.of_a_container]


def within_a_report(message: KernelMessage, reports: list[KernelReport]) -> bool:
    """Whether a message is one of the lines that follow an alarming one: registers, locks, memory."""
    return any(report.at is not None and message.at is not None and _inside(message.at, report) for report in reports)


def _inside(at: float, report: KernelReport) -> bool:
    return (report.at or 0.0) <= at <= (report.last or report.at or 0.0) + 1.0


def _lines(story: Story) -> Iterator[KernelMessage | ConsoleLine]:
    mine = {id(message) for message in from_the_kernel(story)}
    for event in story.events:
        if isinstance(event, KernelMessage):
            if id(event) in mine:
                yield event
        elif isinstance(event, ConsoleLine) and (not event.at or event.at >= (story.begun.at or 0.0)):
            yield event


def _follows(event: KernelMessage | ConsoleLine, report: KernelReport) -> bool:
    """The registers and the call trace come within the second."""
    return event.at is None or report.last is None or event.at - report.last < 1.0


# --- a DUT that its host did not run ---------------------------------------------------------------------------------


def by_the_host(story: Story, at: float | None, body: str, kind: str) -> str:
    """Why a lockup or a stall is not the DUT's doing, as a sentence; empty if it is.

    A guest that its host does not run for a while reports, when it runs again, that its CPUs were stuck. Its own count
    of CPU time and its host's show the difference.
    """
    if at is None or kind not in _WAITS:
        return ""
    found = _SECONDS.search(body)
    took = float(found.group(1) or found.group(2)) if found else STALLED
    lost = 0.0
    for gap in starved(story):
        inside = min(gap.end, at + ONE_REPORT) - max(gap.begin, at - took)
        if inside > 0 and not ran(story, gap) and not _cpus_ran(story, gap):
            lost += inside
    if lost <= 0 or (kind != "cpu.hog" and lost < (took / 2 if found else SHORTEST)):
        return ""
    return f"not held against the DUT, which its host did not run for {lost:.2f} s then: {body}"


def _cpus_ran(story: Story, gap: Span) -> bool:
    """Whether the DUT's CPUs counted time in a gap: between the samples of their counters nearest to it."""
    before = [one for one in story.cpu_times if one[0] <= gap.begin][-1:]
    after = [one for one in story.cpu_times if one[0] >= gap.end][:1]
    cpus = next((ready.cpus for ready in story.of(DutReady) if ready.cpus), 1)
    if not before or not after:
        return False
    seconds = after[0][0] - before[0][0]
    return (after[0][2] - before[0][2]) / HZ >= RAN * seconds * cpus
