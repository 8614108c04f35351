"""Lists disks as the kernel does, and opens one without ever trusting its name."""

from __future__ import annotations

import errno
import fcntl
import os
import re
import stat
import struct
from typing import Any, Collection, Dict, List, Optional

from .attributes import SYS, read_attribute, read_folder, resolved
from .last_block import ends_early
from .signatures import SECTOR, Unreadable, filesystem_on, loop_over, member_of, partitions_of
from .users import in_use

_BLKGETSIZE64 = 0x80081272  # include/uapi/linux/fs.h
_USB_ROOT = re.compile(r"^usb\d+$")
_USB = re.compile(r"^\d+-([\d.]+)$")
_SCSI = re.compile(r"^\d+:(\d+):(\d+):(\d+)$")
_TARGET = re.compile(r"^target\d+:(\d+):(\d+)$")
_PCI = re.compile(r"^[0-9a-f]{4,}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$")
_ATA = re.compile(r"^ata\d+$")
_PORT = re.compile(r"^(?:usb\d+|\d+-([\d.]+))-port(\d+)$")

Disk = Dict[str, Any]


class Refused(Exception):
    """The scratch guard refused. The message says why, for a person; ``hint`` says how to go on."""

    def __init__(self, why: str, hint: str = "") -> None:
        super().__init__(why)
        self.hint = hint


class Broken(Refused):
    """The guard refused a disk that does something wrong."""


def usb_place(sysfs: str) -> Optional[str]:
    """``/sys/devices/pci0000:00/0000:00:05.0/usb1/1-1/1-1.2/.../0:0:0:0/...`` -> ``0000:00:05.0/1.2:0``.

    The controller is what the root hub hangs off: a PCI function, or ``xhci-hcd.0.auto`` on a board without PCI. Of a
    SCSI address it has the LUN, with channel and target before it (``0.1.0``) unless both are 0.

    A USB 3 controller has two buses whose ports are numbered apart. A place does not say which: see ``sockets``.
    """
    controller, ports, lun, above = "", "", "0", ""
    for part in sysfs.split("/"):
        if _USB_ROOT.match(part):
            controller = above
        above = part
        usb = _USB.match(part)
        if usb:
            ports = usb.group(1)
        scsi = _SCSI.match(part)
        if scsi:
            lun = scsi.group(3) if scsi.group(1) == scsi.group(2) == "0" else ".".join(scsi.groups())
    return "%s/%s:%s" % (controller, ports, lun) if ports else None


def scsi_place(sysfs: str) -> Optional[str]:
    """``/sys/devices/pci0000:00/0000:00:11.0/virtio3/host0/target0:0:3/0:0:3:0/...`` -> ``0000:00:11.0/3:0``.

    For a disk that is not on USB but on a SCSI or SATA controller of the PCI bus: the PCI function, the target (with
    its channel before it, unless that is 0) and the LUN. Each port of a SATA controller has a host of its own, with
    target 0, so the port's number takes the place of the target (Documentation/ABI/testing/sysfs-ata, ``port_no``).
    """
    controller, target, lun, above = "", "", "", ""
    ata: Optional[str] = None
    for part in sysfs.split("/"):
        above = os.path.join(above, part) if part else "/"
        if _PCI.match(part):
            controller = part
        if _ATA.match(part):
            ata = read_attribute(above, "ata_port", part, "port_no")
        there = _TARGET.match(part)
        if there:
            target = there.group(2) if there.group(1) == "0" else ".".join(there.groups())
        scsi = _SCSI.match(part)
        if scsi:
            lun = scsi.group(3)
    port = target if ata is None else ata
    return "%s/%s:%s" % (controller, port, lun) if controller and port and lun else None


def sockets(usb: str, lun: str = "0") -> List[str]:
    """Where the USB device with this sysfs directory is plugged in, with the kind of bus: ``0000:00:05.0/usb3-1.2:0``.

    First by the port of its own bus, then by the port of the other bus that leads to the same socket, if the kernel
    knows one (drivers/usb/core/port.c, ``peer``). Two devices are in one socket if any of theirs is the same, also if
    one fell back from SuperSpeed to High Speed. Empty where the kernel does not say of which kind its buses are.
    """
    if not usb:
        return []
    peer = os.path.join(usb, "port", "peer")
    paths = [usb, *([resolved(peer)] if os.path.exists(peer) else [])]
    found = [_socket(path) for path in paths]
    return ["%s:%s" % (socket, lun) for socket in found if socket]


