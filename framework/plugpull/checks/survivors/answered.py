"""Whether every disk that was not cut answers. A disk with requests in flight that completes none of them hangs."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Any

from plugpull.checks.base import Check, Judgement
from plugpull.checks.collector import Collector
from plugpull.checks.data.opinions import sampler_stood_still
from plugpull.checks.evidence import cuts_of, seconds
from plugpull.checks.evidence import limit as limit_words
from plugpull.checks.limits import bench_kind
from plugpull.checks.stalls import answering_since, pauses
from plugpull.checks.starved import awake, granted, starved_within
from plugpull.checks.survivors.slow_requests import slow_requests, slow_writes
from plugpull.checks.victims.short_reads import short_reads
from plugpull.history.events import LoadBegun, LoadEnded, RatesLifted, ReadBackBegun, ReadBackEnded
from plugpull.history.readings import Readings
from plugpull.history.samples import CounterStream
from plugpull.history.story import Story

VIRTUAL = 3.0
"""Seconds on an emulated bench. The longest time in 78 healthy scenarios was 0.80 s, for a flush."""
REAL = 20.0
"""Seconds on a real bench. A sleeping disk needs up to 10 s to spin up, and a command is aborted after 15 s
(``dut/agent/timers.py``)."""


LEFT_OPEN = 0.5
"""Seconds without a completion after which requests in flight in the last sample are a doubt. None of 368 healthy
scenarios ended with a request in flight: their loads had ended, and their data had been read back."""


SAID = 0.3
"""A finding mentions the time that does not count if it is longer than this, seconds."""
BEFORE = 5.0
"""Seconds before a disk stopped answering in which the pace of others is measured."""
ENOUGH = 20
"""Requests that another disk must complete for its pace to be known."""
SLOWED = 2.0
"""A disk that completes nothing for so many times the limit is a doubt, however slow the host is and whatever other
disks did: in 70 healthy scenarios on busy hosts it was 0.8 times at most."""


class Answered(Check, frozen=True, tag="answered"):
    """A disk that was not cut never completes nothing for longer than ``limit`` seconds while requests are in flight.
    At the end, every attached disk can be read, and an emulated one about as soon as at the beginning. No single
    request of a load takes longer, either.

    ``None`` is the default of the kind of bench. ``kept_pace`` judges the longest single request of a survivor."""

    limit: float | None = None

    def judge(self, story: Story) -> Judgement:
        limit = self.limit if self.limit is not None else VIRTUAL if bench_kind(story) in ("virtual", "") else REAL
        said = Collector(self)
        longest, accused = 0.0, set[str]()
        for disk, begin, end in _unanswered(story):
            since = answering_since(story, disk, begin, end)
            owed, had = _owed(story, disk, begin) + pauses(story, disk, begin, end), granted(story, begin, end)
            passed = end - since - starved_within(story, since, end) - owed
            beside = passed * _pace_beside(story, disk, since, end) if passed > limit else 0.0
            took = max(awake(story, since, end) * had - owed, beside * had)
            longest = max(longest, took)
            if took > limit and (stale := sampler_stood_still(story)):
                said.doubt(f"whether {disk} completed requests is not known: {stale[0]}")
            elif took > limit and disk not in accused:
                what = f"{disk} completed nothing for {seconds(took)} while requests were in flight"
                said.accuse(disk, f"{what} {limit_words(limit)}{_kept_from(passed, took)}", begin)
                accused.add(disk)
            elif beside > limit or passed > SLOWED * limit:
                what = f"{disk} completed nothing for {seconds(passed)} while requests were in flight"
                said.doubt(f"{what} {limit_words(limit)}, and the host gave the DUT {had:.0%} of its CPU time")
            elif took > LEFT_OPEN and _open_at_the_end(story, disk, end):
                said.doubt(f"{disk} had requests in flight when the record ended, none completed for {seconds(took)}")
        said.take(*slow_requests(story, limit), *slow_writes(story, limit), *short_reads(story))
        worst = f"requests answered (within {seconds(longest)}, limit {limit:g} s)" if longest and said.clean else ""
        return said.judgement(worst)


def _kept_from(passed: float, took: float) -> str:
    """The time that does not count, in words."""
    return f", and for {seconds(passed)} with the time that its host kept from the DUT" if passed - took > SAID else ""


def _pace_beside(story: Story, disk: str, begin: float, end: float) -> float:
    """The share of its pace before that another disk of the rig kept while this one completed nothing; 0 if none had
    enough to do. The host's slowness explains no more than it takes from both."""
    others = {(one.kname, one.diskseq) for one in story.all_attachments if one.disk not in ("", disk)}
    found = [0.0]
    for key in others & story.samples.streams.keys():
        stream = story.samples.streams[key]
        during, before = _completed(story, stream, begin, end), _completed(story, stream, begin - BEFORE, begin)
        if min(during, before) >= ENOUGH:
            found.append(min(1.0, during / (end - begin) / (before / BEFORE)))
    return max(found)


