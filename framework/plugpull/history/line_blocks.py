"""Reads the lines of a history many at a time: nearly all lines of a long one are samples."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import compress
from operator import attrgetter, methodcaller

from plugpull.history.events import (
    DutReady,
    Event,
    RunBegun,
    RunEnded,
    RunResumed,
    Sampled,
    ScenarioBegun,
    ScenarioEnded,
    Seal,
)
from plugpull.history.sample_lines import SAMPLE, SampleLine, decode_samples
from plugpull.history.seals import label_of

AT_ONCE = 256
"""Lines that are decoded at once, at most. Of more of them, the objects do not stay in a processor's cache: 2,048 take
half as much time again."""
MOST_BYTES = 4 << 20
"""Bytes after which no more lines are taken into a block."""

_is_sample, _number = methodcaller("startswith", SAMPLE), attrgetter("n")

_DIVIDING = (Event, RunBegun, RunEnded, RunResumed, ScenarioBegun, ScenarioEnded, DutReady, Sampled, Seal)
"""Events that change what the lines after them belong to, or that have to be taken by themselves."""


def blocks_of_lines(source: Iterable[bytes]) -> Iterator[list[bytes]]:
    """Consecutive lines. What has no newline at its end, a piece of a line, comes alone."""
    lines: list[bytes] = []
    size = 0
    for raw in source:
        if not raw.endswith(b"\n"):
            if lines:
                yield lines
            yield [raw]
            lines, size = [], 0
            continue
        lines.append(raw)
        size += len(raw)
        if len(lines) >= AT_ONCE or size >= MOST_BYTES:
            yield lines
            lines, size = [], 0
    if lines:
        yield lines


@dataclass(frozen=True)
class LineGroup:
    """Consecutive lines of one scenario, decoded. ``before`` has, for each sample, how many of the other events are
    before it; ``numbers`` are those of all lines."""

    lines: Sequence[bytes]
    numbers: Sequence[int | None]
    samples: Sequence[SampleLine]
    others: Sequence[Event]
    before: Sequence[int]


def groups_of(lines: Sequence[bytes], decode: Callable[[bytes], Event | None]) -> Iterator[LineGroup | bytes]:
    """The lines in turn: lines of a scenario together, and lines that have to be taken by themselves.

    ``decode`` decodes a line that is not a sample. If one of the samples is damaged, all lines come by themselves.
    """
    flags = list(map(_is_sample, lines))
    places = [place for place, sample in enumerate(flags) if not sample]
    samples = decode_samples(list(compress(lines, flags)))
    if samples is None:
        yield from lines
        return
    others = [decode(lines[place]) for place in places]
    begin = first = 0
    for index, place in enumerate((*places, len(lines))):
        event = others[index] if index < len(others) else None
        if event is not None and type(event) not in _DIVIDING:
            continue
        if begin < place:
            own = samples[begin - first : place - index]
            yield _group(lines[begin:place], own, places[first:index], others[first:index], begin)
        if place < len(lines):
            yield lines[place]
        begin, first = place + 1, index + 1


def _group(
    lines: Sequence[bytes],
    samples: Sequence[SampleLine],
    places: Sequence[int],
    others: Sequence[Event | None],
    begin: int,
) -> LineGroup:
    numbers: list[int | None] = []
    before: list[int] = []
    for index, place in enumerate((*places, begin + len(lines))):
        count = place - begin - len(numbers)
        numbers.extend(map(_number, samples[len(before) : len(before) + count]))
        before.extend([index] * count)
        if index < len(places):
            numbers.append(label_of(lines[place - begin]).n)
    return LineGroup(lines, numbers, samples, [event for event in others if event is not None], before)
