"""Which disks the DUT itself uses: those that its own system runs from, and all others with something mounted."""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from typing import Dict, Iterator, List, NamedTuple, Set

from .attributes import SYS, read_attribute, read_lines
from .disks import all_disks
from .signatures import loops, number_of

SYSTEM_MOUNTS = frozenset({"/", "/boot", "/boot/efi", "/efi", "/usr", "/var", "/home"})
_SUPERBLOCKS = ("ext4", "xfs", "f2fs", "erofs", "nilfs2")
"""Filesystems with a directory for each mounted one, called after its device, in ``/sys/fs/NAME``: those are there
whatever namespace they are mounted in, and when an overlay is all that is left to be seen of them."""
_LAYERS = ("lowerdir=", "upperdir=", "workdir=")


class Mount(NamedTuple):
    """A line of mountinfo (proc_pid_mountinfo(5))."""

    number: str
    point: str
    kind: str
    source: str
    options: str


def system_disks(root: str = SYS, proc: str = "/proc") -> List[str]:
    """Kernel names of the disks below what is mounted as the system's own directories and below swap, through
    partitions, device-mapper and md (sysfs ``slaves``), loop devices, the layers of an overlay, all devices of a btrfs
    and the members of a ZFS pool."""
    mine = [mount for mount in mounts(os.path.join(proc, "self")) if mount.point in SYSTEM_MOUNTS]
    found = set(_below(mine, root, proc))
    for line in read_lines(proc, "swaps")[1:]:
        found |= whole_disks(number_of(line.split()[0].replace("\\040", " ")), root)
    return sorted(found)


def used_disks(root: str = SYS, proc: str = "/proc") -> Dict[str, str]:
    """Disks that anything is mounted from, wherever and in whichever namespace, by kernel name: the mount point."""
    everything: Dict[Mount, None] = {}
    seen: Set[str] = set()
    for pid in ["self", *filter(str.isdigit, _listed(proc))]:
        with suppress(OSError):  # a process that has ended, or another user's
            space = os.readlink(os.path.join(proc, pid, "ns/mnt")) if pid != "self" else pid
            if space not in seen:
                seen.add(space)
                everything.update(dict.fromkeys(mounts(os.path.join(proc, pid))))
    found = _below(list(everything), root, proc)
    for kind in _SUPERBLOCKS:
        for name in _listed(root, "fs", kind):
            for disk in whole_disks(read_attribute(root, "class/block", name, "dev"), root):
                found.setdefault(disk, "somewhere (%s on %s)" % (kind, name))
    for disk in system_disks(root, proc):
        found.setdefault(disk, "the system")
    return found


def mounts(process: str) -> Iterator[Mount]:
    """The mounts that a process (its directory in /proc) sees."""
    for line in read_lines(process, "mountinfo"):
        left, _, right = line.partition(" - ")
        fields, tail = left.split(), right.split()
        if len(fields) > 4:
            kind, source, options = [*tail, "", "", ""][:3]
            yield Mount(fields[2], fields[4], kind, source, options)


def _below(of: List[Mount], root: str, proc: str) -> Dict[str, str]:
    found: Dict[str, str] = {}
    pools = ""
    for mount in of:
        pools = pools or (mount.point if mount.kind == "zfs" else "")
        for number in _numbers(mount, root):
            for disk in whole_disks(number, root):
                found.setdefault(disk, mount.point)
    if pools:
        for disk in _claimed(root):
            if disk not in found and not _explained(disk, root, proc):
                found[disk] = pools
    return found


def _numbers(mount: Mount, root: str) -> Set[str]:
    """Numbers of the block devices a mount lies on."""
    # btrfs and others give their mounts numbers of their own. bcachefs has all its devices in the source.
    sources = mount.source.split(":") if mount.kind == "bcachefs" else [mount.source]
    numbers = {mount.number, *(number_of(path) for path in sources if path.startswith("/dev/"))}
    if mount.kind == "overlay":
        for option in mount.options.split(","):
            for key in _LAYERS:
                if option.startswith(key):
                    numbers |= {number_of(path) for path in option[len(key) :].split(":")}
    for volume in _listed(root, "fs/btrfs"):
        devices = {
            read_attribute(root, "fs/btrfs", volume, "devices", name, "dev")
            for name in _listed(root, "fs/btrfs", volume, "devices")
        }
        if mount.kind == "btrfs" and devices & numbers:
            numbers |= devices
    return numbers - {""}


def whole_disks(number: str, root: str = SYS) -> Set[str]:
    """Kernel names of the disks that the block device with this number ("8:1") lies on."""
    node = os.path.realpath(os.path.join(root, "dev", "block", number)) if number else ""
    return _disks_below(node, root, frozenset()) if node else set()


def _disks_below(node: str, root: str, passed: "frozenset[str]") -> Set[str]:
    if not os.path.isdir(node) or node in passed:
        return set()
    if os.path.exists(os.path.join(node, "partition")):
        node = os.path.dirname(node)
    name = os.path.basename(node)
    slaves = os.path.join(node, "slaves")
    below = [os.path.realpath(os.path.join(slaves, slave)) for slave in _listed(slaves)]
    below += [
        os.path.realpath(os.path.join(root, "dev/block", backing)) for loop, backing in loops(root) if loop == name
    ]
    if not below:
        return {name}
    found: Set[str] = set()
    for one in below:
        found |= _disks_below(one, root, passed | {node})
    return found


def _claimed(root: str) -> Iterator[str]:
    """Disks that something in the kernel holds for itself. ZFS does, and leaves no other trace in sysfs."""
    for disk in all_disks(root):
        try:
            os.close(os.open("/dev/" + str(disk["kname"]), os.O_RDONLY | os.O_EXCL | os.O_NONBLOCK | os.O_CLOEXEC))
        except OSError as error:
            if error.errno == errno.EBUSY:
                yield str(disk["kname"])


def _explained(disk: str, root: str, proc: str) -> bool:
    """Whether something other than a pool claims it: an ordinary mount, md or device-mapper."""
    base = os.path.join(root, "block", disk)
    holders = [*_listed(base, "holders"), *(one for part in _listed(base) for one in _listed(base, part, "holders"))]
    plain = (mount for mount in mounts(os.path.join(proc, "self")) if mount.kind != "zfs")
    return bool(holders) or any(disk in whole_disks(number, root) for one in plain for number in _numbers(one, root))


def _listed(*parts: str) -> List[str]:
    try:
        return sorted(os.listdir(os.path.join(*parts)))
    except OSError:
        return []
