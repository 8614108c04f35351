"""Names the processes that have a block device open, for whoever is refused it."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from typing import List


def in_use(kname: str, because: str, proc: str = "/proc") -> str:
    """Why a device could not be claimed. What is mounted from it, or lies on it, looks the same to
    the kernel as a process that claimed it, so both are named."""
    found = users_of(os.path.join("/dev", kname), proc)
    which = ". %s: open in %s" % (kname, ", ".join(found)) if found else ""
    return "%s is in use: %s%s" % (kname, because, which)


def users_of(path: str, proc: str = "/proc") -> List[str]:
    """The processes that have the device open: "fio (process 312)", in the order of their numbers."""
    try:
        number = os.stat(path).st_rdev
        running = sorted(int(name) for name in os.listdir(proc) if name.isdigit())
    except OSError:
        return []
    return [_named(proc, pid) for pid in running if _has_open(os.path.join(proc, str(pid), "fd"), number)]


def _has_open(directory: str, number: int) -> bool:
    with suppress(OSError):  # it ended, or belongs to somebody else
        for name in os.listdir(directory):
            with suppress(OSError):
                status = os.stat(os.path.join(directory, name))
                if status.st_rdev == number and (stat.S_ISBLK(status.st_mode) or stat.S_ISCHR(status.st_mode)):
                    return True
    return False


def _named(proc: str, pid: int) -> str:
    name = "a process"
    with suppress(OSError), open(os.path.join(proc, str(pid), "comm"), encoding="utf-8", errors="replace") as file:
        name = file.read().strip()
    return "%s (process %d)" % (name, pid)
