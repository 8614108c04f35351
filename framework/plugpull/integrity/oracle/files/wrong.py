"""Describes what a filesystem shows and must not: expected, found, and the operations behind it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from enum import StrEnum

from plugpull.integrity.oracle.files.operations import AnyOperation


class FileDamage(StrEnum):
    """Kinds of damage to files, the worst first."""

    UNMOUNTABLE = "unmountable"
    LOST = "lost after fsync"
    """A name that was kept is gone, or kept data reads as zeros."""
    NEITHER_NAME = "neither name"
    """A rename that was not synced: the file has neither its old nor its new name."""
    OLD_VERSION = "old version"
    """A version of the data, or a holder of a name, that a kept one had replaced."""
    FOREIGN = "another file's data"
    CORRUPT = "corrupt block"
    """Neither a stamp, nor zeros, nor a mix of the versions that may be there; or a stamp that nobody put there."""
    WRONG_SIZE = "wrong size"
    RESURRECTED = "resurrected"
    """It was removed, the removal was kept, and it is there again."""
    BOTH_NAMES = "both names"
    LINK_COUNT = "link count wrong"
    UNREADABLE = "unreadable"
    UNREMOVABLE = "unremovable directory"
    UNKNOWN_NAME = "unknown name"
    """A name that the writer never made."""


@dataclass(frozen=True)
class FileWrong:
    """Something wrong at a path.

    ``expected`` and ``found`` are words. ``block`` is the first wrong block of a file, ``blocks`` their number; 0 if it
    is not about content. ``kept_by`` is the operation that promised what should be there, if one did.
    """

    kind: FileDamage
    path: str
    expected: str
    found: str
    block: int = 0
    blocks: int = 0
    kept_by: AnyOperation | None = None

    def sentence(self) -> str:
        """Such as "a/x: lost after fsync: file 3 expected, nothing found"."""
        where = f"{self.path or 'the directory of the writer'}"
        if self.blocks:
            many = f"blocks {self.block} to {self.block + self.blocks - 1}"
            where += f", {many if self.blocks > 1 else f'block {self.block}'}"
        kept = f" ({described(self.kept_by)})" if self.kept_by is not None else ""
        return f"{where}: {self.kind}: {self.expected} expected{kept}, {self.found} found"


def described(operation: AnyOperation) -> str:
    """An operation in words, such as "fsync of a/x, operation 5, returned at 3.214 s"."""
    what = str(operation.__struct_config__.tag)
    path = getattr(operation, "path", None)
    of = f" of {path or 'the top directory'}" if path is not None else ""
    at = f"returned at {operation.returned:.3f} s" if operation.returned is not None else "never returned"
    failed = f" with {error_name(operation.errno)}" if operation.errno else ""
    return f"{what}{of}, operation {operation.number}, {at}{failed}"


def error_name(errno: int) -> str:
    """An errno in words."""
    return f"{os.strerror(errno)} (errno {errno})"
