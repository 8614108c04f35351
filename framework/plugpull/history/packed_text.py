"""The text of a history together with its packs: see ``packs.py``. Making packs, and reading samples from them."""

from __future__ import annotations

import os
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from io import BytesIO
from itertools import chain, islice, pairwise
from operator import sub
from pathlib import Path
from typing import NamedTuple

from plugpull.history.columns import PackedColumn
from plugpull.history.events import Event
from plugpull.history.extremes import extremes_of
from plugpull.history.line_blocks import DIVIDING, LineGroup, groups_of
from plugpull.history.open_values import decode_event
from plugpull.history.packs import (
    COLUMNS_FILE,
    LONGEST_TEXT,
    MAGIC,
    Pack,
    PackedDisk,
    PackedSpan,
    SealedPart,
    pack_column,
    read_packs,
    write_pack,
)
from plugpull.history.sample_lines import SAMPLE, SampleDecoder, SampleLine, SampleSpan, decode_lines
from plugpull.history.segments import HistoryLines, lines_of, open_file

PACKED_FROM = 10_000
"""Lines of a history from which on packs are made: a shorter one is read in a moment."""
BEGIN = b'{"type":"scenario.begin",'
"""How the recorder begins the line of a scenario's begin."""
SECTIONS = 10
"""Seals that a pack spans at most: about two thousand lines."""


@dataclass(frozen=True)
class PackedText:
    """Lines of a history, and their pack. Whether the pack is of these very lines is not yet known."""

    text: bytes
    pack: Pack

    def lines(self) -> list[bytes]:
        return BytesIO(self.text).readlines()

    def group(self, decode: Callable[[bytes], Event | None]) -> LineGroup | None:
        """What ``groups_of`` makes of the lines without seals; ``None`` if they are not one group, or if the last
        sample of the pack is not that of the text."""
        others = []
        for _, begin, end in self.pack.others:
            event = decode(self.text[begin:end])
            if event is None or type(event) in DIVIDING:
                return None
            others.append(event)
        if not self._fits():
            return None
        places = (-1, *(place for place, *_ in self.pack.others), self.pack.lines)
        before = chain.from_iterable([index] * (two - one - 1) for index, (one, two) in enumerate(pairwise(places)))
        return LineGroup((), (), self.pack.spans, others, list(before))

    def _fits(self) -> bool:
        """Whether the last sample of the pack is that of the text."""
        begin, span = self.text.rfind(SAMPLE), self.pack.spans[-1]
        (sample,) = decode_lines([self.text[begin : self.text.find(b"\n", begin) + 1]]) or [SampleLine(disks={})]
        last = span.count - 1
        disks = {disk.kname: (disk.diskseq, *disk.at(last)) for disk in span.disks}
        row, *cpu = span.cpus[-1] if span.cpus else (-1, 0, 0)
        report = span.reports[last] if span.reports else 0
        at = array("d", span.at)[last]
        cpu = cpu if row == last else [0, 0]
        return (sample.at, sample.disks, list(sample.cpu), sample.report) == (at, disks, cpu, report)


class SealedLines(NamedTuple):
    """Lines between two seals, with their samples, and the seal after them with its digest. ``row``: of the first
    sample, in the scenario."""

    row: int
    lines: Sequence[bytes]
    samples: Sequence[SampleSpan]
    seal: bytes
    digest: str


class Packer:
    """Writes the packs of a history that is being recorded, from its first line on. A pack that cannot be written, for
    example because the disk is full, is no loss: then there are none from there on."""

    def __init__(self, file: Path, start: int = PACKED_FROM) -> None:
        """``file``: the history; ``start``: the line from which on packs are made."""
        self._path, self._start = file.with_name(COLUMNS_FILE), start
        self._decoder = SampleDecoder()
        self._collects = start == 0
        self._lines: list[bytes] = []
        self._sealed: list[SealedLines] = []
        self._number = self._end = 0
        self._first, self._begin = 1, 0
        self._row = 0
        with suppress(OSError):
            self._path.unlink(missing_ok=True)

    def add(self, line: bytes) -> None:
        """Take a line that was written, whole, at the end of the history."""
        self._end += len(line)
        self._number += 1
        self._row = 0 if line.startswith(BEGIN) else self._row + line.startswith(SAMPLE)
        if self._collects:
            self._lines.append(line)

    def seal(self, line: bytes, digest: str) -> None:
        """Take the seal of the lines since the last seal. After some seals, write their pack."""
        lines, self._lines = self._lines, []
        samples = samples_of(lines, self._decoder, self._number - len(lines) + 1) if self._collects else None
        if samples is not None:
            count = sum(len(span.at) for span in samples)
            self._sealed.append(SealedLines(self._row - count, lines, samples, line, digest))
        whole = len(self._sealed) == SECTIONS or self._end - self._begin > LONGEST_TEXT // 2
        if self._sealed and (samples is None or whole):
            self._write(pack_of(self._sealed, self._begin, self._first))
        self._end += len(line)
        self._number += 1
        if samples is None or whole:
            self._sealed = []
            self._first, self._begin = self._number + 1, self._end
            self._collects = self._collects or self._number >= self._start

    def _write(self, pack: Pack | None) -> None:
        if pack is None:
            return
        try:
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
            with os.fdopen(os.open(self._path, flags, 0o600), "ab", buffering=0) as file:
                if not file.tell():
                    file.write(MAGIC)
                write_pack(file, pack)
        except OSError:
            self.end()

    def end(self) -> None:
        """Remove the packs that there are. Nothing may be added afterwards."""
        with suppress(OSError):
            self._path.unlink(missing_ok=True)


