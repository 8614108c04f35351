"""Decodes lines of samples many at a time: they are nearly all of a long history."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

SAMPLE = b'{"type":"sample",'
"""How the recorder begins the line of a sample."""

Numbers = tuple[int, int, int, int, int, int, int, int]
"""The fields of ``Counters``."""


class SampleLine(msgspec.Struct, frozen=True, gc=False, tag_field="type", tag="sample"):
    """A line with ``Sampled`` and its number. The counters are plain tuples, which are decoded faster."""

    disks: dict[str, Numbers]
    at: float | None = None
    report: int = 0
    cpu: tuple[int, int] = (0, 0)
    n: int | None = None


_decoder: msgspec.json.Decoder[SampleLine] = msgspec.json.Decoder(SampleLine)


def decode_samples(lines: Sequence[bytes]) -> list[SampleLine] | None:
    """The samples of these lines; ``None`` unless every line is exactly one sample."""
    try:
        found = _decoder.decode_lines(b"".join(lines))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return found if len(found) == len(lines) else None
