"""What the guest gets for filesystems other than ext4: the modules that its kernel has, and the programs that make and
check them, of this machine or of the distribution's packages. A filesystem that lacks either is left out, and scenarios
that need it are skipped."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from plugpull.cache import Cache
from plugpull.virtual.image import Additions, ArchiveMember, Tree
from plugpull.virtual.kernel import KernelTree, missing_modules
from plugpull.virtual.unpacked_programs import UnpackedPrograms, unpack_programs

PROGRAMS: Mapping[str, tuple[str, ...]] = {
    "xfs": ("mkfs.xfs", "xfs_repair"),
    "btrfs": ("mkfs.btrfs", "btrfs"),
    "f2fs": ("mkfs.f2fs", "fsck.f2fs"),
    "vfat": ("mkfs.vfat", "fsck.vfat"),
    "exfat": ("mkfs.exfat", "fsck.exfat"),
    "ntfs3": ("mkfs.ntfs", "ntfsfix"),
}
"""What makes, checks and repairs each filesystem (``dut/agent/checkers.py``)."""
PACKAGES: Mapping[str, str] = {
    "xfs": "xfsprogs",
    "btrfs": "btrfs-progs",
    "f2fs": "f2fs-tools",
    "vfat": "dosfstools",
    "exfat": "exfatprogs",
    "ntfs3": "ntfs-3g",
}
"""The package of these programs in Debian and Ubuntu."""
ASKED_FOR: Mapping[str, tuple[str, ...]] = {
    "f2fs": ("crc32_generic",),
    "vfat": ("nls_cp437", "nls_ascii", "nls_iso8859_1", "nls_utf8"),
    "ntfs3": ("nls_utf8",),
}
"""Modules that a filesystem asks for when it is mounted, if the kernel has them: the guest has no modprobe. Those of
vfat are CONFIG_FAT_DEFAULT_CODEPAGE and CONFIG_FAT_DEFAULT_IOCHARSET of Debian and Ubuntu."""
OVERLAY = ("loop", "dm_mod", "dm_snapshot")
"""For repairs that leave the disk as it is (``dut/agent/overlay.py``)."""


def filesystem_additions(kernel: KernelTree, cache: Cache, notify: Callable[[str], None]) -> Additions:
    """The programs and modules of all filesystems that the kernel has."""
    asked = [one for names in ASKED_FOR.values() for one in names]
    missing = set(missing_modules(kernel, [*PROGRAMS, *asked, *OVERLAY]))
    known = [name for name in PROGRAMS if name not in missing]
    installed = {name: tuple(filter(None, map(_installed, PROGRAMS[name]))) for name in known}
    wanted = [name for name in known if len(installed[name]) < len(PROGRAMS[name])]
    packages = {PACKAGES[name]: PROGRAMS[name] for name in wanted}
    unpacked = unpack_programs(packages, cache, notify) if packages else None
    programs: dict[str, str] = {}
    modules: list[str] = [] if missing.intersection(OVERLAY) else [*OVERLAY]
    for name in known:
        if name not in wanted:
            programs |= dict(zip(PROGRAMS[name], installed[name], strict=True))
        elif unpacked is not None:
            programs |= {program: str(unpacked.program(program)) for program in PROGRAMS[name]}
        else:
            continue
        modules += [name, *(one for one in ASKED_FOR.get(name, ()) if one not in missing)]
    return Additions(
        _digest(programs.values()), tuple(dict.fromkeys(modules)), files=lambda: _files(programs, unpacked)
    )


def _installed(program: str) -> str | None:
    return shutil.which(program, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")


def _digest(programs: Iterable[str]) -> str:
    """Changes when a program does."""
    lines = [__file__]
    for path in programs:
        status = os.stat(path)
        lines.append(f"{path} {status.st_size} {status.st_mtime_ns}")
    lines.append(hashlib.sha256(Path(__file__).read_bytes()).hexdigest())
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def _files(programs: Mapping[str, str], unpacked: UnpackedPrograms | None) -> Iterable[ArchiveMember]:
    tree, folders = Tree(), unpacked.libraries if unpacked is not None else ()
    for name, path in programs.items():
        tree.program(path, f"/usr/bin/{name}", folders)
    return tree.entries()
