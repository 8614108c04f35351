"""The measurements of one scenario: when each was made, the rates of its disks, and whether it counts."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import hypot
from statistics import linear_regression

from plugpull.checks.claims import Claim, Evidence
from plugpull.checks.starved import HZ, QUIET, granted, starved_within
from plugpull.history.events import Event, LoadBegun, Measured, ScenarioBegun
from plugpull.history.story import Story
from plugpull.measure.resolution import slope_spread

STARVED = 0.1
"""A measurement does not count if the DUT was starved for a larger share of it."""
GRANTED = 0.85
"""Nor if an emulated DUT got less than this share of its processor time from its host. Of 90 measurements on hosts
with 3 to 7 runnable processes for 2 processors, 79 had more and were within 5.4 % of the declared rates; 11 had less,
and were up to 27 % off."""
HALF = 4
"""Samples of half of a measurement at least."""
READ_MODES = ("read", "randread")


@dataclass(frozen=True)
class MeasuredRates:
    """``rates`` are bytes per second by disk. ``spoilt`` says why it does not count; empty if it does. ``counting`` is
    the standard deviation that the sum of the rates has because whole requests are counted. ``halves`` are the sums of
    the rates in the first half of the time and in the second one, if known."""

    event: Measured
    rates: dict[str, float]
    spoilt: str = ""
    counting: float = 0.0
    halves: tuple[float, float] | None = None

    @property
    def disks(self) -> frozenset[str]:
        return frozenset(self.event.disks)

    @property
    def total(self) -> float:
        return sum(self.rates.values())


@dataclass(frozen=True)
class Series:
    """The measurements of one mode, such as ``write``, in order of time."""

    mode: str
    readings: tuple[MeasuredRates, ...]

    @property
    def repeats(self) -> int:
        """The planned number of rounds."""
        return max((reading.event.repeats for reading in self.readings), default=0)

    @property
    def parameters(self) -> dict[str, str | float]:
        """The conditions that all measurements of this mode share."""
        events = [reading.event for reading in self.readings]
        return {"block": events[0].block, "depth": events[0].depth} if events else {}

    def of(self, disks: Iterable[str]) -> dict[int, MeasuredRates]:
        """The measurements that count, of exactly these disks at once, by round."""
        wanted = frozenset(disks)
        return {one.event.repeat: one for one in self.readings if one.disks == wanted and not one.spoilt}

    def alone(self, disk: str) -> dict[int, float]:
        """The rate of this disk by itself, by round."""
        return {number: one.total for number, one in self.of((disk,)).items()}

    def counting(self, disks: Iterable[str]) -> float:
        """The largest ``counting`` of the measurements of exactly these disks at once."""
        return max((one.counting for one in self.of(disks).values()), default=0.0)


def series_of(story: Story) -> tuple[Series, ...]:
    """The measurements of a story by mode, writing first. They are worked out once for all studies."""
    return story.once(_series_of)


def _series_of(story: Story) -> tuple[Series, ...]:
    readings = [_reading(story, event) for event in story.of(Measured)]
    modes = sorted(dict.fromkeys(one.event.mode for one in readings), key=lambda mode: mode in READ_MODES)
    return tuple(Series(mode, tuple(one for one in readings if one.event.mode == mode)) for mode in modes)


def claims_of(story: Story) -> Iterator[Claim]:
    """The samples that the measurements rest on. Those that do not count need none."""
    for series in series_of(story):
        for reading in series.readings:
            if not reading.spoilt and reading.event.at is not None:
                for disk in reading.event.disks:
                    yield Claim(
                        what=f"{disk} had the rate that was measured",
                        evidence=(Evidence.SAMPLES,),
                        begin=reading.event.begin,
                        end=reading.event.at,
                        disk=disk,
                    )


def missing_of(story: Story) -> str:
    """How many planned measurements are not on record, as a sentence; empty if all are."""
    events = story.of(Measured)
    if not events:
        return "nothing was measured"
    # A scenario may measure several designs, one after the other: their numbers begin with 1 again.
    begins = [0, *(place for place, (one, two) in enumerate(pairwise(events), 1) if two.number <= one.number)]
    planned = missing = 0
    for begin, end in zip(begins, (*begins[1:], len(events)), strict=True):
        design = events[begin:end]
        planned += design[0].planned
        missing += len(set(range(1, design[0].planned + 1)) - {event.number for event in design})
    return f"{missing} of {planned} measurements were not made" if missing else ""


def to_repeat(events: Sequence[Event], since: int) -> tuple[Measured, ...]:
    """The measurements of a running scenario that do not count, and were not repeated with success, from the
    ``since``-th measurement on. ``events`` are all of the scenario."""
    begun = next((event for event in events if isinstance(event, ScenarioBegun)), None)
    if begun is None:
        return ()
    story = Story(begun, events)
    state: dict[tuple[frozenset[str], str, int], Measured | None] = {}
    for event in story.of(Measured)[since:]:
        key = (frozenset(event.disks), event.mode, event.repeat)
        if state.get(key, event) is not None:
            state[key] = event if _reading(story, event).spoilt else None
    return tuple(event for event in state.values() if event is not None)


def spoilt_of(series: Series, disks: Iterable[str] = ()) -> tuple[str, ...]:
    """Why measurements of exactly these disks, or of any, do not count: a clause each."""
    wanted = frozenset(disks)
    found = (one.spoilt for one in series.readings if one.spoilt and (not wanted or one.disks == wanted))
    return tuple(dict.fromkeys(found))


def _reading(story: Story, event: Measured) -> MeasuredRates:
    begin, end = event.begin, event.at or event.begin
    rates, spreads = {}, []
    for disk in event.disks:
        found = _rate(story, disk, begin, end, reads=event.mode in READ_MODES)
        if found is None:
            return MeasuredRates(event, {}, f"the samples of {disk} do not cover the measurement at {begin:.1f} s")
        rates[disk], spread = found
        spreads.append(spread)
    spoilt = _ended_early(story, event, begin, end) or held_up(story, begin, end)
    return MeasuredRates(event, rates, spoilt, hypot(*spreads), _halves(story, event))


def _rate(story: Story, disk: str, begin: float, end: float, *, reads: bool) -> tuple[float, float] | None:
    """The slope of the line through all samples, and how exact it is. The counters count whole requests, and the
    difference of the first and the last sample would be wrong by up to one of them: the slope is more exact."""
    inside = story.readings(disk).between(begin, end)
    if len(inside) < 2 or inside[0].diskseq != inside[-1].diskseq:
        return None
    first, last = inside[0], inside[-1]
    if last.at - first.at < (1 - STARVED) * (end - begin):
        return None
    times = [one.at for one in inside]
    slope, _ = linear_regression(times, [one.read if reads else one.written for one in inside])
    moved = last.read - first.read if reads else last.written - first.written
    one, two = first.counters, last.counters
    requests = two.reads - one.reads if reads else two.writes - one.writes
    return max(0.0, slope), slope_spread(times, slope, moved / max(1, requests))


def _halves(story: Story, event: Measured) -> tuple[float, float] | None:
    begin, end = event.begin, event.at or event.begin
    middle, sums = (begin + end) / 2, [0.0, 0.0]
    for disk in event.disks:
        readings = story.readings(disk)
        for number, part in enumerate((readings.between(begin, middle), readings.between(middle, end))):
            if len(part) < HALF:
                return None
            moved = [one.read if event.mode in READ_MODES else one.written for one in part]
            sums[number] += linear_regression([one.at for one in part], moved).slope
    return sums[0], sums[1]


def _ended_early(story: Story, event: Measured, begin: float, end: float) -> str:
    found = []
    for disk in event.disks:
        loads = [load for load in story.of(LoadBegun) if load.disk == disk and (load.at or 0.0) <= begin]
        ended = story.load_end(loads[-1]) if loads else None
        if ended is not None and ended.at is not None and ended.at < end and not ended.asked:
            found.append(ended)
    if not found:
        return ""
    first = next((one for one in found if one.errno), found[0])  # the others may have ended because of it
    return f"the load on {first.disk} ended while it was measured ({first.message or 'no reason given'})"


def held_up(story: Story, begin: float, end: float) -> str:
    """Why what was measured in [begin, end] does not count, a clause: the host starved the DUT. Empty if it counts."""
    starved = starved_within(story, begin, end)
    if starved > STARVED * (end - begin):
        return f"the sampler was starved for {starved:.1f} s of the {end - begin:.1f} s from {begin:.1f} s on"
    share = min(granted(story, begin, end), _ticks(story, begin, end))
    if share < GRANTED:
        return f"the host gave the DUT only {share:.0%} of its processor time at {begin:.1f} s"
    return ""


def _ticks(story: Story, begin: float, end: float) -> float:
    """The share of its usual jiffies that an emulated DUT counted around [begin, end]; 1 if that is not known.

    ``granted`` trusts samples that are on time. Requests suffer earlier: each waits for the guest and the emulation.
    """
    times = story.cpu_times
    readies = story.readies
    cpus = readies[-1].cpus if readies and readies[-1].kind == "virtual" else 0
    if not cpus or len(times) < 2:
        return 1.0
    first = max(0, bisect_right(times, (begin, float("inf"), 0)) - 1)
    last = min(len(times) - 1, max(first + 1, bisect_left(times, (end,))))
    (at1, _, total1), (at2, _, total2) = times[first], times[last]
    return 1.0 if at2 <= at1 else (total2 - total1) / (cpus * HZ * (at2 - at1)) / QUIET
