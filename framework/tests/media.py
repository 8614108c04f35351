"""Media that carry somebody else's signatures, as files, laid out as the programs that own them do."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from pathlib import Path

SECTOR = 512
SIZE = 16 << 20
MD_MAGIC = struct.pack("<I", 0xA92B4EFC)
UUID = bytes(range(1, 17))


def put(path: Path, *parts: tuple[int, bytes], size: int = SIZE) -> Path:
    """A medium of zeroes with these bytes at these offsets."""
    if not path.exists():
        path.write_bytes(b"")
    with path.open("r+b") as file:
        file.truncate(size)
        for offset, content in parts:
            file.seek(offset)
            file.write(content)
    return path


def partitioned(start: int, size: int) -> bytes:
    """A DOS partition table with one partition (bytes)."""
    entry = struct.pack("<B3sB3sII", 0, b"\0\x02\0", 0x83, b"\xff\xff\xff", start // SECTOR, size // SECTOR)
    return b"\0" * 440 + struct.pack("<I", 0x1234) + b"\0\0" + entry + b"\0" * 48 + b"\x55\xaa"


def lvm2() -> bytes:
    """lib/format_text/layout.h, lib/label/label.h of LVM2: a label in sector 1, with the checksum of lib/misc/crc.c."""
    body = struct.pack("<I8s", 32, b"LVM2 001") + b"A" * 32 + struct.pack("<Q", SIZE)
    body = body.ljust(SECTOR - 20, b"\0")
    checksum = zlib.crc32(body, 0xF597A6CF ^ 0xFFFFFFFF) ^ 0xFFFFFFFF
    return struct.pack("<8sQI", b"LABELONE", 1, checksum) + body


def md1(offset: int) -> bytes:
    """include/uapi/linux/raid/md_p.h, struct mdp_superblock_1, for a superblock at ``offset``."""
    head = MD_MAGIC + struct.pack("<III", 1, 0, 0) + UUID + b"host:0".ljust(32, b"\0")
    head += struct.pack("<QIIQII", 1, 1, 0, 1 << 14, 0, 2)
    head = head.ljust(128, b"\0") + struct.pack("<QQQQ", 2048, 1 << 14, offset // SECTOR, 0)
    block = bytearray(head.ljust(256, b"\0"))
    struct.pack_into("<I", block, 220, 0)
    total = sum(struct.unpack("<64I", block))
    struct.pack_into("<I", block, 216, (total & 0xFFFFFFFF) + (total >> 32))
    return bytes(block)


def md0() -> bytes:
    """struct mdp_superblock_s: magic, major, minor, patch."""
    return MD_MAGIC + struct.pack("<III", 0, 90, 0)


def luks(version: int) -> bytes:
    """The LUKS on-disk format, 1.2.3, and LUKS2, 1.1.1: magic and version."""
    head = b"LUKS\xba\xbe" + struct.pack(">H", version)
    if version == 1:
        return head + b"aes".ljust(32, b"\0") + b"xts-plain64".ljust(32, b"\0") + b"sha256".ljust(32, b"\0")
    return (head + struct.pack(">Q", 0x4000)).ljust(256, b"\0") + struct.pack(">Q", 0)


def swap() -> bytes:
    """include/linux/swap.h, union swap_header, for pages of 4096 bytes."""
    head = b"\0" * 1024 + struct.pack("<III", 1, SIZE // 4096 - 1, 0) + UUID
    return head.ljust(4086, b"\0") + b"SWAPSPACE2"


def ntfs(serial: int) -> bytes:
    """fs/ntfs3/ntfs.h, struct NTFS_BOOT: clusters of 4 KiB, and a file table of records of 1 KiB in the fifth cluster,
    where record 3 is that of the volume."""
    boot = b"\xeb\x52\x90NTFS    " + struct.pack("<HB7xB2xHHII", SECTOR, 8, 0xF8, 63, 255, 0, 0)
    boot += struct.pack("<IQQQb3xb3xQ", 0x80, SIZE // SECTOR - 1, 4, 8, -10, 1, serial)
    record = b"FILE".ljust(0x14, b"\0") + struct.pack("<H", 0x38)
    record = record.ljust(0x38, b"\0") + b"\xff" * 4
    return boot.ljust(4 * 4096, b"\0") + b"".join(record.ljust(1024, b"\0") for _ in range(4))


def bcache() -> bytes:
    """drivers/md/bcache/bcache_ondisk.h, struct cache_sb_disk, with its checksum (a CRC-64 of all that follows it)."""
    magic = bytes.fromhex("c68573f64e1a45ca8265f57f48ba6d81")
    body = struct.pack("<QQ", 8, 0) + magic + UUID + UUID + b"label".ljust(32, b"\0")
    flags_and_sequence, padding = bytes(2 * 8), bytes(8 * 8)
    body += flags_and_sequence + padding
    body += struct.pack("<QHHHHIHH", SIZE // (1024 * SECTOR), 1, 1024, 1, 0, 0, 1, 0)
    return struct.pack("<Q", crc64(body)) + body


def crc64(data: bytes) -> int:
    """lib/crc64.c, crc64_be with all bits set before and inverted after."""
    value = (1 << 64) - 1
    for byte in data:
        value ^= byte << 56
        for _ in range(8):
            value = ((value << 1) ^ 0x42F0E1EBA9EA3693 if value >> 63 else value << 1) & ((1 << 64) - 1)
    return value ^ ((1 << 64) - 1)


def intel_raid() -> bytes:
    """mdadm's super-intel.c, struct imsm_super: signature and version."""
    return b"Intel Raid ISM Cfg Sig. 1.0.00".ljust(SECTOR, b"\0")


