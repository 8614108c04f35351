"""What a file may hold: its size, and each of its blocks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from plugpull.integrity.oracle.files.contents import ZERO, ContentHistory, ContentVersion, since_kept
from plugpull.integrity.oracle.files.found import FoundEntry, Stretch
from plugpull.integrity.oracle.files.operations import (
    BLOCK,
    AppendBlocks,
    WriteBlocks,
    WriteMapped,
)
from plugpull.integrity.oracle.files.wrong import FileDamage, FileWrong, error_name
from plugpull.integrity.oracle.stamp import Stamp

_WORD = 8


class ContentRules:
    """Judges the content of the files of one ledger, whose run is ``run``."""

    def __init__(self, run: int) -> None:
        self._run = run

    def judge(self, entry: FoundEntry, number: int, contents: ContentHistory) -> list[FileWrong]:
        """What is wrong with a found file that is object ``number``."""
        if entry.errno:
            return [
                FileWrong(FileDamage.UNREADABLE, entry.path, "a readable file", error_name(entry.errno), kept_by=None)
            ]
        wrong = []
        if not contents.size_allowed(entry.size):
            possible = sorted({version.value for version in since_kept(contents.sizes)})
            kept_by = since_kept(contents.sizes)[0].kept_by
            expected = " or ".join(f"{size} bytes" for size in (possible[0], possible[-1])[: len(possible)])
            wrong.append(FileWrong(FileDamage.WRONG_SIZE, entry.path, expected, f"{entry.size} bytes", kept_by=kept_by))
        end = max(version.value for version in since_kept(contents.sizes)) // BLOCK
        return [*wrong, *_merged(self._blocks(entry, number, contents, end))]

    def _blocks(self, entry: FoundEntry, number: int, contents: ContentHistory, end: int) -> Iterator[FileWrong]:
        for stretch in entry.content:
            for block in range(stretch.first, min(stretch.end, end)):
                wrong = self._block(entry.path, number, contents, stretch, block)
                if wrong is not None:
                    yield wrong

    def _block(
        self, path: str, number: int, contents: ContentHistory, stretch: Stretch, block: int
    ) -> FileWrong | None:
        allowed = contents.allowed(block)
        if contents.garbled and len(since_kept(contents.blocks.get(block, []))) > 1:
            return None
        kind = self._damage(number, contents, stretch, block, allowed)
        if kind is None:
            return None
        kept = next((version for version in allowed.values() if version is not None and version.kept_by), None)
        return FileWrong(
            kind,
            path,
            " or ".join(_value(value) for value in sorted(allowed)),
            _shown(stretch, block),
            block,
            1,
            kept.kept_by if kept is not None else None,
        )

    def _damage(
        self,
        number: int,
        contents: ContentHistory,
        stretch: Stretch,
        block: int,
        allowed: dict[int, ContentVersion | None],
    ) -> FileDamage | None:
        if stretch.content in ("zero", "hole"):
            return None if ZERO in allowed else FileDamage.LOST
        if stretch.content == "unreadable":
            return FileDamage.UNREADABLE
        if stretch.content == "damaged":
            return None if self._is_mix(number, stretch, block, allowed) else FileDamage.CORRUPT
        if (stretch.run, stretch.file) != (self._run, number):
            return FileDamage.FOREIGN
        if stretch.origin + block - stretch.first != block:
            return FileDamage.CORRUPT
        if stretch.number in allowed:
            return None
        return FileDamage.OLD_VERSION if stretch.number in contents.ever(block) else FileDamage.CORRUPT

    def _is_mix(self, number: int, stretch: Stretch, block: int, allowed: dict[int, ContentVersion | None]) -> bool:
        """True if a block consists of versions that may all be there: a page is not locked while it is written back,
        so that a write may change it on its way to the disk."""
        raw, known = stretch.raw, [self._bytes(number, block, value, version) for value, version in allowed.items()]
        if len(raw) != BLOCK or len(known) < 2:
            return False
        words = range(0, BLOCK, _WORD)
        return all(any(raw[at : at + _WORD] == data[at : at + _WORD] for data in known) for at in words)

    def _bytes(self, number: int, block: int, value: int, version: ContentVersion | None) -> bytes:
        operation = version.operation if version is not None else None
        if value == ZERO or not isinstance(operation, WriteBlocks | AppendBlocks | WriteMapped):
            return bytes(BLOCK)
        first, count = operation.offset // BLOCK, operation.length // BLOCK
        return Stamp(self._run, number, block, value, block - first, count).encode()


def _value(value: int) -> str:
    return "zeros" if value == ZERO else f"the data of operation {value}"


def _shown(stretch: Stretch, block: int) -> str:
    """A block's content in words."""
    if stretch.content == "stamped":
        place = stretch.origin + block - stretch.first
        return f"the data of operation {stretch.number} for block {place} of file {stretch.file}"
    if stretch.content == "unreadable":
        return error_name(stretch.errno)
    return {"zero": "zeros", "hole": "a hole"}.get(stretch.content, "damaged data")


def _merged(wrong: Iterator[FileWrong]) -> list[FileWrong]:
    """Neighbours of the same kind as one; the words are those of the first block."""
    made: list[FileWrong] = []
    for one in wrong:
        last = made[-1] if made else None
        if last is not None and (last.kind, last.block + last.blocks, last.expected) == (
            one.kind,
            one.block,
            one.expected,
        ):
            made[-1] = replace(last, blocks=last.blocks + 1)
        else:
            made.append(one)
    return made
