"""The processor time that a load costs: of the whole DUT beyond idle, and of fio itself."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from statistics import fmean

from plugpull.history.events import LoadBegun, LoadEnded
from plugpull.history.story import Story
from plugpull.judging.results import Measurement
from plugpull.studies.figures import figure
from plugpull.studies.measured import MeasuredRates

LEAST = 1.0
"""Seconds between the two counts of processor time, at least: they are taken once per second."""
MEGABYTE = 1e6


def processor_figures(
    story: Story, mode: str, subject: str, readings: Sequence[MeasuredRates]
) -> Iterator[Measurement]:
    """What these measurements cost, as CPUs (1 is one processor, fully used) and as CPUs per MB/s.

    ``system`` is the whole DUT beyond what it uses while no load runs, kernel threads and interrupts included.
    ``process`` is fio alone, as it reports it itself.
    """
    idle = _idle(story)
    busy = [used for one in readings if (used := _busy(story, one.event.begin, one.event.at or 0.0)) is not None]
    if busy and idle is not None and len(busy) == len(readings):
        net = [max(0.0, used - idle) for used in busy]
        yield figure(f"{mode} cpu system", subject, net, {"idle": round(idle, 4)}, "CPUs")
        rates = [one.total / MEGABYTE for one in readings]
        if min(rates) > 0:
            yield figure(
                f"{mode} cpu per rate",
                subject,
                [used / rate for used, rate in zip(net, rates, strict=True)],
                {"idle": round(idle, 4)},
                "CPUs per MB/s",
            )
    process = [used for one in readings if (used := _process(story, one)) is not None]
    if process:
        yield figure(f"{mode} cpu process", subject, process, {}, "CPUs")


def busy_share(story: Story, readings: Sequence[MeasuredRates]) -> float:
    """The share of the DUT's processors that was in use during these measurements, on average; 0 if not counted."""
    used = (_busy(story, one.event.begin, one.event.at or 0.0) for one in readings)
    known = [each for each in used if each is not None]
    return fmean(known) / _cpus(story) if known else 0.0


def _busy(story: Story, begin: float, end: float) -> float | None:
    """The number of CPUs in use around [begin, end]; ``None`` if it was not counted."""
    times, cpus = story.cpu_times, _cpus(story)
    if len(times) < 2 or not cpus or end <= begin:
        return None
    first = max(0, bisect_right(times, (begin, float("inf"), 0)) - 1)
    last = min(len(times) - 1, bisect_left(times, (end,)))
    (at1, busy1, total1), (at2, busy2, total2) = times[first], times[last]
    if at2 - at1 < LEAST or total2 <= total1:
        return None
    # The share of the counted ticks: an emulated DUT loses ticks while its host does not run it.
    return cpus * (busy2 - busy1) / (total2 - total1)


def _idle(story: Story) -> float | None:
    """The number of CPUs in use from when all disks were attached until the first load was started."""
    begun = min((event.at for event in story.of(LoadBegun) if event.at is not None), default=None)
    attached = max((event.at for event in story.all_attachments if event.at is not None), default=None)
    if begun is None or attached is None:
        return None
    counts = [one for one in story.cpu_times if attached <= one[0] <= begun]
    if len(counts) < 2 or counts[-1][2] <= counts[0][2]:
        return None
    return _cpus(story) * (counts[-1][1] - counts[0][1]) / (counts[-1][2] - counts[0][2])


def _process(story: Story, reading: MeasuredRates) -> float | None:
    """The CPUs that the measured fio processes used, in sum. A disk has one at a time."""
    end = reading.event.at or reading.event.begin
    used: dict[str, float] = {}
    for ended in story.of(LoadEnded):
        if ended.disk in reading.event.disks and ended.at is not None and ended.at >= end:
            used.setdefault(ended.disk, (ended.usr_cpu + ended.sys_cpu) / 100)
    return sum(used.values()) if len(used) == len(reading.event.disks) else None


def _cpus(story: Story) -> int:
    readies = story.readies
    return readies[-1].cpus if readies else 0
