"""One scenario's history on one time axis: the rate, presence and role of each disk, the cuts and the kernel's lines.

Rates come from the independent samples of ``/sys/block/*/stat``, never from fio. Times are DUT CLOCK_MONOTONIC seconds.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain

from plugpull.history.events import (
    CutArmed,
    DiskAttached,
    DiskDetached,
    DutReady,
    Event,
    FaultInjected,
    KernelMessage,
    LoadBegun,
    Phase,
    ScenarioBegun,
)
from plugpull.history.tape import tape_of
from plugpull.judging.results import CutResult, ScenarioResult
from plugpull.report.fault_text import fault_text, is_shown
from plugpull.report.sampling import Column, Sampling
from plugpull.report.text import natural, one_line


@dataclass(frozen=True, kw_only=True)
class DiskTimeline:
    """One disk over time. ``role`` is ``victim``, ``survivor`` or ``bystander``. ``absent`` holds the intervals during
    which the kernel did not list it, ``first_io`` the times at which the first byte moved after a return."""

    name: str
    role: str
    read: Column
    write: Column
    absent: tuple[tuple[float, float], ...] = ()
    first_io: tuple[float, ...] = ()

    @cached_property
    def peak(self) -> float:
        return max(filter(None, chain(self.read, self.write)), default=0.0)


@dataclass(frozen=True, kw_only=True)
class CutInterval:
    """A cut as an interval, from commanded off to restored on (or to the end of the axis: ``open_ended``)."""

    number: int
    point: str
    mechanism: str
    begin: float
    end: float
    open_ended: bool
    saw: float | None = None


@dataclass(frozen=True, kw_only=True)
class FaultMark:
    """The moment at which a fault that is not a plain cut begins. The cuts that it is made of are ``CutInterval``s."""

    number: int
    at: float
    text: str


@dataclass(frozen=True, kw_only=True)
class Timeline:
    """Everything drawn for one scenario. ``grid`` are the sampling times that the disks' columns belong to."""

    start: float
    end: float
    grid: list[float]
    disks: tuple[DiskTimeline, ...]
    cuts: tuple[CutInterval, ...]
    kernel: tuple[KernelMessage, ...]
    phases: tuple[tuple[float, str], ...]
    faults: tuple[FaultMark, ...] = ()
    long: bool = False
    """Whether ``grid`` is thinner than the samples, apart from the time around the cuts."""

    @property
    def empty(self) -> bool:
        return not self.grid and not self.cuts and not self.faults


def timeline_of(events: Sequence[Event], result: ScenarioResult) -> Timeline:
    """The timeline of one scenario. Any of its events may be missing.

    ``events`` may begin with earlier ones that still hold (disks attached before the scenario). When the DUT
    boots again in the middle, its clock starts at zero again, and later events are not drawn.
    """
    tape = tape_of(events)
    earlier, own = split(tape.others)
    first, last = _one_clock(own)
    drawn = own[first:last]
    samples = Sampling(tape.table, tape.between(len(earlier) + first, len(earlier) + last))
    begin = _start(drawn, samples)
    cuts = _cut_intervals(result.cuts, begin)
    end = _end(drawn, samples, cuts, begin)
    samples = samples.thinned([(cut.begin, begin if cut.open_ended else cut.end) for cut in cuts])
    messages = sorted((e.at, i, e) for i, e in enumerate(drawn) if isinstance(e, KernelMessage) and e.at is not None)
    return Timeline(
        start=begin,
        end=end,
        grid=samples.grid,
        disks=_disks([*earlier, *drawn], result, samples, begin, end),
        cuts=tuple(replace(cut, end=end) if cut.open_ended else cut for cut in cuts),
        kernel=tuple(message for at, _, message in messages if begin <= at <= end),
        phases=tuple((e.at, e.name) for e in drawn if isinstance(e, Phase) and e.at is not None and e.at >= begin),
        faults=_faults(drawn, begin),
        long=samples.long,
    )


def split(events: Sequence[Event]) -> tuple[Sequence[Event], Sequence[Event]]:
    """What held before the scenario began, and the scenario's own events, of ``events`` that are not samples."""
    begun = next((index for index, event in enumerate(events) if isinstance(event, ScenarioBegun)), 0)
    return events[:begun], events[begun:]


def _one_clock(events: Sequence[Event]) -> tuple[int, int]:
    """Which events are from the DUT's first start in this scenario to its second; all, if it was running already."""
    starts = [i for i, e in enumerate(events) if isinstance(e, DutReady) and e.how in {"restored", "booted"}]
    return starts[0] if starts else 0, starts[1] if len(starts) > 1 else len(events)


