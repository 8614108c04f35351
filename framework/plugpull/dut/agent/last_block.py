"""Whether a disk has as many sectors as it says. Runs on the DUT, on any Python from 3.6 on."""

from __future__ import annotations

import io
import mmap
import os

BLOCK = 4096
"""Bytes that are read: whole logical blocks of every disk, at a place that is a multiple of them."""


def ends_early(fd: int, size: int) -> bool:
    """Whether the last block of a disk cannot be read although its first one can.

    Such a disk reports one sector too many in READ CAPACITY (the US_FL_FIX_CAPACITY quirk of
    drivers/usb/storage/unusual_devs.h). The first block is read last, and not from the page cache: a disk that goes
    away meanwhile does not count. ``size`` is in bytes.
    """
    last = (size - 1) // BLOCK * BLOCK
    return last > 0 and not _reads(fd, last, size - last) and _reads(fd, 0, BLOCK)


def _reads(fd: int, offset: int, wanted: int) -> bool:
    flags = os.O_RDONLY | os.O_CLOEXEC
    path = "/proc/self/fd/%d" % fd
    try:
        try:
            own = os.open(path, flags | os.O_DIRECT)
        except OSError:  # a file on a file system that cannot do that
            own = os.open(path, flags)
        with io.FileIO(own, "r") as file, mmap.mmap(-1, BLOCK) as block:  # O_DIRECT wants aligned memory
            file.seek(offset)
            return (file.readinto(block) or 0) >= wanted
    except OSError:
        return False