def _completed(story: Story, stream: CounterStream, begin: float, end: float) -> int:
    inside = [place for place, row in enumerate(stream.rows()) if begin <= (story.samples.time(row) or 0.0) <= end]
    return stream.completed(inside[-1]) - stream.completed(inside[0]) if inside else 0


def answered(limit: float | None = None) -> Answered:
    """A disk that was not cut must complete a request every ``limit`` seconds while some are in flight."""
    return Answered(limit)


def _unanswered(story: Story) -> Iterator[tuple[str, float, float]]:
    """(disk, begin, end) of each period in which requests were in flight and none was completed."""
    owners = {(one.kname, one.diskseq): one.disk for one in story.all_attachments if one.disk}
    found: list[tuple[int, str, float, float]] = []
    for key, stream in story.samples.streams.items():
        if key in owners:
            found += _waits(story, owners[key], stream)
    for _, disk, begin, end in sorted(found, key=lambda one: one[0]):
        yield disk, begin, end


def _waits(story: Story, disk: str, stream: CounterStream) -> Iterator[tuple[int, str, float, float]]:
    """The periods of one attachment, each after the row that ended it. What ended with a cut is left out."""
    count = len(stream)

    def at(index: int) -> float:
        return story.samples.time(stream.row(index)) or 0.0

    first = last = -1
    for index in (*_waiting(stream), count) if _has_waited(stream) else ():
        held = index < count and not _cut(story, disk, at(index)) and not _cut(story, disk, at(index - 1))
        if first >= 0 and not (held and index == last + 1):
            over = last + 1 < count
            if at(last) > at(first) and not (over and _cut(story, disk, at(last + 1))):
                yield stream.row(last + 1) if over else len(story.samples), disk, at(first), at(last)
            first = -1
        if held:
            first, last = index - 1 if first < 0 else first, index


def _has_waited(stream: CounterStream) -> bool:
    """Whether a request was ever in flight."""
    return any(not column.constant or column.numbers[0] for column in stream.columns[4:6])


def _waiting(stream: CounterStream) -> Iterator[int]:
    """The readings with requests in flight, and with nothing completed since the one before. Bytes show that a disk
    answers as well as requests do."""
    reading, writing = (column.numbers for column in stream.columns[4:6])
    for index in stream.quiet:
        if reading[index] + writing[index] > 0 and stream.moved(index) == stream.moved(index - 1):
            yield index


def _owed(story: Story, disk: str, at: float) -> float:
    """Seconds that an emulated disk still needs at ``at`` for earlier work. It completes a large request at once, and
    the next one only after the time that the first one takes at its rate. mkfs zeroes 4 MiB with one request, for which
    a disk of 1 MiB/s needs 4 s."""
    return story.once(_Debts).at(disk, at)


class _Debts:
    """What each emulated disk owes after each of its readings, seconds."""

    def __init__(self, story: Story) -> None:
        self._story = story
        self._known: dict[str, array[float]] = {}
        self._lifts = sorted((one.at or 0.0, float(one.to or 0)) for one in story.of(RatesLifted))

    def at(self, disk: str, at: float) -> float:
        table: dict[str, Any] = next((one for one in self._story.rig.get("disk", ()) if one.get("name") == disk), {})
        rate = float(table.get("rate") or 0.0)
        if bench_kind(self._story) != "virtual" or not rate:
            return 0.0
        readings = self._story.readings(disk)
        if disk not in self._known:
            self._known[disk] = array("d", _debts(readings, rate, self._lifts))
        place = bisect_right(readings.at, at) - 1
        return self._known[disk][place] if place >= 0 else 0.0


def _debts(readings: Readings, rate: float, lifts: Sequence[tuple[float, float]]) -> Iterator[float]:
    """The seconds owed after each reading. ``lifts`` are (DUT seconds, bytes per second): a slower disk may move so
    much from then on, and what it owed is forgotten."""
    owed, moved, last, key = 0.0, 0, 0.0, ("", 0)
    lifted, least = 0, rate
    for part in readings.parts:
        for place, at in enumerate(part.at):
            more = part.moved(place) - moved
            owed = max(0.0, owed + max(0, more) / least - (at - last)) if part.stream.key == key else 0.0
            while lifted < len(lifts) and lifts[lifted][0] <= at:
                owed, least, lifted = 0.0, max(rate, lifts[lifted][1]), lifted + 1
            yield owed
            moved, last, key = moved + more, at, part.stream.key


def _open_at_the_end(story: Story, disk: str, at: float) -> bool:
    """Whether ``at`` is the time of the last sample, and plugpull's own work on the disk was over. Others may
    use disks that are not scratch."""
    if at < max(story.samples.span()) or disk in _not_scratch(story):
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
        times = cut.times(disk)
        back = None if times.returned_at is None else max(times.returned_at, times.removed_at or 0.0)
        if begin is not None and begin - cut.error <= at and (back is None or at <= back):
            return True
    return False
