"""What a disk is a part of: real signatures in files, whole and in partitions, and what our own loads leave behind."""

from __future__ import annotations

import os
import random
import shutil
import struct
import subprocess
from pathlib import Path

import pytest
from media import MEMBERS, SIZE, bcachefs, btrfs, ntfs, partitioned, put
from sysfs_tree import Sysfs
from writers import Writer

from plugpull.dut.agent import disks, signatures
from plugpull.dut.agent.disks import Refused, refuse_other_filesystem
from plugpull.dut.agent.signatures import (
    Libblkid,
    Region,
    Unreadable,
    filesystem_on,
    loop_over,
    member_of,
    partitions_of,
)
from plugpull.load.patterns import fill_arguments, sequential_write

START = 1 << 20


def said(path: Path, partitions: list[Region] | None = None, made: tuple[str, ...] = ()) -> str:
    fd = os.open(path, os.O_RDWR)
    try:
        return member_of(fd, path.stat().st_size, partitions or [], made=made)
    finally:
        os.close(fd)


@pytest.fixture
def medium(tmp_path: Path) -> Path:
    return put(tmp_path / "medium")


@pytest.mark.parametrize("name", MEMBERS)
def test_a_member_is_named(medium: Path, name: str) -> None:
    words, _, made = MEMBERS[name]
    put(medium, *made(SIZE))
    assert said(medium) == words


@pytest.mark.skipif(shutil.which("blkid", path=f"{os.environ['PATH']}:/sbin") is None, reason="blkid is not installed")
@pytest.mark.parametrize("name", [name for name, (_, kind, _) in MEMBERS.items() if kind])
def test_what_is_tried_here_is_what_the_program_takes_for_one(medium: Path, name: str) -> None:
    size = 64 << 20  # the least that ZFS takes
    put(medium, *MEMBERS[name][2](size), size=size)
    blkid = shutil.which("blkid", path=f"{os.environ['PATH']}:/sbin")
    line = [str(blkid), "-p", "-o", "value", "-s", "TYPE", str(medium)]
    assert subprocess.run(line, capture_output=True, text=True, check=False).stdout.strip() == MEMBERS[name][1]


@pytest.mark.parametrize("name", MEMBERS)
@pytest.mark.parametrize("table", [True, False], ids=["a table on the disk", "only the kernel's word"])
def test_a_member_inside_a_partition_is_named(medium: Path, name: str, table: bool) -> None:
    words, _, made = MEMBERS[name]
    # Short of the disk's end, or what is at the end of one would be at the end of the other.
    size = SIZE - 2 * START - (1 << 16)
    put(medium, *((START + offset, content) for offset, content in made(size)))
    assert said(medium) == ""
    if table:
        put(medium, (0, partitioned(START, size)))
        assert said(medium) == f"a disk with a partition that is {words}"
    else:
        assert said(medium, [Region(START, size)]) == f"a disk with a partition that is {words}"


def test_more_than_one_signature_does_not_hide_either(medium: Path) -> None:
    put(medium, *MEMBERS["LUKS2"][2](SIZE), *MEMBERS["Intel RAID"][2](SIZE))
    assert said(medium) in {MEMBERS["LUKS2"][0], MEMBERS["Intel RAID"][0]}


@pytest.mark.parametrize(
    ("offset", "content", "what"),
    [
        (512, b"LABELONE", "an LVM physical volume"),
        (4086, b"SWAPSPACE2", "swap space"),
        (4096, b"\xfc\x4e\x2b\xa9", "a member of an md array"),
    ],
)
def test_a_damaged_signature_counts_all_the_same(medium: Path, offset: int, content: bytes, what: str) -> None:
    put(medium, (offset, content))
    assert said(medium) == what


# --- what this run made, by its UUID ----------------------------------------------------------------------------------

OWN = "01020304-0506-0708-090a-0b0c0d0e0f10"
"""The UUID of the arrays in ``media.py``."""
AS_MDADM_WRITES_IT = "01020304:05060708:090A0B0C:0D0E0F10"
OTHER = "01020304-0506-0708-090a-0b0c0d0e0f11"
WITH_UUID = ["md 1.0", "md 1.1", "md 1.2"]


