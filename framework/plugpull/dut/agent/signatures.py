"""Finds out what a disk is a part of, by its signatures and by its users.

libblkid finds the signatures. It knows them all, and udev, mount and mkfs use it. The programs ``blkid``, ``wipefs``
and ``lsblk`` do not serve: they open a name, and report one signature or none when there are several. The library reads
the descriptor that was proved to be the disk, partitions too, and goes on after each find. Every Linux that can mount
has it (util-linux). If it is missing, the disk is refused.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import re
import stat
import struct
from contextlib import suppress
from typing import Any, Collection, Dict, Iterator, List, NamedTuple, Optional, Set, Tuple

SECTOR = 512
MOST_PARTITIONS = 256
_LIBRARY = "libblkid.so.1"
_ONLY_IN = 2  # blkid.h, BLKID_FLTR_ONLYIN
_FILESYSTEM = 1 << 1  # BLKID_USAGE_FILESYSTEM
_FLAGS = 1 << 5 | 1 << 3  # BLKID_SUBLKS_TYPE, BLKID_SUBLKS_UUID
_SHARED = frozenset({"drbdproxy_datalog", "oracleasm"})
"""Counted among the filesystems by libblkid, and parts of something larger."""
_DEAR = frozenset({"zfs_member", "xfs_external_log"})
"""Those that libblkid reads 256 KiB or more for, a second on a slow disk. See ``_of_several``."""
_FOUND = 0
_NOTHING = 1
_LOOP_GET_STATUS64 = 0x4C05  # include/uapi/linux/loop.h

WORDS = {
    "LVM1_member": "an LVM physical volume",
    "LVM2_member": "an LVM physical volume",
    "linux_raid_member": "a member of an md array",
    "isw_raid_member": "a member of an Intel RAID array",
    "ddf_raid_member": "a member of a DDF RAID array",
    "crypto_LUKS": "an encrypted volume (LUKS)",
    "BitLocker": "an encrypted volume (BitLocker)",
    "bcache": "a bcache device",
    "swap": "swap space",
    "swsuspend": "swap space with a hibernated system in it",
    "jbd": "the journal of a filesystem on another disk",
}
"""libblkid's names, in the words of messages."""
_KERNEL_NAMES = {"msdos": "vfat", "ntfs3": "ntfs"}
"""libblkid's names of filesystems that the kernel calls otherwise, by the kernel's."""

_FUNCTIONS: Tuple[Tuple[str, Any, Tuple[Any, ...]], ...] = (
    ("new_probe", ctypes.c_void_p, ()),
    ("free_probe", None, (ctypes.c_void_p,)),
    ("probe_set_device", ctypes.c_int, (ctypes.c_void_p, ctypes.c_int, ctypes.c_int64, ctypes.c_int64)),
    ("probe_enable_superblocks", ctypes.c_int, (ctypes.c_void_p, ctypes.c_int)),
    ("probe_set_superblocks_flags", ctypes.c_int, (ctypes.c_void_p, ctypes.c_int)),
    (
        "superblocks_get_name",
        ctypes.c_int,
        (ctypes.c_size_t, ctypes.POINTER(ctypes.c_char_p), ctypes.POINTER(ctypes.c_int)),
    ),
    (
        "probe_filter_superblocks_type",
        ctypes.c_int,
        (ctypes.c_void_p, ctypes.c_int, ctypes.POINTER(ctypes.c_char_p)),
    ),
    ("do_probe", ctypes.c_int, (ctypes.c_void_p,)),
    (
        "probe_lookup_value",
        ctypes.c_int,
        (ctypes.c_void_p, ctypes.c_char_p, ctypes.POINTER(ctypes.c_char_p), ctypes.c_void_p),
    ),
    ("probe_enable_partitions", ctypes.c_int, (ctypes.c_void_p, ctypes.c_int)),
    ("probe_get_partitions", ctypes.c_void_p, (ctypes.c_void_p,)),
    ("partlist_numof_partitions", ctypes.c_int, (ctypes.c_void_p,)),
    ("partlist_get_partition", ctypes.c_void_p, (ctypes.c_void_p, ctypes.c_int)),
    ("partition_get_start", ctypes.c_int64, (ctypes.c_void_p,)),
    ("partition_get_size", ctypes.c_int64, (ctypes.c_void_p,)),
)


class Unreadable(Exception):
    """The disk could not be examined. The message says why."""


