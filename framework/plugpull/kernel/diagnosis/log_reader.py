"""Reads kernel logs of any size from files, pipes and consoles. They may contain any bytes."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from typing import Protocol

import msgspec

from plugpull.kernel.catalogue.classify import KernelEvent, subject_of
from plugpull.kernel.catalogue.finder import BOOT_WORDS, entries_with, first_of, not_the_kernels, words_in
from plugpull.kernel.catalogue.line import LogLine
from plugpull.kernel.catalogue.prefix import second_message, split_prefix, time_of
from plugpull.kernel.diagnosis.continuation import continued
from plugpull.kernel.diagnosis.line_shapes import LineShapes, shape_of
from plugpull.kernel.diagnosis.reports import LONGEST, Report, ReportReader, caller_of
from plugpull.kernel.diagnosis.restarts import BACK, restart_at
from plugpull.kernel.diagnosis.unwrap import unwrapped

BLOCK = 1 << 20
"""Bytes read at a time. Together with LONGEST_LINE it bounds the memory for an endless stream."""
LONGEST_LINE = 4096
"""Bytes of a line that are read: printk truncates a message at about 1 KiB (PRINTKRB_RECORD_MAX)."""
LONGEST_REPORT = 64 << 10
"""Bytes after the first line of a report in which the rest of it is searched."""
_COLOUR = re.compile(rb"\x1b\[[\d;]*[mK]")
"""What dmesg --color and grep --color put around words."""


class LogEvent(msgspec.Struct, frozen=True):
    """A recognised message and its place. ``line`` counts from 1. ``report`` is the multi-line report that begins with
    it; ``inside`` is true if it is part of a report that began earlier. ``continues`` is the message whose end this one
    is, if it does not name its device itself."""

    file: str
    line: int
    event: KernelEvent
    report: Report | None = None
    inside: bool = False
    continues: str = ""

    @property
    def subject(self) -> str:
        """The device that the message, or the one that it continues, is about; empty if neither names one."""
        return self.event.subject or (subject_of(self.continues) if self.continues else "")

    @property
    def in_earlier_report(self) -> bool:
        """Whether the message is part of a report that is shown by its headline already."""
        return self.inside and self.event.alarming

    @property
    def time(self) -> float | None:
        """Seconds since boot; ``None`` if the line has no time stamp."""
        return time_of(split_prefix(self.event.text)[0])


class Readable(Protocol):
    """A file, a pipe or a console that is open for reading."""

    def read(self, size: int, /) -> bytes:
        """Up to ``size`` bytes; empty at the end."""


def read_log(stream: Readable, name: str) -> Iterator[LogEvent]:
    """The recognised messages of a log, in order, and its restarts. Colours are removed. Lines that were certainly
    wrapped are joined in the first MiB: nobody mails more. Invalid UTF-8 is replaced and NUL bytes are skipped."""
    reader, rest = _Reader(name), b""
    while block := stream.read(BLOCK):
        block = (rest + block).replace(b"\0", b"")
        if b"\x1b" in block:
            block = _COLOUR.sub(b"", block)
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
        self._reported: dict[str, int] = {}
        self._tail = b""
        self._read = 0
        self._shapes = LineShapes()

    def scan(self, block: bytes, upto: int) -> Iterator[LogEvent]:
        """The messages in the first ``upto`` bytes of ``block``, which end with a whole line."""
        lines = block.count(b"\n", 0, upto)
        joints: tuple[int, ...] = ()
        if self._read < BLOCK:
            text, joints = unwrapped(block[:upto])
            block, upto = text + block[upto:], len(text)
        begun = 0
        for number, start, words in _candidates(block[:upto]):
            line = self._before + number + (bisect_right(joints, start) if joints else 0)
            if not BOOT_WORDS.isdisjoint(words) and (restart := restart_at(block, start, begun, self._tail)):
                begun = start
                report = Report(restart.event, line, line, restart.headline)
                yield LogEvent(self._name, line, restart.event, report)
            event = self._event(block, start, line, entries_with(words))
            if event is not None:
                yield event
        self._before += lines
        self._read += upto
        self._tail = block[max(0, upto - BACK) : upto]

    def _event(self, block: bytes, start: int, number: int, found: tuple[int, ...]) -> LogEvent | None:
        if not found:
            return None
        end = block.find(b"\n", start, start + LONGEST_LINE)
        raw = block[start : end if end >= 0 else start + LONGEST_LINE].rstrip(b"\r")
        shape = shape_of(raw)
        if self._shapes.is_unnamed(shape, found):
            return None
        text = raw.decode("utf-8", "replace")
        body, second = self._shapes.message(shape, text), ""
        entry = first_of(body, found)
        if entry is not None and self._shapes.not_the_kernels(shape, entry, body, text):
            entry = None
        if entry is None and (second := second_message(text, body)):
            entry, body = first_of(second, found), second
            if entry is not None and not_the_kernels(entry, body, text):
                entry = None
        if entry is None:
            if not second:
                self._shapes.keep_unnamed(shape, found, body)
            return None
        subject = subject_of(body) if second else self._shapes.subject(shape, body)
        event = KernelEvent(entry.kind, entry.severity, subject, text)
        report, inside = None, bool(self._reported) and self._inside(number, text)
        if not inside and event.alarming:
            report = _report_at(block, start, number, event)
            self._reported[caller_of(split_prefix(text)[0])] = report.last
        return LogEvent(self._name, number, event, report, inside, "" if subject else continued(block, start, body))

    def _inside(self, number: int, text: str) -> bool:
        """Whether a line is between the first and the last one of its caller's report."""
        self._reported = {caller: last for caller, last in self._reported.items() if last >= number}
        return bool(self._reported) and caller_of(split_prefix(text)[0]) in self._reported


def _report_at(block: bytes, start: int, number: int, event: KernelEvent) -> Report:
    """The report that begins with a line of ``block``."""
    reader = ReportReader()
    lines = block[start : start + LONGEST_REPORT].split(b"\n", LONGEST)[:LONGEST]
    for offset, line in enumerate(lines):
        text = line[:LONGEST_LINE].decode("utf-8", "replace")
        for over in reader.feed(number + offset, LogLine(text, None if offset else event)):
            if over.first == number:
                return over
    return next(report for report in reader.close() if report.first == number)


def _candidates(block: bytes) -> Iterator[tuple[int, int, list[int]]]:
    """(line counted from 1, offset of its beginning, numbers of the words in it)."""
    number, counted, end, words = 1, 0, -1, list[int]()
    for word, at, _ in words_in(block):
        if at < end:
            words.append(word)
            continue
        if end >= 0:
            yield number, counted, words
        start = block.rfind(b"\n", 0, at) + 1
        number += block.count(b"\n", counted, start)
        counted, words = start, [word]
        end = block.find(b"\n", at)
        end = len(block) if end < 0 else end
    if end >= 0:
        yield number, counted, words
