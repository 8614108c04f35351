"""Faults of the bench, and the findings that they may have caused."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence

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


def drop_explained(
    sheet: Sheet, faults: Iterable[RigFault], doubts: Sequence[str], stalled: Collection[str] = ()
) -> None:
    """Turn findings that the bench may have caused into unknowns.

    ``faults`` of the bench explain findings about the disks they name, and findings that something took too long.
    ``doubts`` about which disks were cut off, or when, explain all findings but the kernel's own reports.
    ``stalled`` are disks that stood still on request, nobody knows when (``stalls.unrecorded``).
    """
    kept = []
    for finding in sheet.findings:
        fault = next((fault for fault in faults if _explains(fault, finding)), None)
        if doubts and finding.check not in CONFESSIONS:
            sheet.unknowns.append(f"not a finding against {finding.subject or 'the DUT'}: {finding.summary}")
        elif stalled and _by_stall(finding, stalled):
            what = f"not a finding against {finding.subject or 'the DUT'}"
            sheet.unknowns.append(
                f"{what}, for when {', '.join(stalled)} stood still is not on record: {finding.summary}"
            )
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
