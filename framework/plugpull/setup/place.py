"""Where plugpull keeps what it made once, and the locks that let several runs share it.

Layout: ``ROOT/KIND/KEY/`` is an entry, complete if and only if ``entry.json`` is in it; ``content`` is what users see;
``ROOT/KIND/KEY.lock`` is locked shared by who uses the entry and exclusively by who makes or removes it.
Locks are flock(2) locks: the kernel drops them when their holder dies, however it dies.
"""

from __future__ import annotations

import fcntl
import os
import stat
from collections.abc import Callable, Mapping
from contextlib import suppress

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


def make_writable(root: str, kind: str = "") -> None:
    """Create the cache directory ``root``, and one for a kind of entry in it, mode 0700. Raises SetupError when that is
    impossible, and as ``trusted``."""
    directories = (root, os.path.join(root, kind)) if kind else (root,)
    try:
        os.makedirs(os.path.dirname(root), exist_ok=True)
        for directory in directories:
            if not os.path.isdir(directory):
                with suppress(FileExistsError):  # another start has just made it, or it is not a directory
                    os.mkdir(directory, 0o700)
                os.listdir(directory)
            if not os.access(directory, os.W_OK | os.X_OK):
                raise PermissionError(13, "Permission denied")
    except OSError as error:
        raise SetupError(
            f"the cache directory {root} cannot be written: {error.strerror}",
            "set PLUGPULL_CACHE to a directory on a local disk that you can write, with 2 GB free",
        ) from None
    trusted(*directories)


def trusted(root: str, *within: str) -> None:
    """Raises SetupError unless the cache directory ``root`` and these directories in it belong to the effective user,
    and nobody else can write to them. What does not exist is passed over.

    What is in the cache is run (the Python environment, kernels), and a journal says what is switched.
    """
    private = False
    for directory in (root, *within):
        try:
            # The cache may be elsewhere by way of a symbolic link, of which the owner counts as well.
            link, found = os.lstat(directory), os.stat(directory)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            raise SetupError(f"the cache directory {directory} cannot be looked at: {error.strerror}") from None
        me = os.geteuid()
        if found.st_uid != me or link.st_uid not in (me, 0):
            raise SetupError(
                f"the cache directory {directory} belongs to uid {found.st_uid}, and this is uid {me}: what is in it "
                "would be run",
                "set PLUGPULL_CACHE to a directory of your own; with sudo, use: sudo -H",
            )
        if found.st_mode & 0o022 and not private:
            raise SetupError(
                f"others may write to the cache directory {directory} (mode {stat.S_IMODE(found.st_mode):03o}): what "
                "is in it would be run",
                f"if only you have used it: chmod 700 {root}; otherwise set PLUGPULL_CACHE to another directory",
            )
        # What is below a directory that nobody else can enter may have any mode.
        private = private or not found.st_mode & 0o077


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
