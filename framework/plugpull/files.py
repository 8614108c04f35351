"""Files in a directory that somebody else may have prepared: a run directory that was sent in, or copied from a server.

Nothing there is followed as a link: what is written replaces whatever has the name, and what is read is an ordinary
file of that directory.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

CHUNK = 1 << 20
MOST = 64 << 20
"""Bytes of one foreign file that are read. The rest of it stays where it is."""
_NOT_FOLLOWED = os.O_NOFOLLOW | os.O_CLOEXEC


def write_whole(path: Path, data: bytes) -> None:
    """Write a file whole or not at all. A link of its name is replaced, not followed. Raises OSError."""
    half = path.with_name(f".{path.name}.{os.getpid()}")
    with suppress(FileNotFoundError):
        half.unlink()
    try:
        fd = os.open(half, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NOT_FOLLOWED, 0o666)
        with os.fdopen(fd, "wb") as file:
            file.write(data)
        os.replace(half, path)
    except OSError:
        with suppress(OSError):
            half.unlink()
        raise


@contextmanager
def directory_inside(parent: int | Path, name: str) -> Iterator[int]:
    """A descriptor of a directory that is not a link. Raises OSError."""
    above = parent if isinstance(parent, int) else os.open(parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fd = os.open(name, os.O_RDONLY | os.O_DIRECTORY | _NOT_FOLLOWED, dir_fd=above)
        try:
            yield fd
        finally:
            os.close(fd)
    finally:
        if not isinstance(parent, int):
            os.close(above)


def read_inside(directory: int, name: str, most: int = MOST) -> tuple[float, bytes]:
    """When an ordinary file of a directory was last written, and its first ``most`` bytes. Raises OSError for
    anything else: a link, a device, a pipe that would never end."""
    fd = os.open(name, os.O_RDONLY | os.O_NONBLOCK | _NOT_FOLLOWED, dir_fd=directory)
    with os.fdopen(fd, "rb") as file:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "not an ordinary file", name)
        return status.st_mtime, file.read(most)
