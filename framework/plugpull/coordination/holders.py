"""Who uses rigs of this machine now, and what killed runs left off: read from lock files and journals, nothing changed.

Whether a file is locked is read from ``/proc/locks`` (proc(5)) and not tried: a lock that is taken for a moment could
make a run fail that begins in that moment.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from plugpull.coordination.journal import entries, machine_id, still_off
from plugpull.coordination.lease import lease_directory

MOST = 1 << 17
"""Bytes of a lock file that are read."""
LOCKS = Path("/proc/locks")


@dataclass(frozen=True)
class LeaseHolder:
    """A run that holds a resource. ``since`` is a time in UTC; ``resource`` is as in ``lease.resources``."""

    pid: int
    rig: str
    run: str
    since: str
    resource: str


@dataclass(frozen=True)
class PortLeftOff:
    """A port that a killed run turned off and nobody has restored. ``run`` is its directory."""

    switch: str
    port: str
    run: str


def lease_holders(directory: Path | None = None, locks: Path = LOCKS) -> tuple[LeaseHolder, ...]:
    """Every resource that a living run of this user holds."""
    folder, locked = directory or lease_directory(), _locked(locks)
    with suppress(OSError):
        if folder.lstat().st_uid == os.geteuid() and stat.S_ISDIR(folder.lstat().st_mode):
            return tuple(one for file in sorted(folder.glob("*.lock")) for one in _of_file(file, locked))
    return ()


def _of_file(file: Path, locked: frozenset[tuple[int, int]] | None) -> Iterator[LeaseHolder]:
    try:
        fd = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return
    with os.fdopen(fd, "rb") as opened:
        inode = os.fstat(fd).st_ino
        text = opened.read(MOST)
    newest = {}
    for line in text.splitlines():
        with suppress(ValueError, RecursionError, KeyError, TypeError):
            found = json.loads(line)
            newest[int(found["pid"])] = found
    for pid, found in newest.items():
        if _holds(pid, inode, locked):
            words = [str(found.get(key, "")) for key in ("rig", "run_dir", "since", "resource")]
            yield LeaseHolder(pid, *words)


def ports_left_off(root: Path, locks: Path = LOCKS) -> tuple[PortLeftOff, ...]:
    """The ports in the journals of this machine's killed runs, which the next start of plugpull restores."""
    locked = _locked(locks)
    return tuple(one for path in sorted(root.glob("*.jsonl")) for one in _left_by(path, locked))


def _left_by(path: Path, locked: frozenset[tuple[int, int]] | None) -> Iterator[PortLeftOff]:
    with suppress(OSError):
        found = path.lstat()
        if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid():
            return
        begun: dict[str, Any] = next((entry for entry in entries(path) if "run" in entry), {})
        pid, machine = begun.get("pid"), begun.get("machine", machine_id())
        if machine != machine_id() or (isinstance(pid, int) and _holds(pid, found.st_ino, locked)):
            return
        for switch, port in still_off(path):
            yield PortLeftOff(switch, port, str(begun.get("run", "")))


def _locked(locks: Path) -> frozenset[tuple[int, int]] | None:
    """The process and the inode of every flock lock; None if that cannot be read."""
    try:
        lines = locks.read_text("ascii", "replace").splitlines()
    except OSError:
        return None
    held = set()
    for line in lines:
        words = line.split()
        with suppress(ValueError, IndexError):
            if words[1] == "FLOCK":
                held.add((int(words[4]), int(words[5].rpartition(":")[2])))
    return frozenset(held)


def _holds(pid: int, inode: int, locked: frozenset[tuple[int, int]] | None) -> bool:
    """Whether a process lives and has locked a file. Without ``/proc/locks``, that it lives has to do."""
    if locked is not None:
        return (pid, inode) in locked
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except OSError:
        return False
    return pid > 0
