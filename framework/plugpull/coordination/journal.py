"""What a run must undo, written to disk, so that the next start can undo it if the run is killed.

A journal is a file of JSON lines that its run keeps locked (``flock``) while it lives. A journal without a lock belongs
to a run that died without cleaning up, or that could not turn an outlet on again. Processes need no entry: every
process of a run inherits the journal's path in its environment (``PLUGPULL_JOURNAL``), from its very beginning.

Before an outlet is turned off, its entry is on the disk (``fsync``). If that is impossible, nothing is switched.
Several machines may share a home directory: each journal names its machine, and only that machine undoes it. A rig that
is a place of labgrid may have another user by then: its ports are only restored by those who hold the place.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from plugpull.coordination.processes import end_processes
from plugpull.errors import RigError
from plugpull.plain import clean_line
from plugpull.setup.place import lock

VARIABLE = "PLUGPULL_JOURNAL"
MOST = 64 << 20
"""Bytes of a journal that are read. A run writes some hundred bytes for each edge."""


class Journal:
    """The journal of this run. ``close`` removes it, unless an outlet is still off: the next start tries again."""

    def __init__(self, root: Path, run_dir: Path, place: str = "") -> None:
        """``place``: the rig's place of labgrid, if it is one."""
        self.id = secrets.token_hex(4)
        self.path = root / f"{self.id}.jsonl"
        self._torn = False
        try:
            root.mkdir(mode=0o700, parents=True, exist_ok=True)
            fd = lock(str(self.path))
        except OSError as error:
            raise _cannot_write(self.path, error) from None
        assert fd is not None
        self._fd = fd
        self._before = os.environ.get(VARIABLE)
        os.environ[VARIABLE] = str(self.path)
        host = os.uname().nodename
        try:
            begun = {"run": str(run_dir), "pid": os.getpid(), "machine": machine_id(), "host": host}
            self._write(begun | ({"place": place} if place else {}), durably=True)
            _sync_directory(root)
        except BaseException:
            self.close()
            raise

    def _write(self, entry: dict[str, Any], *, durably: bool) -> None:
        """Append an entry, all of it; ``durably``: it is on the disk on return. Raises RigError."""
        line = json.dumps(entry).encode() + b"\n"
        # After an incomplete entry, the next one starts on a new line.
        data = memoryview(b"\n" + line if self._torn else line)
        self._torn = True
        try:
            while data:
                data = data[os.write(self._fd, data) :]
            self._torn = False
            if durably:
                os.fsync(self._fd)
        except OSError as error:
            raise _cannot_write(self.path, error) from None

    def directory(self, parent: Path) -> Path:
        """Make a private directory below ``parent`` that will be removed with the run, however it ends."""
        path = parent / f"plugpull-{self.id}-{secrets.token_hex(3)}"
        self._write({"directory": str(path)}, durably=False)
        path.mkdir(mode=0o700)
        return path

    def outlet(self, switch: dict[str, Any], dut: dict[str, Any], folder: Path, port: str, on: bool) -> None:
        """Record that a port of a real switch is about to go off, or is on again.

        ``switch`` and ``dut`` are the rig file's tables, which the next start needs to reach the switch.
        Raises RigError if the entry cannot be written: then do not turn the port off.
        """
        entry = {"outlet": port, "on": on, "switch": switch, "dut": dut, "folder": str(folder.absolute())}
        self._write(entry, durably=not on)

    def close(self) -> None:
        if self._before is None:
            os.environ.pop(VARIABLE, None)
        else:
            os.environ[VARIABLE] = self._before
        with suppress(OSError):  # the next start tries again
            if not still_off(self.path):
                self.path.unlink(missing_ok=True)
        os.close(self._fd)


def machine_id() -> str:
    """An identifier of this machine, for journals only: machine-id(5) must not be passed on unhashed.

    If there is no machine id, as in some containers, it is made from the host's name.
    """
    try:
        text = Path("/etc/machine-id").read_text().strip()
    except (OSError, ValueError):
        text = ""
    return hashlib.sha256(f"plugpull {text or os.uname().nodename}".encode()).hexdigest()[:16]


def _sync_directory(path: Path) -> None:
    """Put the name of a new journal on the disk too."""
    with suppress(OSError):  # not every filesystem supports it
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


def _cannot_write(path: Path, error: OSError) -> RigError:
    return RigError(
        f"cannot write the journal {path}: {error.strerror}; without it, a port would stay off if plugpull were killed",
        hint="make room on that file system, or set PLUGPULL_CACHE to a directory on another one",
    )


