"""Reads the history of a run, whether it has one part or several."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from plugpull.errors import UsageError
from plugpull.history.reader import HISTORY_FILE, History, Story, read_history
from plugpull.merging.combine import RecordedPart, combine
from plugpull.merging.manifest import (
    NAME,
    digest_of,
    found_parts,
    has_parts,
    part_folder,
    read_manifest,
)


def read_run(path: Path, *, edited: bool = False, reduce: Callable[[Story], Story] | None = None) -> History:
    """The history of a run directory, or of a history file. The parts of a run with several are put together.

    ``edited``: the histories were edited on purpose, so line numbers and digests are not compared. ``reduce``: see
    ``read_history``; it is for runs with one part. Raises UsageError if there is no such run.
    """
    if not has_parts(path):
        return read_history(path, edited=edited, reduce=reduce)
    manifest = read_manifest(path)
    listed = {part.name: part.sha256 for part in manifest.parts} if manifest is not None else {}
    names = dict.fromkeys((*listed, *found_parts(path)))
    return combine(manifest, [_read(path, name, listed.get(name), edited) for name in names])


def _read(run: Path, name: str, digest: str | None, edited: bool) -> RecordedPart:
    if not NAME.fullmatch(name) or name not in found_parts(run):
        return RecordedPart(name, None)
    file = part_folder(run, name) / HISTORY_FILE
    try:
        altered = bool(digest) and not edited and digest_of(file) != digest
        return RecordedPart(name, read_history(file, edited=edited), altered=altered, listed=digest is not None)
    except (OSError, UsageError):
        return RecordedPart(name, None)
