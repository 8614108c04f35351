"""Reads kernel logs of any size and origin: files, pipes, consoles, with whatever bytes are in them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

import msgspec

from plugpull.kernel.catalogue.classify import KernelEvent, subject_of
from plugpull.kernel.catalogue.finder import ENTRIES_OF, first_of, words_in
from plugpull.kernel.catalogue.line import LogLine
from plugpull.kernel.catalogue.prefix import split_prefix, time_of
from plugpull.kernel.diagnosis.reports import LONGEST, Report, ReportReader

BLOCK = 1 << 20
"""Bytes read at a time; what memory an endless stream takes is bounded by it and LONGEST_LINE."""
LONGEST_LINE = 4096
"""Bytes of a line that are looked at: printk cuts a message at about 1 KiB (PRINTKRB_RECORD_MAX)."""
LONGEST_REPORT = 64 << 10
"""Bytes after the first line of a report in which the rest of it is looked for."""


class LogEvent(msgspec.Struct, frozen=True):
    """A recognised message and where it stands. ``line`` counts from 1. ``report`` is the multi-line report that it
    begins, ``inside`` whether it stands inside one that began earlier."""

    file: str
    line: int
    event: KernelEvent
    report: Report | None = None
    inside: bool = False

    @property
    def in_earlier_report(self) -> bool:
        """Whether the message is part of a report that is shown by its headline already."""
        return self.inside and self.event.alarming

    @property
    def time(self) -> float | None:
        """Seconds since boot, where the log says."""
        return time_of(split_prefix(self.event.text)[0])


def read_log(stream: BinaryIO, name: str) -> Iterator[LogEvent]:
    """The recognised messages of a log, in its order. Bytes that are no text are replaced, NULs passed over."""
    reader, rest = _Reader(name), b""
    while block := stream.read(BLOCK):
        block = (rest + block).replace(b"\0", b"")
        end = block.rfind(b"\n") + 1
        if len(block) - end > BLOCK:
            # A line without an end: its beginning says what it is.
            block = block[: end + LONGEST_LINE]
        # The last lines wait for what comes after them: it may belong to a report that they begin.
        upto = block.rfind(b"\n", 0, max(0, end - LONGEST_REPORT)) + 1
        yield from reader.scan(block[:end], upto)
        rest = block[upto:]
    yield from reader.scan(rest, len(rest))


class _Reader:
    """How far a log was read: lines before the block, and the last line of the last report."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._before = 0
        self._folded = 0

    def scan(self, block: bytes, upto: int) -> Iterator[LogEvent]:
        """The messages of the first ``upto`` bytes of ``block``, whole lines all."""
        for number, start, found in _candidates(block[:upto]):
            end = block.find(b"\n", start)
            line = block[start : end if end >= 0 else len(block)][:LONGEST_LINE]
            text = line.decode("utf-8", "replace").rstrip("\r")
            body = split_prefix(text)[1].strip()
            entry = first_of(body, found)
            if entry is None:
                continue
            event = KernelEvent(entry.kind, entry.severity, subject_of(body), text)
            report, line_number = None, self._before + number
            inside = line_number <= self._folded
            if not inside and event.alarming:
                report = _report_at(block, start, line_number, event)
                self._folded = report.last
            yield LogEvent(self._name, line_number, event, report, inside)
        self._before += block.count(b"\n", 0, upto)


def _report_at(block: bytes, start: int, number: int, event: KernelEvent) -> Report:
    """The report that begins with a line of ``block``."""
    reader = ReportReader()
    lines = block[start : start + LONGEST_REPORT].split(b"\n", LONGEST)[:LONGEST]
    for offset, line in enumerate(lines):
        text = line[:LONGEST_LINE].decode("utf-8", "replace")
        over = list(reader.feed(number + offset, LogLine(text, None if offset else event)))
        if over:
            return over[0]
    return next(reader.close())


def _candidates(block: bytes) -> Iterator[tuple[int, int, set[int]]]:
    """(line counted from 1, offset of its beginning, entries whose words are in it)."""
    number, counted, end, found = 1, 0, -1, set[int]()
    for word, at, _ in words_in(block):
        if at < end:
            found.update(ENTRIES_OF[word])
            continue
        if end >= 0:
            yield number, counted, found
        start = block.rfind(b"\n", 0, at) + 1
        number += block.count(b"\n", counted, start)
        counted, found = start, set(ENTRIES_OF[word])
        end = block.find(b"\n", at)
        end = len(block) if end < 0 else end
    if end >= 0:
        yield number, counted, found
