"""What each filesystem promises of a cut: only what a man page, the kernel's documentation or its source says.

Every filesystem, from fsync(2), fdatasync(2), msync(2) and sync(2):

- A successful fsync or fdatasync of a file keeps its data and its size; a successful msync the blocks of its range.
- A successful fsync of a directory keeps the names in it. That of a file need not keep the file's name.
- sync and syncfs keep everything, as if all was fsynced (sync(2), NOTES). They report success after a filesystem was
  shut down (``ext4_sync_fs``, ``f2fs_sync_fs``, ``exfat_sync_fs``; sync_filesystem on a read-only superblock), so they
  promise something only if they returned before the cut.
- After a failed sync, the pages that it should have written count as clean, and a later sync returns 0 without writing
  them (Documentation/filesystems/vfs.rst, "Handling errors during writeback"; Rebello et al., ATC'20). What was not
  kept before the error is never promised again.

Nothing else is ordered: blocks, sizes and names that were not synced may be there in any combination, also old blocks
in a file that has its new size. Zeros may stand for data that was never synced: delayed allocation and unwritten
extents show them. Orders that hold in practice (ext4's ``auto_da_alloc``, a journal's order of unrelated names) are not
claimed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

FilesystemClass = Literal["ext4", "xfs", "btrfs", "f2fs", "vfat", "exfat", "ntfs3"]


@dataclass(frozen=True)
class Promises:
    """The promises of one filesystem with its default mount options, beyond those of every filesystem.

    ``atomic``: each operation on names is there as a whole or not at all after the kernel's recovery, names and link
    counts agree, and what was removed for good stays removed. Without it, only what was kept and not touched since is
    judged.

    ``names_new``: fsync of a file also keeps the name that it was created with, and the directories above it.

    ``keeps_moved``: a file that was kept, renamed without a sync and followed by a new file with its old name, which is
    then fsynced, does not disappear (fstests generic/342).

    ``late_fsync``: an fsync that returns success after the cut promises something. f2fs returns 0 on a filesystem that
    it has made read-only.

    ``old_or_new``: while an fsync that overwrites kept data is under way, the old or the new data is there even if the
    disk's cache reorders. f2fs with ``fsync_mode=posix`` may show what was in the newly allocated block before ("f2fs:
    fix to force keeping write barrier for strict fsync mode", 5.15).

    ``sync_flushes``: sync and syncfs flush the disk's cache. The FAT family only waits for its writes.

    ``mounts``: it can be mounted after any cut. ntfs3 refuses a dirty volume without ``force``.

    ``inodes``: inode numbers are kept on the disk. ``directory_links``: the link count of a directory is 2 and one for
    each directory in it. btrfs has always 1.
    """

    name: FilesystemClass
    atomic: bool = True
    names_new: bool = True
    keeps_moved: bool = True
    late_fsync: bool = True
    old_or_new: bool = True
    sync_flushes: bool = True
    mounts: bool = True
    inodes: bool = True
    directory_links: bool = True


def _fat(name: FilesystemClass, *, mounts: bool = True, inodes: bool = False) -> Promises:
    """No journal: rename may leave both names or one chain of clusters under two (``fat_file_fsync`` writes the data,
    the file's own entry and the FAT, then flushes; exfat's fsync all metadata). ntfs3 replays a journal but writes
    none ("Full journaling support" is on the to-do list of Documentation/filesystems/ntfs3.rst)."""
    return Promises(
        name,
        atomic=False,
        names_new=False,
        keeps_moved=False,
        late_fsync=False,
        old_or_new=False,
        sync_flushes=False,
        mounts=mounts,
        inodes=inodes,
        directory_links=False,
    )


PROMISES: dict[FilesystemClass, Promises] = {
    # data=ordered (Documentation/admin-guide/ext4.rst), journal without fast_commit. A new file's name: jbd2 commits
    # the transaction that created it.
    "ext4": Promises("ext4"),
    # "If you fsync an inode we just allocated, then we also have to persist the changes in the same transaction and all
    # the previous changes that are dependent on" it (D. Chinner, linux-fsdevel, February 2019).
    "xfs": Promises("xfs"),
    # The log tree has the inode's names. Transactions reorder operations on different directories (ALICE, OSDI'14).
    "btrfs": Promises("btrfs", directory_links=False),
    # fsync_mode=posix is the default and "follows POSIX semantics"; strict behaves "in line with xfs, ext4 and btrfs,
    # where generic/342 will pass" (Documentation/filesystems/f2fs.rst).
    "f2fs": Promises("f2fs", names_new=False, keeps_moved=False, late_fsync=False, old_or_new=False),
    "vfat": _fat("vfat"),
    "exfat": _fat("exfat"),
    "ntfs3": _fat("ntfs3", mounts=False, inodes=True),
}


@dataclass(frozen=True)
class CutEffect:
    """What the cut did to the disk.

    ``at`` is the earliest time that it can have been, in the ledger's seconds; None if it was after the last
    operation. ``powered``: the disk kept its power, so everything that it had completed is there, flushed or not.
    ``flushes``: the filesystem's flushes reach the disk's cache (no ``nobarrier``; the disk does not report
    write-through while it has a volatile cache).
    """

    at: float | None = None
    powered: bool = False
    flushes: bool = True

    def before(self, at: float | None) -> bool:
        """True if something that returned then did so before the cut."""
        return at is not None and (self.at is None or at <= self.at)
