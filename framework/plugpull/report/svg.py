"""Where everything of a scenario's chart goes, in the units of its SVG. Drawn by ``templates/timeline.svg.j2``."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from plugpull.judging.results import Survivor
from plugpull.report import text
from plugpull.report.curves import curve
from plugpull.report.sampling import Column, thin
from plugpull.report.timeline import CutInterval, DiskTimeline, Timeline

WIDTH = 1000
LEFT = 150
RIGHT = 988
DISK_HEIGHT = 46
GAP = 12
ROW = 17
POINTS = 180
"""Points drawn per curve; the zoomable chart has more."""
LABEL_ROWS = 3


@dataclass(frozen=True, kw_only=True)
class AbsentSpan:
    x: float
    width: float
    label: str
    title: str


@dataclass(frozen=True, kw_only=True)
class DrawnDisk:
    name: str
    role: str
    note: str
    top: str
    y: float
    write: str
    read: str
    absent: tuple[AbsentSpan, ...]
    flags: tuple[float, ...]
    empty: bool


@dataclass(frozen=True, kw_only=True)
class DrawnCut:
    x: float
    width: float
    hatch: str
    label: str
    label_x: float
    label_y: float
    anchor: str
    title: str
    saw_x: float | None


@dataclass(frozen=True, kw_only=True)
class DrawnTick:
    x: float
    kind: str
    title: str


@dataclass(frozen=True, kw_only=True)
class DrawnFault:
    x: float
    title: str


@dataclass(frozen=True, kw_only=True)
class Drawing:
    width: int
    height: float
    left: int
    right: int
    disk_height: int
    plot_top: float
    plot_bottom: float
    sampled_until: float
    kernel_y: float
    disks: tuple[DrawnDisk, ...]
    cuts: tuple[DrawnCut, ...]
    faults: tuple[DrawnFault, ...]
    ticks: tuple[DrawnTick, ...]
    kernel_count: int
    phases: tuple[tuple[float, str], ...]
    axis: tuple[tuple[float, str], ...]


class Axis:
    """DUT seconds to x."""

    def __init__(self, start: float, end: float) -> None:
        self.start = start
        self.scale = (RIGHT - LEFT) / max(end - start, 1e-3)

    def __call__(self, at: float) -> float:
        return round(min(max(LEFT + (at - self.start) * self.scale, LEFT), RIGHT), 1)


def draw(timeline: Timeline, survivors: Mapping[str, Survivor]) -> Drawing:
    axis = Axis(timeline.start, timeline.end)
    cuts, rows = _cuts(timeline.cuts, axis, timeline.start)
    phases = _phases(timeline, axis)
    plot_top = 6 + (16 if phases else 0) + rows * ROW
    columns = [column for disk in timeline.disks for column in (disk.read, disk.write)]
    grid, thinned = thin(timeline.grid, columns, POINTS)
    disks = []
    for index, disk in enumerate(timeline.disks):
        y = plot_top + 6 + index * (DISK_HEIGHT + GAP)
        disks.append(_disk(disk, grid, thinned[2 * index], thinned[2 * index + 1], y, axis, survivors.get(disk.name)))
    kernel_y = plot_top + 6 + len(disks) * (DISK_HEIGHT + GAP)
    return Drawing(
        width=WIDTH,
        height=kernel_y + 48,
        left=LEFT,
        right=RIGHT,
        disk_height=DISK_HEIGHT,
        plot_top=plot_top,
        plot_bottom=kernel_y + 22,
        sampled_until=axis(grid[-1]) if grid else LEFT,
        kernel_y=kernel_y + 11,
        disks=tuple(disks),
        cuts=cuts,
        faults=_faults(timeline, axis),
        ticks=_ticks(timeline, axis),
        kernel_count=len(timeline.kernel),
        phases=phases,
        axis=tuple((axis(timeline.start + value), f"{value:g}") for value in _steps(timeline.end - timeline.start)),
    )


def ceiling(peak: float) -> float:
    """The round rate at the top of a disk's curve: 1, 2, 3, 5 or 8 times a power of ten, at least 100 kB/s."""
    least = max(peak, 1e5)
    power: float = 10.0 ** math.floor(math.log10(least))
    return next((step * power for step in (1, 1.5, 2, 3, 4, 5, 6, 8) if step * power >= least), 10.0 * power)