@pytest.mark.parametrize("name", WITH_UUID)
def test_a_member_of_this_run_s_own_array_is_accepted_and_any_other_is_not(medium: Path, name: str) -> None:
    put(medium, *MEMBERS[name][2](SIZE))
    assert said(medium, made=(OWN,)) == said(medium, made=(OTHER, AS_MDADM_WRITES_IT)) == ""
    for made in ((), (OTHER,), ("",), (OWN[:-1],)):
        assert said(medium, made=made) == "a member of an md array"


@pytest.mark.parametrize("name", [name for name in MEMBERS if name not in WITH_UUID])
def test_no_uuid_makes_anything_else_this_run_s_own(medium: Path, name: str) -> None:
    words, _, made = MEMBERS[name]
    put(medium, *made(SIZE))
    assert said(medium, made=(OWN, "")) == words


@pytest.mark.parametrize("second", ["LVM", "swap", "LUKS1", "Intel RAID", "btrfs of two", "ZFS"])
def test_an_own_array_does_not_hide_somebody_s_other_signature(medium: Path, second: str) -> None:
    put(medium, *MEMBERS[second][2](SIZE), *MEMBERS["md 1.0"][2](SIZE))
    assert said(medium, made=(OWN,)) != ""


def test_a_partition_of_an_own_array_is_not_this_run_s(medium: Path) -> None:
    size = SIZE - 2 * START - (1 << 16)
    put(medium, (0, partitioned(START, size)), *((START + at, content) for at, content in MEMBERS["md 1.2"][2](size)))
    assert said(medium, made=(OWN,)) == "a disk with a partition that is a member of an md array"


def test_a_damaged_member_is_recognised_by_its_uuid_too(medium: Path) -> None:
    ((offset, block),) = MEMBERS["md 1.2"][2](SIZE)
    put(medium, (offset, block[:100] + b"\xff" + block[101:]))
    assert said(medium, made=(OWN,)) == ""
    assert said(medium, made=(OTHER,)) == "a member of an md array"


def refusal(path: Path, fstype: str, uuid: str) -> str:
    """Why the filesystem on a medium is refused; empty if it is accepted."""
    fd = os.open(path, os.O_RDONLY)
    try:
        refuse_other_filesystem(fd, "sdx", fstype, uuid)
    except Refused as refused:
        return str(refused)
    finally:
        os.close(fd)
    return ""


@pytest.fixture
def sized_by_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disks, "size_of", lambda fd: os.fstat(fd).st_size)


@pytest.mark.usefixtures("sized_by_file")
def test_a_filesystem_is_recognised_by_its_uuid_and_no_other_is_accepted(medium: Path) -> None:
    make_ext4(medium, OWN)
    assert refusal(medium, "ext4", OWN) == ""
    assert refusal(medium, "ext4", OTHER) == (
        f"sdx holds the ext4 filesystem {OWN}, not the ext4 filesystem {OTHER} that this run made"
    )
    assert refusal(medium, "ext4", "") == "it was not said which filesystem is expected on sdx"
    assert refusal(medium, "xfs", OWN) == (
        f"sdx holds no xfs filesystem, not the xfs filesystem {OWN} that this run made"
    )


@pytest.mark.usefixtures("sized_by_file")
def test_a_uuid_that_changed_under_us_is_refused(medium: Path) -> None:
    make_ext4(medium, OWN)
    assert refusal(medium, "ext4", OWN) == ""
    tune = shutil.which("tune2fs", path=f"{os.environ['PATH']}:/sbin:/usr/sbin")
    assert tune is not None
    subprocess.run([tune, "-U", OTHER, str(medium)], check=True, capture_output=True, input=b"y\n")
    assert f"holds the ext4 filesystem {OTHER}" in refusal(medium, "ext4", OWN)
    put(medium, (0, bytes(1 << 20)))
    assert "holds no ext4 filesystem" in refusal(medium, "ext4", OWN)


