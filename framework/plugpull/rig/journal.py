"""What a run has to undo, kept on disk while it runs, so that the next start can do it for a run that was killed.

A journal is a file of JSON lines, locked (``flock``) by its run for as long as it lives. One whose lock is free belongs
to a run that died without tidying up, or that could not turn an outlet on again. Processes need no entry: every process
of a run inherits the journal's path in its environment (``PLUGPULL_JOURNAL``), which tells whose it is without any
moment in between at which nobody knows.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from plugpull.errors import PlugpullError
from plugpull.setup.place import lock

VARIABLE = "PLUGPULL_JOURNAL"


class Journal:
    """The journal of this run. ``close`` removes it, unless an outlet is still off: the next start tries again."""

    def __init__(self, root: Path, run_dir: Path) -> None:
        root.mkdir(parents=True, exist_ok=True)
        self.id = secrets.token_hex(4)
        self.path = root / f"{self.id}.jsonl"
        fd = lock(str(self.path))
        assert fd is not None
        self._fd = fd
        self._before = os.environ.get(VARIABLE)
        os.environ[VARIABLE] = str(self.path)
        self._write({"run": str(run_dir), "pid": os.getpid()})

    def _write(self, entry: dict[str, Any]) -> None:
        os.write(self._fd, json.dumps(entry).encode() + b"\n")

    def directory(self, parent: Path) -> Path:
        """Make a private directory below ``parent`` that will be removed with the run, however it ends."""
        path = parent / f"plugpull-{self.id}-{secrets.token_hex(3)}"
        self._write({"directory": str(path)})
        path.mkdir(mode=0o700)
        return path

    def outlet(self, switch: dict[str, Any], dut: dict[str, Any], folder: Path, port: str, on: bool) -> None:
        """A port of a real switch is about to go off, or is on again. ``switch`` and ``dut`` are the rig file's tables:
        what it takes to reach the switch."""
        self._write({"outlet": port, "on": on, "switch": switch, "dut": dut, "folder": str(folder.absolute())})

    def close(self) -> None:
        if self._before is None:
            os.environ.pop(VARIABLE, None)
        else:
            os.environ[VARIABLE] = self._before
        if not _still_off(self.path):
            self.path.unlink(missing_ok=True)
        os.close(self._fd)


Restore = Callable[[dict[str, Any], dict[str, Any], Path, str], None]
"""Turns a port on again: (switch table, dut table, folder of the rig file, port). Raises PlugpullError."""


def sweep(root: Path, tell: Callable[[str], None], restore: Restore | None = None) -> int:
    """Tidy up after runs that were killed; the number of them. ``tell`` gets a sentence for each.

    A journal with a port that could not be restored is kept, and tried again at the next start.
    """
    count = 0
    for path in sorted(root.glob("*.jsonl")) if root.is_dir() else []:
        fd = lock(str(path), wait=False)
        if fd is None:
            continue  # its run is alive
        try:
            tell(_undo(path))
            if _restore_outlets(path, tell, restore):
                path.unlink(missing_ok=True)
            count += 1
        finally:
            os.close(fd)
    return count


def _undo(path: Path) -> str:
    entries = list(_entries(path))
    ended = _end_processes(path)
    removed = 0
    for entry in entries:
        directory = Path(str(entry.get("directory", "")))
        # The name is checked as well: a journal somebody tampered with must not have a directory of theirs removed.
        if directory.name.startswith(f"plugpull-{path.stem}-") and directory.is_dir() and not directory.is_symlink():
            shutil.rmtree(directory, ignore_errors=True)
            removed += 1
    run = next((str(entry["run"]) for entry in entries if "run" in entry), "unknown")
    pid = next((str(entry["pid"]) for entry in entries if "pid" in entry), "unknown")
    done = f"{ended} processes ended, {removed} directories removed"
    return f"tidied up after a run that was killed ({run}, pid {pid}): {done}"


def _still_off(path: Path) -> dict[tuple[str, str], dict[str, Any]]:
    """The last entry of each outlet that was left off, by switch and port."""
    off: dict[tuple[str, str], dict[str, Any]] = {}
    for entry in _entries(path) if path.exists() else ():
        if "outlet" in entry and isinstance(entry.get("switch"), dict):
            outlet = (str(entry["switch"].get("name")), str(entry["outlet"]))
            if entry.get("on"):
                off.pop(outlet, None)
            else:
                off[outlet] = entry
    return off


def _restore_outlets(path: Path, tell: Callable[[str], None], restore: Restore | None) -> bool:
    """Turn on what the run left off. False if something is still off."""
    off = _still_off(path)
    if restore is None:
        return not off
    whole = True
    for (switch, port), entry in off.items():
        try:
            restore(entry["switch"], entry.get("dut", {}), Path(str(entry.get("folder", "."))), port)
            tell(f"power restored: {switch}.{port} was left off")
        except PlugpullError as error:
            tell(f"power could not be restored: {switch}.{port} was left off: {error}")
            whole = False
    if not whole:
        tell(f"the next start tries again; if that switch is no more, remove {path}")
    return whole


def _entries(path: Path) -> Iterator[dict[str, Any]]:
    for line in path.read_bytes().splitlines():
        with suppress(ValueError, RecursionError):  # the last line may be torn
            entry = json.loads(line)
            if isinstance(entry, dict):
                yield entry


def _belonging(path: Path) -> list[int]:
    """Processes of this user that were started by the journal's run."""
    mark = f"{VARIABLE}={path}".encode()
    found = []
    for directory in Path("/proc").iterdir():
        if directory.name.isdigit() and int(directory.name) != os.getpid():
            with suppress(OSError):
                if mark in (directory / "environ").read_bytes().split(b"\0"):
                    found.append(int(directory.name))
    return found


def _end_processes(path: Path, timeout: float = 5.0) -> int:
    pids = _belonging(path)
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    deadline = time.monotonic() + timeout
    while _belonging(path) and time.monotonic() < deadline:
        time.sleep(0.01)  # they are not our children: there is nothing to wait on
    return len(pids)