def samples_of(lines: Sequence[bytes], decoder: SampleDecoder, first: int) -> list[SampleSpan] | None:
    """The samples of lines that are numbered from ``first`` on; ``None`` if there are none, or if the lines are not so
    plain that they can be packed."""
    groups = list(groups_of(lines, decoder, decode_event))
    if len(groups) != 1 or isinstance(groups[0], bytes):
        return None
    group = groups[0]
    if list(group.numbers) != list(range(first, first + len(lines))):
        return None
    spans = [part for part in group.samples if isinstance(part, SampleSpan)]
    return spans if spans and len(spans) == len(group.samples) else None


def pack_of(sealed: Sequence[SealedLines], begin: int, first: int) -> Pack | None:
    """The pack of lines that begin at ``begin`` with number ``first``; ``None`` if a number in it is too large, or a
    disk came back within consecutive samples."""
    known: list[PackedSpan] = []
    row = sealed[0].row
    for span in joined(span for one in sealed for span in one.samples):
        packed = pack_span(span, row)
        if packed is None:
            return None
        known.append(packed)
        row += packed.count
    sections: list[SealedPart] = []
    others: list[tuple[int, int, int]] = []
    offset = place = 0
    for one in sealed:
        start = offset
        for line in one.lines:
            if not line.startswith(SAMPLE):
                others.append((place, offset, offset + len(line)))
            place, offset = place + 1, offset + len(line)
        sections.append(SealedPart(begin=start, end=offset, lines=len(one.lines), digest=one.digest))
        offset += len(one.seal)
    return Pack(begin=begin, length=sections[-1].end, first=first, sections=sections, others=others, spans=known)


def joined(spans: Iterable[SampleSpan]) -> Iterator[SampleSpan]:
    """The spans, of which those are made one that follow each other and list the same attachments."""
    before: SampleSpan | None = None
    for span in spans:
        if before is None:
            before = span
        elif _attachments(before, -1) == _attachments(span, 0):
            before = _together(before, span)
        else:
            yield before
            before = span
    if before is not None:
        yield before


def _attachments(span: SampleSpan, place: int) -> tuple[tuple[str, int], ...]:
    return tuple((name, columns[0][place]) for name, columns in zip(span.names, span.counters, strict=True))


def _together(one: SampleSpan, two: SampleSpan) -> SampleSpan:
    return SampleSpan(
        names=one.names,
        at=[*one.at, *two.at],
        reports=[*one.reports, *two.reports],
        busy=[*one.busy, *two.busy],
        total=[*one.total, *two.total],
        counters=[
            [[*first, *second] for first, second in zip(own, others, strict=True)]
            for own, others in zip(one.counters, two.counters, strict=True)
        ],
        numbers=[*one.numbers, *two.numbers],
    )


def pack_span(span: SampleSpan, row: int) -> PackedSpan | None:
    """The columns of samples, the first of which is in ``row``; ``None`` if a disk was attached again among them, or a
    number is too large."""
    disks = []
    steps = list(map(sub, islice(span.at, 1, None), span.at))
    rises = min(steps, default=1.0) > 0.0
    for kname, (diskseq, *counters) in zip(span.names, span.counters, strict=True):
        columns = [one for one in map(pack_column, counters) if one is not None]
        if len(set(diskseq)) > 1 or len(columns) < len(counters):
            return None
        read, written = (
            extremes_of(numbers, steps, row) if rises and isinstance(one, PackedColumn) and not one.falls else b""
            for numbers, one in zip(counters[:2], columns, strict=False)
        )
        disks.append(PackedDisk(kname, diskseq[0], tuple(columns), (read, written)))
    cpus = zip(range(len(span.at)), span.busy, span.total, strict=True)
    return PackedSpan(
        row=row,
        count=len(span.at),
        at=array("d", span.at).tobytes(),
        cpus=[(row, busy, total) for row, busy, total in cpus if busy or total],
        reports=list(span.reports) if any(span.reports) else [],
        disks=disks,
    )


def texts_of(history: HistoryLines) -> Iterator[list[bytes] | PackedText]:
    """The lines of a history, many at a time, with their pack where there is one."""
    if not history.segmented:
        for text in _packed(history):
            history.empty = False
            yield text
    yield from history.many()


def _packed(history: HistoryLines) -> Iterator[list[bytes] | PackedText]:
    """The open end of a history up to the end of the last pack that fits its lines. The rest is still to be read."""
    try:
        file = open_file(history.file.with_name(COLUMNS_FILE))
    except OSError:
        return
    with file:
        at, descriptor = 0, history.end.fileno()
        for pack in read_packs(file):
            text = os.pread(descriptor, pack.length, pack.begin) if pack.begin >= at else b""
            line_begins = pack.begin == 0 or os.pread(descriptor, 1, pack.begin - 1) == b"\n"
            if len(text) < pack.length or not text.endswith(b"\n") or not line_begins:
                break
            yield from lines_of(_Piece(descriptor, at, pack.begin), history.limit)
            yield PackedText(text, pack)
            at = pack.begin + pack.length
        history.end.seek(at)


class _Piece:
    """A part of a file."""

    def __init__(self, descriptor: int, begin: int, end: int) -> None:
        self._descriptor, self._at, self._end = descriptor, begin, end

    def read1(self, size: int = -1, /) -> bytes:
        left = self._end - self._at
        data = os.pread(self._descriptor, left if size < 0 else min(size, left), self._at)
        self._at += len(data)
        return data
