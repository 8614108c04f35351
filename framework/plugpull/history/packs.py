"""Packs: the samples of a long history a second time, as columns that need not be decoded.

Beside a ``history.jsonl`` of many lines lies ``history.columns``, with a pack for every few seals. A pack counts only
if the text that was just read has the digests that the pack names, so ``history.jsonl`` alone says what happened.
Without packs, or with packs of another text, everything is read from the text and takes longer. They may be deleted.

Each pack is its length, its SHA-256 and a MessagePack of ``Pack``.
"""

from __future__ import annotations

import hashlib
import struct
import sys
from array import array
from collections.abc import Iterator, Sequence
from itertools import islice
from operator import lt
from typing import BinaryIO

import msgspec

from plugpull.history.columns import MEDIUM, MOST, NARROW, WIDE, PackedColumn
from plugpull.history.counters import Counters
from plugpull.history.extremes import whole_blocks

COLUMNS_FILE = "history.columns"
MAGIC = b"plugpull columns 2 %b\n" % sys.byteorder.encode()
LONGEST_TEXT = 4 << 20
"""Bytes of text that a pack stands for at most, and of a pack."""
COLUMNS = len(Counters._fields) - 1
"""Of each attachment: its counters without ``diskseq``."""
_HEAD = struct.Struct("<I32s")


class PackedDisk(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The counters of one attachment in consecutive samples; a number is a column in which all are the same.
    ``extremes``: what ``extremes_of`` gives of the bytes read and of those written; nothing of a column in which all
    are the same, or some are smaller than those before."""

    kname: str
    diskseq: int
    columns: tuple[int | PackedColumn, ...]
    extremes: tuple[bytes, bytes]

    def at(self, row: int) -> tuple[int, ...]:
        """The numbers of one sample."""
        return tuple(one if isinstance(one, int) else one.at(row) for one in self.columns)


class PackedSpan(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """``count`` consecutive samples that list the same disks, from row ``row`` of the scenario's table on. ``at`` has
    their times as an array of doubles, ``cpus`` the samples that have CPU times with these, ``reports`` the numbers of
    all their reports, or nothing."""

    row: int
    count: int
    at: bytes
    cpus: list[tuple[int, int, int]]
    reports: list[int]
    disks: list[PackedDisk]

    @property
    def sound(self) -> bool:
        """Whether all columns have as many numbers as there are samples."""
        columns = (one for disk in self.disks for one in disk.columns if not isinstance(one, int))
        blocks = len(whole_blocks(self.row, self.count))
        return (
            self.count > 0
            and self.row >= 0
            and len(self.at) == 8 * self.count
            and len(self.reports) in (0, self.count)
            and all(0 <= row < self.count for row, *_ in self.cpus)
            and len({disk.kname for disk in self.disks}) == len(self.disks)
            and all(len(disk.columns) == COLUMNS for disk in self.disks)
            and all(one.fits(self.count) for one in columns)
            and all(len(one) in (0, 16 * blocks) for disk in self.disks for one in disk.extremes)
        )


class SealedPart(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The lines between two seals. ``begin`` and ``end``: of the lines in the text of the pack; ``digest``: what the
    seal after them has."""

    begin: int
    end: int
    lines: int
    digest: str


class Pack(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Some sections, one after the other, without the last one's seal. ``begin`` and ``length``: where their text is in
    the open end of the history. ``first``: the number of the first line. ``others``: which lines are neither samples
    nor seals, counted without seals, with where each begins and ends in the text."""

    begin: int
    length: int
    first: int
    sections: list[SealedPart]
    others: list[tuple[int, int, int]]
    spans: list[PackedSpan]

    @property
    def lines(self) -> int:
        """Lines that are not seals."""
        return sum(section.lines for section in self.sections)

    @property
    def sound(self) -> bool:
        """Whether its parts fit together."""
        places = [place for place, *_ in self.others]
        return (
            bool(self.sections and self.spans)
            and sorted(set(places)) == places
            and (not places or (places[0] >= 0 and places[-1] < self.lines))
            and all(section.lines > 0 for section in self.sections)
            and sum(span.count for span in self.spans) == self.lines - len(places)
            and all(span.sound for span in self.spans)
        )


_encoder = msgspec.msgpack.Encoder()
_decoder: msgspec.msgpack.Decoder[Pack] = msgspec.msgpack.Decoder(Pack)


def pack_column(numbers: Sequence[int]) -> int | PackedColumn | None:
    """A column of a pack; None if its numbers are too large."""
    first, most = numbers[0], max(numbers)
    if min(numbers) < 0 or most > MOST:
        return None
    if numbers.count(first) == len(numbers):
        return first
    code = NARROW if most < 1 << 8 else MEDIUM if most < 1 << 32 else WIDE
    return PackedColumn(
        code=code,
        rises=all(map(lt, numbers, islice(numbers, 1, None))),
        falls=sorted(numbers) != list(numbers),
        data=array(code, numbers).tobytes(),
    )


def write_pack(file: BinaryIO, pack: Pack) -> None:
    """Append a pack. Raises OSError."""
    payload = _encoder.encode(pack)
    if len(payload) <= LONGEST_TEXT and pack.length <= LONGEST_TEXT:
        file.write(_HEAD.pack(len(payload), hashlib.sha256(payload).digest()) + payload)


def read_packs(file: BinaryIO) -> Iterator[Pack]:
    """The packs of a file up to the first that is damaged."""
    if file.readline(len(MAGIC)) != MAGIC:
        return
    while len(head := file.read(_HEAD.size)) == _HEAD.size:
        length, digest = _HEAD.unpack(head)
        payload = file.read(min(length, LONGEST_TEXT))
        if hashlib.sha256(payload).digest() != digest:
            return
        try:
            pack = _decoder.decode(payload)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return
        if not 0 < pack.length <= LONGEST_TEXT or not pack.sound:
            return
        yield pack
