"""All samples of a scenario, by attachment: a table instead of millions of objects.

Eight hours of eight disks, sampled ten times a second, are 2.3 million readings of eight numbers each. As objects they
take more than a gigabyte.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import count, islice
from math import inf, isfinite, isnan, nan
from operator import attrgetter, lt, sub
from typing import NamedTuple, Protocol

from plugpull.history.columns import Column, unchanged
from plugpull.history.counters import Counters
from plugpull.history.events import Sampled
from plugpull.history.extremes import Extremes, whole_blocks
from plugpull.history.packs import PackedDisk, PackedSpan
from plugpull.history.sample_lines import Part, SampleSpan

Key = tuple[str, int]
"""Kernel name and diskseq of an attachment."""

COMPARED = 4
"""The first columns of a stream, bytes and requests: they are to grow."""
BLOCK = 256
"""Samples that are put into columns at once: few enough for a processor's cache."""

_at, _cpu, _disks, _report = map(attrgetter, ("at", "cpu", "disks", "report"))


class Rate(NamedTuple):
    """Mean rates, bytes per second, over the ``seconds`` that end at ``at``."""

    at: float
    seconds: float
    read_bps: float
    write_bps: float


class SampleLike(Protocol):
    """A sample as it is read from a line, or an event of the history."""

    @property
    def at(self) -> float | None: ...
    @property
    def report(self) -> int: ...
    @property
    def disks(self) -> Mapping[str, Sequence[int]]: ...
    @property
    def cpu(self) -> tuple[int, int]: ...


class CounterStream:
    """The counters of one attachment, in the order they were recorded. ``columns`` has those of ``Counters`` after
    ``diskseq``. ``runs`` are the rows of the table in which it is; ``starts`` where each run begins in the columns.
    ``extremes`` are those of the bytes read and of those written, as far as packs have them."""

    def __init__(self, key: Key) -> None:
        self.kname, self.diskseq = key
        self.columns = tuple(Column(compared=place < COMPARED) for place in range(len(Counters._fields) - 1))
        self.runs: list[range] = []
        self.starts: list[int] = []
        self.extremes: tuple[list[Extremes], list[Extremes]] = ([], [])
        self._quiet: array[int] | None = None

    def __len__(self) -> int:
        return len(self.columns[0])

    @property
    def key(self) -> Key:
        return self.kname, self.diskseq

    @property
    def only_grows(self) -> bool:
        """Whether no counter of bytes or requests ever falls."""
        return not any(column.falls for column in self.columns[:4])

    @property
    def quiet(self) -> Sequence[int]:
        """The indices of the readings since whose predecessor no request was completed."""
        if self._quiet is None:
            self._quiet = array("L", unchanged(self.columns[2:4]))
        return self._quiet

    def add(self, row: int, columns: Sequence[Sequence[int]]) -> None:
        """Append the readings of the rows from ``row`` on."""
        self._go_on(row, len(columns[0]))
        for column, numbers in zip(self.columns, columns, strict=True):
            column.extend(numbers)

    def add_packed(self, row: int, span: PackedSpan, disk: PackedDisk) -> None:
        """Append the readings of a pack, from ``row`` on."""
        self._go_on(row, span.count)
        for column, packed in zip(self.columns, disk.columns, strict=True):
            column.extend_packed(packed, span.count)
        if row == span.row:
            for known, data in zip(self.extremes, disk.extremes, strict=True):
                if data:
                    known.append(Extremes(whole_blocks(row, span.count)[0], array("d", data)))

    def _go_on(self, row: int, count: int) -> None:
        """Note that it is in ``count`` rows from ``row`` on."""
        if self.runs and self.runs[-1].stop == row:
            self.runs[-1] = range(self.runs[-1].start, row + count)
        else:
            self.runs.append(range(row, row + count))
            self.starts.append(len(self))
        self._quiet = None

    def until(self, row: int) -> CounterStream:
        """Its readings in the rows before ``row``."""
        count = self.index(row)
        if count == len(self):
            return self
        part = CounterStream(self.key)
        part.runs = [range(run.start, min(run.stop, row)) for run in self.runs if run.start < row]
        part.starts = self.starts[: len(part.runs)]
        read, written = ([one for one in known if one.end <= row] for known in self.extremes)
        part.extremes = (read, written)
        part.columns = tuple(column.until(count) for column in self.columns)
        return part

    def counters(self, index: int) -> Counters:
        """One reading."""
        return Counters(self.diskseq, *(column.numbers[index] for column in self.columns))

    def moved(self, index: int) -> int:
        """Bytes read and written since it was attached."""
        return self.columns[0].numbers[index] + self.columns[1].numbers[index]

    def completed(self, index: int) -> int:
        """Requests done since it was attached."""
        return self.columns[2].numbers[index] + self.columns[3].numbers[index]

    def row(self, index: int) -> int:
        """The row of the table of one reading."""
        run = bisect_right(self.starts, index) - 1
        return self.runs[run].start + index - self.starts[run]

    def rows(self) -> Iterator[int]:
        """The rows of all readings."""
        for run in self.runs:
            yield from run

    def index(self, row: int) -> int:
        """The index of its first reading that is in ``row`` or later."""
        run = bisect_right(self.runs, row, key=lambda one: one.start) - 1
        if run < 0:
            return 0
        return self.starts[run] + min(row - self.runs[run].start, len(self.runs[run]))

    def absent(self, rows: Sequence[int]) -> Iterator[int]:
        """Those of ``rows``, in their order, in which it is not."""
        if isinstance(rows, range) and rows.step == 1:
            place = rows.start
            for run in self.runs[max(0, bisect_right(self.runs, place, key=lambda one: one.start) - 1) :]:
                yield from range(place, min(run.start, rows.stop))
                place = max(place, run.stop)
            yield from range(place, rows.stop)
        else:
            yield from (row for row in rows if not self.has(row))

    def rows_after(self, time: float, table: SampleTable) -> Iterator[int]:
        """Its rows, without those that are certainly not later than ``time``."""
        begin = self.index(bisect_right(table.at, time)) if table.ordered else 0
        return map(self.row, range(begin, len(self)))

    def has(self, row: int) -> bool:
        """Whether the sample in ``row`` lists the attachment."""
        run = bisect_right(self.runs, row, key=lambda one: one.start) - 1
        return run >= 0 and row in self.runs[run]


