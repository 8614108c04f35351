"""How long a run lasts, as text: ``90s``, ``2h``, ``4d``, ``1d12h``."""

from __future__ import annotations

import math
import re

from plugpull.errors import UsageError

UNITS = {"s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0, "w": 7 * 86400.0}
SHORTEST = 30.0
"""Seconds. A shorter run would end before its first fault."""
LONGEST = 366 * 86400.0
HINT = "write a number and a unit, such as 90s, 30m, 2h, 4d or 1d12h"
_PART = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,3})?)\s*(min|[smhdw])\s*", re.ASCII)


def parse_length(text: str) -> float:
    """Seconds. Raises UsageError for anything that is not a length, and for one that is too short or too long."""
    place, seconds = 0, 0.0
    while (part := _PART.match(text.strip(), place)) is not None:
        seconds += float(part[1]) * UNITS[part[2]]
        place = part.end()
    if not place or place < len(text.strip()):
        raise UsageError(f"{text!r} is not a length of time", hint=HINT)
    if not SHORTEST <= seconds <= LONGEST:
        least, most = length_text(SHORTEST), length_text(LONGEST)
        raise UsageError(f"a soak cannot last {text}", hint=f"give a length between {least} and {most}")
    return seconds


def length_text(seconds: float) -> str:
    """A length in its two largest units: ``3 d 4 h``, ``1 h 20 min``, ``45 s``."""
    left = max(0, math.floor(seconds + 0.5))
    said = []
    for name, unit in (("d", 86400), ("h", 3600), ("min", 60), ("s", 1)):
        count, left = divmod(left, unit)
        said.append((count, name))
    first = next((place for place, (count, _) in enumerate(said) if count), len(said) - 1)
    return " ".join(f"{count} {name}" for count, name in said[first : first + 2] if count or len(said) == first + 1)
