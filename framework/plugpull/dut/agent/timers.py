"""The kernel's own timeouts, shortened while a scenario runs, so that what they report comes within the record.

A hung task is reported after 120 s and a SCSI command is given up after 30 s by default: long after most scenarios are
over. The values below bring both within half a minute and stay far above what a slow, healthy machine needs. The old
values are restored when the agent ends, however it ends: a shell that outlives it waits for the end of a pipe.
"""

from __future__ import annotations

import errno
import os
import subprocess
import threading
from contextlib import suppress
from typing import Dict, List, Optional, Set, Tuple

from .attributes import read_attribute, resolved
from .disks import Disk, all_disks

GLOBAL: Tuple[Tuple[str, str], ...] = (
    # Documentation/admin-guide/sysctl/kernel.rst. A task is reported after 20 to 25 s without a context switch.
    ("proc/sys/kernel/hung_task_timeout_secs", "20"),
    ("proc/sys/kernel/hung_task_check_interval_secs", "5"),
    ("proc/sys/kernel/hung_task_warnings", "-1"),
    # Soft lockups are reported after twice this.
    ("proc/sys/kernel/watchdog_thresh", "8"),
    ("sys/module/rcupdate/parameters/rcu_cpu_stall_timeout", "15"),
    ("sys/module/workqueue/parameters/watchdog_thresh", "15"),
    # Milliseconds for the first descriptor of a device that was plugged in (drivers/usb/core/hub.c).
    ("sys/module/usbcore/parameters/initial_descriptor_timeout", "3000"),
)
"""Path below / and value in the unit of the kernel. What a kernel does not have is left out."""
WITHOUT_LIMIT = "-1"
"""Of hung_task_warnings: report every one, not the first ten."""
DISK: Tuple[Tuple[str, str], ...] = (("timeout", "15"), ("eh_timeout", "5"))
"""Seconds, in the directory of a SCSI device: for one command, and for one command of the error handler."""
HOST: Tuple[Tuple[str, str], ...] = (("eh_deadline", "30"),)
"""Seconds, in the directory of a SCSI host: how long the error handler may try before it resets the host."""

SETTLING = "sys/module/usb_storage/parameters/delay_use"
"""Seconds that usb-storage waits before it looks for units on a new device (drivers/usb/storage/usb.c)."""

_GUARD = """trap '' HUP INT TERM
all=
while read -r value path; do all="$value $path
$all"; done
printf '%s' "$all" | while read -r value path; do { echo "$value" >"$path"; } 2>/dev/null; done
"""
"""Restores, newest first, what it was given on standard input, when that ends."""
RESTORED_WITHIN = 5.0

Change = Tuple[str, str, str]
"""(path, value before, value after)"""


