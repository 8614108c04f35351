"""The cache of things that are slow to make and depend only on their inputs: kernels, images, snapshots.

An entry is built in a temporary directory and renamed into place, so a killed build never leaves a partial entry. The
layout and the locks are those of ``plugpull.setup.place``. The launcher's Python environments (kind ``env``) share
them.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import msgspec
from rich.console import Console
from rich.table import Table

from plugpull.errors import RigError, UsageError
from plugpull.setup.place import CONTENT, ENTRY, cache_root, lock, make_writable, trusted

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+~-]*")
_HALF_MADE = ".building-"
_HALF_GONE = ".removing-"
_NEARLY_FULL = 16 << 20
_UNITS = {"m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}

Build = Callable[[Path], None]
Notify = Callable[[str], None]


def _silent(_: str) -> None:
    pass


class _Stamp(msgspec.Struct, kw_only=True):
    """``entry.json``. Its modification time is the time of the entry's last use."""

    description: str
    size: int
    built: float


@dataclass(frozen=True)
class CacheEntry:
    """One entry of the cache. ``size`` is bytes on disk; ``built`` and ``used`` are seconds since the epoch."""

    kind: str
    key: str
    description: str
    size: int
    built: float
    used: float


@dataclass(frozen=True)
class Cleared:
    """The entries that ``clear`` removed, and those that it left because they are in use."""

    removed: tuple[CacheEntry, ...]
    in_use: tuple[CacheEntry, ...]


def _wait_for_another(place: Path) -> None:
    """Wait until nobody makes this entry. A shared lock is granted then, also if who made it uses it at once: that may
    take hours."""
    fd = lock(f"{place}.lock", shared=True)
    assert fd is not None
    os.close(fd)
    if not _touch(place):
        # It was not made, or is gone although somebody uses it: there is nothing to wait on.
        time.sleep(0.05)


