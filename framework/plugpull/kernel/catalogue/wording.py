"""The notation for the wording of messages: printf formats, as the kernel's source has them, and a little more.

``%d``, ``%x``, ``%s`` and the other conversions stand for what printf puts there; ``%w`` for one word. ``{a|b}`` stands
for one of several wordings, of which one may be empty, and ``{name}`` for a beginning, such as the name of a driver and
a device (``messages/beginnings.txt``). A ``$`` at the end is the end of the message; otherwise more may follow. A
backslash takes the meaning from the character behind it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

SHORTEST = 3
"""Characters. Shorter words are in too many lines."""
CERTAIN = 16
"""Characters. Nothing this long is in many lines: there is no need to search for something rarer."""
MOST_LETTERS = 16
"""Characters of a word that are searched. Longer words are no rarer in logs."""
_CONVERSION = r"%[-+ #0]*[\d.*]*(?:hh|h|ll|l|L|q|j|z|t)?(?:p[A-Za-z\d]*|[diouxXcsefgEGw%])"
_PIECE = re.compile(rf"(?P<conversion>{_CONVERSION})|(?P<group>\{{(?:\\.|[^{{}}\\])*\}})|(?P<escaped>\\.)|(?P<end>\$$)")
_SPACES = r"  +"
"""Spaces that a web page makes one."""
_DASHES = "--"
"""Two of them, which an editor makes one."""
_SPLIT = re.compile(rf"{_CONVERSION}|\{{(?:\\.|[^{{}}\\])*\}}|\$$|{_SPACES}|{_DASHES}")
_LAST = re.compile(r"(?<=\S) +%(?:s|p[A-Za-z]+)$")
"""A string at the end, which may be empty: then its space is missing too."""
_FIRST_WORD = re.compile(r"^%s([A-Za-z])(?=[a-z]{4})")
_FULL_STOP = re.compile(r"(?:(?<=[a-z]{2})|(?<=[)\]])|(?<=%[a-z]))\.$")
"""Some versions have it and others do not, and some people leave it out."""
_BAR = re.compile(r"(?<!\\)\|")
_COMMON = str.maketrans("", "", "abcdefghijklmnopqrstuvwxyz ")
_SPECIAL = re.compile(r"[\\{}|$]")
MOST_COMBINATIONS = 64
_NUMBER, _HEX = r" *-?\d+", r" *(?:0[xX])?[\da-fA-F]+"
_ANY = r".*?"


class Beginning(NamedTuple):
    """A beginning of messages: a regular expression, and examples of what matches."""

    pattern: str
    examples: tuple[str, ...]


Beginnings = Mapping[str, Beginning]


def pattern_of(wording: str, beginnings: Beginnings) -> str:
    """A regular expression that matches at the beginning of every such message. It takes linear time: each ``%s`` ends
    at the first place where what follows it matches, and is never tried again."""
    return _pattern(_essential(wording), beginnings)


def patterns_of(wording: str, beginnings: Beginnings) -> tuple[str, str]:
    """The same in two parts for a wording that begins with ``%s``: what follows it, to be searched, and what matches
    where that ends. A search passes over the places where no such message can begin."""
    _, first, *others = _parts(_essential(wording), beginnings)
    return first, "".join(map(_first_place, others))


def _essential(wording: str) -> str:
    return _LAST.sub("", _any_case(_without_full_stop(wording)))


def _without_full_stop(wording: str) -> str:
    return _FULL_STOP.sub("", wording) if wording.endswith(".") else wording


def _any_case(wording: str) -> str:
    """A wording that may be anywhere, with both cases of its first letter: what begins a sentence in one driver is
    behind a name in another."""
    if not wording.startswith("%s"):
        return wording
    return _FIRST_WORD.sub(lambda found: f"%s{{{found[1].lower()}|{found[1].upper()}}}", wording)


def _pattern(wording: str, beginnings: Beginnings, more: str = "") -> str:
    """``more`` is what a ``%s`` at the end becomes: nothing, unless more follows."""
    first, *rest = _parts(wording, beginnings)
    return first + "".join(map(_first_place, rest)) + (more if rest and not rest[-1] else "")


def _first_place(part: str) -> str:
    return f"(?>{_ANY}{part})" if part else ""


def _parts(wording: str, beginnings: Beginnings) -> list[str]:
    """The regular expressions between which there may be anything. The last one is empty if a ``%s`` is at the end."""
    parts: list[list[str]] = [[]]
    for piece, kind in _pieces(wording):
        if kind == "any":
            if parts[-1] or len(parts) == 1:
                parts.append([])
        else:
            parts[-1].append(_regex(piece, kind, beginnings))
    return ["".join(part) for part in parts]


def needles_of(wording: str) -> frozenset[str]:
    """Words of which every such message contains at least one. Raises ValueError if there is none of three letters."""
    wording = _any_case(_without_full_stop(wording))
    split = _SPLIT.split(wording)
    longest = max(split, key=len)
    if len(longest) >= CERTAIN:
        return frozenset({_plain(longest)[:MOST_LETTERS]})
    runs = [frozenset({_rarest_part(_plain(run))}) for run in split]
    pieces = _pieces(wording) if "|" in wording else ()
    groups = [frozenset(map(_best_of, _choices(piece))) for piece, kind in pieces if kind == "choice"]
    best = max((*runs, *groups), key=lambda words: min(map(_rarity, words)))
    if min(map(len, best)) < SHORTEST:
        raise ValueError(f"no word of {wording!r} is in every message")
    return best


def examples_of(wording: str, beginnings: Beginnings) -> Iterator[str]:
    """Messages with this wording, which together have each of its variants."""
    for example in _variants(wording, beginnings):
        yield (example + "sdb1" if example.endswith((" ", "(")) else example).strip()


def spelled_out(wording: str) -> list[str]:
    """The wording without choices: one for each combination of them, at most ``MOST_COMBINATIONS``, conversions and
    beginnings as they are."""
    found = [""]
    for piece, kind in _pieces(wording):
        if kind == "choice":
            values = [value for choice in _choices(piece) for value in spelled_out(choice)]
            found = [one + value for one in found for value in values][:MOST_COMBINATIONS]
        else:
            found = [one + _notation(piece, kind) for one in found]
    return found


def _notation(piece: str, kind: str) -> str:
    """A piece as it is written in a wording."""
    if kind == "plain":
        return "%%" if piece == "%" else _SPECIAL.sub(r"\\\g<0>", piece)
    return f"{{{piece}}}" if kind == "beginning" else piece


def pieces_of(wording: str) -> tuple[tuple[str, str], ...]:
    """(text, kind) of each piece of a wording without choices; neighbours that are plain text are one."""
    found: list[tuple[str, str]] = []
    for piece, kind in _pieces(wording):
        if kind == "plain" and found and found[-1][1] == "plain":
            found[-1] = found[-1][0] + piece, kind
        else:
            found.append((piece, kind))
    return tuple(found)


def _variants(wording: str, beginnings: Beginnings) -> Iterator[str]:
    found = [""]
    for piece, kind in _pieces(wording):
        values = _values(piece, kind, beginnings)
        # Each variant at least once, not all combinations of them.
        found = [
            found[min(n, len(found) - 1)] + values[min(n, len(values) - 1)] for n in range(max(len(found), len(values)))
        ]
    yield from dict.fromkeys(found)


def _pieces(wording: str) -> Iterator[tuple[str, str]]:
    """(text, kind) of each piece. The kinds: plain, any, number, hex, word, letter, beginning, choice, end."""
    at = 0
    for found in _PIECE.finditer(wording):
        if found.start() > at:
            yield wording[at : found.start()], "plain"
        at = found.end()
        piece = found[0]
        if found.lastgroup == "escaped":
            yield piece[1:], "plain"
        elif found.lastgroup == "end":
            yield "", "end"
        elif found.lastgroup == "group":
            yield piece[1:-1], "choice" if _BAR.search(piece) else "beginning"
        else:
            yield ("%", "plain") if piece == "%%" else (piece, _kind(piece))
    if at < len(wording):
        yield wording[at:], "plain"


def _kind(conversion: str) -> str:
    if re.search(r"p[A-Za-z\d]*$", conversion) or "*" in conversion:
        return "any"
    return {"d": "number", "i": "number", "u": "number", "x": "hex", "X": "hex", "o": "number", "c": "letter",
            "w": "word"}.get(conversion[-1], "any")  # fmt: skip


def _regex(piece: str, kind: str, beginnings: Beginnings) -> str:
    match kind:
        case "plain":
            return " +".join(map(re.escape, re.split(_SPACES, piece))).replace(re.escape(_DASHES), "--?")
        case "choice":
            return "(?:" + "|".join(_pattern(choice, beginnings, _ANY) for choice in _choices(piece)) + ")"
        case "beginning":
            return f"(?:{beginnings[piece].pattern})"
        case "end":
            return r"\s*$"
    return {"number": _NUMBER, "hex": _HEX, "word": r"\S+", "letter": ".?"}[kind]


def _values(piece: str, kind: str, beginnings: Beginnings) -> list[str]:
    match kind:
        case "plain":
            return [piece]
        case "choice":
            return [value for choice in _choices(piece) for value in _variants(choice, beginnings)]
        case "beginning":
            return list(beginnings[piece].examples)
    return [{"number": "7", "hex": "1f", "word": "word", "letter": "x", "any": "sdb1", "end": ""}[kind]]


def _choices(piece: str) -> list[str]:
    return _BAR.split(piece)


def _plain(run: str) -> str:
    return re.sub(r"\\(.)", r"\1", run) if "\\" in run else run


def _best_of(choice: str) -> str:
    return _rarest_part(max((_plain(run) for run in _SPLIT.split(choice)), key=_rarity))


def _rarest_part(word: str) -> str:
    if len(word) <= MOST_LETTERS:
        return word
    parts = [word[at : at + MOST_LETTERS] for at in range(max(1, len(word) - MOST_LETTERS + 1))]
    return max(parts, key=_rarity)


def _rarity(word: str) -> int:
    """An estimate of how rare a word is in lines that match no entry. Capitals, digits and punctuation are rarer than
    small letters."""
    return len(word) + 2 * len(word.translate(_COMMON))
