"""What a file writer does, one struct for each system call. All of it is recorded off the disk.

Paths are relative to the writer's directory, which is durable before it begins; the empty path is that directory.
Offsets and lengths are bytes, multiples of ``BLOCK``. Times are seconds of the DUT's monotonic clock.

A block of a file is stamped as a sector is (``../stamp.py``): ``device`` is the number of the file, ``sector`` the
block's index in it, ``number`` that of the operation that wrote it.
"""

from __future__ import annotations

import msgspec

from plugpull.integrity.oracle.stamp import SECTOR

BLOCK = SECTOR
"""Bytes of a stamped block. Filesystems write whole pages, so a page can hold several versions of its blocks."""


class Operation(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="do"):
    """One system call, or a pair that belongs together.

    ``number`` counts operations from 1. ``returned`` is None if no return is known. ``errno`` is 0 for success.
    """

    number: int
    submitted: float
    returned: float | None = None
    errno: int = 0

    @property
    def succeeded(self) -> bool:
        """True if it returned without an error."""
        return self.returned is not None and not self.errno


class CreateFile(Operation, frozen=True, kw_only=True, tag="create"):
    """open(2) with O_CREAT and O_EXCL. ``file`` is the number of the file; no other object ever has it. ``inode`` is
    its inode number, 0 if not known."""

    path: str
    file: int
    inode: int = 0


class WriteBlocks(Operation, frozen=True, kw_only=True, tag="write"):
    """pwrite(2). It may begin beyond the end of the file, which leaves a hole."""

    path: str
    offset: int
    length: int


class AppendBlocks(Operation, frozen=True, kw_only=True, tag="append"):
    """write(2) with O_APPEND. ``offset`` is the size that the file had."""

    path: str
    offset: int
    length: int


class WriteMapped(Operation, frozen=True, kw_only=True, tag="mmap"):
    """Stores into a shared mapping of existing blocks, then msync(2) with MS_SYNC of just these."""

    path: str
    offset: int
    length: int


class Truncate(Operation, frozen=True, kw_only=True, tag="truncate"):
    """ftruncate(2) to ``size`` bytes, which may be more than before."""

    path: str
    size: int


class Link(Operation, frozen=True, kw_only=True, tag="link"):
    path: str
    to: str


class Rename(Operation, frozen=True, kw_only=True, tag="rename"):
    """rename(2) of a file or a directory, also over an existing one."""

    path: str
    to: str


class Unlink(Operation, frozen=True, kw_only=True, tag="unlink"):
    path: str


class MakeDirectory(Operation, frozen=True, kw_only=True, tag="mkdir"):
    path: str
    file: int
    inode: int = 0


class RemoveDirectory(Operation, frozen=True, kw_only=True, tag="rmdir"):
    path: str


class Symlink(Operation, frozen=True, kw_only=True, tag="symlink"):
    path: str
    file: int
    target: str
    inode: int = 0


class Fsync(Operation, frozen=True, kw_only=True, tag="fsync"):
    """fsync(2) of a file."""

    path: str


class Fdatasync(Operation, frozen=True, kw_only=True, tag="fdatasync"):
    path: str


class FsyncDirectory(Operation, frozen=True, kw_only=True, tag="fsyncdir"):
    """fsync(2) of a directory."""

    path: str


class SyncAll(Operation, frozen=True, kw_only=True, tag="sync"):
    """sync(2). It never fails."""


class SyncFilesystem(Operation, frozen=True, kw_only=True, tag="syncfs"):
    """syncfs(2)."""


Made = CreateFile | MakeDirectory | Symlink
"""What makes an object with a number."""
Written = WriteBlocks | AppendBlocks | WriteMapped
Renamed = Link | Rename | Unlink | RemoveDirectory
Synced = Fsync | Fdatasync | FsyncDirectory | SyncAll | SyncFilesystem
AnyOperation = Made | Written | Truncate | Renamed | Synced