def _start(events: Sequence[Event], samples: Sampling) -> float:
    """The scenario's begin on the DUT's clock; before a clock mapping exists, the first thing known to be the DUT's."""
    first_sample = samples.times[0] if len(samples.times) else None
    for event in events:
        opening = isinstance(event, ScenarioBegun | DutReady | Phase)
        if opening and event.at is not None and (first_sample is None or event.at <= first_sample):
            return event.at
    if first_sample is not None:
        return first_sample
    return min((event.at for event in events if event.at is not None), default=0.0)


def _end(events: Sequence[Event], samples: Sampling, cuts: Iterable[CutInterval], begin: float) -> float:
    last = max([*samples.span, *(event.at for event in events if event.at is not None)], default=begin)
    return max(last, begin + 1.0, *(cut.end for cut in cuts))


def _cut_intervals(cuts: Sequence[CutResult], begin: float) -> list[CutInterval]:
    drawn = []
    for number, cut in enumerate(cuts, start=1):
        if cut.commanded_at is not None:
            end = cut.restored_at
            drawn.append(
                CutInterval(
                    number=number,
                    point=cut.point,
                    mechanism=cut.mechanism,
                    begin=max(cut.commanded_at, begin),
                    end=cut.commanded_at if end is None else max(end, cut.commanded_at),
                    open_ended=end is None,
                    saw=cut.kernel_saw_at,
                )
            )
    return drawn


def _faults(events: Iterable[Event], begin: float) -> tuple[FaultMark, ...]:
    shown = (e for e in events if isinstance(e, FaultInjected) and is_shown(e))
    return tuple(
        FaultMark(number=e.number, at=e.at, text=one_line(fault_text(e.fault), 300))
        for e in shown
        if e.at is not None and e.at >= begin
    )


def _disks(
    events: Sequence[Event], result: ScenarioResult, samples: Sampling, begin: float, end: float
) -> tuple[DiskTimeline, ...]:
    comings = [event for event in events if isinstance(event, DiskAttached | DiskDetached)]
    owners = _owners(comings)
    victims = {disk for cut in result.cuts for disk in cut.victims}
    victims.update(disk for event in events if isinstance(event, CutArmed) for disk in event.victims)
    loaded = {event.disk for event in events if isinstance(event, LoadBegun)} | {s.disk for s in result.survivors}
    named = {*owners.values(), *victims, *loaded} - {""}
    disks = []
    for disk in sorted(named, key=natural):
        read, write = samples.rates([key for key, owner in owners.items() if owner == disk])
        role = "victim" if disk in victims else "survivor" if disk in loaded else "bystander"
        times = [times for cut in result.cuts for times in cut.disks if times.disk == disk]
        disks.append(
            DiskTimeline(
                name=disk,
                role=role,
                read=read,
                write=write,
                absent=_absences(comings, disk, begin, end),
                first_io=tuple(t.first_io_at for t in times if t.first_io_at is not None),
            )
        )
    return tuple(disks)


def _owners(events: Iterable[Event]) -> dict[tuple[str, int], str]:
    """Which of the rig's disks an attachment (kernel name, diskseq) was."""
    return {(e.kname, e.diskseq): e.disk for e in events if isinstance(e, DiskAttached)}


def _absences(
    events: Iterable[DiskAttached | DiskDetached], disk: str, begin: float, end: float
) -> tuple[tuple[float, float], ...]:
    gaps: list[tuple[float, float]] = []
    gone: float | None = None
    present: set[int] = set()
    for event in events:
        if event.disk != disk or event.at is None:
            continue
        if isinstance(event, DiskAttached):
            if gone is not None and not present:
                gaps.append((max(gone, begin), event.at))
            present.add(event.diskseq)
        else:
            present.discard(event.diskseq)
            gone = event.at
    if gone is not None and not present:
        gaps.append((max(gone, begin), end))
    return tuple(gaps)


def around(
    messages: Sequence[KernelMessage], begin: float, end: float, limit: int
) -> tuple[list[KernelMessage], list[KernelMessage], int]:
    """The kernel's lines between ``begin`` and ``end``: the first, the last, and how many between are left out."""
    stamps = [message.at or 0.0 for message in messages]
    lines = list(messages[bisect_left(stamps, begin) : bisect_left(stamps, end)])
    if len(lines) <= limit:
        return lines, [], 0
    head = limit * 2 // 3
    return lines[:head], lines[len(lines) - (limit - head) :], len(lines) - limit
