"""Mistakes in a rig file, each with its place, and the error that lists all of them."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from plugpull.errors import UsageError

_LONGEST_QUOTE = 60


@dataclass(frozen=True, order=True)
class Mistake:
    """One mistake. ``line`` and ``column`` count from 1; line 0 means the file as a whole.

    ``hint`` is the text that was probably meant, or empty.
    """

    path: Path
    line: int
    column: int
    what: str
    hint: str = ""

    def __str__(self) -> str:
        place = f"{self.path}:{self.line}:{self.column}" if self.line else str(self.path)
        hint = f"; did you mean {quote(self.hint, len(self.hint))}?" if self.hint else ""
        return f"{place}: {self.what}{hint}"


class RigFileErrors(UsageError):
    """A rig file has mistakes. ``mistakes`` are in the order of the file; the message has one line for each."""

    def __init__(self, mistakes: tuple[Mistake, ...]) -> None:
        self.mistakes = tuple(sorted(set(mistakes)))
        super().__init__("\n".join(str(mistake) for mistake in self.mistakes))


def quote(text: str, longest: int = _LONGEST_QUOTE) -> str:
    """Text from a rig file in quotes, fit for one line of a terminal: control characters escaped, not endless."""
    shown = text if len(text) <= longest else text[: longest - 3] + "..."
    return '"' + "".join(char if char.isprintable() else repr(char)[1:-1] for char in shown) + '"'


def closest(word: str, known: Iterable[str]) -> str:
    """The known word that was probably meant, or an empty string."""
    return next(iter(difflib.get_close_matches(word, list(known), n=1, cutoff=0.6)), "")
