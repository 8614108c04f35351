"""The names of tasks, by which a study recognises them in the history."""

from __future__ import annotations

BUFFERED, END_FSYNC, O_SYNC, DIRECT = "buffered", "end_fsync", "O_SYNC", "direct"
CACHE_OFF = ", drive cache off"
"""At the end of a task's name: it ran with the drives' write caches switched off."""
WRITE, REWRITE, READ, SEEKS = "write", "rewrite", "read", "seeks"
FILE_PHASES = (WRITE, REWRITE, READ, SEEKS)
"""The phases of bonnie++, without those of single bytes."""
SMALL_SYNC = "small synchronous writes"


def on_filesystem(fstype: str, phase: str) -> str:
    """The name of the task that is a phase on a filesystem."""
    return f"{fstype} {phase}"
