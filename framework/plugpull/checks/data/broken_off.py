"""Requests that were completed after an earlier one had failed because the disk was cut."""

from __future__ import annotations

from plugpull.checks.data.stamps import Round
from plugpull.history.cut import Cut
from plugpull.history.story import Story
from plugpull.integrity.oracle.ledger import Ledger


def completed_later(story: Story, one: Round, ledger: Ledger, cuts: tuple[Cut, ...]) -> tuple[str, ...]:
    """A doubt if a write or a flush of a disk that was cut is said to have succeeded after another had failed: of 153
    ledgers with a failed request of such a disk none has that. An array goes on with its other members."""
    own = any(str(disk.get("name")) == one.disk for disk in story.rig.get("disk", ()))
    if not cuts or not own:
        return ()
    done = [(write.completed, write.error) for write in ledger.writes if write.completed is not None]
    done += [(flush.completed, flush.error) for flush in ledger.flushes if flush.completed is not None]
    failed = min((place for place, error in done if error), default=None)
    if failed is None or not any(place > failed and not error for place, error in done):
        return ()
    return (f"{one.disk}: by its ledger, a request was completed after another had failed as it was cut",)
