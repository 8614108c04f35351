"""One rig is used by one run at a time.

A lease is a set of ``flock`` locks, one for each resource that two runs cannot share. A real rig is locked by the
serial numbers of its disks and the identities of its switches, so that two rig files with one disk exclude each other.
A virtual rig has a bench of its own for every run, so its lease is shared unless it is asked for exclusively.

The kernel releases the locks when their holder dies, however it dies. The lock files stay and do no harm.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import stat
import weakref
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from plugpull.errors import RigError, UsageError
from plugpull.rig.credentials import ADDRESS_KEYS, OPEN_KEYS, without_userinfo
from plugpull.rig.drivers import DriverBook, installed
from plugpull.rig.model import DeclaredSwitch, Rig

SHOWN_KEYS = OPEN_KEYS | ADDRESS_KEYS | {"name"}
"""Keys whose values may be shown in messages, addresses without ``USER:PASSWORD@``."""
_TRIES = 10


def lease_directory() -> Path:
    """The private directory of the lock files, the same one in every environment.

    ``XDG_RUNTIME_DIR`` is not used, because it is set in a login session but not in a cron job, and the two must
    exclude each other.
    """
    return Path(f"/tmp/plugpull-{os.geteuid()}")


def resources(rig: Rig, path: Path, drivers: DriverBook | None = None) -> tuple[str, ...]:
    """What two runs of this rig cannot share, as short texts: disks and switches, or a virtual rig's file.

    ``drivers`` are the kinds of switch, by default those that are installed. Each kind declares which of its keys
    identify a device.
    """
    if rig.dut.kind == "virtual":
        return (f"virtual rig {path.resolve()}",)
    disks = {f"disk with serial number {disk.serial}" for disk in rig.disk}
    book = installed() if drivers is None else drivers
    return tuple(sorted(disks | {_switch_identity(rig, switch, book) for switch in rig.switch}))


def _switch_identity(rig: Rig, switch: DeclaredSwitch, drivers: DriverBook) -> str:
    found = _identity_values(switch, drivers)
    shown = {key: without_userinfo(str(value)) if key in SHOWN_KEYS else None for key, value in found.items()}
    if None in shown.values():
        # A command, for example, may contain a password, and this text goes into messages.
        digest = hashlib.sha256(json.dumps(found, sort_keys=True, default=str).encode()).hexdigest()[:16]
        identity = f"with options {digest}"
    else:
        identity = " ".join(f"{key}={value}" for key, value in sorted(shown.items()))
    # The other machine's hubs and serial ports have the same names as this one's.
    machine = f" on {without_userinfo(rig.dut.host)}" if switch.via == "dut" and rig.dut.host else ""
    return f"{switch.driver} switch {identity or '(the only one)'}{machine}"


def _identity_values(switch: DeclaredSwitch, drivers: DriverBook) -> dict[str, Any]:
    """The values of the keys that identify the physical device, without those that are not given."""
    given: dict[str, Any] = {**switch.options, "name": switch.name}
    try:
        kind = drivers.kind_named(switch.driver)
    except UsageError:  # whoever opens it reports that
        return switch.options
    keys = tuple(switch.options) if kind.identity_keys is None else kind.identity_keys
    fields = kind.options.model_fields
    defaults = {key: fields[key].get_default() for key in keys if key in fields and not fields[key].is_required()}
    return {key: value for key in keys if (value := given.get(key, defaults.get(key))) not in (None, ())}


class Lease:
    """Holds a rig for as long as the ``with`` block runs.

    ``path`` is the rig file's path. ``run_dir`` is shown to a run that finds the rig in use. ``exclusive`` is by
    default True for a real rig and False for a virtual one.

    Entering raises ``RigError`` if another run holds the rig, naming that run, or if the directory of the lock files
    cannot be trusted.
    """

    def __init__(
        self,
        rig: Rig,
        path: Path,
        *,
        run_dir: Path | None = None,
        exclusive: bool | None = None,
        directory: Path | None = None,
    ) -> None:
        self.rig = rig
        self.resources = resources(rig, path)
        self.exclusive = rig.dut.kind != "virtual" if exclusive is None else exclusive
        self._directory = directory or lease_directory()
        self._holder = {"pid": os.getpid(), "rig": rig.rig.name, "run_dir": str(run_dir or "")}
        self._fds: list[int] = []

    def __enter__(self) -> Self:
        _make_private(self._directory)
        self._holder |= {"pid": os.getpid(), "since": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")}
        _close_in_children(self)
        try:
            for resource in self.resources:
                self._fds.append(self._acquire(resource))
        except BaseException:
            self.release()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()

    def release(self) -> None:
        """Release the rig. May be called twice."""
        # Close instead of LOCK_UN: a forked child that closes its copies must not release its parent's locks.
        while self._fds:
            os.close(self._fds.pop())

    def _acquire(self, resource: str) -> int:
        name = hashlib.sha256(resource.encode()).hexdigest()[:32] + ".lock"
        file = self._directory / name
        for _ in range(_TRIES):
            fd = _open(file)
            try:
                if not _try_lock(fd, self.exclusive):
                    raise self._in_use(resource, fd)
                if _is_still(file, fd):  # a cleaner of /tmp may have removed it between open and lock
                    _tell(fd, {**self._holder, "resource": resource}, alone=self.exclusive)
                    return fd
            except BaseException:
                os.close(fd)
                raise
            os.close(fd)
        raise RigError(
            f"the lock file {file} was removed {_TRIES} times", hint=f"find the program that cleans {self._directory}"
        )

    def _in_use(self, resource: str, fd: int) -> RigError:
        holder = _last_holder(fd)
        rig = self.rig.rig.name
        if holder is None:
            return RigError(f"rig {rig} is in use by another process ({resource})", hint="wait until it ends")
        run = f" ({holder['run_dir']})" if holder.get("run_dir") else ""
        other = "" if holder.get("rig") == rig else f" as rig {holder.get('rig')}, which shares its {resource}"
        return RigError(
            f"rig {rig} is in use by pid {holder.get('pid')} since {holder.get('since')}{run}{other}",
            hint=f"wait until that run ends, or end it with: kill {holder.get('pid')}",
        )


def _make_private(directory: Path) -> None:
    """Create the directory, or check that it belongs to this user alone: its parent is open to everyone."""
    try:
        with contextlib.suppress(FileExistsError):
            directory.mkdir(mode=0o700)
        found = directory.lstat()
    except OSError as error:
        raise RigError(
            f"the directory {directory} for lock files cannot be made: {error.strerror}",
            hint=f"make it by hand: mkdir -m 700 {directory}",
        ) from None
    wrong = ""
    if not stat.S_ISDIR(found.st_mode):
        wrong = "is a symbolic link" if stat.S_ISLNK(found.st_mode) else "is not a directory"
    elif found.st_uid != os.geteuid():
        wrong = f"belongs to uid {found.st_uid}, not to you"
    elif stat.S_IMODE(found.st_mode) & 0o077:
        wrong = f"is open to others (mode {stat.S_IMODE(found.st_mode):03o}, not 700)"
    if wrong:
        raise RigError(
            f"{directory}, where lock files are kept, {wrong}",
            hint=f"inspect it and remove it; plugpull creates it again: ls -ld {directory}",
        )


def _open(file: Path) -> int:
    try:
        return os.open(file, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise RigError(f"the lock file {file} cannot be opened: {error.strerror}", hint=f"remove {file}") from None


def _try_lock(fd: int, exclusive: bool) -> bool:
    try:
        fcntl.flock(fd, (fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_still(file: Path, fd: int) -> bool:
    try:
        return os.path.samestat(file.lstat(), os.fstat(fd))
    except FileNotFoundError:
        return False


def _tell(fd: int, holder: dict[str, Any], *, alone: bool) -> None:
    """Write the holder into the lock file. Holders that share a lock append; others are shown the last one."""
    line = json.dumps(holder).encode() + b"\n"
    if alone or os.fstat(fd).st_size > 1 << 16:
        os.ftruncate(fd, 0)
    os.pwrite(fd, line, os.fstat(fd).st_size)


def _last_holder(fd: int) -> dict[str, Any] | None:
    """The last holder in the lock file that is alive, or None."""
    lines = os.pread(fd, 1 << 17, 0).decode(errors="replace").splitlines()
    for line in reversed(lines):
        try:
            holder = json.loads(line)
            os.kill(int(holder["pid"]), 0)
        except (ValueError, KeyError, TypeError, ProcessLookupError):
            continue
        except PermissionError:  # alive, and somebody else's
            pass
        return dict(holder)
    return None


def _close_in_children(lease: Lease) -> None:
    """Release the locks in forked children, which would keep them after their holder died. (``exec`` closes them.)"""
    held = weakref.ref(lease)

    def close() -> None:
        if (lease_in_child := held()) is not None:
            lease_in_child.release()

    os.register_at_fork(after_in_child=close)
