"""The meaning of half a message: what a terminal, a pager, a form or a mail program left of its beginning.

Every message that begins like it is looked up. If all of them are of one kind, that is the meaning, whatever the rest
was. "plugpull log" joins the halves where it has both.
"""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

from plugpull.kernel.catalogue.entries import ENTRIES
from plugpull.kernel.catalogue.entry import Entry, Severity
from plugpull.kernel.catalogue.vocabulary import Saying, heads_in, kinds_of_heads, sayings

FEWEST = 4
"""Characters behind the driver and the device that make a half certain if it ends with a word."""
FEWEST_IN_A_WORD = 5
"""The same for a half that ends within a word."""
FEWEST_WITHOUT_DEVICE = 8
"""The same for a message that names no driver."""
FEWEST_BEFORE_ANYTHING = 12
"""The same for a half that ends within what a message names."""
LONGEST = 300
"""Characters of a message that may be half of one."""

_CUT = re.compile(r"(?:\s|>|\u2026|\.{3}|\\|=)+$")
"""How pagers, forms, people and mails in quoted-printable show that something is missing."""
_ANYTHING = frozenset({"any", "word", "beginning", "end"})
_CONVERSIONS = {
    "number": re.compile(r" *-?\d+"), "hex": re.compile(r" *(?:0[xX])?[\da-fA-F]+"), "letter": re.compile(".?"),
}  # fmt: skip


def entry_of_half(body: str) -> Entry | None:
    """What every message is that begins like ``body``; ``None`` if they differ, or if none does."""
    if len(body) > LONGEST:
        return None
    text = _CUT.sub("", body)
    best, kinds = _DIFFERS, set[str]()
    for head, at in heads_in(text):
        for saying in sayings(head, text[at:]):
            agreement = _agreement(text, at, saying)
            if not head and agreement.characters < FEWEST_WITHOUT_DEVICE:
                continue
            if agreement[:2] > best[:2]:
                best, kinds = agreement, set()
            if agreement[:2] == best[:2]:
                kinds.add(saying.kind)
    if ": " not in text and len(text) >= FEWEST_WITHOUT_DEVICE:
        kinds, best = kinds | kinds_of_heads(text), _Agreement(len(text))
        kinds = kinds if kinds <= _errors() else set()
    if len(kinds) != 1 or best.characters < (FEWEST_IN_A_WORD if best.inside else FEWEST):
        return None
    return _entries().get(kinds.pop())


class _Agreement(NamedTuple):
    """How far a message agrees with a wording: in how many characters, whether none of its conversions was passed over,
    and whether the message ends within a word."""

    characters: int
    plain: bool = True
    inside: bool = False


_DIFFERS = _Agreement(0)


def _agreement(text: str, at: int, saying: Saying) -> _Agreement:
    """How far ``text`` agrees from ``at`` on. A message for debugging is hardly ever printed: ``text`` must have all of
    it, and no message goes on behind its end."""
    characters, plain, unknown = 0, True, False
    for piece, kind in saying.pieces:
        if kind in _ANYTHING:
            plain, unknown = False, True
        elif at >= len(text):
            return _DIFFERS if saying.rare else _Agreement(characters, plain)
        elif kind == "plain":
            begin = text.find(piece, at) if unknown else at if text.startswith(piece, at) else -1
            if begin < 0:
                rest = _begun(text, at, piece) if unknown else text[at:] if piece.startswith(text[at:]) else ""
                if not rest and unknown and characters >= FEWEST_BEFORE_ANYTHING and not saying.rare:
                    return _Agreement(characters, plain=False)
                if not rest or saying.rare:
                    return _DIFFERS
                inside = piece[len(rest)].isalpha() and rest[-1].isalpha()
                return _Agreement(characters + _characters(rest), plain, inside)
            at, characters, unknown = begin + len(piece), characters + _characters(piece), False
        elif not unknown:
            found = _CONVERSIONS[kind].match(text, at)
            if found is None:
                return _DIFFERS
            at = found.end()
    more = at < len(text) and not unknown
    return _DIFFERS if more and saying.kind else _Agreement(characters, plain)


def _begun(text: str, at: int, piece: str) -> str:
    """The longest beginning of ``piece`` with which ``text`` ends, behind ``at``."""
    most = min(len(piece) - 1, len(text) - at)
    return next((piece[:size] for size in range(most, FEWEST, -1) if text.endswith(piece[:size])), "")


def _characters(text: str) -> int:
    """Without spaces."""
    return len(text) - text.count(" ")


@cache
def _errors() -> frozenset[str]:
    """What a half may be that ends before its driver or device does. Too much may follow that is no error."""
    return frozenset(kind for kind, entry in _entries().items() if entry.severity is Severity.ERROR)


@cache
def _entries() -> dict[str, Entry]:
    """An entry for each kind that half a line may have. None is alarming: those are named by whole lines only."""
    return {
        entry.kind: Entry(entry.kind, entry.severity, "", "half of a line")
        for entry in ENTRIES
        if entry.kind and entry.severity in (Severity.ERROR, Severity.INFO)
    }
