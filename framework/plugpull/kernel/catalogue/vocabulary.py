"""How the kernel's messages go on: what each driver can say, in the words of kernels 2.6.32 to 6.12.

They are in ``messages/vocabulary.txt``: ``= HEAD`` is the beginning of messages, ``{usb}`` a driver and a device,
``XFS (*)`` any name in parentheses. Each line below it is a kind, or ``-`` for nothing to report, and how such messages
go on. ``.`` is nothing to report, and for debugging only. ``+`` marks wordings of the catalogue that are in no kernel's
source. The census writes the file (``kernel/census/words.py``).
"""

from __future__ import annotations

import re
from functools import cache, lru_cache
from typing import NamedTuple

from plugpull.kernel.catalogue.entries import BEGINNINGS, read_text
from plugpull.kernel.catalogue.wording import pieces_of

NAME = "vocabulary"
NOTHING, RARE, OURS = "-", ".", "+"
SPEAKERS = (
    *(f"{name} {digit}" for name in ("usb", "hub", "uas", "usb-storage", "sd", "sr", "scsi") for digit in range(10)),
    *(f"ata{digit}" for digit in range(1, 10)),
    *(
        "usb usb",
        "scsi host",
        "nvme ",
        "xhci",
        "ehci",
        "ohci",
        "uhci",
        "dwc2 ",
        "dwc3 ",
        "ahci ",
        "thunderbolt ",
        "cfgselector ",
    ),
    *("pcieport ", "EXT4-fs", "EXT3-fs", "EXT2-fs", "JBD2", "XFS (", "BTRFS", "F2FS-fs", "FAT-fs", "ntfs3", "UDF-fs"),
    *("md: ", "md/raid", "device-mapper: ", "Buffer I/", "end_request", "blk_update", "print_req_error", "INFO: task"),
)
"""Words of which each message contains one whose beginning is in the vocabulary."""

_DISK = re.compile(r"(?:\[\w+\] )? *(?:tag#\d+ )?")
"""What SCSI's messages have behind the address of the unit: a disk, a command."""
_FORMAT_DISK = re.compile(r"(?:\[%[ws]\] )? *(?:tag#%d )?")
_PLACE = re.compile(
    r"\((?:device )?[\w.!/-]+\)|\b(?:sd[a-z]+\d*|md_?\w+|dm-\d+|nvme\d\w*|mmcblk\w+|sr\d+|loop\d+|[vh]d[a-z]\d*)\b"
)
_FORMAT_PLACE = re.compile(r"\((?:device )?%\w+\)|%p?\w+")
_WORD_BEFORE = re.compile(r"(?:[\w./-]+(?::\d+)?: )")
_FORMAT_WORD_BEFORE = re.compile(r"%(?:s|w|pg|pD4)(?::%[du])?: ")
_BUCKET = 3
"""Letters by which the words behind a head are kept apart."""


class Saying(NamedTuple):
    """How a message goes on: its kind, empty if there is nothing to report, the pieces of its wording, and whether it
    is for debugging only."""

    kind: str
    pieces: tuple[tuple[str, str], ...]
    rare: bool


def head_of_format(wording: str) -> tuple[str, str] | None:
    """(head, rest) of a format without choices; ``None`` if it has no head or nothing certain behind it."""
    named = re.match(r"\{(\w+)\}: ", wording)
    if named:
        head, rest = f"{{{named[1]}}}", wording[named.end() :]
        rest = rest[_FORMAT_DISK.match(rest).end() :] if named[1] == "scsi" else rest  # type: ignore[union-attr]
    else:
        before, colon, rest = wording.partition(": ")
        if not colon:
            before, rest = "", wording
        head = _FORMAT_PLACE.sub(_star, before)
    if word := _FORMAT_WORD_BEFORE.match(rest):
        head, rest = f"{head}: *", rest[word.end() :]
    return (head, rest) if rest and not rest.startswith(("%s", "%w", "%p")) else None


def heads_in(body: str) -> tuple[tuple[str, int], ...]:
    """(head, where what follows it begins) for each way to read the beginning of a message."""
    place = body.find(": ", body.find(": ") + 2)
    return _heads_in(body[: place + 2] if place >= 0 else body)


@lru_cache(maxsize=1024)
def _heads_in(body: str) -> tuple[tuple[str, int], ...]:
    found = []
    for name, pattern in _named():
        if match := pattern.match(body):
            at = match.end()
            found.append((f"{{{name}}}", _DISK.match(body, at).end() if name == "scsi" else at))  # type: ignore[union-attr]
    if not found:
        before, colon, _ = body.partition(": ")
        head = _PLACE.sub(_star, before)
        found = [(head, len(before) + 2)] if colon and head in _blocks() else [("", 0)]
    for head, at in list(found):
        if head and (word := _WORD_BEFORE.match(body, at)):
            found.append((f"{head}: *", word.end()))
    return tuple(found)


def kinds_of_heads(text: str) -> set[str]:
    """The kinds of all messages whose heads begin like ``text``, which ends within the head. How many were suppressed
    is said behind each head too."""
    begin = _PLACE.sub(_star, text)
    heads = [head for head in _blocks() if head.startswith(begin)]
    if begin in heads:
        return {""}
    return {saying.kind for head in heads for kept in _index(head).values() for saying in kept}


def sayings(head: str, text: str) -> list[Saying]:
    """How messages with this head go on that begin like ``text``, or with a number."""
    kept = _index(head)
    return [*kept.get(text[:_BUCKET], ()), *kept.get("", ())] if len(text) >= _BUCKET else []


def _star(found: re.Match[str]) -> str:
    return "(*)" if found[0].startswith("(") else "*"


@cache
def _named() -> list[tuple[str, re.Pattern[str]]]:
    names = [head[1:-1] for head in _blocks() if re.fullmatch(r"\{\w+\}", head)]
    return [(name, re.compile(f"(?:{BEGINNINGS[name].pattern}): ")) for name in names]


@cache
def _blocks() -> dict[str, str]:
    blocks = read_text(NAME).split("\n= ")[1:]
    return {head: rest for head, _, rest in (block.partition("\n") for block in blocks)}


@cache
def _index(head: str) -> dict[str, list[Saying]]:
    found: dict[str, list[Saying]] = {}
    for line in _blocks().get(head, "").splitlines():
        kind, _, wording = line.removeprefix(OURS).partition("\t")
        saying = Saying("" if kind in (NOTHING, RARE) else kind, pieces_of(wording), kind == RARE)
        text, what = saying.pieces[0]
        found.setdefault(text[:_BUCKET] if what == "plain" and len(text) >= _BUCKET else "", []).append(saying)
    return found
