"""Disks that were plugged into another socket on purpose."""

from __future__ import annotations

from plugpull.history.attachments import same_identity
from plugpull.history.cut import Cut
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


def found_before_it_left(story: Story, cut: Cut, was: DiskAttached) -> bool:
    """Whether a disk that was moved was found in the other socket before the kernel noticed that it had left the one
    where it ``was``. ``found_again`` judges how it was found."""
    gone, off = story.detached_at(was), cut.off.commanded_at
    if gone is None or off is None:
        return False
    moves = [one for one in story.of(DiskMoved) if one.disk == was.disk and off - cut.error <= (one.at or 0.0) < gone]
    there = (one for one in story.attachments(was.disk) if moves and one.place == moves[-1].place)
    return any(off < (one.at or 0.0) <= gone and same_identity(one, was) for one in there)


def _before(move: DiskMoved, was: DiskAttached) -> bool:
    return move.disk == was.disk and (move.at or 0.0) <= (was.at or 0.0)


def home_of(story: Story, disk: str) -> str:
    """The socket that the rig file declares for a disk; empty if it is not known."""
    return next((str(one.get("at", "")) for one in story.rig.get("disk", ()) if one.get("name") == disk), "")
