"""Faults of the bench, and the findings that they may have caused."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from plugpull.finding import Finding
from plugpull.history.events import RigFault
from plugpull.judging.sheet import Sheet

CONFESSIONS = frozenset({"kernel_clean", "kernel_between", "scenario", "nothing_blocked", "cpus_answer", "state_kept"})
"""Checks whose findings stand whatever the bench did: the kernel's own reports, and assertions of the scenario."""
TIMED = frozenset({"kept_pace", "ready_under_load", "discovered", "latency"})
"""Checks whose findings say that something took too long: a bench that failed meanwhile may be the cause."""


BY_STALLS = frozenset({"undisturbed", "same_properties", "no_errors", "commands_in_time", "users_told"})
"""Checks whose findings about a disk may say that it stood still and was recovered. Other disks may have waited for it:
see ``TIMED`` and ``answered``."""


BY_ABSENCE = frozenset({"returned", "removed", "as_declared", "undisturbed", "discovered", "found_again"})
"""Checks whose findings may rest on an announcement that is missing."""


@dataclass(frozen=True)
class Excuses:
    """What explains findings apart from faults of the bench.

    ``doubts`` say why it is not known which disks were cut, or when. ``stalled`` are disks that stood still on request,
    nobody knows when (``stalls.unrecorded``), ``unheard`` those of which an announcement is missing
    (``lost_announcements.py``). ``unnamed``: nothing on record says what the DUT was."""

    doubts: Sequence[str] = ()
    stalled: Collection[str] = ()
    unheard: Collection[str] = ()
    unnamed: bool = False

    def why(self, finding: Finding) -> str | None:
        """Why a finding accuses nobody, as the end of a phrase; ``None`` if it stands."""
        if self.doubts and finding.check not in CONFESSIONS:
            return ""
        if self.stalled and _by_stall(finding, self.stalled):
            return f", because it is not on record when {', '.join(self.stalled)} stood still"
        unheard = finding.subject in self.unheard or finding.subject[:1].isdigit()  # a USB device of no disk
        if self.unheard and finding.check in BY_ABSENCE and unheard:
            return f", because an announcement of {', '.join(self.unheard)} is not on record"
        if self.unnamed and finding.check in TIMED:
            return ", because it is not on record what the DUT was"
        return None


def drop_explained(sheet: Sheet, faults: Iterable[RigFault], excuses: Excuses) -> None:
    """Turn findings that the bench may have caused into unknowns.

    ``faults`` of the bench explain findings about the disks they name, and findings that something took too long.
    """
    kept = []
    for finding in sheet.findings:
        fault = next((fault for fault in faults if _explains(fault, finding)), None)
        why = excuses.why(finding)
        if why is not None:
            sheet.unknowns.append(f"not a finding against {finding.subject or 'the DUT'}{why}: {finding.summary}")
        elif fault is None:
            kept.append(finding)
        else:
            whose = finding.subject or "the DUT"
            sheet.unknowns.append(f"not a finding against {whose}, for which the bench failed: {finding.summary}")
    sheet.findings[:] = kept


def _explains(fault: RigFault, finding: Finding) -> bool:
    """Whether a fault of the bench may have caused what a finding reports."""
    if finding.check in CONFESSIONS:
        return False
    named = finding.subject and re.search(rf"(?<![\w.-]){re.escape(finding.subject)}(?![\w-])", fault.summary)
    if fault.subject:
        return fault.subject == finding.subject
    return bool(named) or finding.check in TIMED


def _by_stall(finding: Finding, stalled: Collection[str]) -> bool:
    """Whether a finding may say no more than that one of these disks stood still."""
    if finding.check in BY_STALLS:
        return finding.subject in stalled
    return finding.check in TIMED | {"answered"}
