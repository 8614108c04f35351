"""Does operations on files in one directory, and reports each before the call and its return after it.

Plain Python 3.9: it runs on the DUT. What it reports is what ``oracle/files/ledger.py`` decodes. All paths are relative
to an open descriptor, so that nothing is written elsewhere when the filesystem is unmounted by somebody. Each operation
opens what it needs and closes it again.
"""

from __future__ import annotations

import ctypes
import errno
import json
import mmap
import os
import time
from collections.abc import Callable, Iterable
from typing import Any

from plugpull.integrity.oracle.stamp_format import SECTOR, encode

VERSION = 1
Fields = dict[str, Any]
"""An operation of a plan: the fields of ``oracle/files/operations.py`` without number, times and inode."""


class FileWriter:
    """Plays plans through below the directory ``root`` (a descriptor). ``out`` takes each line as bytes."""

    def __init__(self, root: int, run: int, out: Callable[[bytes], object]) -> None:
        self._root = root
        self._run = run
        self._out = out
        self._number = 0
        self._returned = 0
        self._files: dict[int, int] = {}
        """Numbers of the files by inode, for their stamps."""

    def play(
        self, plan: Iterable[Fields], *, stop_at_error: bool = True, stopped: Callable[[], bool] = lambda: False
    ) -> bool:
        """Do all of a plan, or until ``stopped`` returns True. False if it ended at an operation that failed."""
        self._line({"do": "begin", "run": self._run, "version": VERSION})
        going = True
        for step in plan:
            if stopped():
                break
            if self._do(step) and stop_at_error:
                going = False
                break
        self._line({"do": "end", "operations": self._number, "returned": self._returned})
        return going

    def _line(self, line: Fields) -> None:
        self._out(json.dumps(line, separators=(",", ":")).encode("ascii") + b"\n")

    def _do(self, step: Fields) -> int:
        """One operation. Returns its errno."""
        self._number += 1
        done: Fields = {"do": "returned", "number": self._number}
        action: Callable[[Fields], int] = getattr(self, "_" + step["do"])
        recorded = dict(step)
        if step["do"] == "append":
            recorded["offset"] = self._size(step["path"])
        self._line({**recorded, "number": self._number, "submitted": time.monotonic()})
        try:
            inode = action(recorded)
        except OSError as error:
            done["errno"] = error.errno or errno.EIO
        else:
            done.update({"inode": inode} if inode else {})
        done["at"] = time.monotonic()
        self._line(done)
        self._returned += 1
        return int(done.get("errno", 0))

    # --- names --------------------------------------------------------------------------------------------------------

    def _create(self, step: Fields) -> int:
        fd = self._open(step["path"], os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        try:
            inode = os.fstat(fd).st_ino
        finally:
            os.close(fd)
        self._files[inode] = step["file"]
        return inode

    def _mkdir(self, step: Fields) -> int:
        os.mkdir(step["path"], 0o755, dir_fd=self._root)
        return self._inode(step["path"])

    def _symlink(self, step: Fields) -> int:
        os.symlink(step["target"], step["path"], dir_fd=self._root)
        return self._inode(step["path"])

    def _inode(self, path: str) -> int:
        return os.stat(path, dir_fd=self._root, follow_symlinks=False).st_ino

    def _link(self, step: Fields) -> int:
        os.link(step["path"], step["to"], src_dir_fd=self._root, dst_dir_fd=self._root, follow_symlinks=False)
        return 0

    def _rename(self, step: Fields) -> int:
        os.rename(step["path"], step["to"], src_dir_fd=self._root, dst_dir_fd=self._root)
        return 0

    def _unlink(self, step: Fields) -> int:
        os.unlink(step["path"], dir_fd=self._root)
        return 0

    def _rmdir(self, step: Fields) -> int:
        os.rmdir(step["path"], dir_fd=self._root)
        return 0

    # --- data ---------------------------------------------------------------------------------------------------------

    def _open(self, path: str, flags: int) -> int:
        return os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644, dir_fd=self._root)

    def _size(self, path: str) -> int:
        try:
            return os.stat(path, dir_fd=self._root, follow_symlinks=False).st_size
        except OSError:
            return 0  # the call itself will say why

    def _stamps(self, fd: int, offset: int, length: int) -> bytes:
        """The bytes of this operation."""
        file = self._files.get(os.fstat(fd).st_ino, 0)
        first, count = offset // SECTOR, length // SECTOR
        return b"".join(encode((self._run, file, first + at, self._number, at, count)) for at in range(count))

    def _write(self, step: Fields) -> int:
        return self._put(step, os.O_WRONLY, lambda fd, data, done: os.pwrite(fd, data, step["offset"] + done))

    def _append(self, step: Fields) -> int:
        return self._put(step, os.O_WRONLY | os.O_APPEND, lambda fd, data, done: os.write(fd, data))

    def _put(self, step: Fields, flags: int, call: Callable[[int, memoryview, int], int]) -> int:
        fd = self._open(step["path"], flags)
        try:
            data = memoryview(self._stamps(fd, step["offset"], step["length"]))
            done = 0
            while done < len(data):
                done += call(fd, data[done:], done)
        finally:
            os.close(fd)
        return 0

    def _mmap(self, step: Fields) -> int:
        fd = self._open(step["path"], os.O_RDWR)
        try:
            begin = step["offset"] // mmap.PAGESIZE * mmap.PAGESIZE
            data, at = self._stamps(fd, step["offset"], step["length"]), step["offset"] - begin
            with mmap.mmap(fd, at + len(data), offset=begin) as mapped:
                mapped[at : at + len(data)] = data
                mapped.flush()
        finally:
            os.close(fd)
        return 0

    def _truncate(self, step: Fields) -> int:
        fd = self._open(step["path"], os.O_WRONLY)
        try:
            os.ftruncate(fd, step["size"])
        finally:
            os.close(fd)
        return 0

    # --- syncs --------------------------------------------------------------------------------------------------------

    def _fsync(self, step: Fields) -> int:
        return self._sync_one(step["path"], os.O_RDONLY, os.fsync)

    def _fdatasync(self, step: Fields) -> int:
        return self._sync_one(step["path"], os.O_RDONLY, os.fdatasync)

    def _fsyncdir(self, step: Fields) -> int:
        return self._sync_one(step["path"] or ".", os.O_RDONLY | os.O_DIRECTORY, os.fsync)

    def _sync_one(self, path: str, flags: int, call: Callable[[int], None]) -> int:
        fd = self._open(path, flags)
        try:
            call(fd)
        finally:
            os.close(fd)
        return 0

    def _sync(self, step: Fields) -> int:
        os.sync()
        return 0

    def _syncfs(self, step: Fields) -> int:
        sync_filesystem(self._root)
        return 0


def sync_filesystem(fd: int) -> None:
    """Write what is in memory of the filesystem behind a descriptor (syncfs(2)). Raises OSError."""
    if ctypes.CDLL(None, use_errno=True).syncfs(fd):
        raise OSError(ctypes.get_errno(), "syncfs")
