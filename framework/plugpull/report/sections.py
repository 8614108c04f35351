"""The content of one scenario's section, computed before any template is filled."""

from __future__ import annotations

import string
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import repeat
from operator import mul, truediv
from typing import Any, cast

from plugpull.history.cut import DiskTimes
from plugpull.history.events import Event, KernelMessage, ScenarioBegun, ScenarioError
from plugpull.history.story import Story
from plugpull.history.tape import others_of, tape_of
from plugpull.judging.results import CheckResult, CutResult, ScenarioResult, Verdict
from plugpull.kernel.diagnosis.culprit import hints
from plugpull.kernel.diagnosis.error_story import story_of_history
from plugpull.kernel.diagnosis.hint import Hint
from plugpull.kernel.diagnosis.show_story import device_text
from plugpull.report.measurements import MeasurementRow, rows_of
from plugpull.report.narrate import Line, narrate
from plugpull.report.sampling import Column, thin
from plugpull.report.svg import Drawing, ceiling, draw, severity
from plugpull.report.text import executed
from plugpull.report.timeline import Timeline, around, split, timeline_of

KERNEL_LINES = 60
STEP_LINES = 120
STORY_LINES = 60
"""Of one device's error story."""
DATA_POINTS = 1200
"""Points per curve handed to the zoomable chart."""
GRAIN = 8
"""Of the rates of a long scenario, in 4095ths: half a pixel of a drawing of 250."""
DIGITS = string.digits + string.ascii_uppercase + string.ascii_lowercase + "-_"
"""Of the numbers in the page's data; ``chart.js`` has the same."""
_PAIRS = [one + two for one in DIGITS for two in DIGITS]
SEVERITY = {Verdict.FAIL: 0, Verdict.UNKNOWN: 1, Verdict.PASS: 2}
EARLIER_SHAPES = {Verdict.PASS: "▁", Verdict.FAIL: "█", Verdict.UNKNOWN: "▄"}
MOMENTS = (
    "commanded",
    "acknowledged",
    "kernel saw",
    "last byte",
    "removed",
    "restored",
    "returned",
    "first I/O",
)
OF_THE_CUT = {"commanded", "acknowledged", "kernel saw", "restored"}


@dataclass(frozen=True, kw_only=True)
class Moment:
    """One cell of the table of times. ``since`` is seconds after the command.

    ``applies`` is false in the row of a single disk for what belongs to the cut as a whole."""

    name: str
    at: float | None
    since: float | None
    applies: bool


@dataclass(frozen=True, kw_only=True)
class TimesRow:
    """One row: the cut as a whole (``disk`` empty), or one of several victims."""

    disk: str
    moments: tuple[Moment, ...]
    recovery: float | None


@dataclass(frozen=True, kw_only=True)
class KernelLine:
    at: float
    since: float | None
    level: str
    text: str


@dataclass(frozen=True, kw_only=True)
class CutPart:
    """One cut: its row of times, and the kernel's lines around it (``head``, then ``omitted`` ones, then ``tail``).

    ``mates`` are the numbers of the cuts that were made at once with it; the first of them has the lines for all."""

    number: int
    cut: CutResult
    executed: bool
    unseen: bool
    mates: tuple[int, ...]
    rows: tuple[TimesRow, ...]
    head: tuple[KernelLine, ...]
    omitted: int
    tail: tuple[KernelLine, ...]


@dataclass(frozen=True, kw_only=True)
class ErrorPart:
    """The kernel's messages about each device that had errors (title, lines), the likely culprits, and uncatalogued
    warnings."""

    devices: tuple[tuple[str, tuple[str, ...]], ...]
    hints: tuple[Hint, ...]
    unclassified: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Section:
    anchor: str
    scenario: ScenarioResult
    open: bool
    timeline: Timeline
    drawing: Drawing | None
    data: dict[str, Any] | None
    start: float
    cuts: tuple[CutPart, ...]
    steps: tuple[Line, ...]
    steps_omitted: int
    traceback: str
    kernel_lines: int
    errors: ErrorPart | None
    measurements: tuple[MeasurementRow, ...]