class Region(NamedTuple):
    """A part of a disk, in bytes: all of it, or a partition."""

    offset: int
    size: int


class Signature(NamedTuple):
    """What was found in a region. ``uuid`` is that of the filesystem, or of the array that the region is a member of;
    empty if it has none, or if nothing but the magic number is left of it."""

    words: str
    uuid: str = ""


class Libblkid:
    """The functions of the library that are needed here. Raises Unreadable if it is not installed."""

    def __init__(self, name: str = _LIBRARY) -> None:
        try:
            library = ctypes.CDLL(name)
        except OSError:
            raise Unreadable("%s is not installed on the DUT (its package is util-linux or libblkid1)" % name) from None
        self._calls: Dict[str, Any] = {}
        for called, result, arguments in _FUNCTIONS:
            function = getattr(library, "blkid_" + called)
            function.restype, function.argtypes = result, list(arguments)
            self._calls[called] = function
        self._parts = [name for name, usage in self.known() if _is_part(name, usage)]

    def known(self) -> Iterator[Tuple[str, int]]:
        """Each signature that this version knows, and its usage (BLKID_USAGE_*)."""
        name, usage, number = ctypes.c_char_p(), ctypes.c_int(), 0
        while not self._calls["superblocks_get_name"](number, ctypes.byref(name), ctypes.byref(usage)):
            yield (name.value or b"").decode("ascii", "replace"), usage.value
            number += 1

    def members(self, fd: int, region: Region) -> List[Signature]:
        """All signatures in a region that are not a filesystem's, by libblkid's names."""
        return self._find(fd, region, self._parts)

    def filesystem(self, fd: int, size: int, fstype: str) -> str:
        """The UUID of the filesystem of this type that fills a disk; empty if there is none, or if it has none."""
        name = _KERNEL_NAMES.get(fstype, fstype)
        found = self._find(fd, Region(0, size), [name]) if name in {known for known, _ in self.known()} else []
        return found[0].uuid if found else ""

    def _find(self, fd: int, region: Region, names: List[str]) -> List[Signature]:
        wanted = (ctypes.c_char_p * (len(names) + 1))(*(name.encode() for name in names), None)
        probe = self._probe(fd, region)
        try:
            self._call("probe_enable_superblocks", probe, 1)
            self._call("probe_set_superblocks_flags", probe, _FLAGS)
            self._call("probe_filter_superblocks_type", probe, _ONLY_IN, wanted)
            found: List[Signature] = []
            while True:
                answer = self._calls["do_probe"](probe)
                if answer == _NOTHING:
                    return found
                if answer != _FOUND:
                    raise Unreadable("it cannot be read where signatures would be")
                name = self._value(probe, b"TYPE") or "something that libblkid has no name for"
                found.append(Signature(name, self._value(probe, b"UUID")))
        finally:
            self._calls["free_probe"](probe)

    def partitions(self, fd: int, size: int) -> List[Region]:
        """The partitions that a table on the disk names; none without a table."""
        probe = self._probe(fd, Region(0, size))
        try:
            self._call("probe_enable_partitions", probe, 1)
            table = self._calls["probe_get_partitions"](probe)
            if not table:
                return []
            count = min(MOST_PARTITIONS, self._calls["partlist_numof_partitions"](table))
            entries = [self._calls["partlist_get_partition"](table, number) for number in range(count)]
            return [
                Region(
                    self._calls["partition_get_start"](entry) * SECTOR,
                    self._calls["partition_get_size"](entry) * SECTOR,
                )
                for entry in entries
                if entry
            ]
        finally:
            self._calls["free_probe"](probe)

    def _probe(self, fd: int, region: Region) -> Any:
        probe = self._calls["new_probe"]()
        if not probe:
            raise Unreadable("there is no memory left for libblkid")
        if self._calls["probe_set_device"](probe, fd, region.offset, region.size):
            self._calls["free_probe"](probe)
            raise Unreadable("libblkid cannot examine %d bytes from %d on" % (region.size, region.offset))
        return probe

    def _call(self, name: str, *arguments: Any) -> None:
        if self._calls[name](*arguments):
            raise Unreadable("libblkid refuses %s" % name)

    def _value(self, probe: Any, name: bytes) -> str:
        value = ctypes.c_char_p()
        if self._calls["probe_lookup_value"](probe, name, ctypes.byref(value), None):
            return ""
        return (value.value or b"").decode("utf-8", "replace")


