"""``parts.json``: the list of the parts of a run.

A run with several parts has a folder ``parts``, with one folder for each. Each part is an ordinary run directory with a
history of its own, which is never changed: its numbers and seals stay valid.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Literal

import msgspec

from plugpull.errors import RigError
from plugpull.files import CHUNK, directory_inside, read_inside, write_whole
from plugpull.history.reader import HISTORY_FILE

MANIFEST_FILE = "parts.json"
PARTS = "parts"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
"""A part's name. It is also the name of its folder, so it holds no dots and no slashes."""


class ListedPart(msgspec.Struct, frozen=True, kw_only=True):
    """One part. ``sha256`` is the digest of its history when it was complete; empty as long as it is being recorded.
    ``source`` is the run directory that it was copied from."""

    name: str
    sha256: str = ""
    source: str = ""


class SkippedTest(msgspec.Struct, frozen=True, kw_only=True):
    """A scenario that was skipped before it began."""

    id: str
    reason: str


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """The contents of ``parts.json``.

    ``kind``: whether the parts are benches of one machine, or shards. ``open``: more parts are to come, so the run
    cannot pass yet. ``planned`` are the scenarios that all parts together are to run, ``skipped`` are those of them
    that were skipped, perhaps by a bench without a history. ``unknowns`` are reasons why the
    run cannot pass, such as a bench that died. ``interrupted``: the signal that ended the run early.
    ``rig_name``, ``seed``, ``argv``, ``started`` and ``plugpull`` are as in ``run.begin``, for a run of which no part
    has a history."""

    schema: int = 1
    kind: Literal["benches", "shards"]
    open: bool = True
    parts: tuple[ListedPart, ...] = ()
    planned: tuple[str, ...] = ()
    skipped: tuple[SkippedTest, ...] = ()
    unknowns: tuple[str, ...] = ()
    interrupted: str = ""
    rig_name: str = ""
    seed: int = 0
    argv: tuple[str, ...] = ()
    started: str = ""
    plugpull: str = ""


def has_parts(run: Path) -> bool:
    """Whether this run directory has several parts. It is also true if only the list of its parts is missing."""
    if not run.is_dir():
        return False
    return os.path.lexists(run / MANIFEST_FILE) or (not os.path.lexists(run / HISTORY_FILE) and (run / PARTS).is_dir())


def read_manifest(run: Path) -> Manifest | None:
    """The list of the parts of a run; ``None`` if it is missing or damaged."""
    try:
        fd = os.open(run, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            _, data = read_inside(fd, MANIFEST_FILE)
        finally:
            os.close(fd)
        return msgspec.json.decode(data, type=Manifest)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def write_manifest(run: Path, manifest: Manifest) -> None:
    """Replace the list of the parts, completely or not at all. Raises RigError."""
    try:
        write_whole(run / MANIFEST_FILE, msgspec.json.format(msgspec.json.encode(manifest), indent=2) + b"\n")
    except OSError as error:
        raise RigError(
            f"cannot write {run / MANIFEST_FILE}: {error.strerror or error}", hint="make room on that file system"
        ) from error


def part_folder(run: Path, name: str) -> Path:
    """The folder of a part."""
    return run / PARTS / name


def history_of(run: Path, name: str) -> Path:
    """The history of a part."""
    return part_folder(run, name) / HISTORY_FILE


def found_parts(run: Path) -> tuple[str, ...]:
    """The names of the folders of parts that hold a history, in their order. Links are not followed."""
    names = []
    with suppress(OSError), directory_inside(run, PARTS) as folder:
        for name in os.listdir(folder):
            if NAME.fullmatch(name) and _holds_history(folder, name):
                names.append(name)
    return tuple(sorted(names, key=lambda name: (len(name), name)))


def _holds_history(folder: int, name: str) -> bool:
    with suppress(OSError), directory_inside(folder, name) as part:
        return stat.S_ISREG(os.stat(HISTORY_FILE, dir_fd=part, follow_symlinks=False).st_mode)
    return False


def digest_of(history: Path) -> str:
    """The SHA-256 of a history. Raises OSError."""
    whole = hashlib.sha256()
    for chunk in _chunks(history):
        whole.update(chunk)
    return whole.hexdigest()


def _chunks(path: Path) -> Iterator[bytes]:
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(fd, "rb") as file:
        while chunk := file.read(CHUNK):
            yield chunk
