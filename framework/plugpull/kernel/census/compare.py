"""Compares a census with the recorded one, or with the kernel's own index of messages."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from difflib import SequenceMatcher
from typing import NamedTuple

from plugpull.kernel.census.coverage import counts_in
from plugpull.kernel.census.messages import Message
from plugpull.kernel.census.tree import CountedFiles

ALIKE = 0.6
"""Two formats of one function that are at least this similar (0 to 1) are one message with a new wording."""
_INDEXED = re.compile(r'^<(?P<level>\d?)[^>]*> (?P<path>[^:]+):\d+ (?P<function>\S+) "(?P<format>.*)"$')


class Difference(NamedTuple):
    """How the messages of a tree differ from the record. ``reworded`` are pairs (old, new)."""

    new: tuple[Message, ...]
    gone: tuple[Message, ...]
    reworded: tuple[tuple[Message, Message], ...]


def compare(old: Iterable[Message], new: Iterable[Message], scope: CountedFiles) -> Difference:
    """What is new, gone and reworded in ``new``. A message that moved to another function is none of these."""
    before = {(message.path, message.format): message for message in old}
    after = {(message.path, message.format): message for message in new if _counts(message, scope)}
    gone = {key: message for key, message in before.items() if key not in after}
    added = {key: message for key, message in after.items() if key not in before}
    by_function: defaultdict[tuple[str, str], list[Message]] = defaultdict(list)
    for message in gone.values():
        by_function[message.path, message.function].append(message)
    reworded = []
    for key, message in list(added.items()):
        candidates = by_function[message.path, message.function]
        nearest = max(candidates, key=lambda each: _likeness(each.format, message.format), default=None)
        if nearest is not None and _likeness(nearest.format, message.format) >= ALIKE:
            candidates.remove(nearest)
            reworded.append((nearest, message))
            del added[key], gone[nearest.path, nearest.format]
    return Difference(tuple(added.values()), tuple(gone.values()), tuple(reworded))


def _counts(message: Message, scope: CountedFiles) -> bool:
    room = scope.room(message.path)
    return room is not None and counts_in(room, message.level)


def _likeness(one: str, two: str) -> float:
    return SequenceMatcher(None, one, two).ratio()


def read_index(lines: Iterable[str]) -> Iterator[Message]:
    """The messages in a printk index: ``cat /sys/kernel/debug/printk/index/*`` of a kernel with CONFIG_PRINTK_INDEX."""
    for line in lines:
        found = _INDEXED.match(line)
        if found:
            text = found["format"].encode().decode("unicode_escape", "replace")
            yield Message(found["path"], found["function"], found["level"] or "?", text)


def not_in_census(index: Iterable[Message], census: Iterable[Message]) -> list[Message]:
    """The messages of an index that the census of the same tree does not have. Their letters are compared: the index
    has no prefixes of subsystems, and may have levels in the text."""
    known: defaultdict[str, set[str]] = defaultdict(set)
    for message in census:
        known[message.path].add(_letters(message.format))
    return [
        message
        for message in index
        if message.path in known
        and (wanted := _letters(message.format.strip("\n").split("\n")[0]))
        and not any(wanted in text or text in wanted for text in known[message.path] if text)
    ]


def _letters(text: str) -> str:
    return "".join(re.findall(r"[A-Za-z]{2,}", re.sub(r"%\S+", " ", text)))
