"""The line of a dying kernel's log that a kernel developer would quote."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from plugpull.kernel.catalogue.entry import Severity
from plugpull.kernel.catalogue.line import LogLine

_PLACE = re.compile(r"^(?:RIP: [\da-f]+:|EIP: |EIP is at |pc : )(\w[\w.]*)\+0x")


def panic_headline(lines: Iterable[str]) -> str:
    """The line of ``lines`` that a kernel developer would quote; empty if none is alarming.

    The first fatal line is the cause and what follows is its consequence: an oops comes before the panic it ends in. A
    warning is quoted only if nothing is fatal, or if the kernel panicked because of it. The function in which an oops
    happened is added.
    """
    return headline_of([LogLine(text) for text in lines])


def headline_of(lines: Sequence[LogLine]) -> str:
    """The same for lines that are classified already."""
    warning = ""
    for position, line in enumerate(lines):
        event = line.event
        if event is None or not event.alarming:
            continue
        if event.severity is Severity.FATAL:
            if warning and "panic_on_warn" in line.body:
                return warning
            quotes_place = event.kind in {"fatal.oops", "fatal.bug"}
            return line.body + _function(lines[position:]) if quotes_place else line.body
        warning = warning or line.body
    return warning


def _function(lines: Iterable[LogLine]) -> str:
    for line in lines:
        place = _PLACE.match(line.body)
        if place:
            return f" in {place.group(1)}"
    return ""
