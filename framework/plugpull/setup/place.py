"""Where plugpull keeps what it made once, and the locks that let several runs share it.

Layout: ``ROOT/KIND/KEY/`` is an entry, complete if and only if ``entry.json`` is in it; ``content`` is what users see;
``ROOT/KIND/KEY.lock`` is locked shared by who uses the entry and exclusively by who makes or removes it.
Locks are flock(2) locks: the kernel drops them when their holder dies, however it dies.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Mapping

ENTRY = "entry.json"
CONTENT = "content"


class SetupError(Exception):
    """Setting up cannot go on. ``mend`` says what the user can do about it."""

    def __init__(self, what: str, mend: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.mend = mend


def cache_root(environ: Mapping[str, str]) -> str:
    """The cache directory: ``PLUGPULL_CACHE``, or ``plugpull`` in ``XDG_CACHE_HOME``, or ``~/.cache/plugpull``."""
    if chosen := environ.get("PLUGPULL_CACHE"):
        return os.path.abspath(chosen)
    # The XDG specification wants relative paths ignored.
    base = environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(base):
        home = environ.get("HOME") or os.path.expanduser("~")
        base = os.path.join(home, ".cache")
    return os.path.join(base, "plugpull")


def make_writable(root: str) -> None:
    """Create the cache directory. Raises SetupError when that is impossible."""
    try:
        os.makedirs(root, exist_ok=True)
        if not os.access(root, os.W_OK | os.X_OK):
            raise PermissionError(13, "Permission denied")
    except OSError as error:
        raise SetupError(
            f"the cache directory {root} cannot be written: {error.strerror}",
            "set PLUGPULL_CACHE to a directory on a local disk that you can write, with 2 GB free",
        ) from None


def lock(
    path: str, *, shared: bool = False, wait: bool = True, on_wait: Callable[[], None] | None = None
) -> int | None:
    """Lock the file ``path``, making it if needed; returns a descriptor that holds the lock until it is closed.

    ``on_wait`` is called once if somebody else holds it. With ``wait=False`` the answer is then ``None``.
    """
    operation = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
    while True:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            try:
                fcntl.flock(fd, operation | fcntl.LOCK_NB)
            except BlockingIOError:
                if not wait:
                    os.close(fd)
                    return None
                if on_wait is not None:
                    on_wait()
                    on_wait = None
                fcntl.flock(fd, operation)
        except BaseException:
            os.close(fd)
            raise
        if _still_there(fd, path):
            return fd
        os.close(fd)  # whoever held it has removed the file: what we locked is nobody's any more


def _still_there(fd: int, path: str) -> bool:
    try:
        now = os.stat(path)
    except FileNotFoundError:
        return False
    mine = os.fstat(fd)
    return (now.st_dev, now.st_ino) == (mine.st_dev, mine.st_ino)
