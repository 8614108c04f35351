"""The one line of a dying kernel's last words that a kernel developer would quote."""

from __future__ import annotations

import re
from collections.abc import Iterable

from plugpull.kernel.catalogue.classify import classify
from plugpull.kernel.catalogue.entry import Severity
from plugpull.kernel.catalogue.prefix import split_prefix

_PLACE = re.compile(r"^(?:RIP: [\da-f]+:|EIP: |EIP is at |pc : )(\w[\w.]*)\+0x")


def panic_headline(lines: Iterable[str]) -> str:
    """The line of ``lines`` that a kernel developer would quote; empty if none is alarming.

    The first fatal line is the cause and what follows its consequence: an oops before the panic it ends in. A warning
    is quoted only if nothing worse is there, or if it is what the kernel panicked on. An oops is given
    the function it happened in.
    """
    warning = ""
    bodies = [split_prefix(line)[1].strip() for line in lines]
    for position, body in enumerate(bodies):
        event = classify(body)
        if event is None or not event.alarming:
            continue
        if event.severity is Severity.FATAL:
            if warning and "panic_on_warn" in body:
                return warning
            return body + _function(bodies[position:]) if event.kind in {"fatal.oops", "fatal.bug"} else body
        warning = warning or body
    return warning


def _function(bodies: Iterable[str]) -> str:
    for body in bodies:
        place = _PLACE.match(body)
        if place:
            return f" in {place.group(1)}"
    return ""