def _socket(path: str) -> str:
    """The socket that a device (``.../usb2/2-1/2-1.2``) or a port (``.../2-1/2-1:1.0/2-1-port2``) is, without a LUN."""
    device, port = _USB.match(os.path.basename(path)), _PORT.match(os.path.basename(path))
    ports = device.group(1) if device else ".".join(part for part in port.groups() if part) if port else ""
    root = path
    while root not in ("", "/") and not _USB_ROOT.match(os.path.basename(root)):
        root = os.path.dirname(root)
    kind = read_attribute(root, "version").partition(".")[0]  # bcdUSB of the root hub: " 3.00"
    return "%s/usb%s-%s" % (os.path.basename(os.path.dirname(root)), kind, ports) if ports and kind else ""


def _usb_device(sysfs: str) -> str:
    """The sysfs directory of the USB device a block device hangs off, empty if there is none."""
    path = sysfs
    while path not in ("", "/"):
        if _USB.match(os.path.basename(path)):
            return path
        path = os.path.dirname(path)
    return ""


def _driver(sysfs: str, usb: str) -> str:
    path = sysfs
    while path not in ("", "/") and path != usb:
        if ":" in os.path.basename(path) and os.path.dirname(path) == usb:
            return _linked(os.path.join(path, "driver"))
        path = os.path.dirname(path)
    return _linked(os.path.join(sysfs, "device", "driver")) if usb else _host_driver(sysfs)


def _host_driver(sysfs: str) -> str:
    """The driver of the controller that a disk which is not on USB hangs off: virtio_scsi, ahci, nvme. The disk's own
    is that of its type, such as sd."""
    path = os.path.dirname(resolved(os.path.join(sysfs, "device")))
    while path not in ("", "/"):
        name = _linked(os.path.join(path, "driver"))
        if name:
            return name
        path = os.path.dirname(path)
    return _linked(os.path.join(sysfs, "device", "driver"))


def _linked(path: str) -> str:
    """The name that a link in sysfs leads to; empty if it is gone: a device that is leaving has no driver any more."""
    try:
        return os.path.basename(os.readlink(path))
    except OSError:
        return ""


def _scsi_serial(sysfs: str) -> str:
    """Unit serial number from VPD page 0x80 (SPC-4, 7.8.18)."""
    try:
        with open(os.path.join(sysfs, "device", "vpd_pg80"), "rb") as file:
            return file.read()[4:].decode("ascii", "replace").strip()
    except OSError:
        return ""


IDENTITY = {
    "dev": "dev",
    "diskseq": "diskseq",
    "size": "size",
    "ro": "ro",
    "type": "device/type",
    "vendor": "device/vendor",
    "model": "device/model",
}
"""Files below /sys/block/NAME (Documentation/ABI/stable/sysfs-block)."""


def describe(kname: str, root: str = SYS) -> Optional[Disk]:
    """The disk's identity and place; None if it has gone meanwhile. ``root`` is where sysfs is mounted."""
    sysfs, found = read_folder(os.path.join(root, "block", kname), IDENTITY)
    if "dev" not in found or not os.path.isdir(sysfs):
        return None
    usb = _usb_device(sysfs)
    place = usb_place(sysfs) or scsi_place(sysfs)
    return {
        "kname": kname,
        "devt": found["dev"],
        "diskseq": int(found.get("diskseq", 0)),
        "size": int(found.get("size", 0)) * 512,
        "serial": _serial_of(sysfs, usb),
        "place": place or os.path.relpath(os.path.dirname(sysfs), os.path.join(resolved(root), "devices")),
        "sockets": sockets(usb, (place or "").rpartition(":")[2]),
        "driver": _driver(sysfs, usb),
        "speed": read_attribute(usb, "speed") if usb else "",
        "model": ("%s %s" % (found.get("vendor", ""), found.get("model", ""))).strip(),
        "read_only": found.get("ro") == "1",
        "type": int(found.get("type", 0)),
        "sysfs": sysfs,
    }


