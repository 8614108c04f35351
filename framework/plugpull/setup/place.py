"""The cache directory, and the locks that let several runs share it.

Layout: ``ROOT/KIND/KEY/`` is an entry. It is complete if and only if ``entry.json`` is in it; ``content`` is what users
see. Users of an entry lock ``ROOT/KIND/KEY.lock`` shared, those who make or remove it exclusively. Locks are flock(2)
locks: the kernel drops them when the holder dies for any reason.
"""

from __future__ import annotations

import fcntl
import os
import stat
from collections.abc import Callable, Mapping
from contextlib import suppress

from plugpull.errors import UsageError

ENTRY = "entry.json"
CONTENT = "content"


class SetupError(UsageError):
    """Setting up cannot continue."""


def cache_root(environ: Mapping[str, str]) -> str:
    """The cache directory: ``PLUGPULL_CACHE``, or ``plugpull`` in ``XDG_CACHE_HOME``, or ``~/.cache/plugpull``."""
    if chosen := environ.get("PLUGPULL_CACHE"):
        return os.path.abspath(chosen)
    # The XDG specification requires ignoring relative paths.
    base = environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(base):
        home = environ.get("HOME") or os.path.expanduser("~")
        base = os.path.join(home, ".cache")
    return os.path.join(base, "plugpull")


def make_writable(root: str, kind: str = "") -> None:
    """Create the cache directory ``root`` and, if given, the directory of ``kind`` in it, with mode 0700.

    Raises SetupError when that is impossible, and as ``trusted`` does.
    """
    directories = (root, os.path.join(root, kind)) if kind else (root,)
    try:
        os.makedirs(os.path.dirname(root), exist_ok=True)
        for directory in directories:
            if not os.path.isdir(directory):
                with suppress(FileExistsError):  # another process has just made it, or it is not a directory
                    os.mkdir(directory, 0o700)
                os.listdir(directory)
            if not os.access(directory, os.W_OK | os.X_OK):
                raise PermissionError(13, "Permission denied")
    except OSError as error:
        raise SetupError(
            f"the cache directory {root} cannot be written: {error.strerror}",
            hint="set PLUGPULL_CACHE to a directory on a local disk that you can write, with 2 GB free",
        ) from None
    trusted(*directories)


def trusted(root: str, *within: str) -> None:
    """Check that the cache directory ``root`` and these directories in it are safe to use.

    Raises SetupError unless they belong to the effective user and nobody else can write to them. Directories that do
    not exist are ignored. The check matters because code in the cache is run (the Python environment, kernels), and a
    journal controls switches.
    """
    private = False
    for directory in (root, *within):
        try:
            # The cache directory may be a symbolic link, whose owner counts as well.
            link, found = os.lstat(directory), os.stat(directory)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            raise SetupError(f"the cache directory {directory} cannot be inspected: {error.strerror}") from None
        me = os.geteuid()
        if found.st_uid != me or link.st_uid not in (me, 0):
            raise SetupError(
                f"the cache directory {directory} belongs to uid {found.st_uid}, but this process has uid {me} and "
                "would run code from it",
                hint="set PLUGPULL_CACHE to a directory of your own; with sudo, use: sudo -H",
            )
        if found.st_mode & 0o022 and not private:
            raise SetupError(
                f"others may write to the cache directory {directory} (mode {stat.S_IMODE(found.st_mode):03o}), and "
                "plugpull would run code from it",
                hint=f"if only you have used it: chmod 700 {root}; otherwise set PLUGPULL_CACHE to another directory",
            )
        # Below a directory that nobody else can enter, any mode is safe.
        private = private or not found.st_mode & 0o077


def lock(
    path: str, *, shared: bool = False, wait: bool = True, on_wait: Callable[[], None] | None = None
) -> int | None:
    """Lock the file ``path``, creating it if needed. The lock is held until the returned descriptor is closed.

    ``on_wait`` is called once if another process holds it. With ``wait=False`` the result is then ``None``.
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
        os.close(fd)  # the previous holder has removed the file, so this lock protects nothing


def _still_there(fd: int, path: str) -> bool:
    try:
        now = os.stat(path)
    except FileNotFoundError:
        return False
    mine = os.fstat(fd)
    return (now.st_dev, now.st_ino) == (mine.st_dev, mine.st_ino)
