"""Reads files of sysfs, and of one value below ``/proc``."""

from __future__ import annotations

import os
from typing import Dict, List, Mapping, Tuple

SYS = "/sys"
_AT_ONCE = 1 << 16
"""Bytes that are asked for in one read: more than an attribute can have, which is a page."""
_PAGE = 1 << 12
"""Bytes of a page on most machines, and more than any attribute of a disk has."""


def read_attribute(*parts: str) -> str:
    """An attribute of sysfs, or a file of one value below ``/proc``; empty if it cannot be read.

    It is read at once: the kernel makes up the contents of some attributes again with each read (fs/sysfs/file.c,
    sysfs_kf_read, for those that md has allocated in advance), so that a second one for the end of the file returns the
    tail of a later value. An array that had become idle was in the state "active\\nidle".
    """
    try:
        with open(os.path.join(*parts), "rb", buffering=0) as file:
            return (file.read(_AT_ONCE) or b"").decode("utf-8", "replace").strip().rstrip("\0")
    except OSError:
        return ""


def read_attributes(folder: str, paths: Mapping[str, str]) -> Dict[str, str]:
    """Attributes below one folder of sysfs, by the names that ``paths`` gives them, without what cannot be read."""
    return read_folder(folder, paths)[1]


def read_folder(folder: str, paths: Mapping[str, str]) -> Tuple[str, Dict[str, str]]:
    """The path of a folder of sysfs without links, empty if it is gone, and what ``read_attributes`` returns of it.

    The folder is opened once. That takes half the time, of which an emulated DUT has little, and nothing is read of
    another device that has taken over the name meanwhile.
    """
    found: Dict[str, str] = {}
    try:
        base = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return "", found
    try:
        for name, path in paths.items():
            value = _attribute_at(base, path)
            if value:
                found[name] = value
        return os.readlink("/proc/self/fd/%d" % base), found
    finally:
        os.close(base)


def _attribute_at(base: int, path: str) -> str:
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC, dir_fd=base)
    except OSError:
        return ""
    try:
        return os.read(file, _PAGE).decode("utf-8", "replace").strip().rstrip("\0")  # at once: see read_attribute
    except OSError:
        return ""
    finally:
        os.close(file)


def read_lines(*parts: str) -> List[str]:
    """The lines of a file below ``/proc``, of which one read returns a page at most; none if it cannot be read."""
    try:
        with open(os.path.join(*parts), "rb") as file:
            return file.read().decode("utf-8", "replace").strip().rstrip("\0").splitlines()
    except OSError:
        return []


def resolved(path: str) -> str:
    """The path without links; as given if a part of it is removed meanwhile. ``os.path.realpath`` lets that error
    through: it reads a link that it saw a moment before."""
    try:
        return os.path.realpath(path)
    except OSError:
        return path
