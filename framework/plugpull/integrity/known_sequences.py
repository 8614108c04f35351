"""Sequences of operations after which a filesystem has lost something that was synced.

Each is the story of a test of fstests (https://git.kernel.org/pub/scm/fs/xfs/xfstests-dev.git), written for a bug of a
kernel; the last is of a bug that was found with these scenarios. Bugs of this kind return in other places, so they are
played on every filesystem that has hard links, with the cut right after the last sync.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from plugpull.integrity.file_patterns import FilePlan

MUCH = 64 << 10
"""Bytes: more than a filesystem keeps inside of an inode."""
LITTLE = 1 << 10
"""Bytes that f2fs keeps inside of an inode."""
MAKING = frozenset({"create", "mkdir"})
"""Steps that make something with a number of its own."""


@dataclass(frozen=True)
class KnownSequence:
    """One sequence: ``test`` is its name in fstests, ``fixed`` the title of the fix that it was written for, and
    ``steps`` are operations of ``oracle/files/operations.py``. It plays the same in every round."""

    name: str
    test: str
    fixed: str
    steps: tuple[dict[str, Any], ...]

    def plan(self, fstype: str, first: int, seed: int) -> FilePlan:
        """What to play on a filesystem of this type, with numbers of files from ``first``."""
        numbers = iter(range(first, first + len(self.steps)))
        plan = [step | ({"file": next(numbers)} if step["do"] in MAKING else {}) for step in self.steps]
        return FilePlan(f"{self.name} ({self.test})", plan)

    def __str__(self) -> str:
        return self.name


def _step(do: str, path: str = "", to: str = "", **more: int) -> dict[str, Any]:
    made: dict[str, Any] = {"do": do, **more}
    if do not in ("sync", "syncfs"):
        made["path"] = path
    return {**made, "to": to} if to else made


def _write(path: str, length: int = MUCH) -> dict[str, Any]:
    return _step("write", path, offset=0, length=length)


KNOWN_SEQUENCES = (
    KnownSequence(
        "linked-after-truncation",
        "generic/788",
        "btrfs: fix zero size inode with non-zero size after log replay",
        (
            _step("create", "foo"),
            _write("foo"),
            _step("sync"),
            _step("truncate", "foo", size=0),
            _step("fsync", "foo"),
            _step("link", "foo", "bar"),
            _step("fsyncdir"),
        ),
    ),
    KnownSequence(
        "linked-into-new-directory",
        "generic/780",
        "btrfs: do not update last_log_commit when logging inode due to a new name",
        (
            _step("create", "foo"),
            _step("sync"),
            _step("mkdir", "dir"),
            _write("foo"),
            _step("fsync", "foo"),
            _step("link", "foo", "dir/bar"),
            _step("fsyncdir"),
        ),
    ),
    KnownSequence(
        "file-in-place-of-moved-directory",
        "generic/784",
        "btrfs: don't log conflicting inode if it's a dir moved in the current transaction",
        (
            _step("mkdir", "dir1"),
            _step("mkdir", "dir2"),
            _step("sync"),
            _step("rename", "dir1", "dir2/dir1"),
            _step("create", "dir1"),
            _step("fsync", "dir1"),
            _step("rename", "dir1", "dir2/foo"),
            _step("fsync", "dir2/foo"),
        ),
    ),
    KnownSequence(
        "renamed-beside-new-directory",
        "generic/785",
        "btrfs: do not skip logging new dentries when logging a new name",
        (
            _step("create", "file1"),
            _step("sync"),
            _write("file1"),
            _step("fsync", "file1"),
            _step("mkdir", "dir"),
            _step("create", "dir/foo"),
            _step("rename", "file1", "file2"),
            _step("fsyncdir"),
        ),
    ),
    KnownSequence(
        "file-in-place-of-removed-directory",
        "generic/790",
        "btrfs: log new dentries when logging parent dir of a conflicting inode",
        (
            _step("mkdir", "foo"),
            _step("sync"),
            _step("rmdir", "foo"),
            _step("mkdir", "dir1"),
            _step("mkdir", "dir2"),
            _step("create", "foo"),
            _step("link", "foo", "dir2/link"),
            _step("fsyncdir", "dir2"),
            _step("fsyncdir"),
        ),
    ),
    KnownSequence(
        "written-after-a-sync",
        "none in fstests",
        "none is known: f2fs does not wait for the first node block that it writes for fsync after a checkpoint",
        (
            _step("create", "foo"),
            _write("foo", LITTLE),
            _step("sync"),
            _write("foo", LITTLE),
            _step("fsync", "foo"),
        ),
    ),
)
