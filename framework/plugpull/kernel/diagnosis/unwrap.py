"""Joins the lines of a log that a mail program, a web form or a terminal wrapped, where that is certain.

A program that wraps at a width breaks a line only where the next word does not fit. So a piece without a time stamp
belongs to the line before it if its first word did not fit there, at the width of the longest line. It is certain if
this holds for nearly all pieces, and if no message of the log is longer than a wrapped line can be. A terminal breaks
words, so that every broken line has exactly its width. A mail in quoted-printable marks the places itself (RFC 2045,
section 6.7): a line of at most 76 characters that ends with an equals sign goes on in the next one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

NARROWEST, WIDEST = 60, 100
"""Columns. Mail programs and forms wrap at 66 to 90; a log with longer messages was not wrapped by them."""
WIDEST_TERMINAL = 250
"""Columns."""
ENOUGH = 2
"""Pieces from which on their fit is not chance."""
ENOUGH_FULL = 3
"""Full lines of different messages from which on it is not chance that each of them, and no other, goes on in the
next line."""
LONGEST_QUOTED = 76
"""Characters of a line in quoted-printable."""
MOST = 0.8
"""Share of the pieces that must fit. The others are text that somebody wrote under a message."""

_STAMPED = re.compile(
    rb"\s*(?:<\d{1,3}>|\w+ *:\w+ *: )?(?:\[ *\+?\d+[.,]\d+\]|\d+\.\d+ (?:\S+ )?kernel: "
    rb"|\[[^\[\]]{0,30}\d\d:\d\d:\d\d[^\[\]]{0,20}\]"
    rb"|[^\[\]<>\"']{0,40}\d\d:\d\d:\d\d[^\[\]<>\"']{0,60}?kernel: )"
)
_NUMBER = re.compile(rb"\d+")
_CODE = re.compile(rb"=([\dA-F]{2})")
_SOFT = re.compile(rb"(?:[^=]|=[\dA-F]{2})*=")
"""A line with a soft break. An equals sign of the text itself is =3D."""
_QUOTE = re.compile(rb"(?:> ?)*")
_NOT_A_PIECE = re.compile(rb"[\s\[<>]|$|[`=*#$~|]|--|-{2,}|\S*\d\d:\d\d:\d\d|[A-Z][a-z]{2} [ \d]\d \d\d:")


class Unwrapped(NamedTuple):
    """A log and where its lines were joined. ``joints`` are offsets in ``text``, each of them a lost end of line."""

    text: bytes
    joints: tuple[int, ...] = ()


def unwrapped(text: bytes) -> Unwrapped:
    """``text`` with its wrapped lines joined by a space; the same text if it was not certainly wrapped."""
    lines = text.split(b"\n")
    if b"=\n" in text and (quoted := _behind_soft_breaks(lines)):
        return _decoded(lines, quoted)
    if not _may_be_wrapped(lines):
        return Unwrapped(text)
    full = _behind_full_lines(lines)
    if _of_several_forms(lines, full):
        return _joined(lines, full)
    pieces = _pieces(lines)
    breaks = {at: _room(lines[at - 1], lines[at]) for at in pieces}
    widest = max((len(lines[at]) for at in range(len(lines)) if at in pieces or _is_stamped(lines[at])), default=0)
    fitting = {at for at, room in breaks.items() if room >= widest}
    exact = {at for at in breaks if len(lines[at - 1]) == widest}
    if (
        (len(exact) * 2 > len(breaks) and _of_several_forms(lines, exact))
        or len(fitting) < ENOUGH
        or len(fitting) < MOST * len(breaks)
        or not NARROWEST <= widest <= WIDEST
    ):
        return Unwrapped(text)
    return _joined(lines, dict.fromkeys(fitting, b" "))


def _behind_soft_breaks(lines: Sequence[bytes]) -> set[int]:
    """The lines that continue one in quoted-printable; empty if one that ends so is something else."""
    found = {at for at in range(1, len(lines)) if lines[at - 1].endswith(b"=")}
    if sum(bool(lines[at - 1].rstrip(b"=") and lines[at].rstrip(b"=")) for at in found) < ENOUGH or not all(
        len(lines[at - 1]) <= LONGEST_QUOTED
        and _SOFT.fullmatch(lines[at - 1])
        and not _is_stamped(lines[at])
        and not (_quote(lines[at - 1]) and _quote(lines[at]))
        for at in found
    ):
        return set()
    return found


def _decoded(lines: Sequence[bytes], pieces: set[int]) -> Unwrapped:
    """The lines with their soft breaks removed, and the codes of characters in the lines that had one."""
    joined: list[bytes] = []
    joints: list[int] = []
    length = -1
    for at, line in enumerate(lines):
        if at in pieces or at + 1 in pieces:
            encoded = line.removesuffix(b"=") if at + 1 in pieces else line
            line = _CODE.sub(lambda code: bytes([int(code[1], 16)]), encoded)
        if at in pieces:
            joints.append(length)
            joined[-1] += line
            length += len(line)
        else:
            joined.append(line)
            length += 1 + len(line)
    return Unwrapped(b"\n".join(joined), tuple(joints))


def _may_be_wrapped(lines: Sequence[bytes]) -> bool:
    """A quick look that excludes nearly all logs: a long message, or no line without a time stamp."""
    longest = max(lines, key=len)
    if len(longest) > WIDEST_TERMINAL and _is_stamped(longest):
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
        if _quote(before) != _quote(line) or _NOT_A_PIECE.match(line[len(_quote(line)) :]) or _is_stamped(line):
            continue
        if at - 1 in found or _is_stamped(before):
            found.add(at)
    return found


def _behind_full_lines(lines: Sequence[bytes]) -> dict[int, bytes]:
    """The pieces of a log that a terminal wrapped, and what to put before each: a space at the end of a line is lost if
    somebody removed those. Empty if a line that is not full goes on, or a full one does not."""
    widest = max(map(len, lines))
    if not NARROWEST <= widest <= WIDEST_TERMINAL:
        return {}
    found: dict[int, bytes] = {}
    for at in range(1, len(lines)):
        before, line = lines[at - 1], lines[at]
        part = bool(line.strip()) and not line.startswith(b"  ") and not _is_stamped(line)
        goes_on = part and (at - 1 in found or _is_stamped(before))
        if goes_on and len(before) >= widest - 1:
            found[at] = b" " * (widest - len(before))
        elif goes_on or len(before) == widest:
            return {}
    return found


def _of_several_forms(lines: Sequence[bytes], pieces: Iterable[int]) -> bool:
    """Whether the lines before these pieces end differently. Repeats of one message are of one length anyway."""
    return len({_NUMBER.sub(b"", lines[at - 1][-20:]) for at in pieces}) >= ENOUGH_FULL


def _quote(line: bytes) -> bytes:
    found = _QUOTE.match(line)
    return found.group() if found else b""


def _room(before: bytes, piece: bytes) -> int:
    """The width that ``before`` would have with the first word of ``piece``."""
    return len(before.rstrip()) + 1 + len(piece[len(_quote(piece)) :].split(b" ", 1)[0].rstrip())


def _joined(lines: Sequence[bytes], pieces: Mapping[int, bytes]) -> Unwrapped:
    """The lines, each piece joined to the one before it with what stands for it in ``pieces``."""
    joined: list[bytes] = []
    joints: list[int] = []
    length = 0
    for at, line in enumerate(lines):
        if at in pieces:
            glue = pieces[at]
            before = joined[-1].rstrip() if glue else joined[-1]
            length += len(before) - len(joined[-1])
            joints.append(length)
            joined[-1] = before + glue + line[len(_quote(line)) :]
            length += len(glue) + len(line) - len(_quote(line))
        else:
            joined.append(line)
            length += len(line) + (1 if at else 0)
    return Unwrapped(b"\n".join(joined), tuple(joints))
