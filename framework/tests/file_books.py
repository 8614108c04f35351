"""Makes up file ledgers and what was found after a cut, for the tests of the oracle for files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import msgspec

from plugpull.integrity.oracle.files import operations as op
from plugpull.integrity.oracle.files.found import FoundEntry, FoundTree, Stretch
from plugpull.integrity.oracle.files.ledger import (
    FileLedger,
    FilesBegun,
    FilesEnded,
    OperationReturned,
    encode_file_line,
)
from plugpull.integrity.oracle.files.promises import PROMISES, CutEffect, FilesystemClass
from plugpull.integrity.oracle.files.rules import FileOpinion, judge
from plugpull.integrity.oracle.files.wrong import FileDamage, FileWrong
from plugpull.integrity.oracle.stamp import Stamp

JOURNALED: tuple[FilesystemClass, ...] = ("ext4", "xfs", "btrfs", "f2fs")
FAT: tuple[FilesystemClass, ...] = ("vfat", "exfat", "ntfs3")
EVERY = (*JOURNALED, *FAT)
CABLE = CutEffect(powered=True)
RUN = 0xABCDEF0123456789
B = op.BLOCK
HOLE = 0
"""What ``file`` takes for a block of zeros."""


@dataclass
class FileBook:
    """Keeps a ledger as a writer would; a call and its return take a millisecond each. Sizes are in blocks.

    Every operation takes ``errno``, and ``returns=False`` if the cut came before it returned.
    """

    made: FileLedger = field(default_factory=lambda: FileLedger(run=RUN))
    sizes: dict[str, int] = field(default_factory=dict)
    inodes: bool = True

    @property
    def next(self) -> int:
        return len(self.made.operations) + 1

    def do(self, kind: type[op.Operation], *, errno: int = 0, returns: bool = True, **fields: object) -> int:
        """Record an operation. Returns its number, which is also that of the object that it makes."""
        number = self.next
        made = {"file": number, "inode": 100 + number if self.inodes and returns and not errno else 0}
        known = {field.name for field in msgspec.structs.fields(kind)}
        fields |= {name: value for name, value in made.items() if name in known and name not in fields}
        submitted = number * 0.002
        operation = kind(
            number=number, submitted=submitted, returned=submitted + 0.001 if returns else None, errno=errno, **fields
        )
        self.made.operations.append(operation)  # type: ignore[arg-type]
        return number

    def create(self, path: str, **how: object) -> int:
        self.sizes[path] = 0
        return self.do(op.CreateFile, path=path, **how)  # type: ignore[arg-type]

    def write(self, path: str, block: int = 0, blocks: int = 1, **how: object) -> int:
        self.sizes[path] = max(self.sizes.get(path, 0), block + blocks)
        return self.do(op.WriteBlocks, path=path, offset=block * B, length=blocks * B, **how)  # type: ignore[arg-type]

    def append(self, path: str, blocks: int = 1, **how: object) -> int:
        at = self.sizes.get(path, 0)
        self.sizes[path] = at + blocks
        return self.do(op.AppendBlocks, path=path, offset=at * B, length=blocks * B, **how)  # type: ignore[arg-type]

    def mmap(self, path: str, block: int = 0, blocks: int = 1, **how: object) -> int:
        return self.do(op.WriteMapped, path=path, offset=block * B, length=blocks * B, **how)  # type: ignore[arg-type]

    def truncate(self, path: str, blocks: int = 0, **how: object) -> int:
        self.sizes[path] = blocks
        return self.do(op.Truncate, path=path, size=blocks * B, **how)  # type: ignore[arg-type]

    def link(self, path: str, to: str, **how: object) -> int:
        self.sizes[to] = self.sizes.get(path, 0)
        return self.do(op.Link, path=path, to=to, **how)  # type: ignore[arg-type]

    def rename(self, path: str, to: str, **how: object) -> int:
        self.sizes[to] = self.sizes.pop(path, 0)
        return self.do(op.Rename, path=path, to=to, **how)  # type: ignore[arg-type]

    def unlink(self, path: str, **how: object) -> int:
        return self.do(op.Unlink, path=path, **how)  # type: ignore[arg-type]

    def mkdir(self, path: str, **how: object) -> int:
        return self.do(op.MakeDirectory, path=path, **how)  # type: ignore[arg-type]

    def rmdir(self, path: str, **how: object) -> int:
        return self.do(op.RemoveDirectory, path=path, **how)  # type: ignore[arg-type]

    def symlink(self, path: str, target: str = "there", **how: object) -> int:
        return self.do(op.Symlink, path=path, target=target, **how)  # type: ignore[arg-type]

    def fsync(self, path: str, **how: object) -> int:
        return self.do(op.Fsync, path=path, **how)  # type: ignore[arg-type]

    def fdatasync(self, path: str, **how: object) -> int:
        return self.do(op.Fdatasync, path=path, **how)  # type: ignore[arg-type]

    def fsyncdir(self, path: str = "", **how: object) -> int:
        return self.do(op.FsyncDirectory, path=path, **how)  # type: ignore[arg-type]

    def sync(self, **how: object) -> int:
        return self.do(op.SyncAll, **how)  # type: ignore[arg-type]

    def syncfs(self, **how: object) -> int:
        return self.do(op.SyncFilesystem, **how)  # type: ignore[arg-type]

    def lines(self) -> list[bytes]:
        """The ledger as the writer reports it."""
        made = [encode_file_line(FilesBegun(run=self.made.run))]
        for one in self.made.operations:
            changes: dict[str, object] = {"returned": None, "errno": 0}
            if hasattr(one, "inode"):
                changes["inode"] = 0
            made.append(encode_file_line(msgspec.structs.replace(one, **changes)))
            if one.returned is not None:
                inode = getattr(one, "inode", 0)
                made.append(
                    encode_file_line(
                        OperationReturned(number=one.number, at=one.returned, errno=one.errno, inode=inode)
                    )
                )
        returned = sum(one.returned is not None for one in self.made.operations)
        return [*made, encode_file_line(FilesEnded(operations=len(self.made.operations), returned=returned))]


def stretch(value: int | bytes | Stretch, block: int, number: int) -> Stretch:
    """One block: written by operation ``value``, or zeros, or these damaged bytes."""
    if isinstance(value, Stretch):
        return msgspec.structs.replace(value, first=block)
    if isinstance(value, bytes):
        return Stretch(content="damaged", first=block, blocks=1, raw=value)
    if value == HOLE:
        return Stretch(content="hole", first=block, blocks=1)
    return Stretch(content="stamped", first=block, blocks=1, run=RUN, file=number, number=value, origin=block)


def file(
    path: str, number: int, *values: int | bytes | Stretch, links: int = 1, inode: int | None = None, errno: int = 0
) -> FoundEntry:
    """A file that was found: object ``number``, with these blocks."""
    content = tuple(stretch(value, block, number) for block, value in enumerate(values))
    inode = 100 + number if inode is None else inode
    size = B * len(values)
    return FoundEntry(path=path, kind="file", size=size, links=links, inode=inode, content=content, errno=errno)


def directory(path: str, number: int, links: int = 2, errno: int = 0) -> FoundEntry:
    return FoundEntry(path=path, kind="directory", links=links, inode=100 + number, errno=errno)


def symlink(path: str, number: int, target: str = "there") -> FoundEntry:
    return FoundEntry(path=path, kind="symlink", inode=100 + number, target=target)


def tree(*entries: FoundEntry, **fields: object) -> FoundTree:
    return FoundTree(entries=entries, **fields)  # type: ignore[arg-type]


def stamp_of(book: FileBook, operation: int, file_number: int, block: int) -> bytes:
    """The bytes that a write put into a block."""
    (one,) = [each for each in book.made.operations if each.number == operation]
    assert isinstance(one, op.WriteBlocks | op.AppendBlocks | op.WriteMapped)
    first, count = one.offset // B, one.length // B
    return Stamp(RUN, file_number, block, operation, block - first, count).encode()


def kinds(wrong: Iterable[object] | Sequence[object]) -> list[str]:
    return [str(getattr(one, "kind", "")) for one in wrong]


def opinion(
    book: FileBook, found: FoundTree, name: FilesystemClass = "ext4", cut: CutEffect | None = None
) -> FileOpinion:
    return judge(book.made, found, PROMISES[name], cut)


def only(made: FileOpinion) -> FileWrong:
    (wrong,) = made.wrong
    assert wrong.sentence()
    return wrong


def damage(
    book: FileBook, *entries: FoundEntry, name: FilesystemClass = "ext4", cut: CutEffect | None = None
) -> set[FileDamage]:
    return {wrong.kind for wrong in opinion(book, tree(*entries), name, cut).wrong}


def synced(name: str = "a", *, blocks: int = 1) -> tuple[FileBook, int, int]:
    """A file with data, synced with its directory. Returns the book, the file and the write."""
    book = FileBook()
    made = book.create(name)
    wrote = book.write(name, blocks=blocks)
    book.fsync(name)
    book.fsyncdir()
    return book, made, wrote
