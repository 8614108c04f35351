"""Faults of the bench, and the findings that they may have caused."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from plugpull.finding import Finding
from plugpull.history.events import RigFault
from plugpull.judging.sheet import Sheet

CONFESSIONS = frozenset({"kernel_clean", "kernel_between", "scenario", "nothing_blocked", "cpus_answer", "state_kept"})
"""Checks whose findings stand whatever the bench did: the kernel's own reports, and assertions of the scenario."""
TIMED = frozenset({"kept_pace", "ready_under_load", "discovered", "latency"})
"""Checks whose findings say that something took too long: a bench that failed meanwhile may be the cause."""


def drop_explained(sheet: Sheet, faults: Iterable[RigFault], doubts: Sequence[str]) -> None:
    """Turn findings that the bench may have caused into unknowns.

    ``faults`` of the bench explain findings about the disks they name, and findings that something took too long.
    ``doubts`` about which disks were cut off, or when, explain all findings but the kernel's own reports.
    """
    kept = []
    for finding in sheet.findings:
        fault = next((fault for fault in faults if _explains(fault, finding)), None)
        if doubts and finding.check not in CONFESSIONS:
            sheet.unknowns.append(f"not a finding against {finding.subject or 'the DUT'}: {finding.summary}")
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
