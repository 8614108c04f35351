"""The readings of each disk of the rig: the samples' counters, over all its attachments."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import islice, pairwise
from operator import lt
from typing import NamedTuple, overload

from plugpull.history.attachments import Attachments, attached_at
from plugpull.history.counters import Counters
from plugpull.history.events import DiskAttached
from plugpull.history.samples import CounterStream, Key, SampleTable


class Reading(NamedTuple):
    """One attachment's counters at ``at`` seconds."""

    at: float
    kname: str
    counters: Counters

    @property
    def diskseq(self) -> int:
        return self.counters.diskseq

    @property
    def read(self) -> int:
        """Bytes read since it was attached."""
        return self.counters.read_bytes

    @property
    def written(self) -> int:
        """Bytes written since it was attached."""
        return self.counters.written_bytes

    @property
    def moved(self) -> int:
        """Bytes read and written since it was attached."""
        return self.counters.moved


class ReadingRun:
    """Consecutive readings of one stream, from index ``begin`` to ``end``, with their times in ``at``."""

    def __init__(self, stream: CounterStream, begin: int, end: int, at: Sequence[float]) -> None:
        self.stream, self.begin, self.end, self.at = stream, begin, end, at

    def __len__(self) -> int:
        return self.end - self.begin

    def __getitem__(self, place: int) -> Reading:
        return Reading(self.at[place], self.stream.kname, self.stream.counters(self.begin + place))

    def moved(self, place: int) -> int:
        """Bytes read and written by the reading at ``place``."""
        return self.stream.moved(self.begin + place)

    def column(self, number: int) -> Sequence[int]:
        """The numbers of one column."""
        return self.stream.columns[number].numbers[self.begin : self.end]

    def cut(self, begin: int, end: int) -> ReadingRun:
        """The readings from place ``begin`` to ``end``."""
        return ReadingRun(self.stream, self.begin + begin, self.begin + end, self.at[begin:end])


class Readings(Sequence[Reading]):
    """The readings of one disk in order of time. ``parts`` has them by attachment, ``at`` are their times."""

    def __init__(self, parts: Iterable[ReadingRun] = ()) -> None:
        self.parts = tuple(part for part in parts if len(part))
        self._starts = [0]
        for part in self.parts:
            self._starts.append(self._starts[-1] + len(part))

    @cached_property
    def at(self) -> Sequence[float]:
        if len(self.parts) == 1:
            return self.parts[0].at
        joined: array[float] = array("d")
        for part in self.parts:
            joined.extend(part.at)
        return joined

    def __len__(self) -> int:
        return self._starts[-1]

    @overload
    def __getitem__(self, index: int) -> Reading: ...
    @overload
    def __getitem__(self, index: slice) -> Readings: ...
    def __getitem__(self, index: int | slice) -> Reading | Readings:
        if isinstance(index, slice):
            begin, end, step = index.indices(len(self))
            if step != 1:
                raise ValueError("readings have no steps")
            return self._cut(begin, end)
        place = range(len(self))[index]
        number = bisect_right(self._starts, place) - 1
        return self.parts[number][place - self._starts[number]]

    def __iter__(self) -> Iterator[Reading]:
        for part in self.parts:
            yield from (part[place] for place in range(len(part)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash((len(self), *self[:1]))

    def between(self, begin: float, end: float) -> Readings:
        """The readings with begin <= at <= end."""
        return self._cut(bisect_left(self.at, begin), bisect_right(self.at, end))

    def before(self, end: float) -> Readings:
        """The readings with at < end."""
        return self._cut(0, bisect_left(self.at, end))

    def column(self, number: int) -> Sequence[int]:
        """The numbers of one column of all readings."""
        if len(self.parts) == 1:
            return self.parts[0].column(number)
        joined: array[int] = array("q")
        for part in self.parts:
            joined.extend(array("q", part.column(number)))
        return joined

    @property
    def only_grow(self) -> bool:
        """Whether these are readings of one attachment, in the order they were recorded, whose bytes never fall."""
        following = all(one.stream is two.stream and one.end <= two.begin for one, two in pairwise(self.parts))
        return following and not any(column.falls for part in self.parts[:1] for column in part.stream.columns[:2])

    def of(self, key: Key) -> Readings:
        """The readings of the attachments with this kernel name and diskseq."""
        return Readings(part for part in self.parts if part.stream.key == key)

    def _cut(self, begin: int, end: int) -> Readings:
        found = []
        for start, part in zip(self._starts, self.parts, strict=False):
            first, last = max(0, begin - start), min(len(part), end - start)
            if first < last:
                found.append(part if last - first == len(part) else part.cut(first, last))
        return Readings(found)


def readings_of(table: SampleTable, attachments: Attachments) -> dict[str, Readings]:
    """The counters of each disk of the rig, over all its attachments, in order of time."""
    known: defaultdict[Key, list[DiskAttached]] = defaultdict(list)
    for attachment in attachments.attached:
        known[attachment.kname, attachment.diskseq].append(attachment)
    found: defaultdict[str, list[ReadingRun]] = defaultdict(list)
    for key, stream in table.streams.items():
        for part in _parts(table, stream) if key in known else ():
            for disk, own in _by_owner(part, known[key]):
                found[disk].append(own)
    return {disk: _in_order(parts) for disk, parts in found.items()}


def _parts(table: SampleTable, stream: CounterStream) -> Iterator[ReadingRun]:
    """The readings of one attachment; one by one if their times are not known to be in order."""
    for start, run in zip(stream.starts, stream.runs, strict=True):
        times = table.at[run.start : run.stop]
        if table.rises or all(map(lt, times, islice(times, 1, None))):
            yield ReadingRun(stream, start, start + len(run), times)
            continue
        for index, row in enumerate(run, start):
            at = table.time(row)
            if at is not None:
                yield ReadingRun(stream, index, index + 1, (at,))


def _by_owner(part: ReadingRun, attachments: Sequence[DiskAttached]) -> Iterator[tuple[str, ReadingRun]]:
    """The readings by disk of the rig. Kernels before 5.15 have no diskseq (it is 0 then), so one key may stand for
    several attachments: a reading is of the last one that was attached before it, or else of the first."""
    ends = {bisect_left(part.at, attached_at(one)) for one in attachments[1:]}
    for begin, end in pairwise(sorted({0, len(part), *ends})):
        earlier = [one for one in attachments if attached_at(one) <= part.at[begin]]
        owner = (earlier[-1] if earlier else attachments[0]).disk
        if owner:
            yield owner, part.cut(begin, end) if end - begin < len(part) else part


def _in_order(parts: Sequence[ReadingRun]) -> Readings:
    """The parts in order of time; divided into single readings where they overlap."""
    ordered = sorted(parts, key=lambda part: part.at[0])
    if all(one.at[-1] < two.at[0] for one, two in pairwise(ordered)):
        return Readings(ordered)
    single = [part.cut(place, place + 1) for part in parts for place in range(len(part))]
    return Readings(sorted(single, key=lambda part: part[0]))
