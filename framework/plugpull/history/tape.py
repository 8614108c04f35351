"""The events of a scenario in the order they were recorded, with the samples kept in a table."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import overload

from plugpull.history.events import Event, Sampled
from plugpull.history.samples import SampleTable

AT_ONCE = 1024
"""Samples that are made into events at once."""


class Tape(Sequence[Event]):
    """A sequence of events that makes its samples only when they are asked for.

    ``others`` are the events that are not samples. Sample ``row`` of ``table`` comes after ``before[row]`` of them.
    Going through the whole tape takes long, where there are hours of samples: see ``others_of`` and ``table_of``."""

    def __init__(self, others: tuple[Event, ...], table: SampleTable, before: array[int]) -> None:
        self.others, self.table, self.before = others, table, before

    def __len__(self) -> int:
        return len(self.others) + len(self.table)

    def __iter__(self) -> Iterator[Event]:
        row, place = 0, 0
        while row < len(self.before):
            for sample in self.table.samples(range(row, min(row + AT_ONCE, len(self.before)))):
                while place < self.before[row]:
                    yield self.others[place]
                    place += 1
                yield sample
                row += 1
        yield from islice(self.others, place, None)

    @overload
    def __getitem__(self, index: int) -> Event: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Event]: ...
    def __getitem__(self, index: int | slice) -> Event | Sequence[Event]:
        if isinstance(index, slice):
            return tuple(self[i] for i in range(*index.indices(len(self))))
        place = range(len(self))[index]
        # The first row that comes after so many others that it is at ``place`` or later.
        row = bisect_left(range(len(self.before)), place, key=lambda one: one + self.before[one])
        if row < len(self.before) and row + self.before[row] == place:
            return self.table.samples(range(row, row + 1))[0]
        return self.others[place - row]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and len(self) == len(other) and all(map(_equal, self, other))

    def __hash__(self) -> int:
        return hash((self.others, len(self)))

    def after(self, events: tuple[Event, ...]) -> Tape:
        """The same tape after these events, none of which is a sample."""
        if not events:
            return self
        return Tape((*events, *self.others), self.table, array("L", [one + len(events) for one in self.before]))

    def between(self, begin: int, end: int) -> range:
        """The rows of the samples after the event at place ``begin`` of ``others``, and before the one at ``end``."""
        first = bisect_right(self.before, begin) if begin else 0
        return range(first, bisect_right(self.before, end) if end < len(self.others) else len(self.before))

    def since(self, place: int) -> Tape:
        """The tape without its first events that are not samples, up to the one at ``place`` of ``others``."""
        return Tape(self.others[place:], self.table, array("L", [max(0, one - place) for one in self.before]))

    def until(self, place: int) -> Tape:
        """What comes before the event at ``place`` of ``others``."""
        rows = bisect_right(self.before, place)
        return Tape(self.others[:place], self.table.until(rows), self.before[:rows])


def _equal(one: Event, two: object) -> bool:
    return one == two


def tape_of(events: Iterable[Event]) -> Tape:
    """The events as a tape."""
    if isinstance(events, Tape):
        return events
    others: list[Event] = []
    table, before = SampleTable(), array("L")
    for event in events:
        if isinstance(event, Sampled):
            table.extend((event,))
            before.append(len(others))
        else:
            others.append(event)
    table.close()
    return Tape(tuple(others), table, before)


def others_of(events: Sequence[Event]) -> tuple[Event, ...]:
    """The events that are not samples."""
    if isinstance(events, Tape):
        return events.others
    return tuple(event for event in events if not isinstance(event, Sampled))


def table_of(events: Sequence[Event]) -> SampleTable:
    """The samples."""
    if isinstance(events, Tape):
        return events.table
    return SampleTable(event for event in events if isinstance(event, Sampled))


def until(events: Sequence[Event], place: int) -> Sequence[Event]:
    """What comes before the event at ``place`` of ``others_of(events)``."""
    if isinstance(events, Tape):
        return events.until(place)
    end = [index for index, event in enumerate(events) if not isinstance(event, Sampled)][place]
    return events[:end]


def without_counters(events: Sequence[Event]) -> Iterator[Event]:
    """The events in order, the samples without their counters."""
    if not isinstance(events, Tape):
        yield from events
        return
    place = 0
    for row, before in enumerate(events.before):
        if place < before:
            yield from events.others[place:before]
            place = before
        yield events.table.bare(row)
    yield from events.others[place:]
