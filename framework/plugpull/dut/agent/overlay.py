"""Copy-on-write overlays: block devices that show a disk, and keep what is written to them in memory.

Device-mapper's ``snapshot`` target reads from the disk what was not written, and writes to a loop device over a file in
memory (Documentation/admin-guide/device-mapper/snapshot.rst; "N": the list of what was written is not stored). So a
repair can be tried while the disk keeps the evidence. The disk must not be written to meanwhile: the overlay holds it
exclusively, which keeps others away.
"""

from __future__ import annotations

import errno
import fcntl
import os
import struct
import time
from contextlib import suppress
from typing import Any, Dict, List, NamedTuple, Tuple

from .array_guard import compare_array, open_target
from .attributes import SYS, read_attribute
from .disks import Disk, Refused, compare, describe, size_of
from .signatures import SECTOR
from .wire import now

PREFIX = "PLUGPULL-"
STORE = 128 << 20
"""Bytes that can be written to an overlay at most. Beyond, it answers with errors."""
CHUNK = 8
"""Sectors that are copied together."""
RELEASED_WITHIN = 3.0
"""Seconds: udev may have a new device open for a moment."""
# include/uapi/linux/loop.h
_LOOP_SET_FD, _LOOP_CLR_FD, _LOOP_CTL_GET_FREE = 0x4C00, 0x4C01, 0x4C82
# include/uapi/linux/dm-ioctl.h: _IOWR(DM_IOCTL, number, struct dm_ioctl)
_DM, _CREATE, _REMOVE, _SUSPEND, _LOAD = 0xC138FD00, 3, 4, 6, 9
_HEAD = struct.Struct("<3I 2I I i 3I Q 128s 129s 7x")
_TARGET = struct.Struct("<QQiI16s")


class _Made(NamedTuple):
    name: str
    loop: str
    memory: int


class Overlays:
    """The overlays that this agent made, by the name of the disk in the rig."""

    def __init__(self) -> None:
        self._made: Dict[str, _Made] = {}

    def make(self, name: str, wanted: Disk) -> Dict[str, Any]:
        """Make one over a disk or an array that is not in use. The answer has its ``overlay``, the UUID by which the
        guard accepts it. Raises Refused for another disk."""
        begun, fd = now(), open_target(wanted)
        # The overlay claims the disk for itself; ours must not be the holder that it finds.
        plain = os.open("/proc/self/fd/%d" % fd, os.O_RDONLY)
        os.close(fd)
        try:
            if name in self._made:
                raise Refused("%s has an overlay already" % name)
            made = _make("plugpull-" + name, size_of(plain), os.fstat(plain).st_rdev)
        except OSError as error:
            why = "no overlay can be made: %s" % error
            return {"ok": False, "seconds": now() - begun, "detail": why, "overlay": ""}
        finally:
            os.close(plain)
        self._made[name] = made
        return {"ok": True, "seconds": now() - begun, "detail": "", "overlay": PREFIX + made.name}

    def drop(self, name: str) -> Dict[str, Any]:
        """Remove an overlay with everything that was written to it."""
        begun, made = now(), self._made.pop(name, None)
        if made is None:
            return {"ok": False, "seconds": 0.0, "detail": "%s has no overlay" % name}
        try:
            _drop(made)
        except OSError as error:
            return {"ok": False, "seconds": now() - begun, "detail": str(error)}
        return {"ok": True, "seconds": now() - begun, "detail": ""}

    def drop_all(self) -> None:
        for name in list(self._made):
            self.drop(name)


def open_volume(wanted: Disk) -> int:
    """Open the disk, the array or the overlay that is wanted, and prove it on the descriptor. Raises Refused."""
    return open_overlay(wanted) if "overlay" in wanted else open_target(wanted)


def open_overlay(wanted: Disk) -> int:
    """Open the overlay whose UUID is ``overlay``, and prove that it lies on the disk or array ``below``. Raises
    Refused."""
    for name in os.listdir(os.path.join(SYS, "block")):
        node = os.path.join(SYS, "block", name)
        if name.startswith("dm-") and read_attribute(node, "dm", "uuid") == wanted["overlay"]:
            break
    else:
        raise Refused("there is no overlay %s" % wanted["overlay"])
    try:
        fd = os.open("/dev/" + name, os.O_RDWR | os.O_CLOEXEC | os.O_EXCL)
    except OSError as error:
        raise Refused("cannot open the overlay %s: %s" % (name, error.strerror)) from None
    try:
        number = os.fstat(fd).st_rdev
        if read_attribute(node, "dev") != "%d:%d" % (os.major(number), os.minor(number)):
            raise Refused("%s is not the overlay %s any more" % (name, wanted["overlay"]))
        _prove_below(name, os.listdir(os.path.join(node, "slaves")), wanted["below"])
    except BaseException:
        os.close(fd)
        raise
    return fd


