"""Finds the catalogue's entry for a message.

All words of all entries are searched at once (Aho-Corasick). Only the patterns of entries that have one of the words
found are tried. Nearly every line of a log contains none of the words.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from ahocorasick_rs import BytesAhoCorasick, Implementation

from plugpull.kernel.catalogue.entries import ENTRIES
from plugpull.kernel.catalogue.entry import Entry
from plugpull.kernel.catalogue.needles import needles_of

_COMPILED = tuple((entry, re.compile(entry.pattern)) for entry in ENTRIES)
_WORDS: dict[str, list[int]] = {}
for _number, _entry in enumerate(ENTRIES):
    for _word in needles_of(_entry.pattern):
        _WORDS.setdefault(_word, []).append(_number)
ENTRIES_OF = list(_WORDS.values())
"""The numbers of the entries that have a word, by the number of the word."""
_FINDER = BytesAhoCorasick([word.encode() for word in _WORDS], implementation=Implementation.DFA)


def words_in(text: bytes) -> Iterable[tuple[int, int, int]]:
    """(number of the word, where it begins, where it ends) for all words in ``text``."""
    found: list[tuple[int, int, int]] = _FINDER.find_matches_as_indexes(text, overlapping=True)
    return found


def first_of(body: str, candidates: set[int]) -> Entry | None:
    """The first of these entries that matches a message without its prefix."""
    for number in sorted(candidates) if len(candidates) > 1 else candidates:
        entry, pattern = _COMPILED[number]
        if pattern.search(body):
            return entry
    return None


def entry_of(body: str) -> Entry | None:
    """The catalogue's entry for a message without its prefix."""
    words = words_in(body.encode("utf-8", "surrogatepass"))
    return first_of(body, {number for word, _, _ in words for number in ENTRIES_OF[word]}) if words else None
