"""The reports of broken kernels in one scenario, grouped by time.

``reports.py`` finds the lines of one report by their shape. A broken kernel prints several reports that belong
together: an oops, then a stall of the CPUs that wait for the dead task. Here they are one group.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

from plugpull.history.events import DutDied
from plugpull.history.story import Story
from plugpull.kernel.catalogue.classify import KernelEvent
from plugpull.kernel.catalogue.entry import Severity
from plugpull.kernel.diagnosis.headline import headline_of
from plugpull.kernel.diagnosis.reports import LONGEST, Report, reports_in
from plugpull.kernel.diagnosis.story_log import RecordedLine, log_of

ONE_GROUP = 5.0
"""Seconds between two alarming lines up to which they belong to one group."""
FOLLOWS = 1.0
"""Seconds after an alarming line in which its registers and its call trace are printed."""
CUT_HERE = "------------[ cut here ]"
"""The line that comes before every BUG and WARNING (include/asm-generic/bug.h, CUT_HERE)."""

_CGROUP = re.compile(r"CONSTRAINT_MEMCG|^Memory cgroup out of memory")


@dataclass
class ReportGroup:
    """Alarming lines and what follows them. ``at`` is the time of the first line, ``last`` that of the last alarming
    one, DUT seconds. A console line has no time of its own."""

    at: float | None
    event: KernelEvent
    lines: list[RecordedLine] = field(default_factory=list)
    last: float | None = None

    @property
    def headline(self) -> str:
        """The line a kernel developer would quote."""
        return headline_of(self.lines) or self.lines[0].body

    @cached_property
    def reports(self) -> tuple[Report, ...]:
        """The reports in this group, by the shape of their lines."""
        return tuple(reports_in(self.lines))

    def covers(self, at: float | None) -> bool:
        """Whether a line with this time is part of the group: registers, locks, memory."""
        if self.at is None or at is None:
            return False
        return self.at <= at <= (self.last or self.at) + FOLLOWS

    def is_of(self, died: DutDied) -> bool:
        """Whether these are the last lines of a DUT that died."""
        if died.at is None or self.last is None or {line.text for line in self.lines} & set(died.evidence):
            return True
        return abs(died.at - self.last) <= ONE_GROUP

    @property
    def of_a_container(self) -> bool:
        """Whether the group only reports that a container reached the memory limit that somebody set for it."""
        fatal = any(line.event is not None and line.event.severity is Severity.FATAL for line in self.lines)
        return not fatal and any(_CGROUP.search(line.body) for line in self.lines)


def report_groups(story: Story) -> tuple[ReportGroup, ...]:
    """The report groups of a story, in order."""
    return story.once(_groups)


def _groups(story: Story) -> tuple[ReportGroup, ...]:
    groups: list[ReportGroup] = []
    for line in log_of(story).with_console:
        if line.event is not None and line.event.alarming:
            last = groups[-1].last if groups else None
            if not groups or (line.at is not None and last is not None and line.at - last > ONE_GROUP):
                groups.append(ReportGroup(line.at, line.event))
            groups[-1].last = last if line.at is None and groups[-1].lines else line.at
            groups[-1].lines.append(line)
        elif groups and len(groups[-1].lines) < LONGEST and _follows(line, groups[-1]):
            groups[-1].lines.append(line)
    return tuple(group for group in groups if not group.of_a_container)


def is_followed_by_report(line: RecordedLine, groups: Sequence[ReportGroup]) -> bool:
    """Whether the report is on record that a ``CUT_HERE`` line announces."""
    at = line.at
    return at is None or any(group.at is None or -1.0 <= group.at - at <= ONE_GROUP for group in groups)


def _follows(line: RecordedLine, group: ReportGroup) -> bool:
    return line.at is None or group.last is None or line.at - group.last < FOLLOWS
