"""Joins the lines of a log that a mail program or a web form wrapped, where that is certain.

A program that wraps at a width breaks a line only where the next word does not fit. So a piece without a time stamp
belongs to the line before it if its first word did not fit there, at the width of the longest line. It is certain if
this holds for nearly all pieces, and if no message of the log is longer than a wrapped line can be.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

NARROWEST, WIDEST = 60, 100
"""Columns. Mail programs and forms wrap at 66 to 90; a log with longer messages was not wrapped."""
ENOUGH = 2
"""Pieces from which on their fit is not chance."""
MOST = 0.8
"""Share of the pieces that must fit. The others are text that somebody wrote under a message."""

_STAMPED = re.compile(
    rb"\s*(?:<\d{1,3}>|\w+ *:\w+ *: )?(?:\[ *\d+\.\d+\]|\[[^\[\]]{0,30}\d\d:\d\d:\d\d[^\[\]]{0,20}\]"
    rb"|[^\[\]<>\"']{0,40}\d\d:\d\d:\d\d[^\[\]<>\"']{0,60}?kernel: )"
)
_QUOTE = re.compile(rb"(?:> ?)*")
_NOT_A_PIECE = re.compile(rb"[\s\[<>]|$|[`=*#$~|]|--|-{2,}|\S*\d\d:\d\d:\d\d|[A-Z][a-z]{2} [ \d]\d \d\d:")


class Unwrapped(NamedTuple):
    """A log and where its lines were joined. ``joints`` are offsets in ``text``, each of them a lost end of line."""

    text: bytes
    joints: tuple[int, ...] = ()


def unwrapped(text: bytes) -> Unwrapped:
    """``text`` with its wrapped lines joined by a space; the same text if it was not certainly wrapped."""
    lines = text.split(b"\n")
    if not _may_be_wrapped(lines):
        return Unwrapped(text)
    pieces = _pieces(lines)
    breaks = {at: _room(lines[at - 1], lines[at]) for at in pieces}
    widest = max((len(lines[at]) for at in range(len(lines)) if at in pieces or _is_stamped(lines[at])), default=0)
    fitting = {at for at, room in breaks.items() if room >= widest}
    if len(fitting) < ENOUGH or len(fitting) < MOST * len(breaks) or not NARROWEST <= widest <= WIDEST:
        return Unwrapped(text)
    return _joined(lines, fitting)


def _may_be_wrapped(lines: Sequence[bytes]) -> bool:
    """A quick look that excludes nearly all logs: a long message, or no line without a time stamp."""
    longest = max(lines, key=len)
    if len(longest) > WIDEST and _is_stamped(longest):
        return False
    usual = next((line[:4] for line in lines if line[:1] not in (b"[", b"<")), b"")
    return any(line[:1] not in (b"[", b"<") and (line[:4] != usual or line[:1] == b">") for line in lines) or (
        bool(usual) and not _is_stamped(usual)
    )


def _is_stamped(line: bytes) -> bool:
    quote = _QUOTE.match(line)
    return bool(_STAMPED.match(line, quote.end() if quote else 0))


def _pieces(lines: Sequence[bytes]) -> set[int]:
    """The lines that may be pieces: they follow a message or another piece and do not look like lines of their own."""
    found: set[int] = set()
    for at in range(1, len(lines)):
        before, line = lines[at - 1], lines[at]
        if _quote(before) != _quote(line) or _NOT_A_PIECE.match(line[len(_quote(line)) :]):
            continue
        if at - 1 in found or _is_stamped(before):
            found.add(at)
    return found


def _quote(line: bytes) -> bytes:
    found = _QUOTE.match(line)
    return found.group() if found else b""


def _room(before: bytes, piece: bytes) -> int:
    """The width that ``before`` would have with the first word of ``piece``."""
    return len(before.rstrip()) + 1 + len(piece[len(_quote(piece)) :].split(b" ", 1)[0].rstrip())


def _joined(lines: Sequence[bytes], pieces: set[int]) -> Unwrapped:
    joined: list[bytes] = []
    joints: list[int] = []
    length = 0
    for at, line in enumerate(lines):
        if at in pieces:
            before = joined[-1].rstrip()
            length += len(before) - len(joined[-1])
            joints.append(length)
            joined[-1] = before + b" " + line[len(_quote(line)) :]
            length += 1 + len(line) - len(_quote(line))
        else:
            joined.append(line)
            length += len(line) + (1 if at else 0)
    return Unwrapped(b"\n".join(joined), tuple(joints))
