"""Makes and mounts filesystems for a scenario, always through a descriptor whose disk was proved to be scratch.

What is written into one goes through a descriptor of the mount's root, never through the name of its directory. When a
disk disappears, somebody else may unmount it (systemd does, when the device of a mount unit goes away). The name then
leads to an empty directory of the DUT's own system, and the descriptor still leads to the filesystem on the disk.

The UUID of a filesystem is read when it is made. What is mounted, and what is written into, must have that UUID.
"""

from __future__ import annotations

import ctypes
import os
import re
import stat
import subprocess
import tempfile
import threading
from contextlib import suppress
from typing import Any, Callable, Dict, Iterator, List, NamedTuple

from .attributes import read_attribute, read_lines, resolved
from .checkers import maker, run_checker
from .disks import Disk, Refused, refuse_other_filesystem, size_of
from .overlay import open_volume as open_scratch
from .signatures import Unreadable, filesystem_on
from .wire import now

_MNT_DETACH = 2  # include/linux/fs.h


class Mounted(NamedTuple):
    """A filesystem that this agent mounted."""

    target: str
    root: int
    """A descriptor of its root directory; -1 while it is being unmounted."""
    device: int
    """st_dev of the root directory."""
    fstype: str = ""
    uuid: str = ""
    """The filesystem that it is; empty if it was not mounted from a disk."""
    disk: int = 0
    """Number of the block device that it was mounted from."""


class Volumes:
    """What this agent has mounted, by the disk's name in the rig. ``begun`` is called with that name and "mount" or
    "umount" right before the system call."""

    def __init__(self, begun: Callable[[str, str], None] = lambda disk, step: None) -> None:
        self._begun = begun
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._mounted: Dict[str, Mounted] = {}
        self._lock = threading.Lock()

    def mkfs(self, wanted: Disk, fstype: str, timeout: float) -> Dict[str, Any]:
        fd = open_scratch(wanted)
        # mkfs opens the disk itself, exclusively; ours must not be the holder that it finds.
        plain = os.open("/proc/self/fd/%d" % fd, os.O_RDWR)
        os.close(fd)
        begun = now()
        try:
            done = subprocess.run(
                [*maker(fstype), "/proc/self/fd/%d" % plain],
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
                "detail": "%s was not done after %g s" % (maker(fstype)[0], timeout),
            }
        except FileNotFoundError:
            return {"ok": False, "seconds": 0.0, "detail": "%s is not installed on the DUT" % maker(fstype)[0]}
        else:
            return self._made(plain, fstype, done, now() - begun)
        finally:
            os.close(plain)

    @staticmethod
    def _made(disk: int, fstype: str, done: subprocess.CompletedProcess[bytes], seconds: float) -> Dict[str, Any]:
        """What mkfs did, with the UUID of the filesystem that it made."""
        detail, uuid = done.stdout.decode("utf-8", "replace")[-500:], ""
        if done.returncode == 0:
            try:
                uuid = filesystem_on(disk, size_of(disk), fstype)
                detail = detail if uuid else "%s made no filesystem with a UUID" % maker(fstype)[0]
            except (Unreadable, OSError) as why:
                detail = "the UUID of the new filesystem cannot be found out: %s" % why
        return {"ok": bool(uuid), "seconds": seconds, "detail": detail, "uuid": uuid}

    def holds(self, wanted: Disk, fstype: str) -> str:
        """The UUID of the filesystem of this type on a scratch disk; empty if there is none. Raises Refused for another
        disk, and if it cannot be read."""
        fd = open_scratch(wanted)
        try:
            return filesystem_on(fd, size_of(fd), fstype)
        except (Unreadable, OSError) as why:
            raise Refused("which filesystem is on %s cannot be found out: %s" % (wanted["kname"], why)) from None
        finally:
            os.close(fd)

    def check(self, wanted: Disk, fstype: str, uuid: str, timeout: float, repair: bool) -> Dict[str, Any]:
        """Check the unmounted filesystem with this UUID without changing it, or repair it. Raises Refused for any
        other."""
        fd = open_scratch(wanted)
        try:
            refuse_other_filesystem(fd, str(wanted["kname"]), fstype, uuid)
            plain = os.open("/proc/self/fd/%d" % fd, os.O_RDWR if repair else os.O_RDONLY)
        finally:
            os.close(fd)  # a checker that opens the disk exclusively must not find us
        try:
            return run_checker(fstype, plain, timeout, repair)
        finally:
            os.close(plain)

    def mount(self, disk: str, wanted: Disk, fstype: str, uuid: str) -> Dict[str, Any]:
        """Mount the filesystem with this UUID, which ``mkfs`` returned. Raises Refused for any other."""
        fd = open_scratch(wanted)
        try:
            refuse_other_filesystem(fd, str(wanted["kname"]), fstype, uuid)
        except BaseException:
            os.close(fd)
            raise
        plain = os.open("/proc/self/fd/%d" % fd, os.O_RDONLY)
        os.close(fd)
        target = tempfile.mkdtemp(prefix="plugpull-")
        self._begun(disk, "mount")
        begun = now()
        try:
            failed = self._libc.mount(("/proc/self/fd/%d" % plain).encode(), target.encode(), fstype.encode(), 0, None)
            error = ctypes.get_errno()
            number = os.fstat(plain).st_rdev
        finally:
            os.close(plain)
        if failed:
            os.rmdir(target)
            return {"ok": False, "seconds": now() - begun, "detail": os.strerror(error), "errno": error}
        try:
            mounted = open_root(target, number)
        except Refused as refusal:
            self._libc.umount2(target.encode(), _MNT_DETACH)
            return {"ok": False, "seconds": now() - begun, "detail": str(refusal)}
        with self._lock:
            self._mounted[disk] = mounted._replace(fstype=fstype, uuid=uuid, disk=number)
        return {"ok": True, "seconds": now() - begun, "detail": target}

    def umount(self, disk: str) -> Dict[str, Any]:
        """An ordinary umount. What holds it, if anything does, is named."""
        with self._lock:
            mounted = self._mounted.get(disk)
            if mounted is None:
                return {"ok": False, "seconds": 0.0, "detail": "not mounted", "mounted": False}
            # A descriptor of its root would hold it like any other. The directory is opened again if it stays mounted.
            self._close(disk, mounted)
        self._begun(disk, "umount")
        begun, target = now(), mounted.target
        if self._libc.umount2(target.encode(), 0):
            error = os.strerror(ctypes.get_errno())
            with self._lock, suppress(Refused):
                self._mounted[disk] = mounted._replace(root=open_root(target, mounted.device).root)
            held = ", ".join(holders(target)) or "nobody visible"
            return {"ok": False, "seconds": now() - begun, "detail": "%s; held by %s" % (error, held)}
        with self._lock:
            del self._mounted[disk]
        os.rmdir(target)
        return {"ok": True, "seconds": now() - begun, "detail": ""}

    def open(self, disk: str, uuid: str = "") -> int:
        """A descriptor of the root of the filesystem that is mounted for ``disk``, for writing into it.

        Raises Refused when it is not mounted by this run, or not any more, or has another UUID than ``uuid`` by now.
        """
        with self._lock:
            mounted = self._mounted.get(disk)
            if mounted is None or mounted.root < 0:
                raise Refused("%s is not mounted by this run" % disk)
            if uuid != mounted.uuid:
                raise Refused(
                    "the filesystem %s is mounted for %s, not %s"
                    % (mounted.uuid or "without a UUID", disk, uuid or "any")
                )
            if mounted.uuid:
                _refuse_changed(mounted)
            os.close(open_root(mounted.target, mounted.device).root)
            return os.dup(mounted.root)

    def release_all(self) -> None:
        """Lazily unmount what is left, on the way out."""
        with self._lock:
            for disk, mounted in list(self._mounted.items()):
                self._close(disk, mounted)
                self._libc.umount2(mounted.target.encode(), _MNT_DETACH)
                with suppress(OSError):  # one that could not be detached must not keep the others from it
                    os.rmdir(mounted.target)
                del self._mounted[disk]

    def _close(self, disk: str, mounted: Mounted) -> None:
        if mounted.root >= 0:
            os.close(mounted.root)
        self._mounted[disk] = mounted._replace(root=-1)