@pytest.mark.usefixtures("sized_by_file")
def test_a_filesystem_that_cannot_be_read_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    short = put(tmp_path / "short", size=512)
    monkeypatch.setattr(disks, "size_of", lambda fd: SIZE)
    assert refusal(short, "ext4", OWN)


def test_the_uuid_of_a_filesystem_beside_the_leftovers_of_another(medium: Path) -> None:
    put(medium, (0x10000, btrfs(1)))
    make_ext4(medium, OWN)
    fd = os.open(medium, os.O_RDONLY)
    try:
        assert filesystem_on(fd, SIZE, "ext4") == OWN
        assert filesystem_on(fd, SIZE, "no_such_filesystem") == ""
    finally:
        os.close(fd)


def test_a_filesystem_that_libblkid_and_the_kernel_call_otherwise(medium: Path) -> None:
    put(medium, (0, ntfs(0x0123456789ABCDEF)))
    fd = os.open(medium, os.O_RDONLY)
    try:
        assert filesystem_on(fd, SIZE, "ntfs3") == "0123456789ABCDEF"
        assert filesystem_on(fd, SIZE, "vfat") == ""
    finally:
        os.close(fd)


# --- what may be erased -----------------------------------------------------------------------------------------------


def test_an_empty_disk_is_a_part_of_nothing(medium: Path) -> None:
    assert said(medium) == ""


@pytest.mark.parametrize("content", [(0x10000, btrfs(1)), (4096, bcachefs(1))], ids=["btrfs", "bcachefs"])
def test_a_filesystem_on_one_disk_is_only_that(medium: Path, content: tuple[int, bytes]) -> None:
    put(medium, content)
    assert said(medium) == ""


def make_ext4(path: Path, uuid: str = "random") -> None:
    mkfs = shutil.which("mke2fs", path=f"{os.environ['PATH']}:/sbin:/usr/sbin")
    assert mkfs is not None
    subprocess.run([mkfs, "-q", "-F", "-t", "ext4", "-U", uuid, str(path)], check=True)


def test_our_own_filesystem_of_a_former_night_is_no_obstacle(medium: Path) -> None:
    make_ext4(medium)
    assert said(medium) == ""
    put(medium, (0, partitioned(START, SIZE - START)))
    assert said(medium) == ""


@pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed")
def test_what_fio_leaves_behind_is_no_obstacle(medium: Path) -> None:
    make_ext4(medium)
    arguments = [part.replace("{file}", str(medium)) for part in fill_arguments(sequential_write, SIZE)]
    done = subprocess.run(["fio", *("--direct=0" if a == "--direct=1" else a for a in arguments)], check=False)
    assert done.returncode == 0
    assert said(medium) == ""


@pytest.mark.parametrize("seed", range(8))
def test_what_stamped_writes_leave_behind_is_no_obstacle(medium: Path, tmp_path: Path, seed: int) -> None:
    make_ext4(medium)
    writer = Writer(tmp_path)
    end = SIZE // 512 if seed % 2 else SIZE // 2048
    line = ["--run", f"{seed + 1:x}", "--device", "1", "--session", "1", "--seed", str(seed), "--extents", f"0:{end}"]
    line += ["--block", "64", "--depth", "4", "--fill", str(end), "--blocks", "10"]
    status, _, err = writer.run(medium, "write", *line)
    assert (status, err) == (0, ""), err
    assert said(medium) == ""


def test_random_data_is_no_obstacle(medium: Path) -> None:
    generator = random.Random(7)
    for _ in range(40):
        medium.write_bytes(generator.randbytes(2 << 20))
        assert said(medium) == ""


# --- what cannot be known ---------------------------------------------------------------------------------------------


def test_without_the_library_nothing_is_known(medium: Path) -> None:
    with pytest.raises(Unreadable, match=r"libblkid-of-nobody\.so is not installed on the DUT"):
        Libblkid("libblkid-of-nobody.so")


