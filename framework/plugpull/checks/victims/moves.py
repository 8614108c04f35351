"""Disks that were plugged into another socket on purpose."""

from __future__ import annotations

from plugpull.history.events import DiskAttached, DiskMoved
from plugpull.history.story import Story


def moved_between(story: Story, was: DiskAttached, now: DiskAttached) -> DiskMoved | None:
    """The last move of a disk between two of its attachments; ``None`` if it should be where it was."""
    begin, end = was.at or 0.0, now.at or 0.0
    moves = (move for move in story.of(DiskMoved) if move.disk == now.disk and begin < (move.at or 0.0) <= end)
    return max(moves, key=lambda move: move.at or 0.0, default=None)


def home_of(story: Story, disk: str) -> str:
    """The socket that the rig file declares for a disk; empty if it is not known."""
    return next((str(one.get("at", "")) for one in story.rig.get("disk", ()) if one.get("name") == disk), "")
