"""Makes an endless plan: operations on the files of two directories, drawn at random, each of which can succeed.

Some files of a third directory are written first, synced with their names, and never touched again: every filesystem
promises those.

Plain Python 3.9: it runs on the DUT. The plan knows what exists, as if every operation before had succeeded; the writer
stops at the first that fails. The same seed gives the same plan.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from typing import Any

from plugpull.integrity.oracle.stamp_format import SECTOR

Step = dict[str, Any]
DIRECTORIES = ("A", "B")
UNTOUCHED = "K"
UNTOUCHED_BLOCKS = (192, 16, 16, 16)
"""Of each of those files. The first has several clusters of exFAT on a disk of more than 256 MiB, which are 32 KiB."""
LARGEST = 64
"""Blocks of a file at which it is truncated."""
SHARE_SYNCED = 0.6
"""The share of changes that are followed by a sync of what they changed."""


class Storm:
    """``weights`` are the relative frequencies of ``create``, ``write``, ``append``, ``truncate``, ``replace``,
    ``rename``, ``link``, ``unlink`` and ``syncfs``. ``most`` names exist at a time. ``first`` is the first number for
    files, which no other plan of the run may use.
    """

    def __init__(self, seed: int, first: int, weights: dict[str, int], most: int = 24) -> None:
        self._random = random.Random(seed)
        self._number = itertools.count(first)
        self._weights = {kind: weight for kind, weight in weights.items() if weight > 0}
        self._most = most
        self._names: dict[str, int] = {}
        """Which file each name shows."""
        self._sizes: dict[int, int] = {}
        """The blocks of each file."""

    def steps(self) -> Iterator[Step]:
        """The plan."""
        for directory in (*DIRECTORIES, UNTOUCHED):
            yield {"do": "mkdir", "path": directory, "file": next(self._number)}
        yield {"do": "fsyncdir", "path": ""}
        for number, blocks in enumerate(UNTOUCHED_BLOCKS):
            path = f"{UNTOUCHED}/{number}"
            yield {"do": "create", "path": path, "file": next(self._number)}
            yield {"do": "write", "path": path, "offset": 0, "length": blocks * SECTOR}
            yield {"do": "fsync", "path": path}
        yield {"do": "fsyncdir", "path": UNTOUCHED}
        kinds, weights = list(self._weights), list(self._weights.values())
        while True:
            kind = self._random.choices(kinds, weights)[0]
            if not self._names or (kind == "create" and len(self._names) >= self._most):
                kind = "unlink" if self._names else "create"
            yield from getattr(self, "_" + kind)()

    # --- choosing -----------------------------------------------------------------------------------------------------

    def _any(self) -> str:
        return self._random.choice(sorted(self._names))

    def _free(self) -> str:
        while True:
            name = f"{self._random.choice(DIRECTORIES)}/{self._random.randrange(4 * self._most)}"
            if name not in self._names:
                return name

    def _blocks(self) -> int:
        return self._random.choice((1, 1, 2, 3, 8, 16))

    def _sync(self, path: str, kinds: tuple[str, ...] = ("fsync", "fsync", "fdatasync")) -> Iterator[Step]:
        if self._random.random() < SHARE_SYNCED:
            yield {"do": self._random.choice(kinds), "path": path}

    def _sync_names(self, *paths: str) -> Iterator[Step]:
        if self._random.random() < SHARE_SYNCED:
            for directory in dict.fromkeys(path.rpartition("/")[0] for path in paths):
                yield {"do": "fsyncdir", "path": directory}

    # --- doing --------------------------------------------------------------------------------------------------------

    def _make(self, path: str) -> Iterator[Step]:
        number, blocks = next(self._number), self._blocks()
        self._names[path], self._sizes[number] = number, blocks
        yield {"do": "create", "path": path, "file": number}
        yield {"do": "write", "path": path, "offset": 0, "length": blocks * SECTOR}

    def _create(self) -> Iterator[Step]:
        path = self._free()
        yield from self._make(path)
        yield from self._sync(path, ("fsync",))
        yield from self._sync_names(path)

    def _write(self) -> Iterator[Step]:
        path, blocks = self._any(), self._blocks()
        begin = self._random.randrange(self._sizes[self._names[path]] + 1)
        self._grow(path, begin + blocks)
        yield {"do": "write", "path": path, "offset": begin * SECTOR, "length": blocks * SECTOR}
        yield from self._sync(path)

    def _append(self) -> Iterator[Step]:
        path, blocks = self._any(), self._blocks()
        if self._sizes[self._names[path]] + blocks > LARGEST:
            yield from self._cut(path)
        self._grow(path, self._sizes[self._names[path]] + blocks)
        yield {"do": "append", "path": path, "length": blocks * SECTOR}
        yield from self._sync(path)

    def _truncate(self) -> Iterator[Step]:
        path = self._any()
        yield from self._cut(path)
        yield from self._sync(path)

    def _cut(self, path: str) -> Iterator[Step]:
        blocks = self._random.randrange(self._sizes[self._names[path]] + 1)
        self._sizes[self._names[path]] = min(blocks, LARGEST // 2)
        yield {"do": "truncate", "path": path, "size": self._sizes[self._names[path]] * SECTOR}

    def _grow(self, path: str, blocks: int) -> None:
        number = self._names[path]
        self._sizes[number] = max(self._sizes[number], blocks)

    def _replace(self) -> Iterator[Step]:
        """A new version of a file, in the way of editors: written beside it and renamed over it."""
        path, new = self._any(), self._free()
        yield from self._make(new)
        yield from self._sync(new, ("fsync",))
        yield from self._move(new, path)

    def _rename(self) -> Iterator[Step]:
        yield from self._move(self._any(), self._free())

    def _move(self, path: str, to: str) -> Iterator[Step]:
        self._names[to] = self._names.pop(path)
        yield {"do": "rename", "path": path, "to": to}
        yield from self._sync_names(path, to)

    def _link(self) -> Iterator[Step]:
        path, to = self._any(), self._free()
        self._names[to] = self._names[path]
        yield {"do": "link", "path": path, "to": to}
        yield from self._sync_names(to)

    def _unlink(self) -> Iterator[Step]:
        path = self._any()
        del self._names[path]
        yield {"do": "unlink", "path": path}
        yield from self._sync_names(path)

    def _syncfs(self) -> Iterator[Step]:
        yield {"do": "syncfs"}
