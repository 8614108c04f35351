"""One scenario's events, and the questions checks ask of them."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, islice, pairwise
from operator import sub
from typing import Any, NamedTuple, TypeVar, cast

from plugpull.history.attachments import Attachments
from plugpull.history.counters import rates_between
from plugpull.history.cut import Cut
from plugpull.history.cuts import CutEvidence, assemble_cuts, cuts_of_disk
from plugpull.history.events import (
    AgentLost,
    ArrayMade,
    ClockMapped,
    DiskAttached,
    DiskDetached,
    DutDied,
    DutReady,
    Event,
    FileRoundBegun,
    FileRoundEnded,
    KernelMessage,
    LoadBegun,
    LoadEnded,
    Sampled,
    SamplingSet,
    ScenarioBegun,
    ScenarioEnded,
    Uevent,
)
from plugpull.history.medians import usual_of
from plugpull.history.readings import Readings, readings_of
from plugpull.history.samples import Rate, SampleTable
from plugpull.history.tape import others_of, table_of, without_counters

E = TypeVar("E", bound=Event)
T = TypeVar("T")

NO_READINGS = Readings()

NOT_THE_AGENT = frozenset({"console", "serial", "netconsole"})
"""``KernelMessage.source`` of lines that reached the controller without the agent."""

FROM_AGENT = frozenset({KernelMessage, Sampled, Uevent, DiskAttached, DiskDetached, DutReady, ClockMapped})
"""Kinds of events that come from the agent, kernel messages of other sources apart."""


class Silence(NamedTuple):
    """DUT time in which the agent was not heard; ``end`` is ``None`` if it never came back."""

    begin: float
    end: float | None


def comes_from_agent(event: Event) -> bool:
    """Whether this event proves that the agent was heard at its time."""
    if isinstance(event, KernelMessage):
        return event.source not in NOT_THE_AGENT
    return type(event) in FROM_AGENT


@dataclass(frozen=True)
class Story:
    """What happened in one scenario, in the order it was recorded.

    ``before`` holds the events of earlier scenarios that still hold when this one begins on the same running DUT
    (disks attached, the DUT ready), ``after`` what was recorded between its end and the next scenario; ``rig`` is the
    rig file as data; ``lost_lines`` counts lines that could not be read. ``flaws`` are sentences on what is wrong with
    its lines: missing, doubled, out of order, altered. ``by_event`` keeps what was computed from one event alone: a
    copy of a story with fewer events (``dataclasses.replace``) shares it.

    There may be hundreds of thousands of samples. What goes through ``events`` makes an object of each: go through
    ``others`` instead, and ask ``samples`` or ``readings``.
    """

    begun: ScenarioBegun
    events: Sequence[Event]
    before: tuple[Event, ...] = ()
    rig: dict[str, Any] = field(default_factory=dict)
    lost_lines: int = 0
    after: tuple[Event, ...] = ()
    flaws: tuple[str, ...] = ()
    by_event: dict[Event, Any] = field(default_factory=dict, repr=False, compare=False)

    @property
    def id(self) -> str:
        return self.begun.id

    @cached_property
    def _computed(self) -> dict[Callable[[Story], Any], Any]:
        return {}

    def once(self, compute: Callable[[Story], T]) -> T:
        """What ``compute`` returns for this story. It is called the first time only, and its result is kept."""
        if compute not in self._computed:
            self._computed[compute] = compute(self)
        return cast("T", self._computed[compute])

    @property
    def ended(self) -> ScenarioEnded | None:
        ends = self.of(ScenarioEnded)
        return ends[-1] if ends else None

    @cached_property
    def others(self) -> tuple[Event, ...]:
        """The events that are not samples, in the order they were recorded."""
        return others_of(self.events)

    @cached_property
    def samples(self) -> SampleTable:
        """The samples."""
        return table_of(self.events)

    def timeline(self) -> Iterator[Event]:
        """All events in the order they were recorded, the samples without their counters."""
        return without_counters(self.events)

    @cached_property
    def span(self) -> tuple[float, ...]:
        """The least and the greatest time of its events, DUT seconds; nothing if no event has one."""
        times = [*self.samples.span(), *(event.at for event in self.others if event.at is not None)]
        return (min(times), max(times)) if times else ()

    @cached_property
    def readies(self) -> tuple[DutReady, ...]:
        """Each time the DUT was ready, beginning with the one that held when the scenario began."""
        return tuple(event for event in (*self.before, *self.others) if isinstance(event, DutReady))

    @cached_property
    def _places(self) -> dict[type[Event], list[int]]:
        """The places in ``others`` of the events of each kind."""
        places: defaultdict[type[Event], list[int]] = defaultdict(list)
        for place, kind in enumerate(map(type, self.others)):
            places[kind].append(place)
        return dict(places)

    @cached_property
    def _by_type(self) -> dict[type[Event], tuple[Event, ...]]:
        return {kind: tuple([self.others[place] for place in places]) for kind, places in self._places.items()}

    @property
    def by_kind(self) -> Mapping[type[Event], tuple[Event, ...]]:
        """The events of each kind but samples, in the order they were recorded."""
        return self._by_type

    def numbered(self, *kinds: type[Event]) -> list[tuple[int, Event]]:
        """The events of some kinds in the order they were recorded, each with its place in ``others``. Samples are not
        among them. In a long scenario this is much faster than to go through all of ``others``."""
        places = sorted(chain.from_iterable(self._places.get(kind, ()) for kind in kinds))
        return [(place, self.others[place]) for place in places]

    def among(self, *kinds: type[Event]) -> list[Event]:
        """The events of some kinds in the order they were recorded; samples are not among them."""
        return [event for _, event in self.numbered(*kinds)]

    def of(self, kind: type[E]) -> tuple[E, ...]:
        """The events of one kind, in the order they were recorded; ``samples`` has the samples."""
        if kind is Sampled:
            return tuple(event for event in self.events if isinstance(event, kind))
        return self._by_type.get(kind, ())  # type: ignore[return-value]

    # --- disks ---------------------------------------------------------------------------------------------

    @cached_property
    def _attachments(self) -> Attachments:
        earlier = tuple(event for event in self.before if isinstance(event, DiskAttached))
        return Attachments(earlier + self.of(DiskAttached), self.of(DiskDetached))

    @property
    def all_attachments(self) -> tuple[DiskAttached, ...]:
        return self._attachments.attached

    def attachments(self, disk: str) -> tuple[DiskAttached, ...]:
        """Each time ``disk`` was announced, oldest first, beginning with the one that held when the scenario began."""
        return self._attachments.of(disk)

    def detached_at(self, attachment: DiskAttached) -> float | None:
        """When the kernel took this very attachment off its list."""
        return self._attachments.detached_at(attachment)

    def number_of(self, attachment: DiskAttached) -> int:
        """The kernel's diskseq of an attachment, also of one that left before the agent read it; 0 if it has none."""
        return self._attachments.number_of(attachment)

    def attachment_at(self, disk: str, at: float) -> DiskAttached | None:
        """The attachment of ``disk`` that was on the kernel's list at ``at``."""
        return self._attachments.at(disk, at)

    def disk_at(self, kname: str, at: float) -> str | None:
        """The rig's disk that the kernel called ``kname`` at ``at``; "" if that disk is not of the rig."""
        return self._attachments.disk_at(kname, at)

    # --- loads ---------------------------------------------------------------------------------------------

    def load_at(self, disk: str, at: float) -> LoadBegun | None:
        """The load that was running on ``disk`` at ``at``."""
        for load in reversed(self.of(LoadBegun)):
            if load.disk == disk and load.at is not None and load.at <= at:
                end = self.load_end(load)
                return load if end is None or end.at is None or end.at >= at else None
        return None

    def load_over(self, disk: str, at: float) -> LoadBegun | None:
        """The load that was running at ``at`` on ``disk``, or on an array that it was made a member of."""
        arrays = (made.array for made in self.of(ArrayMade) if disk in made.members and (made.at or 0.0) <= at)
        return next((load for name in (disk, *arrays) if (load := self.load_at(name, at)) is not None), None)

    def files_over(self, disk: str, at: float) -> FileRoundBegun | None:
        """The writer of files that was running at ``at`` on a filesystem of ``disk``."""
        ended = {(end.disk, end.job): end.at for end in self.of(FileRoundEnded)}
        for begun in self.of(FileRoundBegun):
            until = ended.get((begun.disk, begun.job))
            if disk in (begun.disk, *begun.disks) and begun.at is not None and begun.at <= at <= (until or at):
                return begun
        return None

    def load_end(self, load: LoadBegun) -> LoadEnded | None:
        return self._load_ends.get(load)

    @cached_property
    def _load_ends(self) -> dict[LoadBegun, LoadEnded]:
        """The end of each load that has one. Of a load that is on record twice, the first one counts."""
        found: dict[LoadBegun, LoadEnded] = {}
        ends: dict[tuple[str, str], LoadEnded] = {}
        for event in reversed(self.among(LoadBegun, LoadEnded)):
            if isinstance(event, LoadEnded):
                ends[event.disk, event.job] = event
            elif isinstance(event, LoadBegun) and (event.disk, event.job) in ends:
                found[event] = ends[event.disk, event.job]
        return found

    # --- samples -------------------------------------------------------------------------------------------

    @cached_property
    def sample_times(self) -> Sequence[float]:
        return self.samples.times

    @cached_property
    def sample_interval(self) -> float:
        """The usual time between two samples, seconds; 0 where there are fewer than two. If the interval changes on
        purpose, it is the shortest that was set."""
        if self._intervals:
            return min(interval for _, interval in self._intervals)
        times = self.sample_times
        if len(times) < 2:
            return 0.0
        steps = self.samples.steps if self.samples.ordered else array("d", map(sub, islice(times, 1, None), times))
        return usual_of(steps)

    @cached_property
    def _intervals(self) -> tuple[tuple[float, float], ...]:
        """(since when, seconds) of each interval between samples that was set during the scenario."""
        return tuple((set_.at, set_.interval) for set_ in self.of(SamplingSet) if set_.at is not None)

    @cached_property
    def longest_interval(self) -> float:
        """The longest interval that was set for a part of the scenario; else ``sample_interval``."""
        return max((interval for _, interval in self._intervals), default=self.sample_interval)

    def interval_between(self, one: float, two: float) -> float:
        """Seconds after which a sample was due between two consecutive ones, at these times."""
        if not self._intervals:
            return self.sample_interval
        place = bisect_right(self._intervals, one, key=lambda each: each[0])
        known = self._intervals[max(0, place - 1) : bisect_right(self._intervals, two, key=lambda each: each[0])]
        before = () if place else (self.sample_interval,)
        return max((*before, *(interval for _, interval in known)), default=self.sample_interval)

    @cached_property
    def cpu_times(self) -> tuple[tuple[float, int, int], ...]:
        """(DUT time, busy, total) of each sample that has the DUT's CPU time, in jiffies since boot."""
        table = self.samples
        found = ((table.time(row), *cpu) for row, cpu in table.cpus.items() if cpu[1])
        return tuple((at, busy, total) for at, busy, total in found if at is not None)

    @cached_property
    def _readings(self) -> dict[str, Readings]:
        return readings_of(self.samples, self._attachments)

    def readings(self, disk: str) -> Readings:
        """The sampler's counters of ``disk``, over all its attachments, in order of time."""
        return self._readings.get(disk, NO_READINGS)

    def rates(self, disk: str) -> tuple[Rate, ...]:
        """The rates of ``disk`` between consecutive samples; nothing across a gap between two attachments."""
        rates = []
        readings = self.readings(disk)
        for one, two in pairwise(readings):
            seconds = two.at - one.at
            if (one.kname, one.diskseq) == (two.kname, two.diskseq) and seconds > 0:
                rates.append(Rate(two.at, seconds, *rates_between(one.counters, two.counters, seconds).forward()))
        return tuple(rates)

    def moved(self, disk: str, begin: float, end: float) -> int | None:
        """Bytes ``disk`` read and wrote between the first and last sample in [begin, end]; ``None``: no samples."""
        inside = self.readings(disk).between(begin, end)
        if len(inside) < 2 or inside[0].diskseq != inside[-1].diskseq:
            return None
        return inside[-1].moved - inside[0].moved

    # --- how far the evidence reaches ----------------------------------------------------------------------

    @cached_property
    def heard_until(self) -> float | None:
        """DUT time of the last thing the agent said; ``None`` if it never said anything."""
        heard = chain.from_iterable(events for kind, events in self._by_type.items() if kind in FROM_AGENT)
        times = [event.at for event in heard if event.at is not None and comes_from_agent(event)]
        return max([*self.samples.span(), *times], default=None)

    @cached_property
    def silences(self) -> tuple[Silence, ...]:
        """When the agent was not heard though it should have been: lost, or its kernel dead."""
        silences: list[Silence] = []
        heard, begin = float("-inf"), None
        for event in self.timeline() if {AgentLost, DutDied} & set(self._by_type) else ():
            if comes_from_agent(event) and event.at is not None:
                if begin is not None and event.at > begin:
                    silences.append(Silence(begin, event.at))
                    begin = None
                heard = max(heard, event.at)
            elif isinstance(event, AgentLost) and begin is None:
                begin = heard if event.last_heard is None else event.last_heard
            elif isinstance(event, DutDied) and begin is None:
                begin = heard
        if begin is not None:
            silences.append(Silence(begin, None))
        return tuple(silences)

    @property
    def evidence_until(self) -> float | None:
        """DUT time up to which the agent was heard without a break; ``None`` if it was never lost.

        ``None`` does not mean that the evidence has no end: it ends at ``heard_until``. Ask ``covers`` before
        concluding anything from the absence of an event.
        """
        return self.silences[0].begin if self.silences else None

    def covers(self, begin: float, end: float) -> bool:
        """Whether an event in [begin, end] would be in this history, had it happened."""
        if self.heard_until is None or self.heard_until < end:
            return False
        return not any(gap.begin < end and (gap.end is None or gap.end > begin) for gap in self.silences)

    def why_not_covered(self, begin: float, end: float) -> str:
        """A clause saying why ``covers`` is false, for the sentence of an unknown."""
        if self.heard_until is None:
            return "the agent was never heard"
        for gap in self.silences:
            if gap.begin < end and (gap.end is None or gap.end > begin):
                return f"nothing was heard from the DUT after {gap.begin:.2f} s"
        return f"the record ends {max(0.0, self.heard_until - begin):.2f} s into those {end - begin:.2f} s"

    # --- cuts ----------------------------------------------------------------------------------------------

    @cached_property
    def cut_records(self) -> tuple[Cut, ...]:
        """Each cut that was armed, with every edge of its switch: what checks need to trust it."""
        return assemble_cuts(self._cut_evidence)

    def cuts_of(self, disk: str) -> tuple[Cut, ...]:
        """The cuts of ``disk`` as it met them: cuts that overlap and hold it off together are one."""
        return self._cuts_of_disks.get(disk, ())

    @cached_property
    def _cuts_of_disks(self) -> dict[str, tuple[Cut, ...]]:
        victims = dict.fromkeys(victim for cut in self.cut_records for victim in cut.armed.victims)
        return {disk: cuts_of_disk(self._cut_evidence, disk, self.cut_records) for disk in victims}

    @cached_property
    def _cut_evidence(self) -> CutEvidence:
        return CutEvidence(self.others, self._attachments, self._readings)
