"""Whether the DUT's kernel stayed healthy: no panic, oops, BUG, hung task, lockup, stall or WARNING, and no other
message that a healthy kernel never logs."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from plugpull.checks.accusation import Accusation
from plugpull.checks.base import Check, Judgement
from plugpull.checks.claims import Claim, Evidence
from plugpull.checks.collector import Collector
from plugpull.checks.dut.complaints import explained_by_cuts
from plugpull.checks.dut.kernel_reports import accusation_of, by_the_host, kind_of
from plugpull.checks.evidence import judged_span
from plugpull.history.events import DiskAttached, DiskDetached, DutDied, DutReady
from plugpull.history.reader import Story
from plugpull.kernel.catalogue.uncatalogued import CRITICAL, ERROR, about_storage, harmless, power_fails, storage_work
from plugpull.kernel.diagnosis.expected import Expected, never
from plugpull.kernel.diagnosis.report_groups import CUT_HERE, ReportGroup, is_followed_by_report, report_groups
from plugpull.kernel.diagnosis.scope import WARNING, Level, Scope
from plugpull.kernel.diagnosis.story_log import RecordedLine, TimedLine, log_of

DIED = "the DUT's kernel died: "
"""The finding of a death begins with this, followed by the kernel's own words."""
HUNG = "the DUT hung"
"""The finding begins with this if the kernel did not recover by itself (``dut/post_mortem.py``)."""
SHOWN = 12
"""Kernel lines given as evidence at most."""

FLOOD, FLOOD_WITHIN = 500, 10.0
"""So many lines alike within so many seconds are a flood. The most in a healthy scenario, in all of it, were 63."""
_PCI = re.compile(r"\b[\da-f]{4}:[\da-f]{2}:[\da-f]{2}\.\d\b")


class KernelClean(Check, frozen=True, tag="kernel_clean"):
    """The DUT lived, and its kernel log has nothing fatal, no warning, no dead controller and no uncatalogued critical
    message. Lines that processes wrote to /dev/kmsg do not count."""

    def judge(self, story: Story) -> Judgement:
        said, groups = Collector(self, "kernel"), report_groups(story)
        said.take(*_death(story), *_reports(story, groups), *_confessions(story, groups), *_floods(story))
        said.sort()
        said.doubt(*_missing(story))
        return said.judgement("kernel log clean" if said.clean else "")

    def claims(self, story: Story) -> Iterable[Claim]:
        begin, end = judged_span(story)
        yield Claim(what="the kernel stayed healthy", evidence=(Evidence.LOG,), begin=begin, end=end)


def kernel_clean() -> KernelClean:
    """The kernel log must have nothing fatal, and must be complete."""
    return KernelClean()


def _death(story: Story) -> Iterator[Accusation]:
    """The death of the DUT, which is a fault in every scenario."""
    for died in story.of(DutDied)[:1]:
        yield Accusation(
            subject="kernel",
            summary=_of_death(died.headline),
            at=died.at,
            evidence=died.evidence,
            kind=kind_of(died.headline),
        )


def _reports(story: Story, groups: Iterable[ReportGroup]) -> Iterator[Accusation | str]:
    """The kernel's reports of faults. A report that the DUT's host explains is a doubt."""
    died = story.of(DutDied)
    for group in groups:
        if died and group.is_of(died[0]):
            continue
        report = accusation_of(group)
        yield by_the_host(story, group.at, report.summary, group.event.kind) or report


def _of_death(headline: str) -> str:
    """The summary of a death. A headline of plugpull's own is complete; the kernel's last words get an introduction."""
    return headline if headline.startswith("the DUT ") else f"{DIED}{headline or 'it said nothing'}"


# --- single lines ----------------------------------------------------------------------------------------------------


def _confessions(story: Story, groups: Sequence[ReportGroup]) -> Iterator[Accusation | str]:
    """Accusations and doubts from single lines. Lines that differ only in their numbers are one."""
    expected, scope = explained_by_cuts(story)
    kinds: dict[str, list[RecordedLine]] = {}
    doubts: dict[str, str] = {}
    for line in log_of(story).own:
        if line.event is not None and line.event.kind not in OTHER_HARDWARE:
            slept = line.at is not None and expected.slept(line.at) and expected.powerless(line.body)
            said = "" if slept else _known_line(story, line.event.kind, line)
            if not said and _is_virtual(story) and _of_the_host(line) and not _asleep(expected, line):
                said = HELD if _LOST_COUNT.search(line.body) else HOST_SAID + line.body
        elif line.body.startswith(CUT_HERE):
            there = is_followed_by_report(line, groups)
            said = "" if there else f"the kernel began a report that is not on record: {line.body}"
        else:
            inside = any(group.covers(line.at) for group in groups)
            said = "" if inside else _unknown_line(line, expected, scope, _is_virtual(story))
        alike = re.sub(r"\d+", "0", line.body)
        if said == HELD:
            kinds.setdefault(alike, []).append(line)
        elif said:
            doubts.setdefault(alike, said)
    yield from (_accusation(lines) for lines in kinds.values())
    yield from doubts.values()


