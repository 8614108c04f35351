"""The directory of a run: how it and the folders in it are named and made."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from itertools import count
from pathlib import Path

from plugpull.errors import UsageError
from plugpull.history.reader import HISTORY_FILE


def make_directory(out: Path | None, rig: str) -> Path:
    """Make the directory of a run that begins now. Raises UsageError."""
    root = out or Path("runs")
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    for suffix in ("", *(f"-{number}" for number in range(2, 1000))):
        directory = root / f"{stamp}-{rig}{suffix}"
        try:
            directory.mkdir(parents=True)
            return directory.absolute()
        except FileExistsError:
            continue
        except OSError as error:
            raise UsageError(
                f"cannot make the run's directory {directory}: {error.strerror}",
                hint="choose another directory with --out",
            ) from None
    raise UsageError(f"{root} has a thousand runs of this second already")


def remove_empty(directory: Path) -> None:
    """Remove the directory of a run that never began. (A history with only its first line is not worth keeping.)"""
    with suppress(OSError):
        (directory / HISTORY_FILE).unlink(missing_ok=True)
        directory.rmdir()


def point_latest(directory: Path) -> None:
    """Make ``latest`` beside a run's directory point at it."""
    latest = directory.parent / "latest"
    half = directory.parent / f".latest-{os.getpid()}"
    with suppress(OSError):
        half.unlink(missing_ok=True)
        half.symlink_to(directory.name)
        half.replace(latest)


def folder_names(scenario: str) -> Iterator[str]:
    """Names for the folder of a scenario: its file and function, then the same with numbers."""
    name = _file_name(scenario)
    yield name
    for number in count(2):
        yield f"{name}-{number}"


def _file_name(scenario: str) -> str:
    """A folder name for a scenario: its file and function, without anything that could leave the parent folder."""
    path, _, name = scenario.partition("::")
    words = f"{path.rsplit('/', 1)[-1].removesuffix('.py')}-{name}" if name else path
    kept = "".join(c if c.isalnum() or c in "-_." else "-" for c in words)
    return kept.strip("-.")[:120] or "scenario"
