"""What the exit status of a filesystem's checker says, run after the kernel has recovered and unmounted it.

Measured with the tools of Debian 12: e2fsprogs 1.47.0, xfsprogs 6.1.0, btrfs-progs 6.2, f2fs-tools 1.15.0, dosfstools
4.2, exfatprogs 1.2.0.
"""

from __future__ import annotations

from enum import StrEnum

from plugpull.history.events import FilesystemChecked

FSCK_ERRORS_LEFT = 4
"""e2fsck(8), EXIT CODE: a sum of bits; 4 is "File system errors left uncorrected"."""
WITHOUT_CHECKER = frozenset({"ntfs3"})
"""``ntfsfix -n`` ends with 0 on a dirty volume too."""
MAY_BE_UNCLEAN = frozenset({"vfat", "exfat", "ntfs3"})
"""Without a journal, a cut leaves the dirty bit, lost clusters and wrong counts. That is not damage."""


class Checked(StrEnum):
    """What a checker found."""

    CLEAN = "clean"
    UNCLEAN = "errors"
    UNKNOWN = "no verdict"


def checker_says(check: FilesystemChecked) -> Checked:
    """The verdict of a checker, by its exit status."""
    status = check.status
    if status is None:
        return Checked.UNKNOWN
    if status == 0:
        return Checked.CLEAN
    if check.fstype == "ext4":
        return Checked.UNCLEAN if status & FSCK_ERRORS_LEFT and status < 2 * FSCK_ERRORS_LEFT else Checked.UNKNOWN
    return Checked.UNCLEAN if status == 1 or check.fstype == "f2fs" else Checked.UNKNOWN


def last_lines(check: FilesystemChecked, count: int = 4) -> str:
    """The end of what the checker said, on one line."""
    return " / ".join(line.strip() for line in check.output.splitlines() if line.strip()[:1])[-80 * count :]