def zfs_label() -> bytes:
    """OpenZFS, struct vdev_label: pairs (an nvlist in XDR) at 16 KiB, and a ring of uberblocks at 128 KiB."""
    numbers = {"version": 5000, "state": 0, "txg": 4, "pool_guid": 0x1234, "guid": 0x5678}
    listed = b"".join(_nvpair(name, value) for name, value in numbers.items())
    pairs = b"\1\1\0\0" + struct.pack(">II", 0, 1) + listed + struct.pack(">II", 0, 0)
    uberblocks = b"".join(struct.pack("<5Q", 0x00BAB10C, 5000, txg, 1, 1).ljust(1024, b"\0") for txg in range(8))
    return (b"\0" * (16 << 10) + pairs).ljust(128 << 10, b"\0") + uberblocks


def _nvpair(name: str, value: int) -> bytes:
    """A number in OpenZFS's nvlist, as XDR: sizes encoded and in memory, the name, the type uint64 (8), one of it."""
    content = name.encode().ljust(len(name) + -len(name) % 4, b"\0") + struct.pack(">IIQ", 8, 1, value)
    return struct.pack(">III", 12 + len(content), 32 + len(content), len(name)) + content


def btrfs(devices: int) -> bytes:
    """include/uapi/linux/btrfs_tree.h, struct btrfs_super_block, without its checksum."""
    head = b"\0" * 32 + UUID + struct.pack("<QQ8s", 0x10000, 1, b"_BHRfS_M")
    return head.ljust(0x70, b"\0") + struct.pack("<QQQQ", SIZE, 0, 6, devices)


def bcachefs(devices: int) -> bytes:
    """fs/bcachefs/bcachefs_format.h, struct bch_sb."""
    magic = bytes.fromhex("c68573f666ce90a9d96a60cf803df7ef")
    return (b"\0" * 24 + magic).ljust(122, b"\0") + bytes([0, devices])


Maker = Callable[[int], list[tuple[int, bytes]]]
"""Given the size of a region, what lies where in it."""

MEMBERS: dict[str, tuple[str, str, Maker]] = {
    "LVM": ("an LVM physical volume", "LVM2_member", lambda size: [(512, lvm2())]),
    "md 0.90": ("a member of an md array", "linux_raid_member", lambda s: [((s & ~0xFFFF) - 0x10000, md0())]),
    "md 1.0": ("a member of an md array", "linux_raid_member", lambda s: [(_md10(s), md1(_md10(s)))]),
    "md 1.1": ("a member of an md array", "linux_raid_member", lambda size: [(0, md1(0))]),
    "md 1.2": ("a member of an md array", "linux_raid_member", lambda size: [(4096, md1(4096))]),
    "swap": ("swap space", "swap", lambda size: [(0, swap())]),
    "LUKS1": ("an encrypted volume (LUKS)", "crypto_LUKS", lambda size: [(0, luks(1))]),
    "LUKS2": ("an encrypted volume (LUKS)", "crypto_LUKS", lambda size: [(0, luks(2))]),
    "bcache": ("a bcache device", "bcache", lambda size: [(4096, bcache())]),
    "Intel RAID": ("a member of an Intel RAID array", "isw_raid_member", lambda s: [(s - 1024, intel_raid())]),
    "ZFS": (
        "a member of a ZFS pool",
        "zfs_member",
        lambda size: [(where, zfs_label()) for where in (0, 256 << 10, _aligned(size) - (512 << 10))],
    ),
    "ZFS, last label": (
        "a member of a ZFS pool",
        "zfs_member",
        lambda size: [(_aligned(size) - (256 << 10), zfs_label())],
    ),
    "btrfs of two": ("one of the 2 disks of a btrfs", "", lambda size: [(0x10000, btrfs(2))]),
    "bcachefs of three": ("one of the 3 disks of a bcachefs", "", lambda size: [(4096, bcachefs(3))]),
    "log of an XFS": (
        "the log of a filesystem on another disk",
        "",
        lambda size: [(0, b"\xfe\xed\xba\xbe" + struct.pack(">II", 1, 2))],
    ),
}
"""Name -> what the guard calls it, libblkid's type (empty where that needs more than is here), and its bytes."""


def _md10(size: int) -> int:
    return ((size >> 9) - 16 & ~7) << 9


def _aligned(size: int) -> int:
    return size & ~((256 << 10) - 1)