def _serial_of(sysfs: str, usb: str) -> str:
    return (read_attribute(usb, "serial") if usb else "") or _scsi_serial(sysfs)


def _with_device(root: str) -> List[str]:
    """The kernel names of disks with a device behind them, so without loop, ram, md and device-mapper."""
    block = os.path.join(root, "block")
    names = sorted(os.listdir(block)) if os.path.isdir(block) else []
    return [kname for kname in names if os.path.exists(os.path.join(block, kname, "device"))]


def all_disks(root: str = SYS) -> List[Disk]:
    """Every disk with a device behind it."""
    found = (describe(kname, root) for kname in _with_device(root))
    return [disk for disk in found if disk is not None]


def size_of(fd: int) -> int:
    """Bytes of the block device behind a descriptor."""
    buffer = fcntl.ioctl(fd, _BLKGETSIZE64, b"\0" * 8)
    return int(struct.unpack("Q", buffer)[0])


def _check_asked(wanted: Disk) -> str:
    """The kernel name to look under. Raises Refused before anything is opened: opening alone has effects on some
    devices (a watchdog, a tape), and an identity that leaves something open would fit disks that are not meant."""
    kname = str(wanted["kname"])
    if not re.match(r"^[A-Za-z0-9!_-]+\Z", kname):
        raise Refused("%r is not a kernel name" % kname)
    for key in ("serial", "place", "size"):
        if not wanted.get(key):
            raise Refused("it was not said which %s %s must have" % (key, kname))
    try:
        mode = os.stat("/dev/" + kname).st_mode
    except OSError as error:
        raise Refused("cannot open %s: %s" % (kname, error.strerror)) from None
    if not stat.S_ISBLK(mode):
        raise Refused("%s is not a disk" % kname)
    return kname


def open_scratch(wanted: Disk) -> int:
    """Open the one disk that is ``wanted`` (``serial``, ``place``, ``size``, ``diskseq`` or 0) and prove it on the
    descriptor.

    The kernel name is only where to look. What is checked is the descriptor: its device number leads to the sysfs
    node whose serial, place and size must be the declared ones, before and after opening. While the descriptor is open
    the kernel cannot give the name to another disk (sd frees its index with the last reference), so whoever
    uses ``/proc/self/fd/N`` cannot be handed another one. O_EXCL is refused by the kernel while anything is mounted
    from, swapping on, or assembled over the disk or one of its partitions. A loop device over it is looked for, and
    what it is a part of without being in use: see ``signatures.py``. With ``erase_members`` the rig file says that it
    may be; ``made`` are the UUIDs of the arrays that this run made, of which it may be a member.

    Raises Refused.
    """
    kname = _check_asked(wanted)
    try:
        fd = os.open("/dev/" + kname, os.O_RDWR | os.O_CLOEXEC | os.O_EXCL)
    except OSError as error:
        if error.errno == errno.EBUSY:
            because = "a filesystem is mounted from it, or it is swap or part of an array"
            raise Refused(in_use(kname, because)) from None
        raise Refused("cannot open %s: %s" % (kname, error.strerror)) from None
    try:
        _prove(kname, fd, wanted)
    except BaseException:
        os.close(fd)
        raise
    return fd


def _prove(kname: str, fd: int, wanted: Disk) -> None:
    """Prove on an open descriptor that the disk is the wanted one, and that nobody else uses it. Raises Refused."""
    opened = os.fstat(fd)
    if not stat.S_ISBLK(opened.st_mode):
        raise Refused("%s is not a disk" % kname)
    number = "%d:%d" % (os.major(opened.st_rdev), os.minor(opened.st_rdev))
    node = resolved("%s/dev/block/%s" % (SYS, number))
    found = describe(os.path.basename(node))
    if found is None:
        raise Refused("%s went away while it was being opened" % kname)
    compare(kname, found, wanted)
    refuse_twins(found)
    if size_of(fd) != found["size"]:
        raise Refused("%s reports two sizes: %d and %d bytes" % (kname, size_of(fd), found["size"]))
    _refuse_used(kname, fd, found["size"], node, number, wanted)


