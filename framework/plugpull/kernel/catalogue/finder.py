"""Finds the catalogue's entry for a message.

One word of each entry is searched, all at once (Aho-Corasick). Only the entries whose word is there are compared with
the message, and only these are ever turned into regular expressions. Nearly every line of a log contains none of the
words.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import cache, lru_cache

from ahocorasick_rs import BytesAhoCorasick, Implementation

from plugpull.kernel.catalogue.decoration import (
    begins_a_sentence,
    by_a_process,
    has_prefix,
    may_be_quoted,
    quoted,
    talks_about_it,
)
from plugpull.kernel.catalogue.entries import BEGINNINGS, ENTRIES
from plugpull.kernel.catalogue.entry import Entry
from plugpull.kernel.catalogue.half_lines import LONGEST, entry_of_half
from plugpull.kernel.catalogue.needles import needles_of_entries
from plugpull.kernel.catalogue.vocabulary import SPEAKERS
from plugpull.kernel.catalogue.wording import pattern_of, patterns_of

UNLISTED = len(ENTRIES)
"""In place of the number of an entry: the message may be half of one."""
_WORDS: dict[str, list[int]] = {}
for _number, _needles in enumerate(needles_of_entries()):
    for _word in _needles:
        _WORDS.setdefault(_word, []).append(_number)
for _word in SPEAKERS:
    _WORDS.setdefault(_word, []).append(UNLISTED)
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
_FILLED = re.compile(r"(?<=\S) {12,}(?=\S)")
"""The rest of a terminal's line."""
PROGRAMS = {"btrfs-progs": "", "sg3_utils": "    ", "typed by people": ""}
"""In the source of an entry: these programs print the same words, or people write them. They are the kernel's behind
its prefix only, or behind these spaces."""
_OWN_DIGIT = re.compile(r"\{\d+(?:,\d*)?\}|(\d)")
"""A digit in a regular expression that does not say how often something repeats."""
_DIGITS = bytes.maketrans(b"123456789", b"0" * 9)
_UNLISTED: dict[bytes, Entry | None] = {}
_MOST_UNLISTED = 4096
_Find = Callable[[str], re.Match[str] | None]
_FINDERS: list[_Find | None] = [None] * len(ENTRIES)


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


def any_digits(body: str, numbers: tuple[int, ...]) -> bool:
    """Whether a message that none of these entries names would have none with other digits either."""
    return not any(pattern.match(body) for pattern in _loose(numbers))


@lru_cache(maxsize=4096)
def _loose(numbers: tuple[int, ...]) -> list[re.Pattern[str]]:
    """The patterns of those of these entries that have digits of their own, with any digit for each of them."""
    patterns = [pattern_of(ENTRIES[number].wording, BEGINNINGS) for number in numbers if number != UNLISTED]
    loose = [_OWN_DIGIT.sub(lambda found: found[0] if found[1] is None else r"\d", pattern) for pattern in patterns]
    return [re.compile(one) for one, pattern in zip(loose, patterns, strict=True) if one != pattern]


def answer_of(body: str, candidates: Iterable[int]) -> Entry | None:
    """The first of these entries that matches a message without its prefix, even if it says that there is nothing to
    report. A half of a message has an entry too, if the rest makes no difference."""
    for number in candidates:
        if number == UNLISTED:
            return _unlisted(body)
        find = _FINDERS[number]
        if find is None:
            find = _FINDERS[number] = finder_of(ENTRIES[number].wording)
        if find(body):
            return ENTRIES[number]
    return None


@cache
def finder_of(wording: str) -> _Find:
    """Finds the part of a message that a wording is about: from its beginning on, or what follows its first ``%s``."""
    if not wording.startswith("%s"):
        return re.compile(pattern_of(wording, BEGINNINGS)).match
    first, rest = patterns_of(wording, BEGINNINGS)
    search = re.compile(first).search
    if not rest:
        return search
    follows = re.compile(rest).match

    def find(body: str) -> re.Match[str] | None:
        found = search(body)
        return found if found and follows(body, found.end()) else None

    return find


def _unlisted(body: str) -> Entry | None:
    """The entry of a message that is broken. It is looked for once in messages that differ in their digits only."""
    if len(body) > LONGEST:
        return _broken(body)
    shape = body.encode("utf-8", "surrogatepass").translate(_DIGITS)
    if shape not in _UNLISTED:
        if len(_UNLISTED) >= _MOST_UNLISTED:
            _UNLISTED.clear()
        _UNLISTED[shape] = _broken(body)
    return _UNLISTED[shape]


def _broken(body: str) -> Entry | None:
    """The entry of a message that a terminal filled with spaces at the end of its line, or that was cut."""
    if by_a_process(body):
        return None
    if _FILLED.search(body):
        for joined in (_FILLED.sub(glue, body) for glue in ("", " ")):
            if (entry := listed(joined)) is not None:
                return entry
    return entry_of_half(body)


def not_the_kernels(entry: Entry, body: str, text: str) -> bool:
    """Whether the words of an entry are in the line of a process, or in what a person or a program quotes. ``text`` is
    the whole line. Digits make no difference."""
    if "`" in text and begins_a_sentence(text):
        return True
    if talks_about_it(text, body):
        return True
    if _a_program_prints(entry, text) and not has_prefix(text, body):
        return True
    if not entry.wording.startswith("%s"):
        return False
    if by_a_process(body):
        return True
    found = finder_of(entry.wording)(body)
    return bool(found and found.start() and may_be_quoted(body[: found.end()]) and quoted(body[: found.start()]))


def _a_program_prints(entry: Entry, text: str) -> bool:
    return any(name in entry.source and not (spaces and text.startswith(spaces)) for name, spaces in PROGRAMS.items())


def first_of(body: str, candidates: Iterable[int]) -> Entry | None:
    """The first of these entries that matches a message without its prefix, if it has something to report."""
    entry = answer_of(body, candidates)
    return entry if entry is not None and entry.kind else None


def entry_of(body: str, text: str) -> Entry | None:
    """The catalogue's entry for a message without its prefix, if it has something to report and is the kernel's.
    ``text`` is the whole line."""
    answer = named(body)
    return None if answer is None or not answer.kind or not_the_kernels(answer, body, text) else answer


def named(body: str) -> Entry | None:
    """The catalogue's entry for a message without its prefix, even if it says that there is nothing to report."""
    words = words_in(body.encode("utf-8", "surrogatepass"))
    return answer_of(body, entries_with([word for word, _, _ in words])) if words else None


def listed(body: str) -> Entry | None:
    """The same, without what is known of halves only."""
    words = words_in(body.encode("utf-8", "surrogatepass"))
    return answer_of(body, (one for one in entries_with([word for word, _, _ in words]) if one != UNLISTED))