class SampleTable:
    """The samples of one scenario. ``at`` are their times, not a number where a sample has none. ``streams`` are the
    attachments that they list, in the order in which they were first listed."""

    def __init__(self, samples: Iterable[SampleLike] = ()) -> None:
        self.at: array[float] = array("d")
        self.streams: dict[Key, CounterStream] = {}
        self.cpus: dict[int, tuple[int, int]] = {}
        self.reports: dict[int, int] = {}
        self._names: tuple[str, ...] = ()
        self._block: list[SampleLike] = []
        self.extend(samples)
        self.close()

    def __len__(self) -> int:
        return len(self.at) + len(self._block)

    def add(self, part: Part | PackedSpan) -> None:
        """Append samples as they are read from lines; ``close`` puts the last of them into the columns."""
        if isinstance(part, PackedSpan):
            self._add_packed(part)
            return
        if not isinstance(part, SampleSpan):
            self.extend(part)
            return
        self.close()
        first = len(self.at)
        self.at.extend(part.at)
        cpus = zip(count(first), part.busy, part.total, strict=False)
        self.cpus.update([(row, (busy, total)) for row, busy, total in cpus if total or busy])
        if any(part.reports):
            self.reports.update((row, report) for row, report in enumerate(part.reports, first) if report)
        for kname, columns in zip(part.names, part.counters, strict=True):
            self._put(kname, first, columns)

    def _add_packed(self, span: PackedSpan) -> None:
        self.close()
        first = len(self.at)
        self.at.frombytes(span.at)
        self.cpus.update((first + row, (busy, total)) for row, busy, total in span.cpus)
        self.reports.update((row, report) for row, report in enumerate(span.reports, first) if report)
        for disk in span.disks:
            self._stream((disk.kname, disk.diskseq)).add_packed(first, span, disk)

    def extend(self, samples: Iterable[SampleLike]) -> None:
        """Append samples; ``close`` puts the last of them into the columns."""
        samples = list(samples)
        names = list(map(tuple, map(_disks, samples)))
        begin = 0
        while begin < len(samples):
            first = names[begin]
            alike = not begin and names.count(first) == len(names)
            end = len(names) if alike else next((i for i in range(begin, len(names)) if names[i] != first), len(names))
            if first != self._names or len(self._block) >= BLOCK:
                self.close()
                self._names = first
            self._block += samples[begin:end]
            begin = end

    def close(self) -> None:
        """Put the samples that are still objects into the columns: all of them list the same kernel names."""
        block, first = self._block, len(self.at)
        if not block:
            return
        self._block = []
        self.at.extend(nan if at is None else at for at in map(_at, block))
        self.cpus.update((row, cpu) for row, cpu in enumerate(map(_cpu, block), first) if cpu != (0, 0))
        self.reports.update((row, report) for row, report in enumerate(map(_report, block), first) if report)
        readings = zip(*(sample.disks.values() for sample in block), strict=True)
        for kname, rows in zip(self._names, readings, strict=True):
            self._put(kname, first, tuple(zip(*rows, strict=True)))

    def _put(self, kname: str, first: int, columns: Sequence[Sequence[int]]) -> None:
        """The readings of one kernel name in consecutive rows: of more than one attachment if its diskseq changes."""
        sequences, begin, count = columns[0], 0, len(columns[0])
        whole = sequences.count(sequences[0]) == count
        while begin < count:
            diskseq = sequences[begin]
            end = count if whole else next((i for i in range(begin, count) if sequences[i] != diskseq), count)
            own = columns[1:] if whole else [column[begin:end] for column in columns[1:]]
            self._stream((kname, diskseq)).add(first + begin, own)
            begin = end

    def _stream(self, key: Key) -> CounterStream:
        """The readings of an attachment so far."""
        stream = self.streams.get(key)
        if stream is None:
            stream = self.streams[key] = CounterStream(key)
        return stream

    def until(self, rows: int) -> SampleTable:
        """The first ``rows`` samples. Their numbers are not copied."""
        if rows == len(self):
            return self
        part = SampleTable()
        part.at = self.at[:rows]
        part.cpus = {row: cpu for row, cpu in self.cpus.items() if row < rows}
        part.reports = {row: report for row, report in self.reports.items() if row < rows}
        part.streams = {key: stream.until(rows) for key, stream in self.streams.items() if stream.runs[0].start < rows}
        return part

    # --- time ----------------------------------------------------------------------------------------------

    @cached_property
    def steps(self) -> array[float]:
        """Seconds from each sample to the next; not a number where one of them has no time."""
        return array("d", map(sub, islice(self.at, 1, None), self.at))

    @cached_property
    def longest_step(self) -> float:
        """The longest of the steps, if each sample is later than the one before it; otherwise infinite."""
        return max(self.steps, default=0.0) if self.rises else inf

    @cached_property
    def ordered(self) -> bool:
        """Whether every sample has a time, and none is earlier than the one before it."""
        if isfinite(sum(self.at)):  # so each of them is finite
            return min(self.steps, default=0.0) >= 0.0
        times = self.at.tolist()
        return sorted(times) == times and not any(map(isnan, times))

    @cached_property
    def rises(self) -> bool:
        """Whether every sample has a time, and each is later than the one before it."""
        if isfinite(sum(self.at)):
            return min(self.steps, default=1.0) > 0.0
        return self.ordered and all(map(lt, self.at, islice(self.at, 1, None)))

    @cached_property
    def times(self) -> Sequence[float]:
        """The times of the samples that have one, in the order they were recorded."""
        return self.at if self.ordered else tuple(at for at in self.at if not isnan(at))

    def time(self, row: int) -> float | None:
        """The time of one sample."""
        at = self.at[row]
        return None if isnan(at) else at

    def between(self, begin: float, end: float) -> Sequence[int]:
        """The rows of the samples with begin <= time <= end."""
        if self.ordered:
            return range(bisect_left(self.at, begin), bisect_right(self.at, end))
        return [row for row, at in enumerate(self.at) if begin <= at <= end]

    def before(self, end: float) -> Sequence[int]:
        """The rows of the samples with time < end."""
        if self.ordered:
            return range(bisect_left(self.at, end))
        return [row for row, at in enumerate(self.at) if at < end]

    def span(self) -> tuple[float, ...]:
        """The least and the greatest time; nothing if no sample has one."""
        times = self.times
        if self.ordered:
            return (times[0], times[-1]) if len(times) else ()
        return (min(times), max(times)) if len(times) else ()

    # --- samples -------------------------------------------------------------------------------------------

    def samples(self, rows: range) -> list[Sampled]:
        """Consecutive samples as events."""
        disks: list[dict[str, Counters]] = [{} for _ in rows]
        for stream in self.streams.values():
            begin, end = stream.index(rows.start), stream.index(rows.stop)
            for index in range(begin, end):
                disks[stream.row(index) - rows.start][stream.kname] = stream.counters(index)
        return [
            Sampled(
                at=self.time(row),
                report=self.reports.get(row, 0),
                disks=disks[row - rows.start],
                cpu=self.cpus.get(row, (0, 0)),
            )
            for row in rows
        ]

    def bare(self, row: int) -> Sampled:
        """One sample as an event without its counters."""
        return Sampled(at=self.time(row), report=self.reports.get(row, 0), disks={}, cpu=self.cpus.get(row, (0, 0)))
