"""The line of a dying kernel's log that a kernel developer would quote."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from plugpull.kernel.catalogue.deferred import deferred
from plugpull.kernel.catalogue.entry import Severity
from plugpull.kernel.catalogue.line import LogLine

_PLACE = deferred(
    r"^(?:RIP: [\da-f]+:|EIP: |EIP is at |e?pc *: |[Pp][Cc] is at |TPC: <|IAOQ\[0\]: |NIP \[[\da-f]+\] |e(?:pc|ra) +: "
    r"[\da-f]+ |ERA: [\da-f]+ |Krnl PSW : [\da-f]{16} [\da-f]{16} \()\s*(?:\[<[\da-f]+>\]\s*)*([A-Za-z_][\w.]*)\+0x"
    r"[\da-f]+(?:/0x[\da-f]+)?(?: \[([\w-]+)\])?"
)
"""Where an oops happened, as x86, ARM, RISC-V, SPARC, PA-RISC, PowerPC, MIPS, LoongArch and s390 write it."""
_ON_PURPOSE = deferred(r"panic_on_warn|fault=panic set")
"""A panic that a setting makes of every warning: the warning is what happened."""


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
            if warning and on_purpose(line.body):
                return warning
            quotes_place = event.kind in {"fatal.oops", "fatal.bug"}
            return line.body + _function(lines[position:]) if quotes_place else line.body
        warning = warning or line.body
    return warning


def on_purpose(body: str) -> bool:
    """Whether the message of a panic says that a setting makes a panic of every warning."""
    return bool(_ON_PURPOSE.search(body))


def place_in(body: str) -> tuple[str, str | None] | None:
    """The function in which an oops happened, and its module, if this line of a report says it."""
    found = _PLACE.match(body)
    return (found[1], found[2]) if found else None


def _function(lines: Iterable[LogLine]) -> str:
    for line in lines:
        if place := place_in(line.body):
            return f" in {place[0]}"
    return ""