def _disk(
    disk: DiskTimeline,
    grid: Sequence[float],
    read: Column,
    write: Column,
    y: float,
    axis: Axis,
    survivor: Survivor | None,
) -> DrawnDisk:
    top = ceiling(disk.peak)
    xs = [axis(at) for at in grid]
    last = xs[-1] if xs else None
    writes, reads = any(disk.write), any(disk.read)
    return DrawnDisk(
        name=disk.name,
        role=disk.role,
        note=_note(survivor, reads, writes),
        top=text.rate(top),
        y=y,
        write=curve(xs, write, y, DISK_HEIGHT, top, area=True, last=last) if writes or not reads else "",
        read=curve(xs, read, y, DISK_HEIGHT, top, area=False) if reads else "",
        absent=tuple(_absent(begin, end, axis) for begin, end in disk.absent),
        flags=tuple(axis(at) for at in disk.first_io),
        empty=disk.read.count(None) + disk.write.count(None) == len(disk.read) + len(disk.write),
    )


def _note(survivor: Survivor | None, reads: bool, writes: bool) -> str:
    if survivor is not None and survivor.final_ratio is not None:
        return f"{text.ratio(survivor.final_ratio)} of baseline"
    return "read and write" if reads and writes else "read" if reads else "write" if writes else "idle"


def _absent(begin: float, end: float, axis: Axis) -> AbsentSpan:
    x, width = axis(begin), axis(end) - axis(begin)
    length = text.duration(end - begin)
    label = f"absent {length}" if width > 84 else "absent" if width > 44 else ""
    return AbsentSpan(x=x, width=round(width, 1), label=label, title=f"off the kernel's list for {length}")


def _cuts(cuts: Sequence[CutInterval], axis: Axis, start: float) -> tuple[tuple[DrawnCut, ...], int]:
    """The cuts with their labels, staggered so as not to run into each other, and the number of rows they take."""
    ends = [-1.0] * LABEL_ROWS
    drawn = []
    for cut in cuts:
        x, right = axis(cut.begin), axis(cut.end)
        label = f"{cut.number} {cut.point}, {cut.mechanism}{' →' if cut.open_ended else ''}"
        row = _free_row(ends, x)
        if row is None:
            label, row = str(cut.number), 0
        reach = 6.8 * len(label)
        leftwards = x + reach > RIGHT
        if not leftwards:
            ends[row] = x + reach
        drawn.append(
            DrawnCut(
                x=x,
                width=round(max(right - x, 1.5), 1),
                hatch=text.hatch_of(cut.mechanism),
                label=label,
                label_x=min(right, RIGHT) if leftwards else x,
                label_y=float(row),
                anchor="end" if leftwards else "start",
                title=f"cut {cut.number}: {cut.point}, {cut.mechanism}, commanded {cut.begin - start:.3f} s, "
                + ("not restored" if cut.open_ended else f"restored {cut.end - start:.3f} s"),
                saw_x=None if cut.saw is None else axis(cut.saw),
            )
        )
    used = 1 + max((int(cut.label_y) for cut in drawn), default=-1)
    return tuple(drawn), used


def _faults(timeline: Timeline, axis: Axis) -> tuple[DrawnFault, ...]:
    return tuple(
        DrawnFault(x=axis(one.at), title=f"fault {one.number}, {one.at - timeline.start:.3f} s: {one.text}")
        for one in timeline.faults
    )


def _free_row(ends: Sequence[float], x: float) -> int | None:
    return next((row for row, end in enumerate(ends) if x > end + 8), None)


def _phases(timeline: Timeline, axis: Axis) -> tuple[tuple[float, str], ...]:
    placed: list[tuple[float, str]] = []
    for at, name in timeline.phases:
        x = axis(at)
        if not placed or x >= placed[-1][0] + 6.0 * len(placed[-1][1]) + 10:
            placed.append((x, name))
    return tuple(placed)


def _ticks(timeline: Timeline, axis: Axis) -> tuple[DrawnTick, ...]:
    """Kernel messages, gathered where they would overlap; the most severe gives the mark its shape and its words."""
    gathered: dict[int, list[int]] = {}
    for index, message in enumerate(timeline.kernel):
        gathered.setdefault(int(axis(message.at or timeline.start) // 5), []).append(index)
    ticks = []
    for indices in gathered.values():
        worst = min((timeline.kernel[i] for i in indices), key=lambda message: message.level)
        at = worst.at or timeline.start
        more = f" (and {len(indices) - 1} more)" if len(indices) > 1 else ""
        title = f"[{text.stamp(at)}] {text.one_line(worst.text, 140)}{more}"
        ticks.append(DrawnTick(x=axis(at), kind=severity(worst.level), title=title))
    return tuple(ticks)


def severity(level: int) -> str:
    """A syslog level in three words."""
    return "error" if level <= 3 else "warning" if level == 4 else "message"


def _steps(length: float) -> list[float]:
    """Round values from 0 to ``length``, six to twelve of them."""
    power = 10 ** math.floor(math.log10(max(length, 1e-3) / 8))
    step = next((s * power for s in (1, 2, 5) if length / (s * power) <= 11), 10 * power)
    return [round(index * step, 6) for index in range(int(length / step + 1e-9) + 1)]
