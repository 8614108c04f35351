"""Safe access to files in a directory that others may have prepared, such as a run directory from a server.

No links are followed: writing replaces whatever has the name, and reading accepts only ordinary files of that
directory.
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
"""The maximum number of bytes read from one foreign file. The rest is ignored."""
_NOT_FOLLOWED = os.O_NOFOLLOW | os.O_CLOEXEC


def write_whole(path: Path, data: bytes) -> None:
    """Write a file completely or not at all. A link of its name is replaced, not followed. Raises OSError."""
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
    """The modification time of an ordinary file of a directory, and its first ``most`` bytes.

    Raises OSError for anything else: a link, a device, a pipe that would never end.
    """
    fd = os.open(name, os.O_RDONLY | os.O_NONBLOCK | _NOT_FOLLOWED, dir_fd=directory)
    with os.fdopen(fd, "rb") as file:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "not an ordinary file", name)
        return status.st_mtime, file.read(most)