OTHER_HARDWARE = frozenset({"ata.error", "dm.error", "hw.undervoltage", "nvme.error", "pci.error", "thunderbolt.error"})
"""Kinds of messages about hardware that need not be the rig's. They are judged by their level, as unknown ones are."""
HOST_ERROR = "hcd.error"
"""Errors of host controllers. On healthy emulated benches they were logged only as the DUT woke up."""
HOST_SAID = "the kernel logged an error of a host controller, which no cut of a disk causes: "
_LOST_COUNT = re.compile(
    r"no TDs queued|not part of current TD|completed Set TR Deq Ptr|unknown stream ring|unknown event type|"
    r"Completion event does not match|no room on ep ring|event .*disabled endpoint|Set TR Deq Ptr command is pending",
    re.IGNORECASE,
)
"""What a driver says whose records of its rings do not agree with its controller (drivers/usb/host/xhci-ring.c). An
emulated controller follows its driver, however slow its host is."""
_UNANSWERED = re.compile(r"context command|assigning device slot|[Ss]etup|[Aa]ddress device|in resume")
"""Commands of the driver that a device with a bad contact lets fail, and what a DUT says that wakes up."""
HELD = "held"
"""Marks a line that is a finding."""


def _of_the_host(line: RecordedLine) -> bool:
    """Whether a host controller had an error that is not a device's which did not answer."""
    return line.event is not None and line.event.kind == HOST_ERROR and not _UNANSWERED.search(line.body)


def _asleep(expected: Expected, line: RecordedLine) -> bool:
    return line.at is not None and expected.slept(line.at)


def _known_line(story: Story, kind: str, line: RecordedLine) -> str:
    if never(kind, line.body):
        return by_the_host(story, line.at, line.body, kind) or HELD
    if kind == "hw.corrected":
        return HELD if _is_virtual(story) or _rigs_path(story, line.body) else ""
    if kind == "cpu.hog" and storage_work(line.body):
        return by_the_host(story, line.at, line.body, kind) or HELD
    return ""


def _unknown_line(line: RecordedLine, expected: Expected, scope: Scope, virtual: bool) -> str:
    """The judgement of a message that is uncatalogued or about other hardware: a critical one is a finding, an error is
    a doubt.

    On real machines, whose other hardware logs errors every day, only messages of the storage path count. ``no_errors``
    and ``undisturbed`` judge messages that name a disk. Warnings count if they are of a controller of an emulated rig
    and nothing is cut: in 64 healthy scenarios the only one was logged as the DUT woke up."""
    at, body = line.at, line.body
    if at is None or line.level > WARNING or not body or harmless(body):
        return ""
    about = scope.about(line.names, at)
    if line.level > ERROR and (not virtual or about.level is not Level.CONTROLLER or _excused(expected, at)):
        return ""
    if power_fails(body):
        return f"the DUT's power supply failed: {body}"
    shared = about.level is Level.CONTROLLER and not expected.all_cut(about.disks, at)
    if about.disks and not shared and expected.message(about, "", at):
        return ""
    if line.level <= CRITICAL:
        return HELD
    storage = about_storage(body)
    if about.level is Level.DISK or not (storage or virtual):
        return ""
    if not about.disks and (any(line.names) or (storage and expected.any_at(at))):
        return ""  # about a device outside the rig, or about storage while something was cut, which may be the cause
    what = "error" if line.level <= ERROR else "warning"
    return f"the kernel logged an {'uncatalogued ' if line.event is None else ''}{what}: {body}"


def _excused(expected: Expected, at: float) -> bool:
    return expected.any_at(at) or expected.slept(at)


def _accusation(lines: list[RecordedLine]) -> Accusation:
    first = lines[0]
    more = f" (and {len(lines) - 1} more like it)" if len(lines) > 1 else ""
    words = "" if first.event is not None else "the kernel logged an uncatalogued critical message: "
    return Accusation(
        subject="kernel",
        summary=f"{words}{first.body}{more}",
        at=first.at,
        evidence=tuple(line.text for line in lines[:SHOWN]),
        kind=first.event.kind if first.event is not None else "",
    )


def _is_virtual(story: Story) -> bool:
    """Whether the hardware is emulated: then its memory has no bit errors."""
    return any(ready.kind == "virtual" for ready in story.of(DutReady))


def _rigs_path(story: Story, body: str) -> bool:
    """Whether a message names a controller of the rig or a bridge above it."""
    named = set(_PCI.findall(body))
    return any(named & set(_PCI.findall(attached.sysfs)) for attached in story.all_attachments if attached.disk)


# --- evidence --------------------------------------------------------------------------------------------------------


def _floods(story: Story) -> Iterator[Accusation]:
    """Lines of an emulated DUT that differ only in their numbers and come so fast that they hide others, whatever they
    say and whether a cut explains them."""
    alike: defaultdict[str, list[TimedLine]] = defaultdict(list)
    for line in log_of(story).own_timed if _is_virtual(story) else ():
        alike[re.sub(r"\d+", "0", line.body)].append(line)
    for lines in alike.values():
        for first, last in zip(lines, lines[FLOOD - 1 :], strict=False):
            if last.at - first.at <= FLOOD_WITHIN:
                what = f"the kernel logged {len(lines)} lines alike, {FLOOD} of them within {FLOOD_WITHIN:g} s"
                text = tuple(line.text for line in lines[:SHOWN])
                yield Accusation(subject="kernel", summary=f"{what}: {first.body}", at=first.at, evidence=text)
                break


def _missing(story: Story) -> list[str]:
    if not log_of(story).own and _moved(story):
        return ["disks came or went, but no line of the kernel log was recorded"]
    return []


def _moved(story: Story) -> bool:
    """Whether a disk came or went while the log was read. A real DUT's disks are attached before its agent starts."""
    begun = max((ready.at or 0.0 for ready in story.of(DutReady) if ready.kind != "virtual"), default=float("-inf"))
    events = (*story.of(DiskAttached), *story.of(DiskDetached))
    return any(event.at is None or event.at > begun for event in events)