Restore = Callable[[dict[str, Any], dict[str, Any], Path, str], None]
"""Turns a port on: (switch table, dut table, folder of the rig file, port). Raises PlugpullError."""


def sweep(root: Path, report: Callable[[str], None], restore: Restore | None = None, place: str = "") -> int:
    """Clean up after killed runs, and return their number. ``report`` gets sentences about each. ``place`` is the place
    of labgrid that the caller holds.

    A journal is kept for the next start if a port could not be restored, if it cannot be read, or if it belongs to
    another user, machine or place. The other journals are undone all the same.
    """
    count = 0
    for path in sorted(root.glob("*.jsonl")) if root.is_dir() else []:
        try:
            count += _sweep_one(path, lambda text: report(clean_line(text)), restore, place)
        except Exception as error:  # a damaged journal may make anything fail
            report(clean_line(f"the journal {path} could not be undone: {error!r}; remove it if nothing is off"))
    return count


def _sweep_one(path: Path, report: Callable[[str], None], restore: Restore | None, held: str) -> bool:
    found = path.lstat()
    if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid():
        report(f"the journal {path} is skipped: it is not a file of this user (uid {found.st_uid})")
        return False
    fd = lock(str(path), wait=False)
    if fd is None:
        return False  # its run is alive
    try:
        if found.st_size and not os.fstat(fd).st_size:
            path.unlink(missing_ok=True)
            return False  # its run has just removed it, and locking created it again
        machine, host = _machine_of(path)
        if machine not in ("", machine_id()):
            report(f"the journal {path} is skipped: it belongs to the machine {host}; start plugpull there to undo it")
            return False
        place = next((str(entry["place"]) for entry in entries(path) if "place" in entry), held)
        report(_undo(path))
        if place != held and still_off(path):
            report(f"the ports in the journal {path} stay off until the next run on the place {place} of labgrid")
        elif _restore_outlets(path, report, restore):
            path.unlink(missing_ok=True)
        return True
    finally:
        os.close(fd)


def _machine_of(path: Path) -> tuple[str, str]:
    """The machine that wrote a journal, and its name; empty for one of an older version."""
    for entry in entries(path):
        if "machine" in entry:
            return str(entry["machine"]), str(entry.get("host", "unknown"))
    return "", ""


def _undo(path: Path) -> str:
    written = list(entries(path))
    ended = end_processes(f"{VARIABLE}={path}".encode())
    removed = 0
    for entry in written:
        directory = Path(str(entry.get("directory", "")))
        # The name is checked, so that a forged journal cannot make plugpull remove another directory.
        if directory.name.startswith(f"plugpull-{path.stem}-") and directory.is_dir() and not directory.is_symlink():
            shutil.rmtree(directory, ignore_errors=True)
            removed += 1
    run = next((str(entry["run"]) for entry in written if "run" in entry), "unknown")
    pid = next((str(entry["pid"]) for entry in written if "pid" in entry), "unknown")
    done = f"{ended} processes ended, {removed} directories removed"
    return f"tidied up after a run that was killed ({run}, pid {pid}): {done}"


def still_off(path: Path) -> dict[tuple[str, str], dict[str, Any]]:
    """The last entry of each outlet that was left off, by switch and port."""
    off: dict[tuple[str, str], dict[str, Any]] = {}
    for entry in entries(path) if path.exists() else ():
        if "outlet" in entry and isinstance(entry.get("switch"), dict):
            outlet = (str(entry["switch"].get("name")), str(entry["outlet"]))
            if entry.get("on"):
                off.pop(outlet, None)
            else:
                off[outlet] = entry
    return off


def _restore_outlets(path: Path, report: Callable[[str], None], restore: Restore | None) -> bool:
    """Turn on the ports that the run left off. False if a port is still off."""
    off = still_off(path)
    if restore is None:
        return not off
    whole = True
    for (switch, port), entry in off.items():
        try:
            dut = entry.get("dut")
            folder = Path(str(entry.get("folder", ".")))
            restore(entry["switch"], dut if isinstance(dut, dict) else {}, folder, port)
            report(f"power restored: {switch}.{port} was left off")
        except Exception as error:  # a driver may raise anything, and the other ports must be restored
            report(f"power could not be restored: {switch}.{port} was left off: {error}")
            whole = False
    if not whole:
        report(f"the next start tries again; if that switch no longer exists, remove {path}")
    return whole


def entries(path: Path) -> Iterator[dict[str, Any]]:
    with path.open("rb") as file:
        text = file.read(MOST)
    for line in text.splitlines():
        with suppress(ValueError, RecursionError):  # the last line may be incomplete
            entry = json.loads(line)
            if isinstance(entry, dict):
                yield entry
