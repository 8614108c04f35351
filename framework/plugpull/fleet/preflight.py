"""What the last check before a nightly run found, kept beside the runs of the archive."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path

import msgspec

from plugpull.files import write_whole

FOLDER = ".nightly"
"""The directory in the archive."""


class PreflightRecord(msgspec.Struct, frozen=True):
    """The last check of a rig. ``at`` is a time in UTC; without ``troubles``, the rig was ready."""

    rig: str
    at: str
    troubles: tuple[str, ...] = ()


def write_preflight(archive: Path, record: PreflightRecord) -> None:
    """Replace the record of the rig. One that cannot be written stays as it was: the night goes on."""
    with suppress(OSError):
        (archive / FOLDER).mkdir(exist_ok=True)
        write_whole(_file(archive, record.rig), msgspec.json.encode(record))


def read_preflight(archive: Path, rig: str) -> PreflightRecord | None:
    """The last check of a rig; None if there is none that can be read."""
    try:
        record = msgspec.json.decode(_file(archive, rig).read_bytes(), type=PreflightRecord)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    return record if record.rig == rig else None


def _file(archive: Path, rig: str) -> Path:
    return archive / FOLDER / f"{re.sub(r'[^A-Za-z0-9_.-]', '_', rig)[:80]}.preflight.json"
