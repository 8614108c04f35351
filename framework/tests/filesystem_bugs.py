"""Bugs put into filesystems of the guest's kernel. Each breaks a promise that a disk with a volatile cache needs."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import driver_build


class FilesystemBug(NamedTuple):
    """What is changed in one place of a module's source. ``shows`` are kinds of damage that it may cause, one of which
    must be named."""

    fstype: str
    module: str
    file: str
    before: str
    after: str
    shows: tuple[str, ...]


LOSES = ("lost after fsync", "old version", "wrong size", "unreadable", "corrupt block", "unmountable")
BUGS = {
    # The commit block does not make the disk empty its cache, and fsync relies on it.
    "ext4 commits without a flush": FilesystemBug(
        "ext4", "jbd2", "fs/jbd2/commit.c", "write_flags |= REQ_PREFLUSH | REQ_FUA;", ";", LOSES
    ),
    # fsync writes the data, and neither the size nor the name.
    "ext4 does not commit at fsync": FilesystemBug(
        "ext4", "ext4", "fs/ext4/fsync.c", "return ext4_fc_commit(journal, commit_tid);", "return 0;", LOSES
    ),
    # The last transaction of the journal is not replayed.
    "ext4 recovers all but the last": FilesystemBug(
        "ext4",
        "jbd2",
        "fs/jbd2/recovery.c",
        "\t\t\tinfo->end_transaction = next_commit_ID;\n\t} else {",
        "\t\t\tinfo->end_transaction = next_commit_ID - (next_commit_ID != first_commit_ID);\n\t} else {",
        LOSES,
    ),
    # fsync does not write which clusters a file has.
    "vfat does not write its table": FilesystemBug(
        "vfat",
        "fat",
        "fs/fat/file.c",
        "err = sync_mapping_buffers(MSDOS_SB(inode->i_sb)->fat_inode->i_mapping);",
        "err = 0;",
        LOSES,
    ),
    # fsync does not force the log.
    "xfs does not write its log": FilesystemBug(
        "xfs", "xfs", "fs/xfs/xfs_file.c", "\tif (xfs_ipincount(ip)) {", "\tif (0) {", LOSES
    ),
    "f2fs does not flush at fsync": FilesystemBug(
        "f2fs", "f2fs", "fs/f2fs/file.c", "ret = f2fs_issue_flush(sbi, inode->i_ino);", "ret = 0;", LOSES
    ),
    # As if mounted with "nobarrier". On a disk without FUA, a super block with it is followed by a flush of everything.
    "btrfs writes without a barrier": FilesystemBug(
        "btrfs",
        "btrfs",
        "fs/btrfs/super.c",
        "\t * Even the options are empty, we still need to do extra check\n",
        "\t */\n\tbtrfs_set_opt(info->mount_opt, NOBARRIER);\n\t/*\n",
        LOSES,
    ),
}


def find_headers(tree: Path, module: str) -> None:
    """Let a filesystem be built outside of the kernel's tree: xfs finds its headers by a path below it."""
    makefile = tree / "fs" / module / "Makefile"
    makefile.write_text(makefile.read_text().replace("$(srctree)/$(src)", "$(src)"))


def module(bug: FilesystemBug, *, planted: bool) -> Path:
    """The module, rebuilt from the distribution's source with the bug, or unchanged."""

    def edit(tree: Path) -> None:
        find_headers(tree, bug.module)
        text = (tree / bug.file).read_text()
        assert text.count(bug.before) == 1, f"the source has {text.count(bug.before)} times {bug.before!r}"
        if planted:
            (tree / bug.file).write_text(text.replace(bug.before, bug.after))

    name = repr(bug) if planted else "unchanged"
    return driver_build.driver(f"fs/{bug.module}", bug.module, edit, name, driver_build.FILESYSTEMS)
