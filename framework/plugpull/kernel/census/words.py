"""Writes the vocabulary (``catalogue/messages/vocabulary.txt``): what each driver can say, with the answer to it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from plugpull.kernel.catalogue.entries import BEGINNINGS, ENTRIES, read_text
from plugpull.kernel.catalogue.finder import listed
from plugpull.kernel.catalogue.vocabulary import NAME, NOTHING, OURS, RARE, SPEAKERS, head_of_format
from plugpull.kernel.catalogue.wording import examples_of, spelled_out
from plugpull.kernel.census.messages import Message

LONGEST = 100
"""Characters of a wording that are kept. No two messages of different kinds are alike for as long."""
DEBUG = "7"
_HEADING = """\
# How messages go on, by how they begin, with their kinds. Written by the census: `--words TREE...`.
# Formats of trees stay when it is run on others; without a tree only the kinds are found again. "+" marks wordings of
# the catalogue that are in no tree.
"""


def vocabulary(messages: Iterable[Message]) -> str:
    """The text of the file for these messages, those of the catalogue and those that are in the file."""
    by_head: dict[str, dict[str, _Printed]] = {}
    for printed in (*map(_printed, messages), *known(), *(_Printed(OURS, entry.wording) for entry in ENTRIES)):
        for one in spelled_out(printed.wording):
            place = head_of_format(one)
            if place is not None and _may_be_looked_up(*place):
                head, rest = place
                by_head.setdefault(head, {}).setdefault(rest[:LONGEST].rstrip("\\%$"), _Printed(printed.mark, one))
    return _HEADING + "".join(_blocks(by_head))


class _Printed(NamedTuple):
    """A format; ``mark`` is RARE if it is for debugging, OURS if it is the catalogue's, or empty."""

    mark: str
    wording: str


def _printed(message: Message) -> _Printed:
    return _Printed(RARE if message.level == DEBUG else "", message.format)


def known(text: str | None = None) -> Iterator[_Printed]:
    """The formats that the file has from trees."""
    head = ""
    for line in (read_text(NAME) if text is None else text).splitlines():
        kind, tab, rest = line.partition("\t")
        if line.startswith("= "):
            head = line[2:]
        elif tab and not kind.startswith(OURS):
            mark = RARE if kind == RARE else ""
            yield _Printed(mark, head.replace("*", "%s") + (": " if head else "") + rest)


def _may_be_looked_up(head: str, rest: str) -> bool:
    return (head.startswith("{") and not head.startswith("{device}")) or any(
        word in f"{head}: {rest}" for word in SPEAKERS
    )


def _blocks(by_head: dict[str, dict[str, _Printed]]) -> Iterator[str]:
    for head, sayings in sorted(by_head.items()):
        kinds = {rest: kind for rest, one in sayings.items() if (kind := _kind_of(one.wording)) is not None}
        if any(kinds.values()):
            lines = (f"{_shown(kind, sayings[rest].mark)}\t{rest}\n" for rest, kind in sorted(kinds.items()))
            yield f"\n= {head}\n" + "".join(lines)


def _shown(kind: str, mark: str) -> str:
    if mark == OURS:
        return OURS + (kind or NOTHING)
    return kind or mark or NOTHING


def _kind_of(wording: str) -> str | None:
    """The kind of a message, empty if there is nothing to report; ``None`` if its variants differ."""
    kinds = {entry.kind if (entry := listed(one)) is not None else "" for one in examples_of(wording, BEGINNINGS)}
    return kinds.pop() if len(kinds) == 1 else None