def _is_part(name: str, usage: int) -> bool:
    """Whether a disk with this signature is a part of something larger."""
    return name not in _DEAR and (usage != _FILESYSTEM or name.endswith("_member") or name in _SHARED)


def member_of(
    fd: int,
    size: int,
    partitions: List[Region],
    library: Optional[Libblkid] = None,
    made: Collection[str] = (),
) -> str:
    """What the disk or one of its partitions is a part of: empty if nothing, or "a member of an md array".

    ``partitions`` are those the kernel knows; those of a table that it did not read are looked at too. Plain
    filesystems are not looked for: nobody but the disk is hurt when one is erased. ``made`` are the UUIDs of the arrays
    that this run made: the whole disk may be a member of one of these. Raises Unreadable.
    """
    blkid = library or Libblkid()
    own = {plain_uuid(uuid) for uuid in made} - {""}
    # A description of its own: libblkid moves the position, and asks the kernel not to read ahead.
    private = os.open("/proc/self/fd/%d" % fd, os.O_RDONLY | os.O_CLOEXEC)
    try:
        whole = Region(0, size)
        found = _foreign(_damaged(private, size), own) or _part_of(blkid, private, whole, own)
        inner = set(partitions) | set(blkid.partitions(private, size))
        for region in sorted(inner, key=lambda one: one.offset):
            region = Region(region.offset, min(region.size, size - region.offset))
            if not found and region.size > SECTOR and region != whole and region.offset >= 0:
                found = _part_of(blkid, private, region, set())
                found = found and "a disk with a partition that is %s" % found
        return found
    except OSError as error:
        raise Unreadable("it cannot be read: %s" % error.strerror) from None
    finally:
        os.close(private)


