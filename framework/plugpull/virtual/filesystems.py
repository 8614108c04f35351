"""What the guest gets for filesystems other than ext4: the programs that this machine has for one, and the modules that
the kernel has for it. A filesystem that lacks either is left out, and scenarios that need it are skipped."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path

from plugpull.virtual.image import Additions, ArchiveMember, Tree
from plugpull.virtual.kernel import KernelTree, missing_modules

PROGRAMS: Mapping[str, tuple[str, ...]] = {
    "xfs": ("mkfs.xfs", "xfs_repair"),
    "btrfs": ("mkfs.btrfs", "btrfs"),
    "f2fs": ("mkfs.f2fs", "fsck.f2fs"),
    "vfat": ("mkfs.vfat", "fsck.vfat"),
    "exfat": ("mkfs.exfat", "fsck.exfat"),
    "ntfs3": ("mkfs.ntfs",),
}
"""What makes and checks each filesystem (``dut/agent/checkers.py``)."""
ASKED_FOR: Mapping[str, tuple[str, ...]] = {
    "f2fs": ("crc32_generic",),
    "vfat": ("nls_cp437", "nls_ascii", "nls_iso8859_1", "nls_utf8"),
    "ntfs3": ("nls_utf8",),
}
"""Modules that a filesystem asks for when it is mounted, if the kernel has them: the guest has no modprobe. Those of
vfat are CONFIG_FAT_DEFAULT_CODEPAGE and CONFIG_FAT_DEFAULT_IOCHARSET of Debian and Ubuntu."""


def filesystem_additions(kernel: KernelTree) -> Additions:
    """The programs and modules of all filesystems that both this machine and the kernel have."""
    programs: list[str] = []
    modules: list[str] = []
    for name, needed in PROGRAMS.items():
        found = [path for program in needed if (path := _found(program))]
        if len(found) < len(needed) or missing_modules(kernel, [name]):
            continue
        programs += found
        modules += [name, *(one for one in ASKED_FOR.get(name, ()) if not missing_modules(kernel, [one]))]
    if not programs:
        return Additions()
    return Additions(_digest(programs), tuple(dict.fromkeys(modules)), files=lambda: _files(programs))


def _found(program: str) -> str | None:
    return shutil.which(program, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")


def _digest(programs: Iterable[str]) -> str:
    """Changes when a program does."""
    lines = [__file__]
    for path in programs:
        status = os.stat(path)
        lines.append(f"{path} {status.st_size} {status.st_mtime_ns}")
    lines.append(hashlib.sha256(Path(__file__).read_bytes()).hexdigest())
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def _files(programs: Iterable[str]) -> Iterable[ArchiveMember]:
    tree = Tree()
    for path in programs:
        tree.program(path, f"/usr/bin/{os.path.basename(path)}")
    return tree.entries()
