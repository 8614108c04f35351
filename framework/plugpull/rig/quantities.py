"""Sizes, rates and durations as text: 67108864, "64 MiB", "10 GB", "2 MiB/s", "500 ms".

Units are case-sensitive where it matters: "Mb" is megabits, which are not used for disks, and "M" alone could be MB
(10**6) or MiB (2**20). Both are refused with the spelling that was probably meant.
"""

from __future__ import annotations

import re
from decimal import Decimal

from plugpull.errors import UsageError

UNITS: dict[str, int] = {
    "B": 1,
    "kB": 1000,
    "KB": 1000,
    "MB": 1000**2,
    "GB": 1000**3,
    "TB": 1000**4,
    "KiB": 1 << 10,
    "MiB": 1 << 20,
    "GiB": 1 << 30,
    "TiB": 1 << 40,
}
SECONDS: dict[str, float] = {"ms": 0.001, "s": 1.0, "min": 60.0}
LARGEST = (1 << 63) - 1
"""Bytes. The kernel and QEMU keep sizes in a signed 64-bit integer."""
LONGEST = 3600.0
"""Seconds. No limit of a test is longer than an hour."""

_TEXT = re.compile(r"\s*([0-9]{1,20})(\.[0-9]{1,9})?\s*([A-Za-z]*)\s*(/s|ps)?\s*", re.ASCII)
_FEW_DIGITS = 10_000
_DURATION = re.compile(r"\s*([0-9]{1,9}(?:\.[0-9]{1,9})?)\s*([A-Za-z]*)\s*", re.ASCII)
_LIKELY_SECONDS = {"": "s", "sec": "s", "secs": "s", "second": "s", "seconds": "s", "msec": "ms", "m": "min"}


class QuantityError(UsageError, ValueError):
    """A size, rate or duration that cannot be read. ``hint`` is a spelling that was probably meant, or empty.

    Also a ``ValueError``, because pydantic reports only those as mistakes.
    """

    def __init__(self, what: str, hint: str = "") -> None:
        super().__init__(what)
        self.hint = hint

    def __str__(self) -> str:
        return f'{self.what}; did you mean "{self.hint}"?' if self.hint else self.what


def parse_size(value: object) -> int:
    """Bytes, from an integer (bytes) or from text such as "64 MiB" or "10 GB".

    Raises ``QuantityError``.
    """
    return _parse(value, "size", "64 MiB", "")


def parse_rate(value: object) -> int:
    """Bytes per second, from an integer or from text such as "2 MiB/s".

    Raises ``QuantityError``.
    """
    return _parse(value, "rate", "2 MiB/s", "/s")


def parse_duration(value: object) -> float:
    """Seconds, from a number (seconds) or from text such as "30 s" or "500 ms".

    Raises ``QuantityError``.
    """
    form = 'write a number of seconds, or text such as "30 s"'
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise QuantityError(f"this is not a duration: {form}")
    if isinstance(value, str):
        match = _DURATION.fullmatch(value)
        if match is None:
            raise QuantityError(f'"{_short(value)}" is not a duration: {form}')
        number, unit = match.groups(default="")
        if unit not in SECONDS:
            reason = f'has the unknown unit "{unit}"' if unit else "has no unit"
            likely = _LIKELY_SECONDS.get(unit.lower(), "")
            raise QuantityError(f'the duration "{_short(value)}" {reason}', f"{number} {likely}" if likely else "")
        value = float(number) * SECONDS[unit]
    if not 0 < value <= LONGEST:
        raise QuantityError(f"a duration must be more than 0 and at most {LONGEST:g} s")
    return float(value)


def format_size(size: int) -> str:
    """Bytes as text: "64 MiB", "10 GB". Exact if that takes few digits, otherwise with one decimal: "37.3 GiB"."""
    if size < 0:
        return f"-{format_size(-size)}"
    exact = [(size // factor, unit) for unit, factor in UNITS.items() if unit != "KB" and size % factor == 0]
    count, unit = min(exact, key=lambda pair: pair[0])
    if count < _FEW_DIGITS:
        return f"{count} {unit}"
    factor, unit = max((factor, unit) for unit, factor in UNITS.items() if "i" in unit and factor <= size)
    return f"{size / factor:.1f} {unit}"


def format_rate(rate: float) -> str:
    """Bytes per second as text: "2 MiB/s"."""
    return f"{format_size(round(rate))}/s"


def _parse(value: object, noun: str, example: str, suffix: str) -> int:
    form = f'write a whole number of bytes{" per second" if suffix else ""}, or text such as "{example}"'
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise QuantityError(f"this is not a {noun}: {form}")
    if isinstance(value, str):
        value = _parse_text(value, noun, form, suffix)
    if value <= 0:
        raise QuantityError(f"a {noun} must be more than 0")
    if value > LARGEST:
        raise QuantityError(f"this {noun} is too large: the most there can be is 8 EiB{suffix} less one byte")
    return value


def _parse_text(text: str, noun: str, form: str, suffix: str) -> int:
    match = _TEXT.fullmatch(text)
    if match is None:
        raise QuantityError(f'"{_short(text)}" is not a {noun}: {form}')
    whole, fraction, unit, per_second = match.groups(default="")
    number = whole + fraction
    likely = _likely_unit(unit or ("B" if len(whole) > 5 else "MiB"))
    hint = f"{number} {likely}{suffix}" if likely else ""
    factor = UNITS.get(unit)
    if factor is None or per_second == "ps":
        reason = f'has the unknown unit "{unit}{per_second}"' if unit else "has no unit"
        raise QuantityError(f'the {noun} "{_short(text)}" {reason}', hint)
    if bool(per_second) != bool(suffix):
        kind = "a rate" if per_second else "a size"
        raise QuantityError(f'"{_short(text)}" is {kind}, but a {noun} is wanted', hint)
    exact = Decimal(number) * factor
    if exact != exact.to_integral_value() and not suffix:  # a size is part of a disk's identity, a rate is not
        raise QuantityError(f'the {noun} "{_short(text)}" is not a whole number of bytes')
    return round(exact)


def _likely_unit(unit: str) -> str:
    """The unit that was probably meant by a misspelt one. A lone prefix counts as the binary unit."""
    folded = unit.lower().removesuffix("ps")
    for known in UNITS:
        if known.lower() == folded:
            return known
    return {"k": "KiB", "m": "MiB", "g": "GiB", "t": "TiB", "bytes": "B", "byte": "B"}.get(folded, "")


def _short(text: str) -> str:
    return text if len(text) <= 40 else text[:37] + "..."
