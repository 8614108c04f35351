"""Reads everything in one directory: names, links, sizes, and the stamps of each file.

Plain Python 3.9: it runs on the DUT. It makes what ``oracle/files/found.py`` decodes.
"""

from __future__ import annotations

import binascii
import errno
import os
import stat
from collections.abc import Iterator
from typing import Any

from plugpull.integrity.oracle.stamp_format import SECTOR, decode

PAGE = 8 * SECTOR
"""Bytes of one read: an unreadable page has this many."""
RAW_BLOCKS = 64
"""Damaged blocks of a file whose bytes are sent."""
Object = dict[str, Any]


def scan(root: int, *, contents: bool = True) -> Object:
    """Everything below the directory ``root`` (a descriptor); without ``contents``, no file is read."""
    entries: list[Object] = []
    try:
        _directory(root, "", entries, contents)
    except OSError as error:
        return {"errno": error.errno or errno.EIO}
    return {"entries": entries}


def _directory(fd: int, above: str, entries: list[Object], contents: bool) -> None:
    """Add the entries of an open directory. Raises OSError if it cannot be listed."""
    for name in sorted(os.listdir(fd)):
        entry: Object = {"path": above + name, "kind": "other"}
        entries.append(entry)
        try:
            _entry(fd, name, entry, entries, contents)
        except OSError as error:
            entry["errno"] = error.errno or errno.EIO


def _entry(above: int, name: str, entry: Object, entries: list[Object], contents: bool) -> None:
    status = os.stat(name, dir_fd=above, follow_symlinks=False)
    entry.update({"links": status.st_nlink, "inode": status.st_ino})
    if stat.S_ISLNK(status.st_mode):
        entry["kind"] = "symlink"
        entry["target"] = os.readlink(name, dir_fd=above)
    elif stat.S_ISDIR(status.st_mode):
        entry["kind"] = "directory"
        fd = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=above)
        try:
            _directory(fd, entry["path"] + "/", entries, contents)
        finally:
            os.close(fd)
    elif stat.S_ISREG(status.st_mode):
        entry.update({"kind": "file", "size": status.st_size})
        if not contents:
            return
        fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW, dir_fd=above)
        try:
            entry["content"] = list(_merged(_blocks(fd, status.st_size)))
        finally:
            os.close(fd)


# --- the content of a file --------------------------------------------------------------------------------------------


def _blocks(fd: int, size: int) -> Iterator[Object]:
    """Each block of a file."""
    sent = 0
    for begin in range(0, size, PAGE):
        length = min(PAGE, size - begin)
        hole = _is_hole(fd, begin, length)
        try:
            data = os.pread(fd, length, begin)
        except OSError as error:
            for at in range(0, length, SECTOR):
                block: Object = {"content": "unreadable", "first": (begin + at) // SECTOR, "blocks": 1}
                block["errno"] = error.errno or errno.EIO
                yield block
            continue
        for at in range(0, len(data), SECTOR):
            block = _block(data[at : at + SECTOR], hole)
            block.update({"first": (begin + at) // SECTOR, "blocks": 1})
            if block["content"] == "damaged" and sent < RAW_BLOCKS:
                block["raw"] = binascii.b2a_base64(data[at : at + SECTOR], newline=False).decode("ascii")
                sent += 1
            yield block


def _is_hole(fd: int, begin: int, length: int) -> bool:
    """True if a range has no data. Filesystems without holes say that everything is data."""
    try:
        return os.lseek(fd, begin, os.SEEK_DATA) >= begin + length
    except OSError as error:
        return error.errno == errno.ENXIO


def _block(data: bytes, hole: bool) -> Object:
    if not any(data):
        return {"content": "hole" if hole else "zero"}
    stamp = decode(data)
    if stamp is None:
        return {"content": "damaged"}
    run, file, origin, number, _, _ = stamp
    return {"content": "stamped", "run": run, "file": file, "number": number, "origin": origin}


def _merged(blocks: Iterator[Object]) -> Iterator[Object]:
    """Consecutive blocks with the same kind of content as one stretch."""
    last: Object = {}
    for block in blocks:
        if last and _key(last, last["blocks"]) == _key(block, 0) and "raw" not in block and "raw" not in last:
            last["blocks"] += 1
            continue
        if last:
            yield last
        last = block
    if last:
        yield last


def _key(block: Object, ahead: int) -> tuple[object, ...]:
    same = tuple(block.get(name) for name in ("content", "run", "file", "number", "errno"))
    return (*same, block["origin"] + ahead if "origin" in block else None)


# --- removing everything ----------------------------------------------------------------------------------------------


def remove_all(root: int, found: Object) -> Object:
    """Remove what a scan found, from the bottom up. Returns the scan with the directories that could not be."""
    unremovable: list[Object] = []
    for entry in sorted(found.get("entries", []), key=lambda each: -int(each["path"].count("/"))):
        try:
            if entry["kind"] == "directory":
                os.rmdir(entry["path"], dir_fd=root)
            else:
                os.unlink(entry["path"], dir_fd=root)
        except OSError as error:
            unremovable.append({"path": entry["path"], "errno": error.errno or errno.EIO})
    return {**found, "removal_tried": True, "unremovable": unremovable}
