"""Decodes lines of samples many at a time: they are nearly all of a long history.

Nearly all of them differ in their numbers only. Such lines are decoded as one list of numbers, once a regular
expression has shown that there is nothing between the numbers but what the first of the lines has there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import groupby

import msgspec

SAMPLE = b'{"type":"sample",'
"""How the recorder begins the line of a sample."""

Numbers = tuple[int, int, int, int, int, int, int, int]
"""The fields of ``Counters``."""
WIDTH = 8
"""How many there are."""

_DIGITS = b"0123456789"
_NOT_NUMBERS = bytes(byte for byte in range(256) if byte not in _DIGITS + b",.")
_ONE_DISK = rb'"[a-z][a-z0-9]*":\[[0-9]+(?:,[0-9]+){7}\]'
_LINE = re.compile(
    rb'\{"type":"sample","at":[0-9]+\.[0-9]+(,"report":[0-9]+)?,"disks":\{(%b(?:,%b)*)\}'
    rb'(,"cpu":\[[0-9]+,[0-9]+\])?,"n":[0-9]+\}\n' % (_ONE_DISK, _ONE_DISK)
)
_NAME = re.compile(rb'"([a-z0-9]+)"')


class SampleLine(msgspec.Struct, frozen=True, gc=False, tag_field="type", tag="sample"):
    """A line with ``Sampled`` and its number. The counters are plain tuples, which are decoded faster."""

    disks: dict[str, Numbers]
    at: float | None = None
    report: int = 0
    cpu: tuple[int, int] = (0, 0)
    n: int | None = None


class SampleSpan(msgspec.Struct, frozen=True, gc=False):
    """Consecutive samples that list the same disks. ``counters`` has, for each of ``names``, its columns; ``at``,
    ``reports``, ``busy``, ``total`` (of the DUT's CPU) and ``numbers`` have one number for each sample."""

    names: tuple[str, ...]
    at: Sequence[float]
    reports: Sequence[int]
    busy: Sequence[int]
    total: Sequence[int]
    counters: Sequence[Sequence[Sequence[int]]]
    numbers: Sequence[int]


Part = SampleSpan | list[SampleLine]

_decoder: msgspec.json.Decoder[SampleLine] = msgspec.json.Decoder(SampleLine)
_numbers: msgspec.json.Decoder[list[int | float]] = msgspec.json.Decoder(list[int | float])


def numbers_of(part: Part) -> Sequence[int | None]:
    """The numbers of the lines."""
    return part.numbers if isinstance(part, SampleSpan) else [line.n for line in part]


def decode_lines(lines: Sequence[bytes]) -> list[SampleLine] | None:
    """The samples of these lines; ``None`` unless every line is exactly one sample."""
    try:
        found = _decoder.decode_lines(b"".join(lines))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return found if len(found) == len(lines) else None


class LineShape:
    """What a line of a sample has beside its numbers. Lines with the same ``skeleton``, all but the digits, list the
    same disks."""

    def __init__(self, line: bytes) -> None:
        """Learn it from a line. ``usable``: it is the line of a sample that can be decoded as a list of numbers."""
        self.skeleton = line.translate(None, _DIGITS)
        found = _LINE.fullmatch(line)
        keys: list[bytes] = _NAME.findall(found[2]) if found else []
        self.usable = found is not None and len(set(keys)) == len(keys)
        self._report, self._cpu = (bool(found[1]), bool(found[3])) if found else (False, False)
        self.names = tuple(key.decode() for key in keys)
        self._digits = [b'"%b"' % key for key in keys if any(digit in _DIGITS for digit in key)]
        disks = b",".join(rb'"%b":\[[0-9,]++\]' % key for key in keys)
        report, cpu = b',"report":[0-9]++' * self._report, rb',"cpu":\[[0-9]++,[0-9]++\]' * self._cpu
        line_of = rb'\{"type":"sample","at":[0-9]++\.[0-9]++%b,"disks":\{%b\}%b,"n":[0-9]++\}\n'
        self._whole = re.compile(rb"(?:%b)++" % (line_of % (report, disks, cpu)))

    def span(self, text: bytes, count: int) -> SampleSpan | None:
        """The samples of ``count`` lines; ``None`` if they are not all of this shape, or one is damaged."""
        if not self.usable or text.translate(None, _DIGITS) != self.skeleton * count:
            return None
        if self._whole.fullmatch(text) is None:
            return None
        for name in self._digits:
            text = text.replace(name, b"")
        try:  # each line begins with the comma after its type
            flat = _numbers.decode(b"[0%b]" % text.translate(None, _NOT_NUMBERS))
        except (msgspec.DecodeError, RecursionError):
            return None
        return self._divided(flat, count)

    def _divided(self, flat: list[int | float], count: int) -> SampleSpan | None:
        head = 2 + self._report
        size = head + WIDTH * len(self.names) + 2 * self._cpu
        if len(flat) != 1 + size * count:
            return None
        # A whole number is decoded as an int, and only ``at`` has a decimal point.
        columns: list[list[int]] = [flat[place::size] for place in range(1, size + 1)]  # type: ignore[misc]
        none = [0] * count
        busy, total = columns[-3:-1] if self._cpu else (none, none)
        return SampleSpan(
            names=self.names,
            at=columns[0],
            reports=columns[1] if self._report else none,
            busy=busy,
            total=total,
            counters=[columns[begin : begin + WIDTH] for begin in range(head - 1, size - 1 - 2 * self._cpu, WIDTH)],
            numbers=columns[-1],
        )


class SampleDecoder:
    """Decodes lines of samples. Keeps the shape of the last lines."""

    def __init__(self) -> None:
        self._shape = LineShape(b"")

    def decode(self, lines: Sequence[bytes]) -> list[Part] | None:
        """The samples of these lines, in turn; ``None`` unless every line is exactly one sample."""
        span = self._span(lines)
        return [span] if span else self._divided(lines)

    def _divided(self, lines: Sequence[bytes]) -> list[Part] | None:
        """The samples of lines of several shapes."""
        found: list[Part] = []
        for part in _alike(lines):
            one = self._span(part) or decode_lines(part)
            if one is None:
                return None
            found.append(one)
        return found

    def _span(self, lines: Sequence[bytes]) -> SampleSpan | None:
        text = b"".join(lines)
        span = self._shape.span(text, len(lines))
        if span is None and lines:
            self._shape = LineShape(lines[0])
            span = self._shape.span(text, len(lines))
        return span


def _alike(lines: Sequence[bytes]) -> Iterator[Sequence[bytes]]:
    """The lines divided where they begin to differ in more than digits."""
    for _, part in groupby(lines, lambda line: line.translate(None, _DIGITS)):
        yield list(part)
