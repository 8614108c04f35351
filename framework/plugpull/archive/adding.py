"""Copies runs into an archive, each one completely or not at all."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from plugpull.archive.index import writing
from plugpull.errors import RigError, UsageError
from plugpull.judging.results_io import RESULTS_FILE

HALF_ADDED = ".adding-"


def add_run(directory: Path, run: Path) -> Path:
    """Copy a run directory, or a single ``results.json``, into the archive. Returns its directory there.

    A run that is in the archive already stays as it is, so this can be repeated after an interruption. Links in the run
    are left out: they may lead outside. Raises UsageError if it is not a run or its name is taken, RigError if copying
    fails.
    """
    source = run.resolve()
    results = source / RESULTS_FILE if source.is_dir() else source
    if not results.is_file() or results.name != RESULTS_FILE:
        raise UsageError(
            f"{run} is not a run: it has no {RESULTS_FILE}", hint="name a run directory, such as runs/latest"
        )
    name = results.parent.name
    target = directory / name
    with writing(directory):
        if target.is_dir() and (target.samefile(results.parent) or _same(target / RESULTS_FILE, results)):
            return target
        if target.exists():
            raise UsageError(f"{target} exists and is another run", hint=f"rename {run}, then add it again")
        _copy(source, target)
    return target


def _same(one: Path, two: Path) -> bool:
    try:
        return one.read_bytes() == two.read_bytes()
    except OSError:
        return False


def _copy(source: Path, target: Path) -> None:
    for left in target.parent.glob(f"{HALF_ADDED}*"):  # of a copy that was killed: nobody else holds the lock
        shutil.rmtree(left, ignore_errors=True)
    half = target.with_name(f"{HALF_ADDED}{os.getpid()}")
    try:
        if source.is_dir():
            shutil.copytree(source, half, ignore=_links)
        else:
            half.mkdir()
            shutil.copy2(source, half / RESULTS_FILE)
        half.rename(target)
    except (OSError, shutil.Error) as error:
        shutil.rmtree(half, ignore_errors=True)
        raise RigError(f"cannot copy {source} into the archive: {error}", hint="free space there") from error


def _links(folder: str, names: list[str]) -> list[str]:
    """Everything that is neither an ordinary file nor a directory."""
    paths = ((name, os.path.join(folder, name)) for name in names)
    return [name for name, path in paths if os.path.islink(path) or not (os.path.isfile(path) or os.path.isdir(path))]
