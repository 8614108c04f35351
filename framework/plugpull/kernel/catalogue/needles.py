"""The words by which the finder looks for entries. Each message of an entry contains at least one of its words.

They follow from the wordings (``wording.needles_of``), but this takes 60 ms for all of them. So
``messages/needles.txt`` has them ready. Its first line is a checksum of the wordings. Below it is a line for each
entry, in order: its words, separated by tabs. ``python -m plugpull.kernel.catalogue.needles`` writes the file. If it
belongs to other wordings or is missing, the words are derived from the wordings.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from zlib import crc32

from plugpull.kernel.catalogue.entries import ENTRIES, read_text
from plugpull.kernel.catalogue.entry import Entry
from plugpull.kernel.catalogue.wording import needles_of

NAME = "needles"
PATH = Path(__file__).parent / "messages" / f"{NAME}.txt"


def needles_of_entries() -> Iterable[Sequence[str]]:
    """The words of each entry, in the order of the entries."""
    try:
        text = read_text(NAME)
    except FileNotFoundError:
        return derived(ENTRIES)
    return kept(text, ENTRIES) or derived(ENTRIES)


def kept(text: str, entries: Sequence[Entry]) -> list[list[str]] | None:
    """The words in a file; ``None`` if they are not those of these entries."""
    checksum, *lines = text.split("\n")
    # An empty line is behind the last line break.
    if checksum != checksum_of(entries) or len(lines) != len(entries) + 1:
        return None
    return [line.split("\t") for line in lines[:-1]]


def derived(entries: Iterable[Entry]) -> Iterable[list[str]]:
    """The words of each entry, from its wording. They are in the same order in each process."""
    return (sorted(needles_of(entry.wording)) for entry in entries)


def checksum_of(entries: Iterable[Entry]) -> str:
    """It differs if a wording was added, removed, moved or changed."""
    wordings = "\n".join([entry.wording for entry in entries])
    return f"{crc32(wordings.encode()):08x}"


def file_of(entries: Sequence[Entry]) -> str:
    """The contents of ``messages/needles.txt`` for these entries."""
    return "".join(f"{line}\n" for line in (checksum_of(entries), *map("\t".join, derived(entries))))


if __name__ == "__main__":
    PATH.write_text(file_of(ENTRIES), encoding="utf-8")
