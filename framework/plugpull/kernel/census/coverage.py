"""How many messages the catalogue answers, by directory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from plugpull.kernel.census.answers import IMPORTANT, Conflict, answer_to, read_rules
from plugpull.kernel.census.messages import Message
from plugpull.kernel.census.tree import CountedFiles

INFORMED = ("drivers/usb/core", "drivers/usb/storage", "drivers/scsi", "drivers/md", "fs")
"""Rooms in which messages at KERN_INFO are answered too, with everything below them."""


class CountedRoom(NamedTuple):
    """The counts of one directory: formats with a kind, formats with nothing to report, and without an answer; those at
    KERN_NOTICE or worse, then those at KERN_INFO."""

    name: str
    kinds: int
    nothing: int
    unanswered: int
    info_kinds: int
    info_nothing: int
    info_unanswered: int


class CensusCoverage(NamedTuple):
    """``rooms`` in the order of the table; the messages without an answer; those whose variants disagree."""

    rooms: tuple[CountedRoom, ...]
    unanswered: tuple[Message, ...]
    conflicts: tuple[Conflict, ...]


def coverage(messages: Iterable[Message], scope: CountedFiles) -> CensusCoverage:
    """What the catalogue answers. A format counts once for each file and level."""
    rules, counts = read_rules(), Counter[tuple[str, str, str]]()
    unanswered, conflicts = [], []
    for message in {(each.path, each.level, each.format): each for each in messages}.values():
        room = scope.room(message.path)
        if room is None or not counts_in(room, message.level):
            continue
        group = "important" if message.level in IMPORTANT else "info"
        answer = answer_to(message, rules)
        if isinstance(answer, Conflict):
            conflicts.append(answer)
        elif answer is None:
            unanswered.append(message)
        kind = "unanswered" if answer is None or isinstance(answer, Conflict) else "kind" if answer.kind else "nothing"
        counts[room, group, kind] += 1
    groups = [(group, kind) for group in ("important", "info") for kind in ("kind", "nothing", "unanswered")]
    rooms = tuple(CountedRoom(room, *(counts[room, group, kind] for group, kind in groups)) for room in scope.rooms)
    return CensusCoverage(rooms, tuple(unanswered), tuple(conflicts))


def counts_in(room: str, level: str) -> bool:
    """Whether messages of this level in this room must have an answer."""
    informed = any(room == name or room.startswith(name + "/") for name in INFORMED)
    return level in IMPORTANT or (level == "6" and informed)


def table(rooms: Iterable[CountedRoom]) -> Iterator[str]:
    """The lines of a table in Markdown."""
    rooms = list(rooms)
    heads = ("a kind", "nothing to report", "no answer")
    yield "| " + " | ".join(("directory", "NOTICE or worse", *heads, "INFO", *heads)) + " |"
    yield "|---|--:|--:|--:|--:|--:|--:|--:|--:|"
    total = CountedRoom("all", *(sum(each[at] for each in rooms if isinstance(each[at], int)) for at in range(1, 7)))  # type: ignore[misc]
    for room in (*rooms, total):
        important = room.kinds + room.nothing + room.unanswered
        info = room.info_kinds + room.info_nothing + room.info_unanswered
        shown = [f"{count}" for count in (important, room.kinds, room.nothing, room.unanswered)]
        rest = (info, room.info_kinds, room.info_nothing, room.info_unanswered)
        shown += [f"{count}" if info else "" for count in rest]
        yield f"| {room.name} | " + " | ".join(shown) + " |"
