"""The recorded census: what the distribution's kernels can print, so that the catalogue is tested without their source.

A line is the levels and trees of one format: ``12 3 hub_port_init`` for trees 1 and 2, KERN_ERR, the function, and the
format behind a tab; the file stands above in a line with ``@``. Only messages that must have an answer are recorded.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

from plugpull.kernel.census.coverage import counts_in
from plugpull.kernel.census.messages import Message
from plugpull.kernel.census.tree import CountedFiles

NAME = "recorded.txt"


class Record(NamedTuple):
    """The messages of some kernels. ``trees`` are their versions; ``messages`` maps each message to the numbers of the
    trees that have it, counted from 1."""

    trees: tuple[str, ...]
    messages: Mapping[Message, str]

    def of(self, number: str) -> list[Message]:
        """The messages of one tree."""
        return [message for message, trees in self.messages.items() if number in trees]


def recorded() -> Record:
    """The record that comes with this package."""
    return read_record(files(__package__).joinpath(NAME).read_text(encoding="utf-8").splitlines())


def read_record(lines: Iterable[str]) -> Record:
    """A record from its lines."""
    trees: tuple[str, ...] = ()
    messages, path = {}, ""
    for line in lines:
        if line.startswith("# trees: "):
            trees = tuple(line.removeprefix("# trees: ").split())
        elif line.startswith("@ "):
            path = line[2:]
        elif line and not line.startswith("#"):
            left, _, text = line.partition("\t")
            numbers, level, function = left.split(" ")
            messages[Message(path, function, level, text)] = numbers
    return Record(trees, messages)


def merge(trees: Sequence[tuple[str, Iterable[Message]]], scope: CountedFiles) -> Record:
    """The record of several trees (version, messages)."""
    found: dict[Message, str] = {}
    for number, (_, messages) in enumerate(trees, 1):
        for message in dict.fromkeys(messages):
            room = scope.room(message.path)
            if room is not None and counts_in(room, message.level):
                found[message] = found.get(message, "") + str(number)
    return Record(tuple(version for version, _ in trees), dict(sorted(found.items())))


def write_record(record: Record, place: Path) -> None:
    """Write a record so that :func:`read_record` reads it back."""
    place.write_text("\n".join(_lines(record)) + "\n", encoding="utf-8")


def _lines(record: Record) -> Iterator[str]:
    yield "# What these kernels can print. Written by `python -m plugpull.kernel.census --record TREE...`."
    yield "# trees: " + " ".join(record.trees)
    path = ""
    for message, trees in record.messages.items():
        if message.path != path:
            path = message.path
            yield f"@ {path}"
        yield f"{trees} {message.level} {message.function}\t{message.format}"
