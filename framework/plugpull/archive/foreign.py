"""Values of decoded JSON from anywhere: only those with the right type, and no text that a terminal would obey."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from plugpull.plain import clean_line

LONGEST = 300
"""Characters of a text that are kept."""

Object = Mapping[str, Any]


def text(of: Object, key: str, most: int = LONGEST) -> str:
    """A text on one line, without control characters; empty if there is none."""
    return line(of.get(key), most)


def line(value: object, most: int = LONGEST) -> str:
    """A value as a text on one line, if it is a text."""
    return clean_line(value[:most]) if isinstance(value, str) else ""


def number(value: object) -> float | None:
    """A value as a finite number, if it is one."""
    if isinstance(value, bool) or not isinstance(value, int | float) or abs(value) > 1e300:
        return None
    return float(value) if math.isfinite(value) else None


def part(of: Object, key: str) -> Object:
    """An object in an object; empty if there is none."""
    value = of.get(key)
    return value if isinstance(value, dict) else {}


def parts(of: Object, key: str) -> Iterator[Object]:
    """The objects of a list in an object."""
    value = of.get(key)
    if isinstance(value, list):
        yield from (each for each in value if isinstance(each, dict))
