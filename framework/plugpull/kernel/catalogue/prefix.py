"""Splits a line into prefix and message, for every format in which kernel logs are kept."""

from __future__ import annotations

import re

_MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
_DAY = r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)"
_CLOCK = r"\d{1,2}:\d\d:\d\d(?:[.,]\d+)?"
_KERNEL = r"(?:kernel|vmunix|kern)(?:\[\d+\])?: ?"

_PARTS = (
    r"\*\* \d+ printk messages dropped \*\* ",  # glued to the message that follows it
    r"<\d{1,3}>",  # the level, in /proc/kmsg and on the wire (syslog(2))
    r"\[ *\+?\d+(?:\.\d+)?s?\] ?",  # dmesg, dmesg -d; CONFIG_PRINTK_TIME
    r"\[ *[TC]\d+\] ?|\[ ?\d{1,3}\] |\[ *CPU\d+\] ?",  # CONFIG_PRINTK_CALLER
    rf"\[{_DAY} {_MONTH} +\d+ {_CLOCK} \d{{4}}\] ?",  # dmesg -T
    rf"\d{{4}}-\d\d-\d\d[T ]{_CLOCK}(?:Z|[+-]\d\d:?\d\d)? (?:\S+ )?(?:{_KERNEL})?",  # rsyslog, journalctl -o short-iso
    rf"(?:{_DAY} )?{_MONTH} +\d+ (?:\d{{4}} )?{_CLOCK} (?:\S+ )?{_KERNEL}",  # syslog, journalctl
    rf"{_CLOCK} (?:\S+ )?{_KERNEL}|\d+\.\d+ (?:\S+ )?{_KERNEL}",  # without a date; journalctl -o short-monotonic
    r"[\w.-]+ login: (?=\[)",  # a serial console's prompt, with the cursor still behind it
    r"(?:kernel|klogd): ",
    r"> ?",  # quoted in a mail
)
_PREFIX = re.compile(r"\s*(?:" + "|".join(_PARTS) + ")")
_USUAL = re.compile(
    r"\[ *\d+\.\d+\] (?=[A-Za-z])"
    rf"(?!(?:kernel|klogd): |[\w.-]+ login: |{_MONTH}\b|{_DAY}\b)"
)
"""A time stamp followed by the message, which is the form of nearly every line. No other prefix follows it."""
_TIME = re.compile(r"\[ *(\d+\.\d+)\]")
_MOST_PARTS = 8


def split_prefix(line: str) -> tuple[str, str]:
    """(prefix, message) of a line."""
    usual = _USUAL.match(line)
    if usual is not None:
        return line[: usual.end()], line[usual.end() :]
    at = 0
    for _ in range(_MOST_PARTS):
        found = _PREFIX.match(line, at)
        if found is None or found.end() == at:
            break
        at = found.end()
    return line[:at], line[at:]


def time_of(prefix: str) -> float | None:
    """Seconds since boot; ``None`` if the prefix has no time stamp."""
    found = _TIME.search(prefix)
    return float(found.group(1)) if found else None
