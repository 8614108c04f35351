"""What the exit status of a filesystem's checker says, run after the kernel has recovered and unmounted it.

Measured with the tools of Debian 12: e2fsprogs 1.47.0, xfsprogs 6.1.0, btrfs-progs 6.2, f2fs-tools 1.15.0, dosfstools
4.2, exfatprogs 1.2.0.
"""

from __future__ import annotations

import re
from enum import StrEnum

from plugpull.history.events import FilesystemChecked

FSCK_CORRECTED = 1
FSCK_ERRORS_LEFT = 4
FSCK_FAILED = 8
"""fsck(8), EXIT STATUS, a sum of bits: "Filesystem errors corrected", "left uncorrected", "Operational error". From the
last on, the checker could not do its work."""
ERRORS: dict[str, int] = {
    # With -n, e2fsck corrects nothing: a 1 alone is not a verdict.
    "ext4": FSCK_ERRORS_LEFT,
    "f2fs": FSCK_ERRORS_LEFT | FSCK_CORRECTED,
    "exfat": FSCK_ERRORS_LEFT | FSCK_CORRECTED,
}
"""The bits that mean errors, of checkers whose status has the bits of fsck(8)."""
F2FS_UNUSABLE = 255
"""fsck.f2fs finds no valid checkpoint, node or superblock."""
WITHOUT_CHECKER = frozenset({"ntfs3"})
"""``ntfsfix -n`` ends with 0 on a dirty volume too."""
MAY_BE_UNCLEAN = frozenset({"vfat", "exfat", "ntfs3"})
"""Without a journal, a cut leaves the dirty bit, lost clusters and wrong counts. That is not damage."""


_FOUND_ERRORS = re.compile(
    r"still has errors|(?:\berrors|error\(s\)) found|Fix\? no|^ERROR: |\[ASSERT\]|\[Fail\]|would have ", re.MULTILINE
)
"""Errors in the words of a checker. With a status of 0, they contradict it."""


class Checked(StrEnum):
    """What a checker found."""

    CLEAN = "clean"
    UNCLEAN = "errors"
    UNKNOWN = "no verdict"


def checker_says(check: FilesystemChecked) -> Checked:
    """The verdict of a checker, by its exit status."""
    status = check.status
    if status is None or status < 0:
        return Checked.UNKNOWN  # not run to its end: a signal killed it
    if status == 0:
        return Checked.UNKNOWN if _FOUND_ERRORS.search(check.output) else Checked.CLEAN
    bits = ERRORS.get(check.fstype)
    if bits is None:
        return Checked.UNCLEAN if status == 1 else Checked.UNKNOWN
    errors = status & bits and status < FSCK_FAILED
    unusable = check.fstype == "f2fs" and status == F2FS_UNUSABLE
    return Checked.UNCLEAN if errors or unusable else Checked.UNKNOWN


def last_lines(check: FilesystemChecked, count: int = 4) -> str:
    """The end of what the checker said, on one line."""
    return " / ".join(line.strip() for line in check.output.splitlines() if line.strip()[:1])[-80 * count :]


def unmatched_words(check: FilesystemChecked) -> str:
    """The first line in which a checker that ended with 0 named an error; empty if it named none."""
    found = _FOUND_ERRORS.search(check.output) if check.status == 0 else None
    if found is None:
        return ""
    begin = check.output.rfind("\n", 0, found.start()) + 1
    return check.output[begin:].partition("\n")[0].strip()
