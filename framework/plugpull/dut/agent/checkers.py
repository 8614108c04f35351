"""The programs that make and check filesystems, with the options that each needs.

The checkers change nothing. They are run after the kernel has recovered the filesystem and unmounted it again: before
that, ``e2fsck -fn`` accepts a filesystem whose journal was not replayed, and ``xfs_repair -n`` reports damage because
the log was not.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import Any, Dict, List, Tuple

from .wire import now

MAKERS: Dict[str, Tuple[str, ...]] = {
    "ext4": ("mkfs.ext4", "-q", "-F"),
    "xfs": ("mkfs.xfs", "-q", "-f"),
    "btrfs": ("mkfs.btrfs", "-q", "-f"),
    "f2fs": ("mkfs.f2fs", "-q", "-f"),
    "vfat": ("mkfs.vfat", "-F", "32", "-I"),
    "exfat": ("mkfs.exfat",),
    "ntfs3": ("mkfs.ntfs", "-q", "-F", "-f"),
}
"""By the kernel's name of the filesystem."""
CHECKERS: Dict[str, Tuple[str, ...]] = {
    "ext4": ("e2fsck", "-f", "-n"),
    "xfs": ("xfs_repair", "-n"),
    "btrfs": ("btrfs", "check", "--readonly"),
    "f2fs": ("fsck.f2fs", "--dry-run"),
    "vfat": ("fsck.vfat", "-n"),
    "exfat": ("fsck.exfat", "-n"),
}
"""ntfs3 has none: ``ntfsfix -n`` ends with 0 on a dirty volume too."""
REPAIRERS: Dict[str, Tuple[str, ...]] = {
    "ext4": ("e2fsck", "-f", "-y"),
    "xfs": ("xfs_repair",),
    "btrfs": ("btrfs", "check", "--repair", "--force"),
    "f2fs": ("fsck.f2fs", "-f"),
    "vfat": ("fsck.vfat", "-a", "-w"),
    "exfat": ("fsck.exfat", "-y"),
    "ntfs3": ("ntfsfix", "-d"),
}
"""A cut leaves a filesystem without a journal with errors, and a repair belongs to its recovery. One with a journal is
only repaired on an overlay: the disk keeps the evidence."""
SMALLEST: Dict[str, int] = {"xfs": 300 << 20, "btrfs": 114 << 20, "f2fs": 52 << 20, "vfat": 33 << 20}
"""Bytes below which a maker refuses its defaults, or makes something else (FAT16)."""
SBIN = "/usr/local/sbin:/usr/sbin:/sbin:/usr/bin:/bin"
SHOWN = 2000
"""Characters of a program's output that are reported, its last."""


def maker(fstype: str) -> List[str]:
    """The command that makes a filesystem, without the device."""
    return list(MAKERS.get(fstype, ("mkfs." + fstype,)))


def installed(program: str) -> bool:
    return shutil.which(program, path=os.environ.get("PATH", "") + ":" + SBIN) is not None


def known_filesystems(proc: str = "/proc") -> List[str]:
    """The filesystems on block devices that this kernel has now, and those whose module it can load."""
    with open(proc + "/filesystems") as file:
        found = [words[-1] for words in (line.split() for line in file) if words and words[0] != "nodev"]
    folder = "/lib/modules/" + os.uname().release
    for name in ("modules.dep", "modules.builtin"):
        try:
            with open(os.path.join(folder, name)) as file:
                paths = [line.partition(":")[0].strip() for line in file]
        except OSError:
            continue
        found += [os.path.basename(path).partition(".ko")[0] for path in paths if "/fs/" in path]
    return sorted(set(found))


def too_small(fstype: str, size: int) -> str:
    """Why a disk of ``size`` bytes is too small for such a filesystem, as words; empty if it is not."""
    if size < SMALLEST.get(fstype, 0):
        return "a %s needs a disk of %d MiB" % (fstype, SMALLEST[fstype] >> 20)
    return ""


def lacking(fstype: str, size: int) -> str:
    """Why no such filesystem can be made on a disk of ``size`` bytes and mounted, as words; empty if it can."""
    small = too_small(fstype, size)
    if small:
        return small
    program = maker(fstype)[0]
    if not installed(program):
        return "%s is not installed on the DUT" % program
    if fstype not in known_filesystems():
        return "the DUT's kernel has no %s" % fstype
    return ""


def run_checker(fstype: str, disk: int, timeout: float, repair: bool = False) -> Dict[str, Any]:
    """Check the filesystem behind an open descriptor, without changing it; or repair it."""
    known = REPAIRERS if repair else CHECKERS
    if fstype not in known:
        what = "repairs" if repair else "checks"
        return {"status": None, "seconds": 0.0, "command": "", "output": "no program %s %s" % (what, fstype)}
    command = [*known[fstype]]
    begun, words = now(), " ".join(command)
    try:
        done = subprocess.run(
            [*command, "/proc/self/fd/%d" % disk],
            pass_fds=(disk,),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=timeout,
            check=False,
            env={**os.environ, "PATH": os.environ.get("PATH", "") + ":" + SBIN, "LC_ALL": "C"},
        )
    except subprocess.TimeoutExpired:
        said, status = "it was not done after %g s" % timeout, None
    except OSError as error:
        said, status = "it cannot be run: %s" % error.strerror, None
    else:
        said, status = done.stdout.decode("utf-8", "replace")[-SHOWN:], done.returncode
    return {"status": status, "seconds": now() - begun, "command": words, "output": said}
