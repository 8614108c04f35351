"""A long write: whether the rate keeps up, dips for a while, or collapses."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import fsum
from statistics import median

from plugpull.checks.base import Check, Disks, Judgement, disk_names
from plugpull.checks.claims import Claim
from plugpull.checks.collector import Collector
from plugpull.checks.starved import awake
from plugpull.history.events import Measured
from plugpull.history.readings import Reading
from plugpull.history.story import Story
from plugpull.judging.results import Conclusion, Measurement
from plugpull.measure.dips import DEEP, USUAL, Dip, Dips, dips, usual_rate
from plugpull.studies.agreement import disagreements
from plugpull.studies.figures import rate
from plugpull.studies.measured import claims_of, missing_of, series_of

WINDOWS = 60
"""Windows of a long write. Each has the same number of bytes."""
REGULAR = 3
"""Distances between dips that have to be equal, within a window each, for them to be a disk's own."""
APART = 2.5
"""Usual windows between the beginnings of dips that several disks have at once, at most."""
REQUESTS = 4
"""Requests of a window at least: the counters count whole ones."""


@dataclass(frozen=True)
class Windows:
    """The rates of consecutive windows of ``size`` bytes, and the DUT times between them. ``begins`` are the bytes that
    were written when something slowed the disk down in each window, or else at its beginning. ``written`` are those of
    all windows together: the last one may not be full."""

    size: int
    written: int
    rates: tuple[float, ...]
    times: tuple[float, ...]
    begins: tuple[float, ...]


class Sustained(Check, frozen=True, tag="sustained"):
    """How the write rate of each of ``disks`` changes during a long write is known."""

    disks: tuple[str, ...]

    def judge(self, story: Story) -> Judgement:
        said = Collector(self, self.disks)
        said.doubt(missing_of(story), *disagreements(story))
        for series in series_of(story):
            for reading in series.readings:
                said.doubt(reading.spoilt)
                if not reading.spoilt:
                    self._long(story, reading.event, said)
        found = "; ".join(f"{one.kind} on {one.subject}" for one in said.conclusions)
        return said.judgement(found or ("no dips in a long write" if said.measurements else ""))

    def claims(self, story: Story) -> Iterable[Claim]:
        return claims_of(story)

    def _long(self, story: Story, event: Measured, said: Collector) -> None:
        found = {}
        for disk in event.disks:
            windows = windows_of(story, event, disk)
            if windows is None:
                said.doubt(f"{disk} wrote too little in {(event.at or 0.0) - event.begin:.1f} s to see dips")
                continue
            found[disk] = (windows, dips(windows.rates))
            said.measure(_measurement(event, disk, windows))
        common = _at_once(found)
        if common:
            disk, (first, *_) = next(iter(common.items()))
            when = f"{found[disk][0].times[first.first] - event.begin:.1f} s after the beginning"
            said.doubt(f"all disks slowed down at once, {when}: it was the bench, or what they share")
        for disk, (windows, seen) in found.items():
            own = tuple(dip for dip in seen.dips if dip not in common.get(disk, ()))
            if seen.collapse is not None and seen.collapse in own:
                said.conclude(_collapse(disk, windows, seen.collapse))
            others = tuple(dip for dip in own if dip is not seen.collapse)
            if others:
                said.conclude(_dips(disk, windows, others, periodic=own == seen.dips))


def sustained(disks: Disks) -> Sustained:
    """How a long write goes on must be known: ``rig.measure(all_for_long(disks), repeats=1)`` measures it."""
    return Sustained(disk_names(disks))


