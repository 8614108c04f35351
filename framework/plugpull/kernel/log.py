"""Reads kernel logs of any size and origin: files, pipes, consoles, with whatever bytes are in them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import itemgetter
from typing import BinaryIO

import msgspec
from ahocorasick_rs import BytesAhoCorasick, Implementation

from plugpull.kernel.catalogue import ENTRIES
from plugpull.kernel.classify import KernelEvent, subject_of
from plugpull.kernel.entry import Entry
from plugpull.kernel.needles import needles_of
from plugpull.kernel.prefix import split_prefix, time_of

BLOCK = 1 << 20
"""Bytes read at a time; what memory an endless stream takes is bounded by it and LONGEST."""
LONGEST = 4096
"""Bytes of a line that are looked at: printk cuts a message at about 1 KiB (PRINTKRB_RECORD_MAX)."""


class LogEvent(msgspec.Struct, frozen=True):
    """A recognised message and where it stands. ``line`` counts from 1."""

    file: str
    line: int
    event: KernelEvent

    @property
    def time(self) -> float | None:
        """Seconds since boot, where the log says."""
        return time_of(split_prefix(self.event.text)[0])


_COMPILED = tuple((entry, re.compile(entry.pattern)) for entry in ENTRIES)
_WORDS: dict[str, list[int]] = {}
for _number, _entry in enumerate(ENTRIES):
    for _word in needles_of(_entry.pattern):
        _WORDS.setdefault(_word, []).append(_number)
_ENTRIES_OF = list(_WORDS.values())
_FINDER = BytesAhoCorasick([word.encode() for word in _WORDS], implementation=Implementation.DFA)


def read_log(stream: BinaryIO, name: str) -> Iterator[LogEvent]:
    """The recognised messages of a log, in its order. Bytes that are no text are replaced, NULs passed over."""
    before, rest = 0, b""
    while block := stream.read(BLOCK):
        block = (rest + block).replace(b"\0", b"")
        whole, end, rest = block.rpartition(b"\n")
        if not end and len(rest) > BLOCK:
            # A line without an end: its beginning says what it is.
            whole, rest = rest, rest[:LONGEST]
            continue
        if end:
            yield from _scan(whole, name, before)
            before += whole.count(b"\n") + 1
    if rest:
        yield from _scan(rest, name, before)


def _scan(block: bytes, name: str, before: int) -> Iterator[LogEvent]:
    """The messages of whole lines, of which ``before`` came earlier."""
    for number, start, found in _candidates(block):
        end = block.find(b"\n", start)
        line = block[start : end if end >= 0 else len(block)][:LONGEST]
        text = line.decode("utf-8", "replace").rstrip("\r")
        body = split_prefix(text)[1].strip()
        entry = _first(body, found)
        if entry is not None:
            event = KernelEvent(entry.kind, entry.severity, subject_of(body), text)
            yield LogEvent(name, before + number, event)


def _candidates(block: bytes) -> Iterator[tuple[int, int, set[int]]]:
    """(line counted from 1, offset of its beginning, entries whose words are in it)."""
    number, counted = 1, 0
    hits = ((block.rfind(b"\n", 0, start) + 1, word) for word, start, _ in _matches(block))
    for start, group in groupby(hits, key=itemgetter(0)):
        number += block.count(b"\n", counted, start)
        counted = start
        yield number, start, {entry for _, word in group for entry in _ENTRIES_OF[word]}


def _matches(block: bytes) -> Iterable[tuple[int, int, int]]:
    found: list[tuple[int, int, int]] = _FINDER.find_matches_as_indexes(block, overlapping=True)
    return found


def _first(body: str, candidates: set[int]) -> Entry | None:
    for number in sorted(candidates) if len(candidates) > 1 else candidates:
        entry, pattern = _COMPILED[number]
        if pattern.search(body):
            return entry
    return None