def section(number: int, scenario: ScenarioResult, events: Sequence[Event]) -> Section:
    """Everything about one scenario; ``events`` may be empty."""
    timeline = timeline_of(events, scenario)
    own = split(others_of(events))[1]
    steps = tuple(step for step in map(narrate, own) if step is not None)
    return Section(
        anchor=f"s{number}",
        scenario=scenario,
        open=scenario.verdict is not Verdict.PASS,
        timeline=timeline,
        drawing=None if timeline.empty else draw(timeline, {s.disk: s for s in scenario.survivors}),
        data=_chart_data(timeline) if timeline.grid else None,
        start=timeline.start,
        cuts=tuple(_cut(index, scenario.cuts, timeline) for index in range(len(scenario.cuts))),
        steps=steps[:STEP_LINES],
        steps_omitted=max(len(steps) - STEP_LINES, 0),
        traceback="\n".join(e.traceback for e in own if isinstance(e, ScenarioError) and e.traceback),
        kernel_lines=sum(isinstance(event, KernelMessage) for event in own),
        errors=_errors(events) if scenario.findings else None,
        measurements=rows_of(scenario.measurements),
    )


def _errors(events: Sequence[Event]) -> ErrorPart | None:
    tape = tape_of(events)
    before, own = split(tape.others)
    begun = next((event for event in own if isinstance(event, ScenarioBegun)), None)
    if begun is None:
        return None
    story = story_of_history(Story(begun, tape.since(len(before)), before=tuple(before)))
    devices = []
    for device in story.troubled:
        title, *lines = device_text(device)
        left = len(lines) - STORY_LINES
        more = (f"  … {left} more in kernel.log",) if left > 0 else ()
        devices.append((title, (*lines[:STORY_LINES], *more)))
    accused = hints(story)
    if not (devices or accused or story.unclassified):
        return None
    return ErrorPart(devices=tuple(devices), hints=accused, unclassified=story.unclassified[:STORY_LINES])


def worst_case(scenario: ScenarioResult) -> str:
    """The worst case to name in the table of scenarios: that of the worst check which gives one."""
    spoken = [check for check in scenario.checks if check.worst]
    return min(spoken, key=_rank).worst if spoken else ""


def _rank(check: CheckResult) -> int:
    return SEVERITY[check.verdict]


def _cut(index: int, cuts: Sequence[CutResult], timeline: Timeline) -> CutPart:
    cut = cuts[index]
    mates = tuple(n for n, other in enumerate(cuts) if n != index and cut.group and other.group == cut.group)
    later = (other.commanded_at for n, other in enumerate(cuts) if n > index and n not in mates)
    following = next((at for at in later if at is not None), None)
    own = (*(cuts[n] for n in mates), cut)
    head, tail, omitted = (
        _kernel_lines(cut, own, following, timeline) if index < min(mates, default=len(cuts)) else ((), (), 0)
    )
    return CutPart(
        number=index + 1,
        cut=cut,
        executed=executed(cut),
        unseen=executed(cut) and bool(cut.victims) and cut.kernel_saw_at is None,
        mates=tuple(n + 1 for n in mates),
        rows=_rows(cut),
        head=head,
        omitted=omitted,
        tail=tail,
    )


def _rows(cut: CutResult) -> tuple[TimesRow, ...]:
    whole = _row(
        cut,
        "",
        _last(disk.last_io_at for disk in cut.disks) if cut.last_byte_at is None else cut.last_byte_at,
        _last(disk.removed_at for disk in cut.disks),
        cut.returned_at,
        _last(disk.first_io_at for disk in cut.disks),
    )
    return (whole, *(_disk_row(cut, disk) for disk in cut.disks)) if len(cut.disks) > 1 else (whole,)


def _disk_row(cut: CutResult, disk: DiskTimes) -> TimesRow:
    return _row(cut, disk.disk, disk.last_io_at, disk.removed_at, disk.returned_at, disk.first_io_at)


def _row(
    cut: CutResult,
    disk: str,
    last_byte: float | None,
    removed: float | None,
    returned: float | None,
    first_io: float | None,
) -> TimesRow:
    shared = (None, None, None) if disk else (cut.commanded_at, cut.acknowledged_at, cut.kernel_saw_at)
    restored = None if disk else cut.restored_at
    times = (*shared, last_byte, removed, restored, returned, first_io)
    return TimesRow(
        disk=disk,
        moments=tuple(
            Moment(name=name, at=at, since=_minus(at, cut.commanded_at), applies=not disk or name not in OF_THE_CUT)
            for name, at in zip(MOMENTS, times, strict=True)
        ),
        recovery=_minus(returned, cut.restored_at),
    )


