"""Short reads of a disk, timed one by one: they show a delay of each command, which large requests hide."""

from __future__ import annotations

import errno
import io
import mmap
import os
import threading
import time
from typing import Dict, List

BLOCK = 4096
"""Bytes of a read: whole logical blocks of every disk, at a place that is a multiple of them."""
COUNT, MOST = 8, 32
"""Reads of one disk, spread evenly over it. If none of the first eight is ``QUICK``, as on a busy host, there are more,
up to ``MOST`` in ``AT_MOST`` seconds."""
QUICK, AT_MOST = 0.003, 1.5
SLOW, PAUSE, AT_MOST_SLOW = 0.015, 0.1, 4.0
"""If even the fastest took longer than ``SLOW``, a pause before each further read lets a busy moment of the host pass,
for ``AT_MOST_SLOW`` seconds at most. A command that is always delayed is delayed then too."""
LIMIT = 8.0
"""Seconds for all reads of one disk."""
GONE = (errno.ENOENT, errno.ENXIO, errno.ENODEV, errno.ENOMEDIUM)
"""Errors of a disk that is not there, or whose medium is not."""


def short_reads(kname: str, dev: str = "/dev", limit: float = LIMIT) -> Dict[str, str]:
    """``read_ms``, the milliseconds of each read; ``read_error``, why not all were made. Nothing if the disk is gone.

    A disk that does not answer holds up a thread of its own, not the caller."""
    times: List[float] = []
    why: List[str] = []
    thread = threading.Thread(target=_read, args=(os.path.join(dev, kname), times, why), name="reads", daemon=True)
    thread.start()
    thread.join(limit)
    if thread.is_alive():
        why = ["no answer for %g s" % limit]
    found = {"read_ms": " ".join("%.1f" % (1000 * one) for one in list(times)), "read_error": "".join(why[:1])}
    return {name: value for name, value in found.items() if value}


def _read(path: str, times: List[float], why: List[str]) -> None:
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK
    try:
        try:
            fd = os.open(path, flags | os.O_DIRECT)
        except OSError as error:
            if error.errno != errno.EINVAL:  # a file on a file system that cannot do that
                raise
            fd = os.open(path, flags)
        with io.FileIO(fd, "r") as file, mmap.mmap(-1, BLOCK) as block:  # O_DIRECT wants aligned memory
            size = file.seek(0, os.SEEK_END)
            begun = time.monotonic()
            for number in range(MOST):
                if number >= COUNT and not _more(min(times), time.monotonic() - begun):
                    return
                file.seek(size * (number % COUNT) // COUNT // BLOCK * BLOCK)
                began = time.monotonic()
                if not file.readinto(block):
                    return
                times.append(time.monotonic() - began)
    except OSError as error:
        if error.errno not in GONE:
            why.append(error.strerror or str(error))


def _more(fastest: float, spent: float) -> bool:
    """Whether another read may be faster; after the pause that it needs."""
    if fastest < QUICK or spent > (AT_MOST_SLOW if fastest > SLOW else AT_MOST):
        return False
    if fastest > SLOW:
        time.sleep(PAUSE)  # there is no event for a host that has time again
    return True