def windows_of(story: Story, event: Measured, disk: str) -> Windows | None:
    """The windows of a long write of ``disk``; ``None`` if it wrote too little. Time in which the host starved the DUT
    does not count."""
    end = event.at or event.begin
    inside = story.readings(disk).between(event.begin, end)
    total = inside[-1].written - inside[0].written if inside else 0
    size = max(REQUESTS * event.block, total // WINDOWS)
    if not inside or total // size < USUAL:
        return None
    edges = [inside[0].written + number * size for number in range(total // size + 1)]
    times = [_time_of(inside, edge) for edge in edges]
    spans = [max(awake(story, one, two), 1e-3) for one, two in pairwise(times)]
    written, last = edges[-1] - edges[0], awake(story, times[-1], inside[-1].at)
    if last > median(spans) / DEEP:  # the window that was not filled has at most this rate
        written = total
        times.append(inside[-1].at)
        spans.append(last)
    rates = tuple(size / span for span in spans)
    usual = usual_rate(rates)
    begins = tuple(_slows_at(inside, one, two, usual, event.block) - inside[0].written for one, two in pairwise(times))
    return Windows(size, written, rates, tuple(times), begins)


def _slows_at(readings: Sequence[Reading], begin: float, end: float, usual: float, block: int) -> float:
    """The bytes that were written when the disk began to fall behind its usual rate in [begin, end]: at the last sample
    that is farthest ahead of it, give or take the request that is not counted yet."""
    first = max(0, bisect_left(readings, begin, key=lambda one: one.at) - 1)
    last = max(first + 1, bisect_left(readings, end, key=lambda one: one.at))
    ahead = [(one.written - usual * one.at, one.written) for one in readings[first:last]]
    most, _ = max(ahead)
    return next(written for lead, written in reversed(ahead) if lead >= most - block)


def _time_of(readings: Sequence[Reading], written: int) -> float:
    """When this many bytes were written, between two samples."""
    later = bisect_left(readings, written, key=lambda one: one.written)
    if later == 0:
        return readings[0].at
    one, two = readings[later - 1], readings[later]
    return one.at + (two.at - one.at) * (written - one.written) / (two.written - one.written)


def _at_once(found: dict[str, tuple[Windows, Dips]]) -> dict[str, tuple[Dip, ...]]:
    """By disk, its dips that began when all others began to be in one as well, and which may therefore not be its own.

    Empty for a single disk, and if the dips of all, but of one at most, are regular: these happen anyway, and the dips
    of the last one are not those of the bench.
    """
    if len(found) < 2 or sum(not _regular(windows, seen) for windows, seen in found.values()) < 2:
        return {}
    starts = {disk: [windows.times[dip.first] for dip in seen.dips] for disk, (windows, seen) in found.items()}
    near = APART * max(windows.size / usual_rate(windows.rates) for windows, _ in found.values())
    common: dict[str, tuple[Dip, ...]] = {}
    for disk, (_, seen) in found.items():
        others = [each for other, each in starts.items() if other != disk]
        for dip, begin in zip(seen.dips, starts[disk], strict=True):
            if all(any(abs(one - begin) <= near for one in each) for each in others):
                common[disk] = (*common.get(disk, ()), dip)
    return common


def _regular(windows: Windows, seen: Dips) -> bool:
    """Whether the dips come after every so many bytes, as those of a disk do: equal disks may dip at the same time."""
    begins = [windows.begins[dip.first] for dip in seen.dips]
    distances = [two - one for one, two in pairwise(begins)]
    return len(distances) >= REGULAR and max(distances) - min(distances) <= 2 * windows.size


def _measurement(event: Measured, disk: str, windows: Windows) -> Measurement:
    return Measurement(
        name="write sustained",
        subject=disk,
        value=round(windows.written / fsum(windows.size / one for one in windows.rates), 3),
        unit="B/s",
        n=len(windows.rates),
        samples=tuple(round(one, 1) for one in windows.rates),
        better="up",
        parameters={"window": windows.size, "block": event.block, "depth": event.depth, "disks": len(event.disks)},
    )


def _dips(disk: str, windows: Windows, found: tuple[Dip, ...], *, periodic: bool) -> Conclusion:
    worst = min(found, key=lambda dip: dip.worst)
    size = windows.size / (1 << 20)
    count = "1 dip" if len(found) == 1 else f"{len(found)} dips"
    begins = [windows.begins[dip.first] / (1 << 20) for dip in found]
    distances = [two - one for one, two in pairwise(begins)]
    period = f" They begin every {median(distances):.3g} MiB." if periodic and len(distances) > 1 else ""
    return Conclusion(
        kind="dip",
        subject=disk,
        text=f"{disk} has {count} in {len(windows.rates) * size:.3g} MiB written: down to {rate(worst.worst)} in the "
        f"worst window, {worst.depth:.0%} below the usual {rate(worst.usual)}.{period}",
        value=round(worst.depth, 4),
        unit="of the usual rate",
        evidence=tuple(
            f"from {begin:.3g} MiB on, for {dip.length * size:.3g} MiB: down to {rate(dip.worst)}, "
            + (
                "not over at the end"
                if dip.recovery is None
                else f"back at 90% after {dip.recovery * size:.3g} MiB more"
            )
            for begin, dip in zip(begins, found, strict=True)
        ),
    )


def _collapse(disk: str, windows: Windows, found: Dip) -> Conclusion:
    size = windows.size / (1 << 20)
    slows = windows.begins[found.first]
    begin = slows / (1 << 20)
    seconds = windows.times[-1] - windows.times[found.first]
    left = (windows.written - slows) / seconds
    return Conclusion(
        kind="collapse",
        subject=disk,
        text=f"The write rate of {disk} collapses after {begin:.3g} MiB, from {rate(found.usual)} to "
        f"{rate(left)}, and has not come back {seconds:.3g} s later, at the end.",
        value=round(left / found.usual - 1, 4),
        unit="of the usual rate",
        evidence=(f"{len(windows.rates)} windows of {size:.3g} MiB",),
    )