def filesystem_on(fd: int, size: int, fstype: str, library: Optional[Libblkid] = None) -> str:
    """The UUID of the filesystem of this type on the disk behind a descriptor; empty if there is none. Raises
    Unreadable."""
    private = os.open("/proc/self/fd/%d" % fd, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return (library or Libblkid()).filesystem(private, size, fstype)
    except OSError as error:
        raise Unreadable("it cannot be read: %s" % error.strerror) from None
    finally:
        os.close(private)


def plain_uuid(text: str) -> str:
    """A UUID in one way of writing: libblkid separates its parts by hyphens, mdadm by colons."""
    return re.sub(r"[^0-9a-f]", "", text.lower())


def _foreign(found: List[Signature], own: Set[str]) -> str:
    """The first signature that does not belong to an array of this run."""
    return next((one.words for one in found if plain_uuid(one.uuid) not in own), "")


def _part_of(blkid: Libblkid, fd: int, region: Region, own: Set[str]) -> str:
    members = blkid.members(fd, region)
    # Only an array's members carry its UUID; other signatures carry one of their own.
    found = [one if one.words == "linux_raid_member" else one._replace(uuid="") for one in members]
    words = _foreign(found, own)
    return WORDS.get(words, "%s, as libblkid calls it" % words) if words else _of_several(fd, region)


def _damaged(fd: int, size: int) -> List[Signature]:
    """Signatures whose checksums may be wrong, which libblkid does not count: what is left of somebody's array."""
    found = []
    head = os.pread(fd, 8192, 0)
    if any(head[sector * 512 : sector * 512 + 8] == b"LABELONE" for sector in range(4)):
        found.append(Signature(WORDS["LVM2_member"]))  # lib/label/label.c of LVM2
    if head[4086:4096] in (b"SWAPSPACE2", b"SWAP-SPACE"):
        found.append(Signature(WORDS["swap"]))
    for offset in (0, 4096, (size & ~0xFFFF) - 0x10000, ((size >> 9) - 16 & ~7) << 9):
        block = os.pread(fd, 32, offset) if offset >= 0 else b""
        if block[:4] == struct.pack("<I", 0xA92B4EFC):  # drivers/md/md.c, MD_SB_MAGIC
            # include/uapi/linux/raid/md_p.h: version 1 has the array's UUID in one piece (set_uuid).
            uuid = block[16:32].hex() if block[4:8] == struct.pack("<I", 1) else ""
            found.append(Signature(WORDS["linux_raid_member"], uuid))
    return found


def _of_several(fd: int, region: Region) -> str:
    """Filesystems that lie on several disks, of which libblkid does not say whether they do. And what it reads a lot
    for: the log of an XFS begins with a record, and a ZFS pool cannot be imported without one of its four labels."""

    def read(offset: int, length: int) -> bytes:
        return os.pread(fd, length, region.offset + offset) if 0 <= offset <= region.size - length else b""

    if read(0, 4) == b"\xfe\xed\xba\xbe":  # fs/xfs/libxfs/xfs_log_format.h, XLOG_HEADER_MAGIC_NUM
        return "the log of a filesystem on another disk"
    btrfs = read(0x10000, 0x90)  # include/uapi/linux/btrfs_tree.h, struct btrfs_super_block
    if btrfs[0x40:0x48] == b"_BHRfS_M":
        devices = struct.unpack_from("<Q", btrfs, 0x88)[0]
        if devices > 1:
            return "one of the %d disks of a btrfs" % devices
    bcachefs = read(0x1000, 0x80)  # fs/bcachefs/bcachefs_format.h, struct bch_sb
    if bcachefs[24:28] == b"\xc6\x85\x73\xf6" and bcachefs[123] > 1:
        return "one of the %d disks of a bcachefs" % bcachefs[123]
    label = 256 << 10  # OpenZFS, include/sys/vdev_impl.h, struct vdev_label; vl_vdev_phys is an nvlist at 16 KiB
    end = region.size & ~(label - 1)
    for offset in (0, label, end - 2 * label, end - label):
        pairs = read(offset + (16 << 10), 512)
        if pairs[:4] in (b"\1\1\0\0", b"\1\0\0\0") and b"\0\0\0\7version\0" in pairs[:64]:
            return "a member of a ZFS pool"
    return ""


# --- who uses it ------------------------------------------------------------------------------------------------------


def partitions_of(node: str) -> Dict[str, Region]:
    """The kernel's partitions of the disk with this sysfs directory, by device number ("8:17")."""
    found = {}
    for name in os.listdir(node) if os.path.isdir(node) else []:
        path = os.path.join(node, name)
        if os.path.exists(os.path.join(path, "partition")):
            with suppress(OSError, ValueError):  # going away meanwhile
                found[_text(path, "dev")] = Region(
                    int(_text(path, "start")) * SECTOR, int(_text(path, "size")) * SECTOR
                )
    return found


def loop_over(numbers: Set[str], sysfs: str = "/sys", dev: str = "/dev") -> str:
    """The loop device whose backing file is a block device with one of these numbers; empty if there is none. A loop
    device does not claim what it lies on, so that O_EXCL does not see it."""
    for name, backing in loops(sysfs, dev):
        if backing in numbers:
            return name
    return ""


def loops(sysfs: str = "/sys", dev: str = "/dev") -> Iterator[Tuple[str, str]]:
    """Each loop device that is set up, and the number of the block device it lies on: its backing file if that is one,
    or the one with the filesystem that the file is in. By the kernel's own numbers where the device can be opened, and
    by the path otherwise, which may be of another mount namespace."""
    block = os.path.join(sysfs, "block")
    for name in sorted(os.listdir(block)) if os.path.isdir(block) else []:
        if not os.path.exists(os.path.join(block, name, "loop", "backing_file")):
            continue
        number = _loop_status(os.path.join(dev, name))
        if not number:
            path = _text(block, name, "loop", "backing_file")
            number = number_of(path[: -len(" (deleted)")] if path.endswith(" (deleted)") else path)
        if number:
            yield name, number


def _loop_status(path: str) -> str:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return ""
    try:
        if not stat.S_ISBLK(os.fstat(fd).st_mode):
            return ""
        # struct loop_info64: lo_device, lo_inode, lo_rdevice, ... 232 bytes in all
        device, _, backing = struct.unpack_from("=QQQ", fcntl.ioctl(fd, _LOOP_GET_STATUS64, b"\0" * 232))
    except OSError:
        return ""
    finally:
        os.close(fd)
    number = backing or device
    return "%d:%d" % (os.major(number), os.minor(number))


def number_of(path: str) -> str:
    """The number of a block device, or of the one that a file or directory lies on; empty if there is neither."""
    try:
        status = os.stat(path)
    except OSError:
        return ""
    if stat.S_ISBLK(status.st_mode):
        number = status.st_rdev
    elif stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode):
        number = status.st_dev
    else:
        return ""
    return "%d:%d" % (os.major(number), os.minor(number))


def _text(*parts: str) -> str:
    with open(os.path.join(*parts), "rb") as file:
        return file.read().decode("utf-8", "replace").strip()
