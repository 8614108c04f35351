"""Words that a message must contain to match an entry, derived from the entry's pattern.

Most lines of a log match no entry. One search for all words at once finds the few lines that may match, and only those
are matched against regular expressions. So a log of many gigabytes can be read in reasonable time.
"""

from __future__ import annotations

from collections.abc import Iterable
from re import _constants as constants  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]

SHORTEST = 3
"""Characters. Shorter words are in too many lines."""
MOST_LETTERS = 3
MOST_SPELLINGS = 8
"""Spellings of one word. If there are more, a part of the word is used."""


def needles_of(pattern: str) -> frozenset[str]:
    """Words of which every matching string contains at least one. Raises ValueError if a pattern has no such words."""
    found = _needles(parser.parse(pattern))
    if found is None or min(map(len, found)) < SHORTEST:
        raise ValueError(f"the pattern {pattern!r} has no words that every match contains")
    return found


def _needles(parsed: Iterable[tuple[object, object]]) -> frozenset[str] | None:
    best: frozenset[str] | None = None
    words: frozenset[str] = frozenset()
    for operation, argument in parsed:
        letters = _letters(operation, argument)
        if letters and len(words) * len(letters) <= MOST_SPELLINGS:
            words = frozenset(word + letter for word in words or {""} for letter in letters)
            continue
        best, words = _better(best, words or None), frozenset(letters)
        best = _better(best, _inner(operation, argument))
    return _better(best, words or None)


def _letters(operation: object, argument: object) -> list[str]:
    """The characters that match here, if there are only a few: "E" and "e" for "[Ee]rror"."""
    if operation is constants.LITERAL and isinstance(argument, int):
        return [chr(argument)]
    few = operation is constants.IN and isinstance(argument, list) and len(argument) <= MOST_LETTERS
    if few and isinstance(argument, list) and all(kind is constants.LITERAL for kind, _ in argument):
        return [chr(code) for _, code in argument]
    return []


def _inner(operation: object, argument: object) -> frozenset[str] | None:
    if not isinstance(argument, tuple):
        return None
    if operation is constants.SUBPATTERN:
        return _needles(argument[3])
    if operation is constants.BRANCH:
        each = [_needles(branch) for branch in argument[1]]
        known = [words for words in each if words is not None]
        return frozenset().union(*known) if len(known) == len(each) else None
    if operation in (constants.MAX_REPEAT, constants.MIN_REPEAT) and argument[0] >= 1:
        return _needles(argument[2])
    return None


def _better(one: frozenset[str] | None, two: frozenset[str] | None) -> frozenset[str] | None:
    """The one of two sets whose most common word is rarer."""
    if one is None or two is None:
        return one or two
    return two if min(map(_rarity, two)) > min(map(_rarity, one)) else one


def _rarity(word: str) -> int:
    """An estimate of how rare a word is in lines that match no entry. Capitals, digits and punctuation are rarer than
    small letters."""
    return len(word) + 2 * sum(not (letter.islower() or letter == " ") for letter in word)