class Timers:
    """What was changed, and the shell that restores it."""

    def __init__(self, root: str = "/") -> None:
        self._root = root
        self._serials: Set[str] = set()
        self._before: Dict[str, str] = {}
        self._guard: Optional["subprocess.Popen[bytes]"] = None
        self._guarded = True
        self._lock = threading.Lock()

    def shorten(self, serials: List[str], guarded: bool) -> Dict[str, object]:
        """Shorten the timers of the machine, and those of each disk with one of these serial numbers, now and whenever
        it comes back. Not ``guarded``: nothing has to be restored, because the DUT is thrown away."""
        with self._lock:
            self._serials, self._guarded = set(serials), guarded
        return self._set([(os.path.join(self._root, path), value) for path, value in GLOBAL], self._present())

    def set_timeout(self, device: str, seconds: str) -> Dict[str, object]:
        """Give the commands of one disk this timeout, be it shorter or longer. ``device`` is its SCSI directory."""
        path = os.path.join(device, "timeout")
        return self._change(path, read_attribute(path), seconds)

    def let_settle(self, seconds: str) -> Dict[str, object]:
        """Have usb-storage wait so long with each device that comes. Nothing is changed where it is not loaded."""
        path = os.path.join(self._root, SETTLING)
        before = read_attribute(path)
        return self._change(path, "" if before == seconds else before, seconds)

    def _change(self, path: str, before: str, value: str) -> Dict[str, object]:
        """Write one value. Nothing if there was none ``before``: what it belongs to is gone, or was never there."""
        if not before:
            return {"changed": [], "failed": {}}
        try:
            self._write(path, before, value)
        except OSError as error:
            return {"changed": [], "failed": {path: error.strerror or str(error)}}
        return {"changed": [(path, before, value)], "failed": {}}

    def _present(self) -> List[Tuple[str, str]]:
        return [one for disk in all_disks(os.path.join(self._root, "sys")) for one in self._of(disk)]

    def attached(self, disk: Disk) -> Dict[str, object]:
        """Shorten the timers of a disk that was plugged in, if it is one of the bench."""
        return self._set(self._of(disk))

    def _of(self, disk: Disk) -> List[Tuple[str, str]]:
        if disk["serial"] not in self._serials:
            return []
        # Resolved: /sys/block/sdb may lead to another disk when the old values are restored.
        device = resolved(os.path.join(disk["sysfs"], "device"))
        host = _host_of(device, os.path.join(self._root, "sys"))
        return [(os.path.join(device, name), value) for name, value in DISK] + [
            (os.path.join(host, name), value) for name, value in HOST if host
        ]

    def _set(self, *groups: List[Tuple[str, str]]) -> Dict[str, object]:
        changed: List[Change] = []
        failed: Dict[str, str] = {}
        for path, value in (one for group in groups for one in group):
            before = read_attribute(path)
            if before and not _short_enough(path, before, value):
                try:
                    self._write(path, before, value)
                    changed.append((path, before, value))
                except OSError as error:
                    # A host without a reset of its own takes no deadline (drivers/scsi/scsi_sysfs.c).
                    if error.errno != errno.EINVAL or not path.endswith("/eh_deadline"):
                        failed[path] = error.strerror or str(error)
        return {"changed": changed, "failed": failed}

    def _write(self, path: str, before: str, value: str) -> None:
        with self._lock:
            if path not in self._before:
                self._before[path] = before
                self._remember(path, before)
        with open(path, "w") as file:
            file.write(value)

    def _remember(self, path: str, before: str) -> None:
        if not self._guarded:
            return
        if self._guard is None:
            self._guard = subprocess.Popen(
                ["/bin/sh", "-c", _GUARD],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
                cwd="/",
            )
        assert self._guard.stdin is not None
        self._guard.stdin.write(("%s %s\n" % (before, path)).encode())
        self._guard.stdin.flush()

    def restore(self) -> Dict[str, object]:
        """Restore every value that is still there to be restored, and stop shortening."""
        with self._lock:
            guard, self._guard = self._guard, None
            before, self._before = self._before, {}
            self._serials = set()
        if guard is not None and guard.stdin is not None:
            with suppress(OSError):
                guard.stdin.close()
            with suppress(subprocess.TimeoutExpired):
                guard.wait(RESTORED_WITHIN)
        left = {path: read_attribute(path) for path, value in before.items() if guard is not None}
        changed = [(path, "", value) for path, value in before.items() if left.get(path) == value]
        failed = {path: "it is %s" % now for path, now in left.items() if now not in ("", before[path])}
        return {"changed": changed, "failed": failed}


def _host_of(device: str, sys: str) -> str:
    """``.../host3/target3:0:0/3:0:0:0`` -> the directory of SCSI host 3 in its class; empty for other disks."""
    for part in device.split("/"):
        if part.startswith("host") and part[4:].isdigit():
            return resolved(os.path.join(sys, "class/scsi_host", part))
    return ""


def _short_enough(path: str, before: str, value: str) -> bool:
    """Whether a value may stay because it is shorter. 0, ``off`` and a limited number of warnings are not shorter."""
    if before == value:
        return True
    if value == WITHOUT_LIMIT or not before.isdigit():
        return False
    return 0 < int(before) < int(value)
