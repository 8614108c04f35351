"""Disks that were plugged into another socket on purpose."""

from __future__ import annotations

from plugpull.history.events import DiskAttached, DiskMoved
from plugpull.history.story import Story


def moved_between(story: Story, was: DiskAttached, now: DiskAttached) -> DiskMoved | None:
    """The last move of a disk between two of its attachments; ``None`` if it should be where it was."""
    begin, end = was.at or 0.0, now.at or 0.0
    moves = (move for move in story.of(DiskMoved) if move.disk == now.disk and begin < (move.at or 0.0) <= end)
    return max(moves, key=lambda move: move.at or 0.0, default=None)


def moved_back(story: Story, was: DiskAttached, now: DiskAttached) -> str:
    """A sentence if a disk that had been moved is in its first socket again, and nobody is on record who moved it back.
    A kernel cannot do that."""
    first, away = story.attachments(now.disk)[0], any(_before(move, was) for move in story.of(DiskMoved))
    if not away or moved_between(story, was, now) is not None or now.place != first.place or now.place == was.place:
        return ""
    return f"{now.disk} was moved, and came back where it had been first: who moved it back is not on record"


def _before(move: DiskMoved, was: DiskAttached) -> bool:
    return move.disk == was.disk and (move.at or 0.0) <= (was.at or 0.0)


def home_of(story: Story, disk: str) -> str:
    """The socket that the rig file declares for a disk; empty if it is not known."""
    return next((str(one.get("at", "")) for one in story.rig.get("disk", ()) if one.get("name") == disk), "")
