"""The programs that make and check filesystems, run on images: what their exit statuses say."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from plugpull.cache import Cache
from plugpull.checks.files.filesystem_check import Checked, checker_says
from plugpull.dut.agent.checkers import CHECKERS, REPAIRERS, SBIN, SMALLEST, installed, maker, run_checker
from plugpull.history import events as ev
from plugpull.virtual.filesystems import PACKAGES, PROGRAMS
from plugpull.virtual.unpacked_programs import UnpackedPrograms, unpack_programs

BROKEN_ENTRY = b"\x85\x02\x12\x34".ljust(32, b"\0") + b"\xc0\x01\0\x01".ljust(32, b"\0") + b"\xc1\0a".ljust(32, b"\0")
"""The entries of an exFAT file, with a wrong checksum."""
PLACES: dict[str, tuple[int, bytes]] = {
    "ext4": (1024 + 12, b"\1\2\3\0"),  # s_free_blocks_count_lo of the superblock
    "xfs": (512 + 4, b"\0\0\0\7"),  # agf_versionnum
    "btrfs": (0x10000 + 0x48, b"\7"),  # the generation in the superblock
    "vfat": (32 * 512 + 12, b"\xf0\xff\xff\x0f\xff"),
    "f2fs": (2 << 20, bytes(2 << 20)),  # the first checkpoint
    "exfat": ((2 << 20) + 3 * 4096 + 96, BROKEN_ENTRY),  # the root directory, after the entries that mkfs makes
}
"""Where an image is damaged, and by what; enough for each checker to notice."""


@pytest.fixture(scope="module")
def unpacked() -> UnpackedPrograms | None:
    """The programs that a guest gets if they are not installed here."""
    packages = {PACKAGES[name]: PROGRAMS[name] for name in PROGRAMS}
    return unpack_programs(packages, Cache.default(), print)


@pytest.fixture(params=sorted(CHECKERS))
def image(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unpacked: UnpackedPrograms | None
) -> tuple[str, Path]:
    """A new filesystem of each type for which programs can be had."""
    fstype = str(request.param)
    if unpacked is not None:
        folders = [str(unpacked.root / folder) for folder in ("usr/sbin", "sbin", "usr/bin", "bin")]
        monkeypatch.setenv("PATH", ":".join([os.environ["PATH"], *folders]))
        monkeypatch.setenv("LD_LIBRARY_PATH", ":".join(map(str, unpacked.libraries)))
    if not installed(maker(fstype)[0]) or not installed(CHECKERS[fstype][0]):
        pytest.skip(f"{maker(fstype)[0]} or {CHECKERS[fstype][0]} is not installed")
    path = tmp_path / "image"
    with path.open("wb") as file:
        file.truncate(max(SMALLEST.get(fstype, 0), 64 << 20))
    environment = {**os.environ, "PATH": os.environ["PATH"] + ":" + SBIN}
    subprocess.run([*maker(fstype), str(path)], check=True, capture_output=True, env=environment)
    return fstype, path


def checked(fstype: str, path: Path, **how: Any) -> ev.FilesystemChecked:
    fd = os.open(path, os.O_RDWR)
    try:
        return ev.FilesystemChecked(disk="d", fstype=fstype, **run_checker(fstype, fd, 60.0, **how))
    finally:
        os.close(fd)


def test_a_new_filesystem_is_clean(image: tuple[str, Path]) -> None:
    before = image[1].read_bytes()
    check = checked(*image)
    assert checker_says(check) is Checked.CLEAN, check
    assert image[1].read_bytes() == before


@pytest.mark.parametrize("image", sorted(PLACES), indirect=True)
def test_a_damaged_filesystem_is_not(image: tuple[str, Path]) -> None:
    fstype, path = image
    at, data = PLACES[fstype]
    with path.open("r+b") as file:
        file.seek(at)
        file.write(data)
    before = path.read_bytes()
    check = checked(fstype, path)
    assert checker_says(check) is Checked.UNCLEAN, check
    assert path.read_bytes() == before, "a check changes nothing"
    if fstype in REPAIRERS and fstype != "btrfs":  # it cannot repair a superblock
        checked(fstype, path, repair=True)
        assert checker_says(checked(fstype, path)) is Checked.CLEAN


def test_a_program_that_is_not_there_gives_no_verdict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "image").write_bytes(bytes(4096))
    monkeypatch.setitem(CHECKERS, "ext4", ("no-such-program",))
    check = checked("ext4", tmp_path / "image")
    assert checker_says(check) is Checked.UNKNOWN
    assert check.output == "it cannot be run: No such file or directory"
    assert checked("ntfs3", tmp_path / "image").output == "no program checks ntfs3"


@pytest.mark.parametrize("fstype", sorted(CHECKERS))
@pytest.mark.parametrize("status", [8, 12, 16, 32, 128, -9, -11])
def test_a_checker_that_failed_or_was_killed_gives_no_verdict(fstype: str, status: int) -> None:
    check = ev.FilesystemChecked(disk="d", fstype=fstype, command="fsck", status=status, seconds=0.1)
    assert checker_says(check) is Checked.UNKNOWN


@pytest.mark.parametrize(("fstype", "status"), [("ext4", 4), ("ext4", 5), ("exfat", 4), ("f2fs", 4), ("f2fs", 255)])
def test_errors_that_are_left_are_a_verdict(fstype: str, status: int) -> None:
    check = ev.FilesystemChecked(disk="d", fstype=fstype, command="fsck", status=status, seconds=0.1)
    assert checker_says(check) is Checked.UNCLEAN
