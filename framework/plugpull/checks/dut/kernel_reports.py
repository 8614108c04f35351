"""Accusations from the reports of a broken kernel, and which reports the DUT's host explains."""

from __future__ import annotations

import re

from plugpull.checks.accusation import Accusation
from plugpull.checks.starved import HZ, LEAST_GRANTED, Span, granted, ran, starved
from plugpull.history.events import DutReady
from plugpull.history.story import Story
from plugpull.kernel.catalogue.classify import classify_message
from plugpull.kernel.diagnosis.report_groups import ONE_GROUP, ReportGroup

SHOWN = 12
"""Lines of a report given as evidence at most."""
STALLED = 20.0
"""Seconds assumed for a lockup whose message has no duration: twice the default of kernel.watchdog_thresh."""
SHORTEST = 3.0
"""Seconds for which the host must have stopped the DUT to explain a report whose message has no duration."""
RAN = 0.5
"""The DUT's CPUs count as running if they accounted for this share of the time. CPUs of a stopped guest account for
nothing; CPUs that spin in the kernel account for all of it."""

BRIEF = 1.0
"""Seconds of waiting that a DUT may exceed merely because its host runs it at less than half of its speed."""

_SECONDS = re.compile(r"stuck for (\d+)s|for more than (\d+) seconds")
_WAITS = frozenset({"fatal.lockup", "fatal.hung-task", "cpu.hog"})
_UNANSWERED = (
    (re.compile(r"hub_(?:ext_port|port|hub)_status failed \(err = -110\)"), 1.0),
    (re.compile(r"\berr(?:or)?(?: =)? -110\b"), 5.0),
    (re.compile(r"xHCI host (?:controller )?not responding|Abort failed to stop command ring|HC died"), 5.0),
    (re.compile(r"\buas_eh_|\btiming out command\b|\breset (?:[\w-]+ ){1,4}USB device"), 15.0),
)
"""What the kernel logs after a device did not answer for these seconds: a hub (drivers/usb/core/hub.c,
USB_STS_TIMEOUT), another control transfer (include/linux/usb.h, USB_CTRL_GET_TIMEOUT), a host controller
(drivers/usb/host/xhci.h, XHCI_CMD_DEFAULT_TIMEOUT), a disk (``dut/agent/timers.py``)."""


def accusation_of(group: ReportGroup) -> Accusation:
    """The accusation of a report group: its headline, with the important lines as evidence."""
    frames = group.reports[0].frames if group.reports else ()
    # Registers and module lists fill a screen, so the important lines come first.
    shown = [line for report in group.reports for line in report.lines] or [line.text for line in group.lines]
    evidence = (*shown[:SHOWN], *((f"in {' < '.join(frames)}",) if frames else ()))
    kind = kind_of(group.headline) or group.event.kind
    return Accusation(subject="kernel", summary=group.headline, at=group.at, evidence=evidence, kind=kind)


def kind_of(headline: str) -> str:
    """The kind of a kernel message by its text; empty if it is uncatalogued."""
    event = classify_message(headline, headline)
    return event.kind if event is not None else ""


# --- a DUT that its host did not run ---------------------------------------------------------------------------------


def by_the_host(story: Story, at: float | None, body: str, kind: str) -> str:
    """Why the DUT's host caused a lockup, a stall or a device's silence, as a sentence; empty if it did not.

    A guest that its host did not run for a while reports afterwards that its CPUs were stuck. The CPU time counted by
    the guest and by the host shows whether that happened. Meanwhile its emulated devices did not answer.
    """
    unanswered = _unanswered(body)
    if at is None or not (unanswered or kind in _WAITS):
        return ""
    found = _SECONDS.search(body)
    took = unanswered or (float(found.group(1) or found.group(2)) if found else STALLED)
    least = took / 2 if unanswered or found else SHORTEST
    lost = _not_run(story, at - took, at + (0.0 if unanswered else ONE_GROUP))
    if lost > 0 and (kind == "cpu.hog" or lost >= least):
        return f"not the fault of the DUT: its host did not run it for {lost:.2f} s at that time: {body}"
    had = granted(story, at - took, at) if 0 < unanswered <= BRIEF else 1.0
    if had < LEAST_GRANTED:
        return f"not the fault of the DUT: its host gave it {had:.0%} of its CPU time then: {body}"
    return ""


def _unanswered(body: str) -> float:
    """Seconds for which a device had not answered when the kernel logged this; 0 if it is not about that."""
    return next((seconds for words, seconds in _UNANSWERED if words.search(body)), 0.0)


def _not_run(story: Story, begin: float, end: float) -> float:
    """Seconds of [begin, end] for which the DUT's host did not run it."""
    gaps = (gap for gap in starved(story) if gap.begin < end and gap.end > begin)
    return sum(
        min(gap.end, end) - max(gap.begin, begin) for gap in gaps if not ran(story, gap) and not _cpus_ran(story, gap)
    )


def _cpus_ran(story: Story, gap: Span) -> bool:
    """Whether the DUT's CPUs accounted for time in a gap, by the samples of their counters nearest to it."""
    before = [one for one in story.cpu_times if one[0] <= gap.begin][-1:]
    after = [one for one in story.cpu_times if one[0] >= gap.end][:1]
    cpus = next((ready.cpus for ready in story.of(DutReady) if ready.cpus), 1)
    if not before or not after:
        return False
    seconds = after[0][0] - before[0][0]
    return (after[0][2] - before[0][2]) / HZ >= RAN * seconds * cpus