class Cache:
    """A directory of entries that all runs of one user share. ``notify`` gets a sentence when a caller has to wait."""

    def __init__(self, root: Path, *, notify: Notify = _silent) -> None:
        self.root = root
        self._notify = notify

    @classmethod
    def default(cls, *, notify: Notify = _silent) -> Cache:
        """The cache at ``PLUGPULL_CACHE``, ``XDG_CACHE_HOME/plugpull`` or ``~/.cache/plugpull``."""
        return cls(Path(cache_root(os.environ)), notify=notify)

    def get(self, kind: str, key: str, build: Build, *, description: str = "", needs: int = 0) -> Path:
        """The directory of an entry. ``build(directory)`` makes it if it is missing.

        ``needs`` is the approximate size in bytes. If another process is building the same entry, this waits for its
        result. Raises RigError when the disk is full, UsageError when the cache cannot be written, and the exceptions
        of ``build``; the next call then builds again. Another process may clear the entry after this returns; ``use``
        keeps it.
        """
        place = self._place(kind, key)
        self._trust(place)
        if _touch(place):
            return place / CONTENT
        self._make_folder(place.parent)
        what = description or f"{kind} {key}"
        waiting = f"waiting for another run that is making the same: {what}"
        while not _touch(place):
            fd = lock(f"{place}.lock", wait=False)
            if fd is None:
                if waiting:
                    self._notify(waiting)
                    waiting = ""
                _wait_for_another(place)
                continue
            try:
                if not _touch(place):
                    self.sweep()
                    _sweep_one(place)
                    self._build(place, build, what, needs)
            finally:
                os.close(fd)
        return place / CONTENT

    @contextmanager
    def hold(self, kind: str, key: str) -> Iterator[Path]:
        """Keep an entry from being cleared. Raises RigError when it does not exist."""
        place = self._place(kind, key)
        self._trust(place)
        fd = lock(f"{place}.lock", shared=True) if place.parent.is_dir() else None
        try:
            if fd is None or not _touch(place):
                raise RigError(
                    f"the cache has no {kind} {key}", hint="run again: missing entries of the cache are made again"
                )
            yield place / CONTENT
        finally:
            if fd is not None:
                os.close(fd)

    @contextmanager
    def use(self, kind: str, key: str, build: Build, *, description: str = "", needs: int = 0) -> Iterator[Path]:
        """``get`` and ``hold`` together: the entry is kept until the block ends."""
        while True:
            self.get(kind, key, build, description=description, needs=needs)
            place = self._place(kind, key)
            fd = lock(f"{place}.lock", shared=True)
            assert fd is not None
            try:
                if not _touch(place):
                    continue  # another process cleared it meanwhile
                yield place / CONTENT
                return
            finally:
                os.close(fd)

    def entries(self) -> list[CacheEntry]:
        """All complete entries, the least recently used first."""
        found = [_read(path.parent) for path in self.root.glob(f"*/*/{ENTRY}")]
        return sorted((entry for entry in found if entry is not None), key=lambda entry: entry.used)

    def clear(self, older_than: float | None = None, kind: str | None = None) -> Cleared:
        """Remove entries of ``kind`` (None: any) that were not used for ``older_than`` seconds (None: all).

        Entries in use stay. Leftovers of killed runs are removed too.
        """
        removed: list[CacheEntry] = []
        in_use: list[CacheEntry] = []
        now = time.time()
        for entry in self.entries():
            if (kind is not None and entry.kind != kind) or (older_than is not None and now - entry.used < older_than):
                continue
            (removed if self._remove(entry) else in_use).append(entry)
        self.sweep()
        return Cleared(tuple(removed), tuple(in_use))

    def trim(self, kind: str, keep: int) -> None:
        """Keep ``keep`` entries of a kind and those in use; remove the others, the least recently used first."""
        entries = [entry for entry in self.entries() if entry.kind == kind]
        for entry in entries[: max(0, len(entries) - keep)]:
            self._remove(entry)

    def sweep(self) -> None:
        """Remove leftovers of builds and removals that were killed."""
        for path in (*self.root.glob(f"*/*{_HALF_MADE}*"), *self.root.glob(f"*/*{_HALF_GONE}*")):
            name = re.split(f"{re.escape(_HALF_MADE)}|{re.escape(_HALF_GONE)}", path.name)[0]
            fd = lock(str(path.with_name(f"{name}.lock")), wait=False)
            if fd is not None:
                shutil.rmtree(path, ignore_errors=True)
                os.close(fd)

    def _place(self, kind: str, key: str) -> Path:
        for part in (kind, key):
            if not _NAME.fullmatch(part) or part.endswith(".lock") or _HALF_MADE in part or _HALF_GONE in part:
                raise ValueError(f"not a valid name for a cache entry: {part!r}")
        return self.root / kind / key

    def journals(self, *, make: bool = True) -> Path:
        """The directory of the runs' journals. Raises UsageError when it cannot be made or others may write to it."""
        folder = self.root / "journal"
        if make:
            self._make_folder(folder)
        self._trust(folder)
        return folder

    def _trust(self, place: Path) -> None:
        """Raises UsageError when somebody else may have made the entry."""
        trusted(str(self.root), str(place.parent), str(place))

    def _make_folder(self, folder: Path) -> None:
        make_writable(str(self.root), folder.name)

    def _build(self, place: Path, build: Build, what: str, needs: int) -> None:
        free = _free(place.parent)
        if needs > free:
            raise self._full(f"{what} needs about {_mib(needs)} in the cache, but only {_mib(free)} are free")
        half_made = place.with_name(f"{place.name}{_HALF_MADE}{secrets.token_hex(4)}")
        try:
            content = half_made / CONTENT
            half_made.mkdir(mode=0o700)
            content.mkdir()
            build(content)
            stamp = _Stamp(description=what, size=_size(content), built=time.time())
            (half_made / ENTRY).write_bytes(msgspec.json.encode(stamp))
            half_made.rename(place)
        except Exception as error:
            # A tool that ran out of space reports that in its own way; the file system's state is clear.
            full = isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)
            if full or _free(place.parent) < _NEARLY_FULL:
                so_far = _size(half_made)
                more = f", needs about {_mib(needs)}" if needs else ""
                raise self._full(f"the disk became full while making {what} ({_mib(so_far)} so far{more})") from error
            raise
        finally:
            shutil.rmtree(half_made, ignore_errors=True)

    def _full(self, what: str) -> RigError:
        held = sum(entry.size for entry in self.entries())
        return RigError(
            f"{what}: {self.root}",
            hint=f"free space there ('plugpull cache clear' frees up to {_mib(held)}), "
            "or set PLUGPULL_CACHE to a directory on a larger disk",
        )

    def _remove(self, entry: CacheEntry) -> bool:
        place = self._place(entry.kind, entry.key)
        fd = lock(f"{place}.lock", wait=False)
        if fd is None:
            return False
        try:
            half_gone = place.with_name(f"{place.name}{_HALF_GONE}{secrets.token_hex(4)}")
            with suppress(FileNotFoundError):
                place.rename(half_gone)
            _sweep_one(place)
            Path(f"{place}.lock").unlink(missing_ok=True)
        finally:
            os.close(fd)
        return True


