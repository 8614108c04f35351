"""Whether every disk that was not cut answers. A disk with requests in flight that completes none of them hangs."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from plugpull.checks.base import Check, Judgement
from plugpull.checks.collector import Collector
from plugpull.checks.evidence import cuts_of, seconds
from plugpull.checks.evidence import limit as limit_words
from plugpull.checks.limits import bench_kind
from plugpull.checks.starved import awake, granted
from plugpull.history.events import LoadBegun, LoadEnded, ReadBackBegun, ReadBackEnded, Sampled
from plugpull.history.story import Story

VIRTUAL = 3.0
"""Seconds on an emulated bench. The longest time in 78 healthy scenarios was 0.80 s, for a flush."""
REAL = 20.0
"""Seconds on a real bench. A sleeping disk needs up to 10 s to spin up, and a command is aborted after 15 s
(``dut/agent/timers.py``)."""


LEFT_OPEN = 0.5
"""Seconds without a completion after which requests in flight in the last sample are a doubt. None of 368 healthy
scenarios ended with a request in flight: their loads had ended, and their data had been read back."""


class Answered(Check, frozen=True, tag="answered"):
    """A disk that was not cut never completes nothing for longer than ``limit`` seconds while requests are in flight.

    ``None`` is the default of the kind of bench. ``kept_pace`` judges the longest single request of a survivor."""

    limit: float | None = None

    def judge(self, story: Story) -> Judgement:
        limit = self.limit if self.limit is not None else VIRTUAL if bench_kind(story) in ("virtual", "") else REAL
        said = Collector(self)
        longest, accused = 0.0, set[str]()
        for disk, begin, end in _unanswered(story):
            took = awake(story, begin, end) * granted(story, begin, end) - _owed(story, disk, begin)
            longest = max(longest, took)
            if took > limit and disk not in accused:
                what = (
                    f"{disk} completed nothing for {seconds(took)} while requests were in flight {limit_words(limit)}"
                )
                said.accuse(disk, what, begin)
                accused.add(disk)
            elif took > LEFT_OPEN and _open_at_the_end(story, disk, end):
                said.doubt(f"{disk} had requests in flight when the record ended, none completed for {seconds(took)}")
        worst = f"requests answered (within {seconds(longest)}, limit {limit:g} s)" if longest and said.clean else ""
        return said.judgement(worst)


def answered(limit: float | None = None) -> Answered:
    """A disk that was not cut must complete a request every ``limit`` seconds while some are in flight."""
    return Answered(limit)


def _unanswered(story: Story) -> Iterator[tuple[str, float, float]]:
    """(disk, begin, end) of each period in which requests were in flight and none was completed."""
    owners = {(one.kname, one.diskseq): one.disk for one in story.all_attachments if one.disk}
    waiting: dict[tuple[str, int], tuple[float, float, tuple[int, int, int]]] = {}
    for sample in story.of(Sampled):
        at = sample.at or 0.0
        for kname, counters in sample.disks.items():
            key = (kname, counters.diskseq)
            if key not in owners or _cut(story, owners[key], at):
                waiting.pop(key, None)
                continue
            begin, last, done = waiting.get(key, (at, at, (-1, -1, -1)))
            now = (counters.reads, counters.writes, counters.moved)  # bytes show that it answers as well as requests do
            if done == now and counters.in_flight > 0:
                waiting[key] = (begin, at, done)
                continue
            if last > begin:
                yield owners[key], begin, last
            waiting[key] = (at, at, now)
    for key, (begin, last, _) in waiting.items():
        if last > begin:
            yield owners[key], begin, last


def _owed(story: Story, disk: str, at: float) -> float:
    """Seconds that an emulated disk still needs at ``at`` for earlier work. It completes a large request at once, and
    the next one only after the time that the first one takes at its rate. mkfs zeroes 4 MiB with one request, for which
    a disk of 1 MiB/s needs 4 s."""
    table: dict[str, Any] = next((one for one in story.rig.get("disk", ()) if one.get("name") == disk), {})
    rate = float(table.get("rate") or 0.0)
    if bench_kind(story) != "virtual" or not rate:
        return 0.0
    owed = 0.0
    for one, two in pairwise(reading for reading in story.readings(disk) if reading.at <= at):
        if (one.kname, one.diskseq) == (two.kname, two.diskseq):
            owed = max(0.0, owed + max(0, two.moved - one.moved) / rate - (two.at - one.at))
        else:
            owed = 0.0
    return owed


def _open_at_the_end(story: Story, disk: str, at: float) -> bool:
    """Whether ``at`` is the time of the last sample, and plugpull's own work on the disk was over. Others may
    use disks that are not scratch."""
    if at < max(story.sample_times) or disk in _not_scratch(story):
        return False
    begun = {load.job for load in story.of(LoadBegun) if load.disk == disk}
    begun |= {read.job for read in story.of(ReadBackBegun) if read.disk == disk and not read.error}
    ended = {load.job for load in story.of(LoadEnded) if load.disk == disk}
    ended |= {read.job for read in story.of(ReadBackEnded) if read.disk == disk}
    return begun <= ended


def _not_scratch(story: Story) -> set[str]:
    return {str(disk.get("name")) for disk in story.rig.get("disk", ()) if disk.get("scratch") is not True}


def _cut(story: Story, disk: str, at: float) -> bool:
    """Whether the disk is cut at this time, or not back yet."""
    for cut in cuts_of(story, disk):
        begin = cut.off.commanded_at
        back = cut.times(disk).returned_at
        if begin is not None and begin - cut.error <= at and (back is None or at <= back):
            return True
    return False
