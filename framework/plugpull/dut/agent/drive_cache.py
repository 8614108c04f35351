"""The write cache of a drive, switched off and on by MODE SELECT, and restored however the agent ends.

The kernel's sd driver does that for whoever writes to ``cache_type`` (Documentation/ABI/testing/sysfs-class-scsi_disk;
cache_type_store in drivers/scsi/sd.c). A drive whose parameters can be saved saves them, so that they survive the loss
of its power: a shell that outlives the agent restores them.
"""

from __future__ import annotations

import glob
import os
import subprocess
import threading
from contextlib import suppress
from typing import Any, Dict, Tuple

from .attributes import read_attribute, resolved
from .disks import Disk, Refused, open_scratch

ON, OFF = "write back", "write through"
_GUARD = """trap '' HUP INT TERM
cat
printf '%s' "$1" >"$2"
"""
"""Writes $1 to the file $2 when its standard input ends."""
RESTORED_WITHIN = 30.0

Changed = Tuple[str, "subprocess.Popen[bytes]"]


class DriveCaches:
    """The write caches that were changed, by serial number."""

    def __init__(self) -> None:
        self._changed: Dict[str, Changed] = {}
        self._lock = threading.Lock()

    def read(self, disk: Disk) -> str:
        """What the kernel knows of a disk's cache, such as "write back"; empty if it knows of none."""
        path = _file(disk)
        return read_attribute(path) if path else ""

    def set(self, disk: Disk, on: bool) -> Dict[str, Any]:
        """Switch the write cache of a scratch disk. ``ok`` is false if the drive did not do it, ``detail`` says why.
        Raises Refused for any other disk."""
        fd = open_scratch(disk)
        try:
            path, wanted = _file(disk), ON if on else OFF
            before = read_attribute(path) if path else ""
            if not before:
                return {"ok": False, "detail": "the kernel knows of no cache that it could switch"}
            if before != wanted:
                self._remember(str(disk["serial"]), path, before)
                try:
                    _write(path, wanted)
                except OSError as error:
                    return {"ok": False, "detail": "MODE SELECT failed: %s" % error.strerror}
            now = read_attribute(path)
            return {"ok": now == wanted, "detail": "" if now == wanted else "the drive reports %r afterwards" % now}
        finally:
            os.close(fd)

    def _remember(self, serial: str, path: str, before: str) -> None:
        with self._lock:
            if serial not in self._changed:
                guard = subprocess.Popen(
                    ["/bin/sh", "-c", _GUARD, "sh", before, path],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    start_new_session=True,
                    cwd="/",
                )
                self._changed[serial] = (path, guard)

    def restore(self) -> None:
        """Give every cache its first state back."""
        with self._lock:
            changed, self._changed = self._changed, {}
        for _, guard in changed.values():
            assert guard.stdin is not None
            with suppress(OSError):
                guard.stdin.close()
            with suppress(subprocess.TimeoutExpired):
                guard.wait(RESTORED_WITHIN)


def _file(disk: Disk) -> str:
    """The file by which the cache is switched; empty if this is not a SCSI disk. Resolved, because the kernel name may
    lead to another disk when it is restored."""
    kname = str(disk["kname"])
    if "/" in kname:
        raise Refused("%r is not a kernel name" % kname)
    found = glob.glob(os.path.join("/sys/block", kname, "device", "scsi_disk", "*", "cache_type"))
    return resolved(found[0]) if len(found) == 1 else ""


def _write(path: str, value: str) -> None:
    with open(path, "w") as file:
        file.write(value)
