"""What was found in the writer's directory after the cut: names, kinds, sizes, links and the content of files."""

from __future__ import annotations

from typing import Literal

import msgspec

EntryKind = Literal["file", "directory", "symlink", "other"]
Content = Literal["stamped", "zero", "hole", "unreadable", "damaged"]
"""``stamped``: whole stamps, of any file. ``damaged``: neither a whole stamp nor zeros."""


class Stretch(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Consecutive blocks of a file with the same kind of content.

    ``first`` and ``blocks`` count blocks of 512 bytes. ``run``, ``file`` and ``number`` are what the stamps say, and
    ``origin`` is the place that the first of them claims (rising with the blocks). ``raw`` are the bytes of one damaged
    block, shorter if the file ends in it.
    """

    content: Content
    first: int
    blocks: int
    run: int = 0
    file: int = 0
    number: int = 0
    origin: int = 0
    errno: int = 0
    raw: bytes = b""

    @property
    def end(self) -> int:
        return self.first + self.blocks


class FoundEntry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A name below the writer's directory. ``size`` is in bytes; ``links`` is the link count, ``inode`` the inode
    number. ``errno`` is the error of reading the entry itself, or of listing a directory."""

    path: str
    kind: EntryKind
    size: int = 0
    links: int = 1
    inode: int = 0
    target: str = ""
    content: tuple[Stretch, ...] = ()
    errno: int = 0

    @property
    def parent(self) -> str:
        return self.path.rpartition("/")[0]

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]


class Unremovable(msgspec.Struct, frozen=True, kw_only=True):
    """A directory that could not be removed after everything in it was."""

    path: str
    errno: int


class FoundTree(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The writer's directory after the cut, after the kernel recovered the filesystem and before any repair.

    ``mount_errno`` is the error of a mount that was tried after everything that held the earlier mount had released
    it; None if nobody tried. ``errno`` is the error of opening or listing the writer's directory. ``removal_tried``:
    everything was removed afterwards, which shows directories that cannot be. ``complete``: the scan reached its end.
    """

    mount_errno: int | None = 0
    errno: int = 0
    entries: tuple[FoundEntry, ...] = ()
    removal_tried: bool = False
    unremovable: tuple[Unremovable, ...] = ()
    complete: bool = True
    problems: tuple[str, ...] = ()


def decode_found_tree(data: bytes) -> FoundTree:
    """Decode a scanner's output. Nothing here raises: an unusable one is incomplete and says why."""
    try:
        return msgspec.json.decode(data, type=FoundTree)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        return FoundTree(mount_errno=None, complete=False, problems=(f"the scan cannot be decoded: {error}",))


def encode_found_tree(found: FoundTree) -> bytes:
    """As the scanner sends it."""
    return msgspec.json.encode(found)