def _minus(later: float | None, earlier: float | None) -> float | None:
    return None if later is None or earlier is None else later - earlier


def _last(times: Any) -> float | None:
    return max((at for at in times if at is not None), default=None)


def _kernel_lines(
    cut: CutResult, at_once: Sequence[CutResult], following: float | None, timeline: Timeline
) -> tuple[tuple[KernelLine, ...], tuple[KernelLine, ...], int]:
    """From just before the command until just after the last known moment of the cuts made with it, or until the next
    cut."""
    if cut.commanded_at is None:
        return (), (), 0
    end = max(at for one in at_once for at in _moments(one) if at is not None) + 2.0
    if following is not None:
        end = min(end, max(following, cut.commanded_at))
    head, tail, omitted = around(timeline.kernel, cut.commanded_at - 0.5, end, KERNEL_LINES)
    return _timed(head, cut), _timed(tail, cut), omitted


def _moments(cut: CutResult) -> tuple[float | None, ...]:
    of_disks = (at for disk in cut.disks for at in (disk.removed_at, disk.returned_at, disk.first_io_at))
    of_switch = (cut.commanded_at, cut.acknowledged_at, cut.restored_at)
    return (*of_switch, cut.kernel_saw_at, cut.last_byte_at, cut.returned_at, *of_disks)


def _timed(messages: Sequence[KernelMessage], cut: CutResult) -> tuple[KernelLine, ...]:
    return tuple(
        KernelLine(at=m.at, since=_minus(m.at, cut.commanded_at), level=severity(m.level), text=m.text[:1000])
        for m in messages
        if m.at is not None
    )


def _packed(column: Column, top: float, grain: int = 1) -> str:
    """The column as two digits of base 64 per value, from 0 to 4095 at ``top``; two dots where there is no value. The
    values are multiples of ``grain``: coarse ones can be compressed."""
    pairs = [_PAIRS[min(level * grain, 4095)] for level in range(round(4095 / grain) + 1)]
    if max(filter(None, column), default=0.0) > top:
        column = [None if one is None else min(one, top) for one in column]
    if None in column:
        known = [one for one in column if one is not None]
        each = _digits(known, top, grain, pairs)
        return "".join([".." if one is None else next(each) for one in column])
    return "".join(_digits(cast("list[float]", column), top, grain, pairs))


def _digits(column: Sequence[float], top: float, grain: int, pairs: Sequence[str]) -> Iterator[str]:
    parts = map(truediv, column, repeat(top))
    levels = map(round, map(truediv, map(mul, parts, repeat(4095)), repeat(grain)))
    return map(pairs.__getitem__, levels)


def _chart_data(timeline: Timeline) -> dict[str, Any]:
    """The numbers of the zoomable chart. ``x`` are milliseconds, each since the one before. Rates are in 4095ths of the
    disk's ``top`` (MB/s): see ``_packed``."""
    columns = [column for disk in timeline.disks for column in (disk.read, disk.write)]
    grid, thinned = (timeline.grid, columns) if timeline.long else thin(timeline.grid, columns, DATA_POINTS)
    grain = GRAIN if timeline.long else 1
    stamps = [round((at - timeline.start) * 1000) for at in grid]
    disks = []
    for index, disk in enumerate(timeline.disks):
        top, curves = ceiling(disk.peak), {}
        for name, column in (("r", thinned[2 * index]), ("w", thinned[2 * index + 1])):
            if any(column):
                curves[name] = _packed(column, top, grain)
        gaps = [[round(a - timeline.start, 3), round(b - timeline.start, 3)] for a, b in disk.absent]
        disks.append({"name": disk.name, "role": disk.role, "top": top / 1e6, "absent": gaps, **curves})
    return {
        "x": [now - before for before, now in zip([0, *stamps], stamps, strict=False)],
        "end": round(timeline.end - timeline.start, 3),
        "disks": disks,
        "cuts": [
            [round(s.begin - timeline.start, 3), round(s.end - timeline.start, 3), s.number] for s in timeline.cuts
        ],
        "faults": [round(one.at - timeline.start, 3) for one in timeline.faults],
        "kernel": [
            [round((m.at or timeline.start) - timeline.start, 3), min(m.level, 7)]
            for m in timeline.kernel
            if m.level <= 4
        ][:400],
    }