def compare(kname: str, found: Disk, wanted: Disk) -> None:
    """Raises Refused unless the disk that was found is the wanted one. ``sockets`` of what is wanted are those that it
    was in when this run first saw it."""
    first, now = list(wanted.get("sockets") or ()), found["sockets"]
    same_socket = bool(set(first) & set(now))
    for key in ("serial", "place", "size", "diskseq"):
        if not wanted.get(key) or found[key] == wanted[key]:
            continue
        if key == "place" and same_socket and place_of(first[0]) == wanted[key]:
            continue  # where it was declared to be, at another speed
        raise Refused("%s is not the disk it was: %s is %r, expected %r" % (kname, key, found[key], wanted[key]))
    if first and now and not same_socket:
        raise Refused("%s is not the disk it was: it is in the socket %s, expected %s" % (kname, now[0], first[0]))


def place_of(socket: str) -> str:
    """The place that a socket is: ``0000:00:05.0/usb3-1.2:0`` -> ``0000:00:05.0/1.2:0``."""
    return re.sub(r"/usb\d+-", "/", socket)


def refuse_twins(found: Disk, root: str = SYS) -> None:
    """Refuse a disk if another USB device on the DUT has its serial number and size: their places distinguish them only
    until somebody swaps them. Several disks behind one bridge are distinguished by their LUNs."""
    for kname in _with_device(root):
        other = describe(kname, root) if kname != found["kname"] and _is_twin(kname, found, root) else None
        if other is not None:
            raise Refused(
                "%s (at %s) and %s (at %s) both have the serial number %s and %d bytes"
                % (found["kname"], found["place"], other["kname"], other["place"], found["serial"], found["size"]),
                hint="unplug the one that is not to be erased: nothing proves which is which",
            )


def _is_twin(kname: str, found: Disk, root: str) -> bool:
    """Whether this is a disk of another USB device with the serial number and the size of the one that was found. No
    more is read of it: this is done for each disk that is opened, and a DUT may have many."""
    sysfs, other = read_folder(os.path.join(root, "block", kname), {"size": "size"})
    if int(other.get("size", 0)) * 512 != found["size"]:
        return False
    usb, own = _usb_device(sysfs), _usb_device(str(found["sysfs"]))
    return (not own or usb != own) and _serial_of(sysfs, usb) == found["serial"]


def _refuse_used(kname: str, fd: int, size: int, node: str, number: str, wanted: Disk) -> None:
    """Refuse a disk that is in use although nothing claims it, or that is a part of something larger."""
    partitions = partitions_of(node)
    loop = loop_over({number, *partitions})
    if loop:
        raise Refused("%s is in use: %s lies on it" % (kname, loop), hint="losetup --detach /dev/%s" % loop)
    if wanted.get("erase_members"):
        return
    made: Collection[str] = wanted.get("made") or ()
    try:
        member = member_of(fd, size, list(partitions.values()), made=made)
    except Unreadable as why:
        if ends_early(fd, size):
            last = size // SECTOR - 1
            raise Broken(
                "%s cannot be read at sector %d, the last of the disk: READ CAPACITY reports too many" % (kname, last)
            ) from None
        raise Refused("what %s is a part of cannot be found out: %s" % (kname, why)) from None
    if member:
        raise Refused(
            "%s is %s that this run did not make" % (kname, member),
            hint="if it may be erased: erase_members = true in its [[disk]] table, or `wipefs --all` on it by hand",
        )


def refuse_other_filesystem(fd: int, name: str, fstype: str, uuid: str) -> None:
    """Refuse a disk, by an open descriptor, unless it holds the filesystem with this UUID: the one that this run made.

    Raises Refused.
    """
    if not uuid:
        raise Refused("it was not said which filesystem is expected on %s" % name)
    try:
        found = filesystem_on(fd, size_of(fd), fstype)
    except (Unreadable, OSError) as why:
        raise Refused("which filesystem is on %s cannot be found out: %s" % (name, why)) from None
    if found != uuid:
        raise Refused(
            "%s holds %s, not the %s filesystem %s that this run made"
            % (name, "the %s filesystem %s" % (fstype, found) if found else "no %s filesystem" % fstype, fstype, uuid)
        )
