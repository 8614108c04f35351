"""Finds the catalogue's entry for a message.

One word of each entry is searched, all at once (Aho-Corasick). Only the entries whose word is there are compared with
the message, and only these are ever turned into regular expressions. Nearly every line of a log contains none of the
words.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache, lru_cache

from ahocorasick_rs import BytesAhoCorasick, Implementation

from plugpull.kernel.catalogue.entries import BEGINNINGS, ENTRIES
from plugpull.kernel.catalogue.entry import Entry
from plugpull.kernel.catalogue.wording import needles_of, pattern_of

_WORDS: dict[str, list[int]] = {}
for _number, _entry in enumerate(ENTRIES):
    for _word in needles_of(_entry.wording):
        _WORDS.setdefault(_word, []).append(_number)
FIRST_OF_A_BOOT = ("[    0.000000]", "Linux version ")
"""What the first line of a boot contains. These words are searched beside those of the entries."""
BOOT_WORDS = frozenset(range(len(_WORDS), len(_WORDS) + len(FIRST_OF_A_BOOT)))
"""Their numbers."""
for _word in FIRST_OF_A_BOOT:
    _WORDS[_word] = []
ENTRIES_OF = list(_WORDS.values())
"""The numbers of the entries that have a word, by the number of the word."""
LARGE = 1 << 18
"""Bytes from which it pays to build the larger automaton, which takes 50 ms and then searches twice as fast."""
FEW = 8
"""Words of a line up to which their entries are kept."""
_COMPILED: list[re.Pattern[str] | None] = [None] * len(ENTRIES)


def words_in(text: bytes) -> Iterable[tuple[int, int, int]]:
    """(number of the word, where it begins, where it ends) for all words in ``text``."""
    found: list[tuple[int, int, int]] = _automaton(len(text) >= LARGE).find_matches_as_indexes(text, overlapping=True)
    return found


@cache
def _automaton(large: bool) -> BytesAhoCorasick:
    implementation = Implementation.DFA if large else Implementation.ContiguousNFA
    return BytesAhoCorasick([word.encode() for word in _WORDS], implementation=implementation)


def entries_with(words: Sequence[int]) -> tuple[int, ...]:
    """The numbers of the entries that have one of these words, in the order in which they are tried. The same few words
    are in most lines of a log; those of a line with many words are in no other."""
    return _kept(tuple(words)) if len(words) <= FEW else _sorted(words)


@lru_cache(maxsize=4096)
def _kept(words: tuple[int, ...]) -> tuple[int, ...]:
    return _sorted(words)


def _sorted(words: Iterable[int]) -> tuple[int, ...]:
    return tuple(sorted({number for word in words for number in ENTRIES_OF[word]}))


def answer_of(body: str, candidates: Iterable[int]) -> Entry | None:
    """The first of these entries that matches a message without its prefix, even if it says that there is nothing to
    report."""
    for number in candidates:
        pattern = _COMPILED[number]
        if pattern is None:
            pattern = _COMPILED[number] = re.compile(pattern_of(ENTRIES[number].wording, BEGINNINGS))
        if pattern.match(body):
            return ENTRIES[number]
    return None


def first_of(body: str, candidates: Iterable[int]) -> Entry | None:
    """The first of these entries that matches a message without its prefix, if it has something to report."""
    entry = answer_of(body, candidates)
    return entry if entry is not None and entry.kind else None


def entry_of(body: str) -> Entry | None:
    """The catalogue's entry for a message without its prefix, if it has something to report."""
    answer = named(body)
    return answer if answer is not None and answer.kind else None


def named(body: str) -> Entry | None:
    """The catalogue's entry for a message without its prefix, even if it says that there is nothing to report."""
    words = words_in(body.encode("utf-8", "surrogatepass"))
    return answer_of(body, entries_with([word for word, _, _ in words])) if words else None