def _prove_below(name: str, below: List[str], wanted: Disk) -> None:
    """Raises Refused unless an overlay lies on the wanted disk or array, and on nothing else but its loop device."""
    disks = [one for one in below if not one.startswith("loop")]
    if len(disks) != 1 or len(below) != 2:
        raise Refused("the overlay %s lies on %s" % (name, ", ".join(sorted(below)) or "nothing"))
    if "members" in wanted:
        compare_array(disks[0], wanted)
        return
    found = describe(disks[0])
    if found is None:
        raise Refused("%s, which the overlay %s lies on, is gone" % (disks[0], name))
    compare(disks[0], found, wanted)


# --- loop and device-mapper -------------------------------------------------------------------------------------------


def _make(name: str, size: int, disk: int) -> _Made:
    """Raises OSError."""
    memory = os.memfd_create(name, os.MFD_CLOEXEC)
    loop, number = "", 0
    try:
        os.ftruncate(memory, STORE)
        loop, number = _attach(memory)
        table = "%s %s N %d" % (_numbers(disk), _numbers(number), CHUNK)
        _ask(_CREATE, name, PREFIX + name)
        try:
            _ask(_LOAD, name, target=(size // SECTOR, "snapshot", table))
            _ask(_SUSPEND, name)  # without a flag: resume
        except OSError:
            _ask(_REMOVE, name)
            raise
    except OSError:
        _detach(loop)
        os.close(memory)
        raise
    return _Made(name, loop, memory)


def _drop(made: _Made) -> None:
    """Raises OSError if something uses it for long."""
    deadline = now() + RELEASED_WITHIN
    while True:
        try:
            _ask(_REMOVE, made.name)
            break
        except OSError as error:
            if error.errno != errno.EBUSY or now() > deadline:
                raise
        time.sleep(0.05)
    _detach(made.loop)
    os.close(made.memory)


def _numbers(device: int) -> str:
    return "%d:%d" % (os.major(device), os.minor(device))


def _attach(memory: int) -> Tuple[str, int]:
    """A free loop device over a file: its path and its number."""
    control = os.open("/dev/loop-control", os.O_RDWR | os.O_CLOEXEC)
    try:
        while True:
            path = "/dev/loop%d" % fcntl.ioctl(control, _LOOP_CTL_GET_FREE)
            loop = os.open(path, os.O_RDWR | os.O_CLOEXEC)
            try:
                fcntl.ioctl(loop, _LOOP_SET_FD, memory)
                return path, os.fstat(loop).st_rdev
            except OSError as error:
                if error.errno != errno.EBUSY:  # somebody else took it
                    raise
            finally:
                os.close(loop)
    finally:
        os.close(control)


def _detach(path: str) -> None:
    with suppress(OSError):
        loop = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            fcntl.ioctl(loop, _LOOP_CLR_FD)
        finally:
            os.close(loop)


def request(name: str, uuid: str = "", target: Tuple[int, str, str] = (0, "", "")) -> bytearray:
    """The argument of an ioctl of device-mapper. ``target`` has the sectors, the type and the parameters of a table
    with one line."""
    sectors, kind, table = target
    line = _TARGET.pack(0, sectors, 0, 0, kind.encode()) + table.encode() + b"\0" if kind else b""
    line += b"\0" * (-len(line) % 8)
    size = _HEAD.size + len(line)
    head = _HEAD.pack(4, 0, 0, size, _HEAD.size, 1 if kind else 0, 0, 0, 0, 0, 0, name.encode(), uuid.encode())
    return bytearray(head + line)


def _ask(number: int, name: str, uuid: str = "", target: Tuple[int, str, str] = (0, "", "")) -> None:
    control = os.open("/dev/mapper/control", os.O_RDWR | os.O_CLOEXEC)
    try:
        fcntl.ioctl(control, _DM | number, request(name, uuid, target), True)
    finally:
        os.close(control)
