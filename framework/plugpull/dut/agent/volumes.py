"""Filesystems made and mounted for a scenario, always through a descriptor whose disk was proved to be scratch."""

from __future__ import annotations

import ctypes
import os
import subprocess
import tempfile
from contextlib import suppress
from typing import Any, Dict, List

from .disks import Disk, Refused, open_scratch, read_attribute
from .wire import now

_MNT_DETACH = 2  # include/linux/fs.h


class Volumes:
    """What this agent has mounted, by the disk's name in the rig."""

    def __init__(self) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._mounted: Dict[str, str] = {}

    def mkfs(self, wanted: Disk, fstype: str, timeout: float) -> Dict[str, Any]:
        fd = open_scratch(wanted)
        # mkfs opens the disk itself, exclusively; ours must not be the holder that it finds.
        plain = os.open("/proc/self/fd/%d" % fd, os.O_RDWR)
        os.close(fd)
        begun = now()
        try:
            done = subprocess.run(
                ["mkfs." + fstype, "-q", "-F", "/proc/self/fd/%d" % plain],
                pass_fds=(plain,),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=timeout,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return {
                "ok": False,
                "seconds": now() - begun,
                "detail": "mkfs.%s was not done after %g s" % (fstype, timeout),
            }
        except FileNotFoundError:
            return {"ok": False, "seconds": 0.0, "detail": "mkfs.%s is not installed on the DUT" % fstype}
        finally:
            os.close(plain)
        return {
            "ok": done.returncode == 0,
            "seconds": now() - begun,
            "detail": done.stdout.decode("utf-8", "replace")[-500:],
        }

    def mount(self, disk: str, wanted: Disk, fstype: str) -> Dict[str, Any]:
        fd = open_scratch(wanted)
        plain = os.open("/proc/self/fd/%d" % fd, os.O_RDONLY)
        os.close(fd)
        target = tempfile.mkdtemp(prefix="plugpull-")
        begun = now()
        try:
            failed = self._libc.mount(("/proc/self/fd/%d" % plain).encode(), target.encode(), fstype.encode(), 0, None)
            error = ctypes.get_errno()
        finally:
            os.close(plain)
        if failed:
            os.rmdir(target)
            return {"ok": False, "seconds": now() - begun, "detail": os.strerror(error)}
        self._mounted[disk] = target
        return {"ok": True, "seconds": now() - begun, "detail": target}

    def umount(self, disk: str) -> Dict[str, Any]:
        """An ordinary umount. What holds it, if anything does, is named."""
        target = self._mounted.get(disk)
        if target is None:
            return {"ok": False, "seconds": 0.0, "detail": "not mounted"}
        begun = now()
        if self._libc.umount2(target.encode(), 0):
            error = os.strerror(ctypes.get_errno())
            return {
                "ok": False,
                "seconds": now() - begun,
                "detail": "%s; held by %s" % (error, holders(target) or "nobody visible"),
            }
        del self._mounted[disk]
        os.rmdir(target)
        return {"ok": True, "seconds": now() - begun, "detail": ""}

    def path_of(self, disk: str) -> str:
        if disk not in self._mounted:
            raise Refused("%s is not mounted by this run" % disk)
        return self._mounted[disk]

    def release_all(self) -> None:
        """Lazily unmount what is left, on the way out."""
        for disk, target in list(self._mounted.items()):
            self._libc.umount2(target.encode(), _MNT_DETACH)
            with suppress(OSError):  # one that could not be detached must not keep the others from it
                os.rmdir(target)
            del self._mounted[disk]


def holders(target: str) -> List[str]:
    """Processes with something open below ``target``: what ``fuser -m`` would say."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            links = [os.readlink("/proc/%s/fd/%s" % (pid, fd)) for fd in os.listdir("/proc/%s/fd" % pid)]
            links.append(os.readlink("/proc/%s/cwd" % pid))
        except OSError:
            continue
        if any(link == target or link.startswith(target + "/") for link in links):
            found.append("%s (pid %s)" % (read_attribute("/proc", pid, "comm"), pid))
    return found
