"""Opens an array, or a disk, only after it was proved to be what the run may write to."""

from __future__ import annotations

import errno
import os
import re
import stat
import time
from contextlib import suppress
from typing import Dict, List

from .attributes import SYS, read_attribute, resolved
from .disks import Disk, Refused, compare, describe, open_scratch
from .signatures import loop_over, plain_uuid
from .users import in_use

RELEASED_WITHIN = 3.0
"""Seconds for somebody else to release an array."""
LOOKS_EVERY = 0.05


def open_target(wanted: Disk) -> int:
    """Open the disk, or the array if ``wanted`` names ``members``, and prove it on the descriptor. Raises Refused."""
    return open_array(wanted) if "members" in wanted else open_scratch(wanted)


def open_array(wanted: Disk, exclusive: bool = True) -> int:
    """Open the array with this ``uuid`` and prove that all of its members are the ``members`` of the claim.

    The kernel name is only where to look. The descriptor's device number leads to the array's directory in sysfs, which
    has the UUID (drivers/md/md.c, uuid_show) and the members. A member that is gone cannot be written to, so it proves
    nothing and is not compared. O_EXCL is refused while something is mounted from the array, or while the run writes to
    it: its members are changed without being ``exclusive``.

    Raises Refused.
    """
    kname = str(wanted.get("kname"))
    if not re.match(r"^md[A-Za-z0-9_-]+\Z", kname):
        raise Refused("%r is not the kernel name of an array" % kname)
    if not plain_uuid(str(wanted.get("uuid") or "")):
        raise Refused("it was not said which UUID %s must have" % kname)
    fd = _open(kname, os.O_RDWR | os.O_CLOEXEC | (os.O_EXCL if exclusive else 0))
    try:
        prove_array(fd, kname, wanted)
    except BaseException:
        os.close(fd)
        raise
    return fd


def _open(kname: str, flags: int) -> int:
    """Open the array. If somebody else has it open, wait a little: the processes of a load may need a moment to end."""
    deadline = time.monotonic() + RELEASED_WITHIN
    while True:
        try:
            return os.open("/dev/" + kname, flags)
        except OSError as error:
            if error.errno != errno.EBUSY:
                raise Refused("cannot open %s: %s" % (kname, error.strerror)) from None
            if time.monotonic() > deadline:
                raise Refused(in_use(kname, "a filesystem is mounted from it, or something lies on it")) from None
            time.sleep(LOOKS_EVERY)  # the kernel has no event for it


def prove_array(fd: int, kname: str, wanted: Disk) -> None:
    """Prove on a descriptor that it is the wanted array, on the wanted disks. Raises Refused."""
    opened = os.fstat(fd)
    if not stat.S_ISBLK(opened.st_mode):
        raise Refused("%s is not a block device" % kname)
    number = "%d:%d" % (os.major(opened.st_rdev), os.minor(opened.st_rdev))
    node = resolved("%s/dev/block/%s" % (SYS, number))
    compare_array(kname, wanted, node)
    loop = loop_over({number})
    if loop:
        raise Refused("%s is in use: %s lies on it" % (kname, loop), hint="losetup --detach /dev/%s" % loop)


def compare_array(kname: str, wanted: Disk, node: str = "") -> None:
    """Raises Refused unless the array with this kernel name, or this directory in sysfs, is the wanted one, on the
    wanted disks."""
    node = node or resolved(os.path.join(SYS, "block", kname))
    found = read_attribute(node, "md", "uuid")
    if plain_uuid(found) != plain_uuid(str(wanted["uuid"])):
        raise Refused("%s is not the array %s that this run made: its UUID is %r" % (kname, wanted["uuid"], found))
    for member in sorted(members_of(node)):
        _prove_member(kname, member, wanted)


def members_of(node: str) -> Dict[str, str]:
    """The members of the array with this sysfs directory: kernel name -> its directory in sysfs. The kernel name of a
    disk that is gone is kept by the array (Documentation/admin-guide/md.rst, dev-XXX)."""
    base = os.path.join(node, "md")
    names: List[str] = []
    with suppress(OSError):  # the array was stopped
        names = os.listdir(base)
    return {name[4:]: os.path.join(base, name) for name in names if name.startswith("dev-")}


def _prove_member(kname: str, member: str, wanted: Disk) -> None:
    found = describe(member)
    if found is None:
        if os.path.exists(os.path.join(SYS, "class", "block", member, "partition")):
            raise Refused("%s has the partition %s for a member, which this run does not make" % (kname, member))
        return  # it is gone
    if not any(_is_same(member, found, one) for one in wanted["members"]):
        raise Refused("%s has %s for a member, which is not a disk of this claim" % (kname, member))


def _is_same(kname: str, found: Disk, wanted: Disk) -> bool:
    try:
        compare(kname, found, wanted)
    except Refused:
        return False
    return True
