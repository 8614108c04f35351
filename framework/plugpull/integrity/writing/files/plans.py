"""Plans for the writer: a sequence with its setup, as steps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from plugpull.integrity.oracle.files.operations import BLOCK
from plugpull.integrity.sequences import FileSequence, FileStep

Plan = list[dict[str, Any]]
SETUP_BLOCKS = 2
"""Blocks of data in each file of the setup."""
LEFT_ALONE, LEFT_ALONE_BLOCKS = "still", 192
"""A file of several clusters: exFAT's have 32 KiB on a disk of more than 256 MiB, and the first needs no table."""


def plan_of(sequence: FileSequence, files: int) -> Plan:
    """The steps of a sequence: its setup and a sync, its operations, and its last sync.

    ``files`` is the first number for files that nothing else in the run has; as many are used as objects are made.
    """
    numbers = iter(range(files, files + len(sequence.directories) + len(sequence.files) + len(sequence.steps)))
    plan: Plan = [{"do": "mkdir", "path": path, "file": next(numbers)} for path in sequence.directories]
    for path in sequence.files:
        plan.append({"do": "create", "path": path, "file": next(numbers)})
        plan.append({"do": "write", "path": path, "offset": 0, "length": SETUP_BLOCKS * BLOCK})
    plan.append({"do": "sync"})
    plan += [_step(step, numbers) for step in sequence.steps]
    sync = sequence.sync
    plan.append({"do": sync.kind} | ({} if sync.kind in ("sync", "syncfs") else {"path": sync.path}))
    return plan


def left_alone(file: int) -> Plan:
    """Steps that make a file with this number and sync it with its directory. No sequence touches it after that."""
    made = {"path": LEFT_ALONE}
    return [
        {"do": "create", **made, "file": file},
        {"do": "write", **made, "offset": 0, "length": LEFT_ALONE_BLOCKS * BLOCK},
        {"do": "fsync", **made},
        {"do": "fsyncdir", "path": ""},
    ]


def _step(step: FileStep, numbers: Iterator[int]) -> dict[str, Any]:
    made: dict[str, Any] = {"do": step.kind, "path": step.path}
    if step.kind in ("create", "mkdir", "symlink"):
        made["file"] = next(numbers)
    if step.kind == "symlink":
        made["target"] = "nowhere"
    elif step.kind in ("rename", "replace", "rename-directory"):
        made |= {"do": "rename", "to": step.to}
    elif step.kind == "link":
        made["to"] = step.to
    elif step.kind == "truncate":
        made["size"] = BLOCK
    elif step.kind in ("write", "mmap"):
        made |= {"offset": 0, "length": BLOCK}
    elif step.kind == "append":
        made["length"] = BLOCK
    return made
