"""Copies runs into one run directory, as its parts.

The given runs are only read. After each step the directory is a run that can be judged, so nothing is lost if the
process is killed at any moment; the same command then goes on where it stopped.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from msgspec.structs import replace

from plugpull.errors import RigError, UsageError
from plugpull.history.reader import HISTORY_FILE, History, read_history
from plugpull.merging.manifest import (
    MANIFEST_FILE,
    PARTS,
    ListedPart,
    Manifest,
    digest_of,
    found_parts,
    has_parts,
    part_folder,
    read_manifest,
    write_manifest,
)

LOCK = ".merging.lock"
ADDING = ".adding"
"""How the name of the folder begins into which a part is copied."""
HALF_WRITTEN = re.compile(r"\..+\.\d+")
"""The name of a file that ``write_whole`` has not finished."""
DERIVED = frozenset({"results.json", "junit.xml", "report.html", "kernel.log"})
"""Files that are written again from the histories of all parts."""


@dataclass(frozen=True)
class FoundPart:
    """A part of a run that is to be merged: its folder, its history and the history's SHA-256."""

    folder: Path
    sha256: str
    history: History


def gather(out: Path, runs: Sequence[Path]) -> Manifest:
    """Make ``out`` a run with all parts of ``runs``, besides those that it has already. Returns its list of parts.

    Raises UsageError if one of them is not a run, if they do not belong to one rig, or if ``out`` is something else;
    RigError if a file cannot be copied, or if another process is merging into ``out``.
    """
    _check_places(out, runs)
    parts = [part for run in runs for part in _parts_of(run)]
    _check_rigs(out, parts)
    try:
        out.mkdir(parents=True, exist_ok=True)
        with _locked(out):
            return _add(out, parts, runs)
    except OSError as error:
        raise RigError(
            f"cannot merge into {out}: {error.strerror or error}",
            hint="make room on that file system, then run the same command again",
        ) from error


def _check_places(out: Path, runs: Sequence[Path]) -> None:
    for run in runs:
        if not run.is_dir():
            raise UsageError(f"{run} is not a run directory", hint="name run directories, such as runs/latest")
        if run.resolve() == out.resolve() or out.resolve().is_relative_to(run.resolve()):
            raise UsageError(f"{out} is, or is in, one of the runs to merge", hint="name a new directory first")
    if out.is_symlink() or (out.exists() and not out.is_dir()):
        raise UsageError(f"{out} is not a directory", hint="name a new directory first")
    names = {path.name for path in out.iterdir()} if out.is_dir() else set()
    manifest = read_manifest(out) if MANIFEST_FILE in names else None
    begun = LOCK in names if manifest is None else manifest.kind == "shards"
    if names and not begun:
        raise UsageError(
            f"{out} exists, and plugpull merge did not make it",
            hint="name a new directory first: plugpull merge OUT RUN...",
        )


def _parts_of(run: Path) -> Iterator[FoundPart]:
    """The parts of a run: itself, or those of a run that has several."""
    folders = [part_folder(run, name) for name in found_parts(run)] if has_parts(run) else [run]
    for folder in folders:
        file = folder / HISTORY_FILE
        history = read_history(file)
        try:
            yield FoundPart(folder.resolve(), digest_of(file), history)
        except OSError as error:
            raise UsageError(f"cannot read the history {file}: {error.strerror}") from None


def _check_rigs(out: Path, parts: Sequence[FoundPart]) -> None:
    known = {part.sha256: part.history for part in parts}
    for name in found_parts(out):
        history = read_history(part_folder(out, name) / HISTORY_FILE)
        known.setdefault(name, history)
    rigs = {history.begun.rig_name: history.begun.rig for history in known.values() if history.begun is not None}
    if len(rigs) > 1 or any(h.begun.rig != rigs[h.begun.rig_name] for h in known.values() if h.begun is not None):
        raise UsageError(
            f"these runs are not of one rig: {', '.join(sorted(rigs))}",
            hint="merge the shards of one run; plugpull compare is for others",
        )


def _unknowns(runs: Sequence[Path]) -> Iterator[str]:
    """Why runs with several parts could not pass, apart from what is in their histories."""
    for run in runs:
        manifest = read_manifest(run) if has_parts(run) else None
        if manifest is not None:
            yield from manifest.unknowns
            if manifest.interrupted:
                yield f"{run.resolve().name} was interrupted ({manifest.interrupted})"
            if manifest.open:
                yield f"{run.resolve().name} ended before all of its parts were put together"
        elif has_parts(run):
            yield f"the list of the parts of {run.resolve().name} is missing or damaged"


@contextmanager
def _locked(out: Path) -> Iterator[None]:
    """Only one process merges into a directory at a time."""
    fd = os.open(out / LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError:
        raise RigError(f"another process is merging into {out}", hint="wait until it ends") from None
    finally:
        os.close(fd)


def _add(out: Path, parts: Sequence[FoundPart], runs: Sequence[Path]) -> Manifest:
    manifest = read_manifest(out) or Manifest(kind="shards")
    skipped = [skip for run in runs if has_parts(run) and (its := read_manifest(run)) for skip in its.skipped]
    manifest = replace(
        manifest,
        open=True,
        unknowns=tuple(dict.fromkeys((*manifest.unknowns, *_unknowns(runs)))),
        skipped=tuple(dict.fromkeys((*manifest.skipped, *skipped))),
    )
    write_manifest(out, manifest)
    (out / PARTS).mkdir(exist_ok=True)
    _remove_unlisted(out, manifest)
    known = {part.sha256 for part in manifest.parts}
    for part in parts:
        if part.sha256 in known:
            continue
        known.add(part.sha256)
        name = f"part-{len(manifest.parts) + 1}"
        _copy(part, out / PARTS, name)
        listed = ListedPart(name=name, sha256=part.sha256, source=str(part.folder))
        manifest = replace(manifest, parts=(*manifest.parts, listed))
        write_manifest(out, manifest)
    manifest = replace(manifest, open=False)
    write_manifest(out, manifest)
    return manifest


def _remove_unlisted(out: Path, manifest: Manifest) -> None:
    """Remove what a killed process was copying or writing. The runs that it copied from are whole."""
    for path in out.iterdir():
        if HALF_WRITTEN.fullmatch(path.name) and not path.is_dir():
            path.unlink()
    listed = {part.name for part in manifest.parts}
    for path in (out / PARTS).iterdir():
        if path.name not in listed and (path.name.startswith(ADDING) or path.name.startswith("part-")):
            shutil.rmtree(path, ignore_errors=True)


def _copy(part: FoundPart, into: Path, name: str) -> None:
    """Copy a run's ordinary files, under another name until all of them are there."""
    half = into / f"{ADDING}-{name}"
    shutil.copytree(part.folder, half, ignore=_left_out)
    if digest_of(half / HISTORY_FILE) != part.sha256:
        raise UsageError(f"{part.folder} is still being recorded", hint="merge it when its run has ended")
    half.rename(into / name)


def _left_out(folder: str, names: list[str]) -> set[str]:
    """Files that are derived from histories, links, devices and pipes."""
    left = set()
    for name in names:
        mode = os.lstat(os.path.join(folder, name)).st_mode
        if name in DERIVED or not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
            left.add(name)
    return left
