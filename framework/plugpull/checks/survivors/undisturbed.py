"""Whether everything outside the cuts was undisturbed: survivors, bystanders, hubs, and victims outside their cuts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import overload

from plugpull.checks.accusation import Accusation
from plugpull.checks.base import Check, Disks, Judgement
from plugpull.checks.claims import Claim, Evidence
from plugpull.checks.collector import Collector
from plugpull.checks.dut.complaints import (
    Complaint,
    accusations_of,
    explained_by_cuts,
    load_error,
    unexplained,
    untimed,
)
from plugpull.checks.dut.kernel_clean import kernel_clean
from plugpull.checks.dut.nothing_stuck import nothing_stuck
from plugpull.checks.dut.residue import nothing_left
from plugpull.checks.evidence import judged_span, miswired
from plugpull.checks.files.mounting import step_doubts
from plugpull.checks.limits import bench_kind
from plugpull.checks.raid.arrays import arrays_of, may_fail_from
from plugpull.checks.record.still_there import still_there
from plugpull.checks.starved import LEAST_GRANTED, granted, starved_within
from plugpull.checks.survivors.neighbours import Neighbours
from plugpull.checks.survivors.no_errors import no_errors
from plugpull.checks.survivors.pace import kept_pace
from plugpull.checks.survivors.strangers import strangers
from plugpull.checks.survivors.untouched import bystanders_of
from plugpull.checks.victims.log_properties import changes
from plugpull.history.cut import Cut
from plugpull.history.events import (
    DiskDetached,
    DiskRecovered,
    DutState,
    Healed,
    Judged,
    LoadBegun,
    Phase,
    SeenFromOutside,
    Uevent,
)
from plugpull.history.reader import Story
from plugpull.history.tape import until
from plugpull.kernel.diagnosis.expected import Expected, never
from plugpull.kernel.diagnosis.scope import Level

AS_ONE = 5.0
"""Seconds around a removal in which messages about the disk belong to it."""
SHOWN = 5
"""The most removals given as evidence."""
HELD_UP = 1.0
"""Seconds without the DUT in which a command of it may have timed out: no failed reset near them accuses a disk."""

_PARTS = frozenset({("usb", "usb_device"), ("scsi", "scsi_host"), ("scsi", "scsi_device")})
"""(subsystem, devtype) of the parts of a disk besides its block device."""
_DRIVEN = frozenset({("usb", "usb_interface"), ("usb", "usb_device"), ("scsi", "scsi_device")})
"""(subsystem, devtype) of the parts of a disk that have a driver (drivers/base/dd.c)."""
LETTING_GO = frozenset({"unbind", "remove", "offline"})
"""Actions of uevents after which a part of a disk is without its driver."""


class Undisturbed(Check, frozen=True, tag="undisturbed"):
    """Nobody outside a blast radius is removed, reset or in error, and no disk changes its properties.

    Judged are each disk of the rig while it is not cut itself, the hubs above it, and other USB devices of the bench. A
    disk that left because two outlets are swapped is not a finding. ``no_errors`` judges the disks that the scenario
    gives it. Events after the last look at the DUT belong to the shutdown of the bench."""

    def judge(self, story: Story) -> Judgement:
        asked = {disk for data in _checks(story, "no_errors") for disk in data.get("disks", ())}
        story = before_teardown(story)
        expected, scope = explained_by_cuts(story)
        removals = list(_removals(story, expected))
        gone = {(removal.subject, removal.at or 0.0) for removal in removals}
        neighbours = Neighbours(story, scope, expected)
        said = Collector(self)
        said.take(
            *removals,
            *_released(story, expected, {disk for disk, _ in gone}),
            *neighbours.removed(),
            *_errors(list(unexplained(story, expected, scope)), asked, gone, neighbours),
            *neighbours.in_error(),
            *changes(story, expected, scope),
            *_loads(story, expected, asked),
            *_resets(story, expected),
        )
        said.sort()
        said.doubt(
            *step_doubts(story),
            miswired(story),
            *strangers(story),
            *untimed(story),
            *_changed(story),
        )
        return said.judgement("nobody else disturbed" if said.clean else "")

    def claims(self, story: Story) -> Iterable[Claim]:
        begin, end = judged_span(story)
        what = "anybody else was disturbed"
        yield Claim(what=what, evidence=(Evidence.LOG, Evidence.UEVENTS), begin=begin, end=end)


@overload
def undisturbed() -> Undisturbed: ...


@overload
def undisturbed(survivors: Disks) -> tuple[Check, ...]: ...


def undisturbed(survivors: Disks | None = None) -> Undisturbed | tuple[Check, ...]:
    """Nobody but the victims of cuts may be removed, reset or in error. It is judged for every scenario.

    With ``survivors``, the disks under load outside the blast radius: the checks that nearly every scenario repeats.
    They kept their pace and had no errors (``kept_pace``, ``no_errors``), the kernel is well and nothing is left over
    or stuck (``kernel_clean``, ``nothing_left``, ``nothing_stuck``). Unpack them: ``rig.judge(removed(victim),
    *undisturbed(survivors))``.
    """
    if survivors is None:
        return Undisturbed()
    return kept_pace(survivors), no_errors(survivors), kernel_clean(), nothing_left(), nothing_stuck()


def before_teardown(story: Story) -> Story:
    """The story up to the shutdown of the bench, which begins when the state of the kernel at the end was recorded. In
    older records it is after the last judgement, or when power is restored."""
    last = max((index for index, _ in story.numbered(Judged)), default=0)
    looks = [
        index for index, event in story.numbered(DutState) if isinstance(event, DutState) and event.moment == "end"
    ]
    ends = (
        index
        for index, event in story.numbered(Healed, Phase)
        if index >= last and (isinstance(event, Healed) or (isinstance(event, Phase) and event.name == "heal"))
    )
    end = max(looks, default=None) if looks else next(ends, None)
    return story if end is None else replace(story, events=until(story.events, end))


def _checks(story: Story, name: str) -> Iterator[dict[str, list[str]]]:
    for judged in story.of(Judged):
        yield from (data for data in judged.checks if data.get("check") == name)


# --- removals ------------------------------------------------------------------------------------------------------


def _removals(story: Story, expected: Expected) -> Iterator[Accusation]:
    """One accusation for each disk that left although it was not cut, with all times."""
    left: dict[str, list[float]] = {}
    for event in story.among(DiskDetached, Uevent):
        if event.at is None:
            continue
        if isinstance(event, DiskDetached) and event.disk:
            there = still_there(story, event.kname, event.diskseq, event.at)
            disks: tuple[str, ...] = () if there else (event.disk,)
        elif isinstance(event, Uevent) and event.action == "remove" and (event.subsystem, event.devtype) in _PARTS:
            disks = event.disks
        else:
            continue
        for disk in disks:
            if not expected.of_disk(disk, event.at):
                left.setdefault(disk, []).append(event.at)
    for disk, times in left.items():
        yield _removal(story, disk, _apart(times))


def _released(story: Story, expected: Expected, gone: set[str]) -> Iterator[Accusation]:
    """Disks that were not cut and did not leave, but whose driver released a part of them."""
    asked = [((event.at or 0.0) - 1.0, event.until + 1.0) for event in story.of(DiskRecovered)]
    seen: set[str] = set()
    for event in story.of(Uevent):
        at = event.at
        if at is None or event.action not in LETTING_GO or (event.subsystem, event.devtype) not in _DRIVEN:
            continue
        if expected.slept(at) or any(begin <= at <= end for begin, end in asked):
            continue
        for disk in event.disks:
            if disk not in gone and disk not in seen and not expected.of_disk(disk, at):
                seen.add(disk)
                what = f"the kernel took the driver off {disk} at {at:.2f} s though it was not cut"
                line = f"uevent: {event.action} {event.devpath} ({event.subsystem} {event.devtype})"
                yield Accusation(subject=disk, summary=what, at=at, evidence=(line,))


def _resets(story: Story, expected: Expected) -> Iterator[Accusation | str]:
    """Disks that were there and that the kernel could not reset when it was asked to. An emulated disk lets itself be
    reset unless its host stood still for so long that the kernel gave up; on real benches the disk may be the one that
    refused."""
    for event in story.of(DiskRecovered):
        cut = any(
            window.disk == event.disk and window.begin <= event.until and (event.at or 0.0) <= window.end
            for window in expected.windows
        )
        if not event.failed or cut:
            continue
        said = f"{event.failed} resets of {event.disk} failed: {event.detail or '?'}"
        if bench_kind(story) != "virtual":
            yield said
        elif _held_up(story, event.at or 0.0, event.until):
            yield f"{said}, but the DUT was starved meanwhile"
        else:
            yield Accusation(subject=event.disk, summary=said, at=event.at)


def _held_up(story: Story, begin: float, end: float) -> bool:
    """Whether the host kept the DUT from running in [begin, end] for so long that a command may have timed out."""
    return starved_within(story, begin, end) >= HELD_UP or granted(story, begin, end) < LEAST_GRANTED


def _changed(story: Story) -> Iterator[str]:
    """Disks that may be written, and whose medium the bench found otherwise than it was to be."""
    others = set(bystanders_of(story))
    for view in story.of(SeenFromOutside):
        if not view.ok and view.disk not in others:
            yield f"the bench found the medium of {view.disk} changed: {view.detail or view.method}"


def _apart(times: list[float]) -> list[float]:
    """The times of separate removals. The parts of a disk leave one after the other, which is one removal."""
    kept: list[float] = []
    for at in sorted(times):
        if not kept or at - kept[-1] > AS_ONE:
            kept.append(at)
    return kept


def _removal(story: Story, disk: str, times: list[float]) -> Accusation:
    more = f" (and {len(times) - 1} more times)" if len(times) > 1 else ""
    what = f"{disk} left at {times[0]:.2f} s though it was not cut{_after(story, times[0])}{more}"
    evidence = tuple(f"{disk} left at {at:.2f} s{_after(story, at)}" for at in times[:SHOWN])
    return Accusation(subject=disk, summary=what, at=times[0], evidence=evidence)


def _after(story: Story, at: float) -> str:
    """A clause about the last cut before ``at``, if any."""
    cuts = [(cut.off.commanded_at, cut) for cut in story.cut_records if cut.off.commanded_at is not None]
    before = [(begin, cut) for begin, cut in cuts if begin <= at]
    if not before:
        return ""
    begin, cut = max(before, key=_begin)
    return f", {at - begin:.2f} s after {cut.armed.point} was"


def _begin(pair: tuple[float, Cut]) -> float:
    return pair[0]


# --- errors --------------------------------------------------------------------------------------------------------


def _errors(
    complaints: list[Complaint], asked: set[str], gone: set[tuple[str, float]], neighbours: Neighbours
) -> Iterator[Accusation | str]:
    """Accusations and doubts from kernel messages, per disk. Those about a hub or a controller count once for all
    disks behind."""
    by_subject: dict[str, list[Complaint]] = {}
    for complaint in complaints:
        at = complaint.message.at
        if never(complaint.kind, complaint.message.body) or set(complaint.about.disks) <= asked:
            continue
        if complaint.about.level in (Level.HUB, Level.CONTROLLER):
            subjects: tuple[str, ...] = (neighbours.name_of(complaint.about),)
        else:
            subjects = tuple(disk for disk in complaint.about.disks if disk not in asked)
        for subject in subjects:
            part = complaint.kind == "usb.disconnect" and any(
                subject == disk and abs(at - left) <= AS_ONE for disk, left in gone
            )
            if not part:
                by_subject.setdefault(subject, []).append(complaint)
    for subject, lines in by_subject.items():
        yield from accusations_of(subject, lines)


def _loads(story: Story, expected: Expected, asked: set[str]) -> Iterator[Accusation]:
    """Loads with an error although their disk was not cut while they ran."""
    for load in story.of(LoadBegun):
        ended = story.load_end(load)
        if load.disk in asked or ended is None or not ended.errno:
            continue
        if load.disk not in arrays_of(story) and not story.attachments(load.disk):
            continue  # an array: how it was made is not on record
        if load.disk in arrays_of(story) and (ended.at or 0.0) >= may_fail_from(story, load.disk):
            continue
        cut = any(
            window.disk == load.disk
            and window.begin <= (ended.at or 0.0)
            and window.end >= min(load.at or 0.0, ended.at or 0.0)
            for window in expected.windows
        )
        if not cut:
            yield load_error(load, ended)
