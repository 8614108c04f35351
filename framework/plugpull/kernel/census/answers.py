"""What the catalogue answers to each message of the source.

A message is answered by the entry that recognises it, or, if none does, by a rule that there is nothing to report: a
line of ``catalogue/messages/*.txt`` with ``!``, levels and patterns of files, under ``[nothing: reason]``. ``= FORMAT``
behind them limits it to one message. Rules serve the census only; a log has no files and no levels.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from typing import NamedTuple

from plugpull.kernel.catalogue.entries import BEGINNINGS, SUBSYSTEMS, read_text
from plugpull.kernel.catalogue.entry import Entry
from plugpull.kernel.catalogue.finder import listed
from plugpull.kernel.catalogue.wording import examples_of
from plugpull.kernel.census.messages import Message

_HEADING = re.compile(r"\[nothing: (.+)\]$")
IMPORTANT = frozenset("012345?w")
"""KERN_NOTICE or worse, and what may be."""


class Rule(NamedTuple):
    """There is nothing to report about messages of these levels (a set of letters) in these files; only about the one
    with ``format`` if that is not empty."""

    levels: str
    files: tuple[str, ...]
    format: str
    reason: str

    def covers(self, message: Message) -> bool:
        return (
            message.level in self.levels
            and (not self.format or message.format == self.format)
            and any(fnmatchcase(message.path, pattern) for pattern in self.files)
        )


class Answer(NamedTuple):
    """The report on a message: ``kind`` is empty if nothing, and then ``reason`` says why."""

    kind: str
    severity: str
    reason: str


class Conflict(NamedTuple):
    """A message whose variants are recognised as different things."""

    message: Message
    kinds: tuple[str, ...]


def read_rules() -> tuple[Rule, ...]:
    """The rules of all subsystems."""
    return tuple(rule for name in SUBSYSTEMS for rule in _rules(read_text(name).splitlines()))


def _rules(lines: Iterable[str]) -> Iterator[Rule]:
    reason = ""
    for line in lines:
        if line.startswith("["):
            heading = _HEADING.match(line)
            reason = heading[1] if heading else ""
        elif line.startswith("! "):
            where, _, text = line[2:].partition(" = ")
            levels, *patterns = where.split()
            if not reason:
                raise ValueError(f"{line!r} has no reason above it")
            yield Rule(levels, tuple(patterns), text, reason)


def entries_for(message: Message) -> list[Entry | None]:
    """The entries that recognise lines made from a message's format, one for each variant."""
    return [listed(example) for example in examples_of(message.format, BEGINNINGS)]


def answer_to(message: Message, rules: Iterable[Rule]) -> Answer | Conflict | None:
    """What the catalogue answers to a message; ``None`` if nothing answers it."""
    found = entries_for(message)
    kinds = {entry.kind if entry is not None else None for entry in found}
    if kinds != {None}:
        entry = next(entry for entry in found if entry is not None)
        if len(kinds) > 1:
            return Conflict(message, tuple(sorted(f"{kind}" for kind in kinds)))
        return Answer(entry.kind, entry.severity.value if entry.kind else "", entry.reason)
    rule = next((rule for rule in rules if rule.covers(message)), None)
    return Answer("", "", rule.reason) if rule is not None else None