def _refuse_changed(mounted: Mounted) -> None:
    """Refuse a mounted filesystem whose disk is gone or holds another UUID by now."""
    number = "%d:%d" % (os.major(mounted.disk), os.minor(mounted.disk))
    name = "/dev/" + os.path.basename(resolved("/sys/dev/block/" + number))
    try:
        fd = os.open(name, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise Refused("the disk of the filesystem at %s is gone: %s" % (mounted.target, error.strerror)) from None
    try:
        status = os.fstat(fd)
        if not stat.S_ISBLK(status.st_mode) or status.st_rdev != mounted.disk:
            raise Refused("%s is not the disk that %s was mounted from" % (name, mounted.target))
        refuse_other_filesystem(fd, name, mounted.fstype, mounted.uuid)
    finally:
        os.close(fd)


def open_root(target: str, device: int) -> Mounted:
    """Open the directory ``target`` and prove on the descriptor that a filesystem on ``device`` is mounted there.

    ``device`` is the number of the block device, or what st_dev of the filesystem was. Some filesystems (btrfs) have
    numbers of their own that belong to no device, with major number 0: of those it is proved that one is mounted at
    ``target`` and not at a directory above. Raises Refused.
    """
    try:
        # O_PATH: a filesystem that was shut down by errors lets nobody open its directories in the ordinary way.
        root = os.open(target, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        raise Refused("the filesystem at %s cannot be reached: %s" % (target, error.strerror)) from None
    found = os.fstat(root).st_dev
    anonymous = os.major(found) == 0 and (os.major(device) != 0 or found == device)
    if found != device and not (anonymous and mount_point(root) == target):
        os.close(root)
        raise Refused("no filesystem of this run is mounted at %s any more" % target)
    return Mounted(target, root, found)


def mount_point(fd: int, proc: str = "/proc") -> str:
    """Where the filesystem behind a descriptor is mounted (proc_pid_fdinfo(5), mnt_id; proc_pid_mountinfo(5)); empty if
    it is not."""
    fields = (line.partition(":") for line in read_lines(proc, "self/fdinfo/%d" % fd))
    number = {key: value.strip() for key, _, value in fields}.get("mnt_id", "")
    for line in read_lines(proc, "self/mountinfo"):
        words = line.split()
        if len(words) > 4 and words[0] == number:
            return re.sub(r"\\([0-7]{3})", lambda m: chr(int(m.group(1), 8)), words[4])
    return ""


def holders(target: str) -> List[str]:
    """Processes with something open below ``target``: what ``fuser -m`` would say."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        if any(link == target or link.startswith(target + "/") for link in _open_in("/proc/" + pid)):
            found.append("%s (pid %s)" % (read_attribute("/proc", pid, "comm"), pid))
    return found


def _open_in(process: str) -> Iterator[str]:
    """The files that a process has open, and its current directory."""
    with suppress(OSError):
        yield os.readlink(process + "/cwd")
        for fd in os.listdir(process + "/fd"):
            with suppress(OSError):  # closed meanwhile
                yield os.readlink("%s/fd/%s" % (process, fd))
