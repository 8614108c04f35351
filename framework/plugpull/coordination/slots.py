"""Bench slots: how many virtual benches run at once on this machine, whoever started them.

A slot is a lock file (``flock``) in a directory that all users of the machine share. A bench holds as many of them as
it needs while a scenario runs. The kernel releases a slot when its holder dies, however it dies. The files are empty,
and nothing is ever written to them: a link or a file that somebody else put there can do no damage.

Whoever has to wait holds the lock of the file ``turn`` meanwhile, so that slots are given out in the order of arrival.
Two containers on one machine do not see each other's slots unless they share the directory.
"""

from __future__ import annotations

import fcntl
import os
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from plugpull.errors import RigError, UsageError

VARIABLE = "PLUGPULL_SLOTS"
"""The environment variable that replaces the number of slots."""
MEMORY = 1 << 30
"""Bytes of memory for which one slot stands: a guest of 768 MiB, the firmware of its disks, and the run itself."""
CPUS = 2
"""CPUs of a guest for which one slot stands: a guest waits for its disks half of the time."""
POLL = 0.1
"""Seconds between two attempts: flock(2) cannot wait for the first of several files."""
MOST = 256
_TRIES = 10
_NAME = "plugpull-bench"


def slots_directory(shared: Path = Path("/run/lock")) -> Path:
    """The directory of the lock files, the same for every user: ``/run/lock`` if anybody may create files there, as on
    Debian, otherwise ``/tmp``. ``TMPDIR`` may differ from user to user, so it is not used."""
    try:
        mode = shared.stat().st_mode
    except OSError:
        return Path("/tmp")
    everybody = stat.S_ISDIR(mode) and mode & stat.S_ISVTX and mode & 0o003 == 0o003
    return shared if everybody else Path("/tmp")


def slots_of(cpus: int, memory: int) -> int:
    """The number of slots of a machine with so many CPUs and bytes of memory: one per CPU and per GiB, at least one."""
    return max(1, min(cpus, memory // MEMORY, MOST))


def slots_here() -> int:
    """The number of slots of this machine. Raises UsageError if ``PLUGPULL_SLOTS`` is not a number."""
    given = os.environ.get(VARIABLE, "")
    if not given:
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        return slots_of(len(os.sched_getaffinity(0)), memory)
    if not given.isascii() or not given.isdigit() or not 1 <= int(given) <= MOST:
        raise UsageError(
            f"{VARIABLE} is {given!r}, which is not a number of benches",
            hint=f"set it to a number from 1 to {MOST}, or unset it",
        )
    return int(given)


def slots_needed(cpus: int, memory: int) -> int:
    """The number of slots that a guest with so many CPUs and bytes of memory needs."""
    return max(-(-cpus // CPUS), -(-(memory + MEMORY // 4) // MEMORY), 1)


@dataclass(frozen=True)
class Slots:
    """The slots of this machine. ``total`` is their number, and ``directory`` is where their lock files are."""

    total: int = field(default_factory=slots_here)
    directory: Path = field(default_factory=slots_directory)

    @contextmanager
    def hold(self, need: int = 1, notify: Callable[[str], None] = lambda text: None) -> Iterator[None]:
        """Hold ``need`` slots, or all if there are fewer, while the block runs. Waits until they are free.

        ``notify`` gets a sentence if it has to wait. Raises RigError when a lock file cannot be opened.
        """
        with ExitStack() as held:
            with ExitStack() as turn:
                mine = self._lock("turn", turn)
                if not mine or not self._take(need, held):
                    notify(f"waiting: all bench slots of this machine are in use ({VARIABLE}={self.total})")
                    if not mine:
                        self._lock("turn", turn, wait=True)
                    while not self._take(need, held):
                        time.sleep(POLL)
            yield

    @contextmanager
    def hold_if_free(self, need: int = 1) -> Iterator[bool]:
        """Hold slots while the block runs if they are free now. Yields whether they are held."""
        with ExitStack() as held:
            try:
                taken = self._take(need, held)
            except RigError:
                taken = False
            yield taken

    def _take(self, need: int, held: ExitStack) -> bool:
        """Take all slots that are needed, or none of them. No other process takes slots at the same time."""
        wanted = min(need, self.total)
        with ExitStack() as one_at_a_time, ExitStack() as taken:
            if not self._lock("taking", one_at_a_time):
                return False
            got = 0
            for number in range(1, self.total + 1):
                got += got < wanted and self._lock(str(number), taken)
            if got < wanted:
                return False
            held.push(taken.pop_all())
            return True

    def _lock(self, name: str, held: ExitStack, *, wait: bool = False) -> bool:
        """Lock a file until ``held`` is closed. Returns False if it is locked already."""
        file = self.directory / f"{_NAME}-{name}.lock"
        for _ in range(_TRIES):
            fd = _open(file)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
            except BlockingIOError:
                os.close(fd)
                return False
            except BaseException:
                os.close(fd)
                raise
            if _is_still(file, fd):  # a cleaner of /tmp may have removed it between open and lock
                held.callback(os.close, fd)
                return True
            os.close(fd)
        raise RigError(
            f"the lock file {file} was removed {_TRIES} times", hint=f"find the program that cleans {self.directory}"
        )


def _open(file: Path) -> int:
    """Open a lock file, and create it if it does not exist. Raises RigError for anything but an ordinary file."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
    try:
        try:
            fd = os.open(file, flags)
        except FileNotFoundError:
            fd = _create(file, flags)
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            os.close(fd)
            raise OSError(0, "it is not an ordinary file")
    except OSError as error:
        raise RigError(
            f"the lock file {file} of a bench slot cannot be opened: {error.strerror}",
            hint=f"inspect it and remove it; plugpull creates it again: ls -l {file}",
        ) from None
    return fd


def _create(file: Path, flags: int) -> int:
    """Create a lock file that every user may open, whatever the umask."""
    try:
        fd = os.open(file, flags | os.O_CREAT | os.O_EXCL, 0o644)
    except FileExistsError:
        return os.open(file, flags)
    os.fchmod(fd, 0o644)
    return fd


def _is_still(file: Path, fd: int) -> bool:
    try:
        return os.path.samestat(file.lstat(), os.fstat(fd))
    except FileNotFoundError:
        return False
