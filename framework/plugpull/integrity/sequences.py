"""Short sequences of operations on files, each followed by a sync: all there are, up to symmetry.

CrashMonkey and ACE (Mohan et al., OSDI'18) found that the crash bugs reported in five years came after an fsync-like
call and needed at most three operations on a fresh filesystem. A story plays a sequence on a fresh filesystem and cuts
right after the sync returned.

There are 102 sequences of one operation, 6,736 of two and 326,622 of three; without links 76, 3,848 and 149,206.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import permutations, product
from typing import Literal, get_args

DIRECTORIES = ("A", "B")
FILES = ("x", "y")
INNER = "d"
"""A directory within a directory."""
Kind = Literal[
    "create",
    "write",
    "append",
    "truncate",
    "mmap",
    "link",
    "rename",
    "replace",
    "rename-directory",
    "unlink",
    "mkdir",
    "rmdir",
    "symlink",
]
"""``replace`` is a rename over an existing file."""
SyncKind = Literal["fsync", "fdatasync", "fsyncdir", "sync", "syncfs"]
"""``fsyncdir`` is an fsync of a directory."""
KINDS: tuple[Kind, ...] = get_args(Kind)
ON_DATA = frozenset({"write", "append", "truncate", "mmap"})
PATHS = tuple(f"{directory}/{file}" for directory in DIRECTORIES for file in FILES)
NO_LINKS = frozenset(KINDS) - {"link", "symlink"}
"""Kinds that vfat and exfat have."""


@dataclass(frozen=True, order=True)
class FileStep:
    """An operation. ``to`` is the second path of a link or a rename."""

    kind: Kind
    path: str
    to: str = ""


@dataclass(frozen=True, order=True)
class FinalSync:
    """The sync that a sequence ends with. ``path`` is empty for sync and syncfs, and for the directory above all."""

    kind: SyncKind
    path: str = ""


@dataclass(frozen=True)
class FileSequence:
    """What is done. ``directories`` and ``files`` exist, synced, before the first step.

    Files have two blocks of data then. A step writes, appends or maps one block; a truncation is to one block.
    """

    directories: tuple[str, ...]
    files: tuple[str, ...]
    steps: tuple[FileStep, ...]
    sync: FinalSync

    @property
    def name(self) -> str:
        """Such as "rename A/x B/y, fsync B/y"."""
        words = [" ".join(filter(None, (step.kind, step.path, step.to))) for step in self.steps]
        return ", ".join([*words, f"{self.sync.kind} {self.sync.path}".strip()])


def sequences(length: int, kinds: Iterable[Kind] = KINDS) -> Iterator[FileSequence]:
    """All sequences of ``length`` operations of these kinds, each with each sync, the simplest order first.

    Of several that differ only in which directory is called A and which file x, one is made. An fsync is of a file or a
    directory that an operation touched, and that still exists.
    """
    for steps in product(_steps(kinds), repeat=length):
        if not _is_first(steps):
            continue
        state = _State(steps)
        if not state.possible:
            continue
        for sync in state.syncs():
            yield FileSequence(state.directories_before, state.files_before, steps, sync)


def count(length: int, kinds: Iterable[Kind] = KINDS) -> int:
    """The number of sequences of a length."""
    return sum(1 for _ in sequences(length, kinds))


def _steps(kinds: Iterable[Kind]) -> list[FileStep]:
    made: list[FileStep] = []
    for kind in kinds:
        if kind in ("link", "rename", "replace"):
            made += [FileStep(kind, one, two) for one, two in permutations(PATHS, 2)]
        elif kind == "rename-directory":
            made += [FileStep(kind, one, two) for one, two in permutations(DIRECTORIES, 2)]
        elif kind in ("mkdir", "rmdir"):
            made += [FileStep(kind, path) for path in (*DIRECTORIES, *(f"{one}/{INNER}" for one in DIRECTORIES))]
        else:
            made += [FileStep(kind, path) for path in PATHS]
    return made


# --- symmetry ---------------------------------------------------------------------------------------------------------


def _renamed(step: FileStep, names: dict[str, str]) -> FileStep:
    def path(old: str) -> str:
        return "/".join(names.get(part, part) for part in old.split("/")) if old else ""

    return FileStep(step.kind, path(step.path), path(step.to))


_SWAPS: tuple[dict[str, str], ...] = (
    {"A": "B", "B": "A"},
    {"x": "y", "y": "x"},
    {"A": "B", "B": "A", "x": "y", "y": "x"},
)


def _is_first(steps: tuple[FileStep, ...]) -> bool:
    """True for the first of those sequences that differ in names alone."""
    return all(steps <= tuple(_renamed(step, names) for step in steps) for names in _SWAPS)


# --- what exists ------------------------------------------------------------------------------------------------------


class _State:
    """Which paths exist before and after some steps: what a step needs and no earlier one made is in the setup."""

    def __init__(self, steps: tuple[FileStep, ...]) -> None:
        self._before: dict[str, bool] = {}
        self._now: dict[str, bool] = {}
        self._fresh: dict[str, str | None] = {}
        """For a directory that was moved, where it was in the setup; None for one that was made since."""
        self._symlinks: set[str] = set()
        self._made: dict[str, int] = {}
        """Numbers of the files that steps created, by path."""
        self._empty: set[int] = set()
        self._files_made = 0
        self._files: list[str] = []
        self._directories: list[str] = []
        self.possible = all(self._do(step) for step in steps)

    @property
    def directories_before(self) -> tuple[str, ...]:
        return tuple(sorted(path for path, there in self._before.items() if there and _is_directory(path)))

    @property
    def files_before(self) -> tuple[str, ...]:
        return tuple(sorted(path for path, there in self._before.items() if there and not _is_directory(path)))

    def syncs(self) -> Iterator[FinalSync]:
        """Each sync, of everything that was touched and still exists."""
        files = [path for path in dict.fromkeys(self._files) if self._now[path] and path not in self._symlinks]
        yield from (FinalSync("fsync", path) for path in files)
        yield from (FinalSync("fdatasync", path) for path in files)
        directories = [path for path in dict.fromkeys(self._directories) if not path or self._now[path]]
        yield from (FinalSync("fsyncdir", path) for path in directories)
        yield FinalSync("sync")
        yield FinalSync("syncfs")

    # --- needs ----------------------------------------------------------------------------------------------------

    def _need(self, path: str, there: bool) -> bool:
        """Whether a path exists, or not, as a step needs it. What is not known yet is put into the setup."""
        above, _, name = path.rpartition("/")
        if above and not self._need(above, True):
            return False
        if path not in self._now:
            origin = self._fresh.get(above, above) if above else ""
            self._now[path] = there and origin is not None
            if origin is not None:
                self._before[f"{origin}/{name}" if above else path] = there
        return self._now[path] is there

    def _is_empty(self, path: str) -> bool:
        inside = [f"{path}/{name}" for name in (*FILES, INNER)] if "/" not in path else []
        return all(self._need(one, False) for one in inside)

    # --- doing ----------------------------------------------------------------------------------------------------

    def _change(self, path: str, there: bool) -> None:
        self._now[path] = there
        self._directories.append(path.rpartition("/")[0])

    def _do(self, step: FileStep) -> bool:
        """Play a step through. False if it cannot succeed after those before it."""
        path, to = step.path, step.to
        if step.kind == "rename-directory":
            return self._move(path, to)
        if step.kind in ("create", "symlink", "mkdir"):
            possible = self._need(path, False)
        elif step.kind == "rmdir":
            possible = self._need(path, True) and self._is_empty(path)
        else:
            possible = self._need(path, True)
        if path in self._symlinks and (step.kind in ON_DATA or step.kind == "link"):
            return False
        if step.kind == "mmap" and self._made.get(path) in self._empty:
            return False  # a mapping of nothing
        if to:
            possible = possible and self._need(to, step.kind == "replace")
        if not possible:
            return False
        self._played(step)
        return True

    def _played(self, step: FileStep) -> None:
        path, to = step.path, step.to
        is_symlink = step.kind == "symlink" or (path in self._symlinks and bool(to))
        self._symlinks -= {path, to} if step.kind not in ON_DATA else set()
        self._symlinks |= {to or path} if is_symlink else set()
        self._count(step)
        if step.kind not in ON_DATA:
            self._change(path, step.kind in ("create", "symlink", "mkdir", "link"))
        if step.kind == "mkdir":
            self._fresh[path] = None
            self._directories.append(path)
        elif step.kind in ON_DATA or step.kind == "create":
            self._files.append(path)
        elif to:
            self._change(to, True)
            self._files += [path, to]

    def _count(self, step: FileStep) -> None:
        """Keep track of which of the created files are empty."""
        if step.kind in ON_DATA:
            self._empty.discard(self._made.get(step.path, 0))
            return
        if step.to:
            self._made.pop(step.to, None)
        number = self._made.get(step.path) if step.kind == "link" else self._made.pop(step.path, None)
        if step.kind == "create":
            self._files_made += 1
            number = self._files_made
            self._empty.add(number)
        if number is not None and (step.to or step.kind == "create"):
            self._made[step.to or step.path] = number

    def _move(self, path: str, to: str) -> bool:
        if not (self._need(path, True) and self._need(to, False)):
            return False

        def moved(one: str) -> str:
            return to + one[len(path) :] if f"{one}/".startswith(f"{path}/") else one

        self._now = {moved(one) if one != path else one: there for one, there in self._now.items()}
        self._symlinks = set(map(moved, self._symlinks))
        self._made = {moved(one): number for one, number in self._made.items()}
        self._files = [*map(moved, self._files)]
        self._directories = [*map(moved, self._directories)]
        self._fresh[to], self._fresh[path] = self._fresh.get(path, path), None
        self._change(path, False)
        self._change(to, True)
        self._directories.append(to)
        return True


def _is_directory(path: str) -> bool:
    return path.rpartition("/")[2] in (*DIRECTORIES, INNER)