def test_a_disk_that_cannot_be_read_is_not_taken_for_an_empty_one(tmp_path: Path) -> None:
    short = put(tmp_path / "short", size=8192)
    fd = os.open(short, os.O_RDWR)
    try:
        with pytest.raises(Unreadable):
            member_of(fd, SIZE, [])  # the medium ends long before the size that the kernel reported
    finally:
        os.close(fd)


def test_a_partition_that_leaves_the_disk_is_looked_at_as_far_as_it_goes(medium: Path) -> None:
    put(medium, (0, partitioned(START, 4 * SIZE)), (START + 512, dict(MEMBERS["LVM"][2](SIZE))[512]))
    assert said(medium) == "a disk with a partition that is an LVM physical volume"
    assert said(medium, [Region(2 * SIZE, SIZE)]) == "a disk with a partition that is an LVM physical volume"


def test_the_library_s_own_list_is_gone_by() -> None:
    known = dict(Libblkid().known())
    assert {"linux_raid_member", "LVM2_member", "crypto_LUKS", "swap", "bcache", "ext4"} <= set(known)
    left_out = {name for name, usage in known.items() if not signatures._is_part(name, usage)}
    assert {"ext4", "vfat", "ntfs", "xfs", "btrfs"} <= left_out
    assert not any(name.endswith("_member") for name in left_out - {"zfs_member"})


# --- who uses it ------------------------------------------------------------------------------------------------------


@pytest.fixture
def sysfs(tmp_path: Path) -> Sysfs:
    return Sysfs(tmp_path)


def test_the_kernel_s_partitions(sysfs: Sysfs) -> None:
    base = sysfs.usb_disk("sda", "pci0000:00/0000:00:05.0/usb1/1-1", "uas", "S")
    sysfs.write(base / "sda1", partition="1", dev="8:17", start="2048", size="100")
    sysfs.write(base / "queue", size="1")
    assert partitions_of(str(base)) == {"8:17": Region(1 << 20, 51200)}


def test_a_loop_device_over_a_disk_is_found(sysfs: Sysfs, tmp_path: Path) -> None:
    file = tmp_path / "image"
    file.touch()
    on = os.stat(file).st_dev
    number = f"{os.major(on)}:{os.minor(on)}"
    sysfs.write(sysfs.root / "block" / "loop0" / "loop", backing_file=str(file))
    sysfs.write(sysfs.root / "block" / "loop1")
    assert loop_over({number}, str(sysfs.root), str(tmp_path)) == "loop0"
    assert loop_over({"8:0"}, str(sysfs.root), str(tmp_path)) == ""
    (sysfs.root / "block" / "loop0" / "loop" / "backing_file").write_text(f"{file} (deleted)\n")
    assert loop_over({number}, str(sysfs.root), str(tmp_path)) == "loop0"


@pytest.mark.parametrize(
    ("device", "backing", "number"),
    [((8, 1), (8, 33), "8:33"), ((8, 1), (0, 0), "8:1"), ((259, 300), (259, 300), "259:300")],
    ids=["over a disk", "over a file", "large numbers"],
)
def test_the_kernel_s_own_word_on_a_loop_device_goes_before_its_path(
    sysfs: Sysfs,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    device: tuple[int, int],
    backing: tuple[int, int],
    number: str,
) -> None:
    """include/uapi/linux/loop.h, struct loop_info64; numbers as in include/linux/kdev_t.h."""

    def encoded(major: int, minor: int) -> int:
        return (minor & 0xFF) | (major << 8) | ((minor & ~0xFF) << 12)

    said = struct.pack("=QQQ", encoded(*device), 12, encoded(*backing)).ljust(232, b"\0")
    monkeypatch.setattr("plugpull.dut.agent.signatures.fcntl.ioctl", lambda fd, request, buffer: said)
    monkeypatch.setattr("plugpull.dut.agent.signatures.stat.S_ISBLK", lambda mode: True)
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev" / "loop0").touch()
    sysfs.write(sysfs.root / "block" / "loop0" / "loop", backing_file="/not/there")
    assert loop_over({number}, str(sysfs.root), str(tmp_path / "dev")) == "loop0"
    assert loop_over({"8:2"}, str(sysfs.root), str(tmp_path / "dev")) == ""
