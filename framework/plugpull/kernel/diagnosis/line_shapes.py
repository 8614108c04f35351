"""Remembers where the message and its subject are in lines that differ only in their digits. In a storm nearly all do.

The regular expressions that find a prefix and a subject look at where digits are, not at which they are, except in
names such as that of ntfs3: their result for one line holds for every line of the same shape. So does the result that
no entry names a line, unless an entry would name it if it had other digits.
"""

from __future__ import annotations

from plugpull.kernel.catalogue.classify import subject_of, subject_span
from plugpull.kernel.catalogue.entry import Entry
from plugpull.kernel.catalogue.finder import any_digits, not_the_kernels
from plugpull.kernel.catalogue.prefix import split_prefix

_DIGITS = bytes.maketrans(b"123456789", b"0" * 9)
MOST = 1024
"""Shapes that are remembered."""
LONGEST = 300
"""Bytes of a line whose shape is remembered. Longer ones are rarely alike."""
_LEVEL, _JSON = b"<", b"MESSAGE"
"""In lines whose digits mean something: the level of a second message, a character by its number."""


def shape_of(raw: bytes) -> bytes:
    """A line with 0 for each digit."""
    return raw.translate(_DIGITS)


class LineShapes:
    """The shapes of the lines of one log."""

    def __init__(self) -> None:
        self._messages: dict[bytes, tuple[int, int]] = {}
        self._subjects: dict[bytes, tuple[int, int]] = {}
        self._foreign: dict[bytes, bool] = {}
        self._unnamed: set[tuple[bytes, tuple[int, ...]]] = set()

    def is_unnamed(self, shape: bytes, tried: tuple[int, ...]) -> bool:
        """Whether a line of this shape was tried with the same entries before, and none of them named it."""
        return (shape, tried) in self._unnamed

    def keep_unnamed(self, shape: bytes, tried: tuple[int, ...], message: str) -> None:
        """Remembers that none of these entries names a message, if that holds for all lines of its shape."""
        if len(shape) > LONGEST or _LEVEL in shape or _JSON in shape:
            return
        if any_digits(message, tried):
            if len(self._unnamed) >= MOST:
                self._unnamed.clear()
            self._unnamed.add((shape, tried))

    def message(self, shape: bytes, text: str) -> str:
        """The message of a line without its prefix."""
        known = self._messages.get(shape)
        if known is not None:
            return text[known[0] : known[1]]
        prefix, rest = split_prefix(text)
        body = rest.strip()
        # Colours and JSON make a message that is not in the line as it is, and characters that are several bytes.
        if len(shape) == len(text) <= LONGEST and text == prefix + rest:
            if len(self._messages) >= MOST:
                self._messages.clear()
                self._subjects.clear()
                self._foreign.clear()
            begin = len(text) - len(rest.lstrip())
            self._messages[shape] = begin, begin + len(body)
        return body

    def not_the_kernels(self, shape: bytes, entry: Entry, message: str, text: str) -> bool:
        """Whether a line only quotes the kernel's words."""
        known = self._foreign.get(shape)
        if known is None:
            known = not_the_kernels(entry, message, text)
            if shape in self._messages:
                self._foreign[shape] = known
        return known

    def subject(self, shape: bytes, message: str) -> str:
        """What the message of a line is about; empty if it names nothing."""
        if shape not in self._messages:
            return subject_of(message)
        known = self._subjects.get(shape)
        if known is None:
            known = self._subjects[shape] = subject_span(message)
        return message[known[0] : known[1]]