def show(cache: Cache, console: Console) -> None:
    """Print the entries of the cache, for ``plugpull cache``."""
    entries = cache.entries()
    if not entries:
        console.print(f"The cache is empty: {cache.root}", highlight=False)
        return
    table = Table(box=None, pad_edge=False)
    for heading, justify in (("kind", "left"), ("what", "left"), ("size", "right"), ("last used", "right")):
        table.add_column(heading, justify="right" if justify == "right" else "left")
    now = time.time()
    for entry in entries:
        table.add_row(entry.kind, entry.description, _mib(entry.size), _ago(now - entry.used))
    console.print(table)
    total = _mib(sum(entry.size for entry in entries))
    console.print(f"{len(entries)} entries, {total} in {cache.root}", highlight=False)


def clear(cache: Cache, console: Console, older_than: float | None = None, kind: str | None = None) -> None:
    """Clear the cache and print the result, for ``plugpull cache clear``."""
    cleared = cache.clear(older_than, kind)
    freed = _mib(sum(entry.size for entry in cleared.removed))
    console.print(f"removed {len(cleared.removed)} entries, {freed}", highlight=False)
    for entry in cleared.in_use:
        console.print(f"kept, because it is in use: {entry.kind} {entry.description}", highlight=False)


def parse_age(text: str) -> float:
    """Seconds of an age such as ``90m``, ``12h``, ``14d`` or ``2w``. Raises UsageError."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([mhdw])", text.strip())
    if match is None:
        raise UsageError(f"{text!r} is not an age", hint="write it as 90m, 12h, 14d or 2w")
    return float(match[1]) * _UNITS[match[2]]


def _touch(place: Path) -> bool:
    """Set the entry's time of last use. Returns False if the entry does not exist."""
    try:
        os.utime(place / ENTRY)
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def _read(place: Path) -> CacheEntry | None:
    try:
        stamp = msgspec.json.decode((place / ENTRY).read_bytes(), type=_Stamp)
        used = (place / ENTRY).stat().st_mtime
    except (OSError, msgspec.DecodeError):
        return None
    # An entry that is being removed still has its stamp.
    if not _NAME.fullmatch(place.name) or _HALF_MADE in place.name or _HALF_GONE in place.name:
        return None
    return CacheEntry(place.parent.name, place.name, stamp.description, stamp.size, stamp.built, used)


def _sweep_one(place: Path) -> None:
    """Remove an entry's leftovers. Call it with the entry's lock held."""
    for pattern in (_HALF_MADE, _HALF_GONE):
        for path in place.parent.glob(f"{place.name}{pattern}*"):
            shutil.rmtree(path, ignore_errors=True)
    if place.exists() and not (place / ENTRY).exists():
        shutil.rmtree(place, ignore_errors=True)


def _size(folder: Path) -> int:
    total = 0
    for path, _, names in os.walk(folder):
        for name in names:
            with suppress(FileNotFoundError):
                total += (Path(path) / name).lstat().st_blocks * 512
    return total


def _free(folder: Path) -> int:
    status = os.statvfs(folder)
    return status.f_bavail * status.f_frsize


def _mib(size: int) -> str:
    return f"{size / (1 << 20):.0f} MiB" if size < 10 << 30 else f"{size / (1 << 30):.1f} GiB"


def _ago(seconds: float) -> str:
    for letter, length in reversed(_UNITS.items()):
        if seconds >= length:
            return f"{seconds / length:.0f} {'min' if letter == 'm' else letter} ago"
    return "just now"
