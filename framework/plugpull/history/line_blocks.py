"""Reads the lines of a history many at a time: nearly all lines of a long one are samples."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, compress, groupby
from operator import methodcaller

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
from plugpull.history.packs import PackedSpan
from plugpull.history.sample_lines import SAMPLE, Part, SampleDecoder, numbers_of
from plugpull.history.seals import label_of

AT_ONCE = 256
"""Lines that are decoded at once, at most. Of more of them, the objects do not stay in a processor's cache: 2,048 take
half as much time again."""
MOST_BYTES = 4 << 20
"""Bytes after which no more lines are taken into a block."""

_is_sample = methodcaller("startswith", SAMPLE)
_is_seal, _is_whole = methodcaller("startswith", b'{"type":"seal",'), methodcaller("endswith", b"\n")

DIVIDING = (Event, RunBegun, RunEnded, RunResumed, ScenarioBegun, ScenarioEnded, DutReady, Sampled, Seal)
"""Events that change what the lines after them belong to, or that have to be taken by themselves."""


def blocks_of_lines(source: Iterable[Sequence[bytes]]) -> Iterator[Sequence[bytes]]:
    """Consecutive lines, from one seal to the next if they are not too many: seals are taken by themselves. What has no
    newline at its end, a piece of a line, comes alone."""
    lines: list[bytes] = []
    for some in source:
        if all(map(_is_whole, some)):
            lines += some
            *found, lines = _divided(lines)
            yield from found
            continue
        for whole, own in groupby((*lines, *some), _is_whole):
            if whole:
                yield from filter(None, _divided(list(own)))
            else:
                yield from map(_alone, own)
        lines = []
    if lines:
        yield lines


def _alone(piece: bytes) -> list[bytes]:
    return [piece]


def _divided(lines: list[bytes]) -> Iterator[list[bytes]]:
    """The lines, divided after seals; what comes last may be followed by more lines, or be empty."""
    begin = 0
    ends = [place for place, seal in enumerate(map(_is_seal, lines), 1) if seal]
    for end in (*ends, len(lines)):
        while end - begin >= AT_ONCE or (end in ends and begin < end):
            yield lines[begin : min(end, begin + AT_ONCE)]
            begin = min(end, begin + AT_ONCE)
    left = lines[begin:]
    if sum(map(len, left)) >= MOST_BYTES:
        yield left
        left = []
    yield left


@dataclass(frozen=True)
class LineGroup:
    """Consecutive lines of one scenario, decoded. ``before`` has, for each sample, how many of the other events are
    before it; ``numbers`` are those of all lines."""

    lines: Sequence[bytes]
    numbers: Sequence[int | None]
    samples: Sequence[Part | PackedSpan]
    others: Sequence[Event]
    before: Sequence[int]


def groups_of(
    lines: Sequence[bytes], samples: SampleDecoder, decode: Callable[[bytes], Event | None]
) -> Iterator[LineGroup | bytes]:
    """The lines in turn: lines of a scenario together, and lines that have to be taken by themselves.

    ``decode`` decodes a line that is not a sample. Lines of which a sample is damaged come by themselves.
    """
    flags = list(map(_is_sample, lines))
    places = [place for place, sample in enumerate(flags) if not sample]
    others = [decode(lines[place]) for place in places]
    begin = first = 0
    for index, place in enumerate((*places, len(lines))):
        event = others[index] if index < len(others) else None
        if event is not None and type(event) not in DIVIDING:
            continue
        if begin < place:
            found = samples.decode(list(compress(lines[begin:place], flags[begin:place])))
            if found is None:
                yield from lines[begin:place]
            else:
                yield _group(lines[begin:place], found, places[first:index], others[first:index], begin)
        if place < len(lines):
            yield lines[place]
        begin, first = place + 1, index + 1


def _group(
    lines: Sequence[bytes],
    samples: Sequence[Part],
    places: Sequence[int],
    others: Sequence[Event | None],
    begin: int,
) -> LineGroup:
    of_samples = list(chain.from_iterable(map(numbers_of, samples)))
    numbers: list[int | None] = []
    before: list[int] = []
    for index, place in enumerate((*places, begin + len(lines))):
        count = place - begin - len(numbers)
        numbers.extend(of_samples[len(before) : len(before) + count])
        before.extend([index] * count)
        if index < len(places):
            numbers.append(label_of(lines[place - begin]).n)
    return LineGroup(lines, numbers, samples, [event for event in others if event is not None], before)
