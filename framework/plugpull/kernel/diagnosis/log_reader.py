"""Reads kernel logs of any size from files, pipes and consoles. They may contain any bytes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

import msgspec

from plugpull.kernel.catalogue.classify import KernelEvent, subject_of
from plugpull.kernel.catalogue.finder import ENTRIES_OF, first_of, words_in
from plugpull.kernel.catalogue.line import LogLine
from plugpull.kernel.catalogue.prefix import second_message, split_prefix, time_of
from plugpull.kernel.diagnosis.reports import LONGEST, Report, ReportReader

BLOCK = 1 << 20
"""Bytes read at a time. Together with LONGEST_LINE it bounds the memory for an endless stream."""
LONGEST_LINE = 4096
"""Bytes of a line that are read: printk truncates a message at about 1 KiB (PRINTKRB_RECORD_MAX)."""
LONGEST_REPORT = 64 << 10
"""Bytes after the first line of a report in which the rest of it is searched."""


class LogEvent(msgspec.Struct, frozen=True):
    """A recognised message and its place. ``line`` counts from 1. ``report`` is the multi-line report that begins with
    it; ``inside`` is true if it is part of a report that began earlier."""

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
        """Seconds since boot; ``None`` if the line has no time stamp."""
        return time_of(split_prefix(self.event.text)[0])


def read_log(stream: BinaryIO, name: str) -> Iterator[LogEvent]:
    """The recognised messages of a log, in order. Invalid UTF-8 is replaced and NUL bytes are skipped."""
    reader, rest = _Reader(name), b""
    while block := stream.read(BLOCK):
        block = (rest + block).replace(b"\0", b"")
        end = block.rfind(b"\n") + 1
        if len(block) - end > BLOCK:
            # A line without an end: its beginning is enough to recognise it.
            block = block[: end + LONGEST_LINE]
        # The last lines are kept for the next block, which may hold the rest of a report that begins in them.
        upto = block.rfind(b"\n", 0, max(0, end - LONGEST_REPORT)) + 1
        yield from reader.scan(block[:end], upto)
        rest = block[upto:]
    yield from reader.scan(rest, len(rest))


class _Reader:
    """Scans a log block by block, counting the lines before each block."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._before = 0
        self._reported = 0

    def scan(self, block: bytes, upto: int) -> Iterator[LogEvent]:
        """The messages in the first ``upto`` bytes of ``block``, which end with a whole line."""
        for number, start, found in _candidates(block[:upto]):
            end = block.find(b"\n", start)
            line = block[start : end if end >= 0 else len(block)][:LONGEST_LINE]
            text = line.decode("utf-8", "replace").rstrip("\r")
            body = split_prefix(text)[1].strip()
            entry = first_of(body, found)
            if entry is None and (second := second_message(text)):
                entry, body = first_of(second, found), second
            if entry is None:
                continue
            event = KernelEvent(entry.kind, entry.severity, subject_of(body), text)
            report, line_number = None, self._before + number
            inside = line_number <= self._reported
            if not inside and event.alarming:
                report = _report_at(block, start, line_number, event)
                self._reported = report.last
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
    """(line counted from 1, offset of its beginning, numbers of the entries that have a word in it)."""
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
