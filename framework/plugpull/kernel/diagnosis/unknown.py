"""Messages at the level of a warning or worse that no entry of the catalogue names, for users to send in.

Only some logs have levels: those of ``dmesg -x``, ``dmesg -r``, /dev/kmsg, logread and ``journalctl -o json``. In
others, lines are chosen by their words, and only those of the code that plugpull is about.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import BinaryIO, NamedTuple

from plugpull.kernel.catalogue.finder import named
from plugpull.kernel.catalogue.prefix import LEVELS, level_of, split_prefix
from plugpull.kernel.catalogue.uncatalogued import about_storage, harmless
from plugpull.kernel.diagnosis.continuation import LONGEST
from plugpull.kernel.diagnosis.log_reader import LONGEST_LINE
from plugpull.kernel.diagnosis.reports import part_of_report
from plugpull.kernel.diagnosis.scope import WARNING
from plugpull.plain import clean_line

MOST = 10_000
"""Different messages that are kept: this bounds the memory."""

_ANOTHERS = re.compile(r"\s*(?:<(?:[89]|\d\d+)>|(?:[89]|\d\d+),\d+,\d+,|(?!kern\b)[a-z]\w+ *:\w+ *: )(?!.*kernel)")
"""The prefix of what a process wrote to /dev/kmsg: its facility is not the kernel's, which is 0 (syslog(3))."""
_VARIABLE = re.compile(r"0x[\da-fA-F]+|\b[\da-f]{4,}\b|\d+")
_TROUBLE = re.compile(
    r"(?i)\b(?:error|err|fail(?:ed|ure|s|ing)?|warn(?:ing)?|bug|bad|invalid|corrupt(?:ed|ion)?|abort(?:ed|ing)?|unable"
    r"|cannot|can't|couldn't|could not|timed? ?out|lost|broken|dead|dying|illegal|unexpected|not respond(?:ing)?"
    r"|mismatch|stall(?:ed)?|hung|overflow|underrun|overrun|missing)\b"
)


class Unknown(NamedTuple):
    """A message that no entry names: how often it was logged, its worst level (``None`` if the log has none) and the
    first line of it, with its number from 1."""

    line: int
    times: int
    level: int | None
    text: str


def unknown_in(stream: BinaryIO) -> list[Unknown]:
    """The unknown messages of a log, each once, in order. Messages that differ only in numbers are one."""
    found: dict[str, Unknown] = {}
    for number, raw in enumerate(iter(lambda: stream.readline(LONGEST_LINE), b""), 1):
        prefix, indented = split_prefix(raw.replace(b"\0", b"").decode("utf-8", "replace").rstrip())
        level, body = level_of(prefix), indented.strip()
        if not body or not _chosen(prefix, body, level) or part_of_report(indented):
            continue
        if harmless(body) or named(body) is not None:
            continue
        key = _VARIABLE.sub("#", body)[:LONGEST]
        if key in found:
            found[key] = _again(found[key], level)
        elif len(found) < MOST:
            found[key] = Unknown(number, 1, level, body)
    return list(found.values())


def _chosen(prefix: str, body: str, level: int | None) -> bool:
    if level is not None:
        return level <= WARNING and not _ANOTHERS.match(prefix)
    return about_storage(body) and bool(_TROUBLE.search(body)) and not body.startswith(("usbcore:", "loop"))


def _again(known: Unknown, level: int | None) -> Unknown:
    worst = min((one for one in (known.level, level) if one is not None), default=None)
    return known._replace(times=known.times + 1, level=worst)


def unknown_text(found: Iterable[Unknown], file: str = "") -> Iterator[str]:
    """A line for each message: its place, how often, its level, its text. ``file`` is shown if there are several."""
    none = True
    for one in found:
        none = False
        level = LEVELS[one.level] if one.level is not None else "-"
        place = f"{clean_line(file)}:{one.line}" if file else f"{one.line:7}"
        yield f"{place} {one.times:6}x {level:7} {clean_line(one.text)}"
    if none:
        yield f"{clean_line(file)}: nothing unknown" if file else "nothing unknown"
