"""The rates of disks over the samples of one scenario, as many of them as are drawn.

A scenario of hours has hundreds of thousands of samples. Then only the time around its cuts is kept in full. Elsewhere,
of every ``BUCKET`` seconds the least and the greatest rate are kept, so that a stall of a single sample stays visible.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import chain, islice, pairwise
from operator import attrgetter, sub, truediv
from typing import NamedTuple, cast

from plugpull.history.extremes import BLOCK, ends_of_each
from plugpull.history.samples import CounterStream, Key, SampleTable

Column = list[float | None]
"""One value per sample, bytes per second; ``None`` where there is none to give (absent, or just attached)."""

LONG = 12_000
"""Samples of a scenario that are all kept: 20 minutes, ten a second."""
BUCKET = 2.0
"""Seconds of which two rates are kept."""
BEFORE, AFTER = 2.0, 6.0
"""Seconds before and after a cut in which every sample is kept."""
FULL = 30_000
"""Samples that are kept in full around cuts at most, so that a storm of cuts does not make a page of megabytes."""


class Buckets(NamedTuple):
    """The samples from ``begin`` to ``end``, of which each ``width`` are drawn as one. The last ones may be fewer."""

    begin: int
    end: int
    width: int

    @property
    def starts(self) -> range:
        return range(self.begin, self.end, self.width)

    @property
    def drawn(self) -> int:
        """How many rates are drawn: two of each bucket, but one of a single sample."""
        whole, rest = divmod(self.end - self.begin, self.width)
        return whole * min(2, self.width) + min(2, rest)


class StoredPart(NamedTuple):
    """Samples from ``begin`` to ``end``, whole buckets, and what is drawn of them."""

    begin: int
    end: int
    rates: array[float]


class Sampling:
    """The samples of one scenario in ``rows`` of its table that are in order of time. ``buckets`` say which of them are
    drawn as one, by their places in ``times``; ``None``: each is drawn."""

    def __init__(self, table: SampleTable, rows: range, buckets: Sequence[Buckets] | None = None) -> None:
        self.table, self.buckets = table, buckets
        self.rows = rows if table.rises else _rising(table, rows)
        self.times = table.at[rows.start : rows.stop] if table.rises else array("d", [table.at[i] for i in self.rows])

    @property
    def long(self) -> bool:
        """Whether not every sample is drawn."""
        return self.buckets is not None

    @property
    def span(self) -> tuple[float, ...]:
        return (self.times[0], self.times[-1]) if self.times else ()

    @cached_property
    def grid(self) -> list[float]:
        """The times at which a rate is drawn."""
        if self.buckets is None:
            return self.times.tolist()
        found: list[float] = []
        for buckets in self.buckets:
            if buckets.width == 1:
                found += self.times[buckets.begin : buckets.end]
            for start in buckets.starts if buckets.width > 1 else ():
                found += _pair(self.times, start, min(start + buckets.width, buckets.end))
        return found

    def thinned(self, spans: Iterable[tuple[float, float]]) -> Sampling:
        """The same with fewer rates outside of ``spans``, if there are very many."""
        if len(self.times) <= LONG:
            return self
        count = len(self.times)
        width = max(2, round(BUCKET * count / max(self.times[-1] - self.times[0], 1.0)))
        full = bytearray(count)
        for begin, end in spans:
            first, last = (self._place(at) for at in (begin - BEFORE, max(begin, end) + AFTER))
            first, last = first // width * width, min(-(-last // width) * width, count)
            if full.count(1) + last - first <= FULL:
                full[first:last] = b"\1" * (last - first)
        buckets: list[Buckets] = []
        place = 0
        while place < count:
            end = full.find(1 - full[place], place)
            buckets.append(Buckets(place, end if end >= 0 else count, 1 if full[place] else width))
            place = buckets[-1].end
        return Sampling(self.table, range(self.rows[0], self.rows[-1] + 1), buckets)

    def rates(self, keys: Iterable[Key]) -> tuple[Column, Column]:
        """What a disk with these attachments read and wrote between one sample and the next."""
        streams = [self.table.streams[key] for key in keys if key in self.table.streams]
        found = [0.0] * len(self.times), [0.0] * len(self.times)
        moved = [any(not stream.columns[number].constant for stream in streams) for number in (0, 1)]
        known = bytearray(len(self.times))
        for stream in streams:
            for first, last in self._stretches(stream):
                known[first + 1 : last] = b"\1" * (last - first - 1)
        stored = [self._stored(streams, number, known) for number in (0, 1)]
        for stream in streams:
            for first, last in self._stretches(stream):
                for number in (0, 1):
                    self._fill(found[number], stream, number, first, last, stored[number])
                if any(column.falls for column in stream.columns[:2]):
                    for place in range(first + 1, last):
                        known[place] = min(found[0][place], found[1][place]) >= 0
        read, write = (self._column(found[number], known, moved[number], stored[number]) for number in (0, 1))
        return read, write

    def _fill(
        self,
        rates: list[float],
        stream: CounterStream,
        number: int,
        first: int,
        last: int,
        stored: Sequence[StoredPart],
    ) -> None:
        """Calculate the rates of one column from place ``first`` to ``last``, but for those in ``stored``."""
        column = stream.columns[number]
        if column.constant:
            return
        index, step = stream.index(self.rows[first]), 1
        if last - first == 2:
            step = max(1, stream.index(self.rows[first + 1]) - index)
        for begin, end in _outside(stored, first + 1, last):
            place = index + (begin - first - 1) * step
            counts = column.numbers[place : place + (end - begin) * step + 1 : step]
            gained = map(sub, islice(counts, 1, None), counts)
            rates[begin:end] = map(truediv, gained, self._steps[begin - 1 : end - 1])

    def _stored(self, streams: Sequence[CounterStream], number: int, known: bytearray) -> list[StoredPart]:
        """The parts of the buckets of which packs have the extremes: of streams of which no two are in one sample, and
        whose counters never fall."""
        first = self.rows[0] if isinstance(self.rows, range) and self.rows else 1
        runs = sorted((run.start, run.stop) for stream in streams for run in stream.runs)
        apart = all(one[1] <= two[0] for one, two in pairwise(runs))
        if self.buckets is None or first % BLOCK or not apart or not all(one.only_grows for one in streams):
            return []
        ready = sorted((one for stream in streams for one in stream.extremes[number]), key=attrgetter("row"))
        found: list[StoredPart] = []
        for begin, end, width in self.buckets:
            if width != BLOCK or begin % BLOCK or known.find(0, begin, end) >= 0:
                continue
            stop = end - (end - begin) % BLOCK
            near = max(0, bisect_right(ready, begin + first, key=attrgetter("row")) - 1)
            for row, rates in ready[near : bisect_right(ready, stop + first, key=attrgetter("row"))]:
                low, high = max(row - first, begin), min(row - first + len(rates) // 2 * BLOCK, stop)
                if low < high:
                    place = (low + first - row) // BLOCK * 2
                    found.append(StoredPart(low, high, rates[place : place + (high - low) // BLOCK * 2]))
        return found

    def _place(self, at: float) -> int:
        """The index of the first sample at ``at`` or later."""
        low, high = 0, len(self.times)
        while low < high:
            middle = (low + high) // 2
            low, high = (middle + 1, high) if self.times[middle] < at else (low, middle)
        return low

    @cached_property
    def _steps(self) -> list[float]:
        """Seconds from each sample to the next."""
        if isinstance(self.rows, range) and self.rows:
            return self.table.steps[self.rows.start : self.rows.stop - 1].tolist()
        return list(map(sub, islice(self.times, 1, None), self.times))

    def _stretches(self, stream: CounterStream) -> Iterable[tuple[int, int]]:
        """The (begin, end) among ``times`` of the samples, one after the other, that list an attachment."""
        if isinstance(self.rows, range):
            first = self.rows.start
            for run in stream.runs:
                begin, end = max(run.start, first), min(run.stop, self.rows.stop)
                if end - begin > 1:
                    yield begin - first, end - first
        else:
            # Where samples were left out, each pair by itself.
            for place, (one, two) in enumerate(pairwise(self.rows)):
                if stream.has(one) and stream.has(two):
                    yield place, place + 2

    def _column(self, rates: list[float], known: bytearray, moves: bool, stored: Sequence[StoredPart]) -> Column:
        """Of ``rates``, those that are drawn. ``moves``: they are not all 0."""
        if self.buckets is None:
            return [rate if there else None for rate, there in zip(rates, known, strict=True)]
        column: Column = []
        part = 0
        for buckets in self.buckets:
            begin, end, width = buckets
            while part < len(stored) and stored[part].begin < end:
                one, part = stored[part], part + 1
                column += _drawn(rates[begin : one.begin], width)
                column += one.rates
                begin = one.end
            if known.find(0, begin, end) < 0:
                column += _drawn(rates[begin:end], width) if moves else [0.0] * buckets._replace(begin=begin).drawn
            else:
                values = [rates[place] if known[place] else None for place in range(begin, end)]
                column += values if width == 1 else _drawn_of_known(values, width)
        return column


def _outside(stored: Sequence[StoredPart], begin: int, end: int) -> Iterator[tuple[int, int]]:
    """What is between ``begin`` and ``end`` and in none of the stored parts, which are in order."""
    for part in stored[max(0, bisect_right(stored, begin, key=attrgetter("begin")) - 1) :]:
        if part.begin >= end:
            break
        if begin < part.begin:
            yield begin, part.begin
        begin = max(begin, part.end)
    if begin < end:
        yield begin, end


def _rising(table: SampleTable, rows: range) -> list[int]:
    """Those of ``rows`` that are later than all before them. Another sample gives no rate and is left out."""
    kept: list[int] = []
    for row in rows:
        at = table.time(row)
        if at is not None and (not kept or at > table.at[kept[-1]]):
            kept.append(row)
    return kept


def _pair(times: Sequence[float], begin: int, end: int) -> tuple[float, ...]:
    """The times of the rates that are kept of a bucket."""
    middle = min(begin + (end - begin) // 2, end - 1)
    return (times[begin],) if end - begin == 1 else (times[begin], times[middle])


def thin(grid: Sequence[float], columns: Sequence[Column], limit: int) -> tuple[list[float], list[Column]]:
    """At most about ``limit`` points per column: of every bucket the least and the greatest value, in their order.

    A stall or a gap of a single sample therefore stays visible, however long the run was.
    """
    if len(grid) <= limit:
        return list(grid), [list(column) for column in columns]
    width = -(-2 * len(grid) // max(limit, 2))
    starts = range(0, len(grid), width)
    thinned_grid: list[float] = []
    for start in starts:
        middle = min(start + width // 2, len(grid) - 1)
        thinned_grid += [grid[start], grid[middle] if middle > start else grid[start] + 1e-6]
    return thinned_grid, [_thinned(column, width) for column in columns]


def _thinned(column: Column, width: int) -> Column:
    """Of each ``width`` values the least and the greatest in their order; of a single one both are the same."""
    starts = range(0, len(column), width)
    if not any(column) and None not in column:
        return [0.0] * (2 * len(starts))
    if None in column:
        return list(chain.from_iterable(_extremes(column[start : start + width]) for start in starts))
    known = cast("list[float]", column)
    return list(chain.from_iterable(_ends(known[start : start + width]) for start in starts))


def _drawn(rates: list[float], width: int) -> list[float]:
    """Of each ``width`` rates the least and the greatest, in their order; of a single one that."""
    if width == 1:
        return rates
    rest = rates[len(rates) - len(rates) % width :]
    return ends_of_each(rates, width) + (rest if len(rest) < 2 else [*_ends(rest)])


def _drawn_of_known(rates: Column, width: int) -> Column:
    """The same of rates of which some are not known."""
    found: Column = []
    for start in range(0, len(rates), width):
        bucket = rates[start : start + width]
        found += bucket if len(bucket) == 1 else _extremes(bucket)
    return found


def _ends(bucket: Sequence[float]) -> tuple[float, float]:
    """The least and the greatest value in their order."""
    least, greatest = min(bucket), max(bucket)
    return (least, greatest) if greatest in bucket[bucket.index(least) :] else (greatest, least)


def _extremes(bucket: Column) -> tuple[float | None, float | None]:
    known = [value for value in bucket if value is not None]
    if not known:
        return None, None
    if len(known) == len(bucket):
        return _ends(known)
    least = min(known)
    return (None, least) if bucket.index(None) < bucket.index(least) else (least, None)
