"""Requests that were completed after an earlier one had failed because the disk was cut, or after it was removed."""

from __future__ import annotations

from itertools import zip_longest
from math import inf
from typing import NamedTuple

from plugpull.checks.data.stamps import Round
from plugpull.history.cut import Cut
from plugpull.history.story import Story
from plugpull.integrity.oracle.ledger import Flush, Ledger, Write

LATE = 0.5
"""Seconds after the uevent of its removal in which a request of a disk may still seem to succeed: the two are timed by
two programs."""

_ONE_COMMAND = "usb-storage"
"""The driver that has one command at a time (drivers/usb/storage/scsiglue.c: ``can_queue``), so that commands end in
their order. With others, what the disk already has may still be completed after a later command has failed."""


class _Ended(NamedTuple):
    completed: int
    submitted: int
    error: int


def completed_later(story: Story, one: Round, ledger: Ledger, cuts: tuple[Cut, ...]) -> tuple[str, ...]:
    """A doubt if a write or a flush of a disk that was cut is said to have succeeded after another had failed.

    Of 153 ledgers with a failed request of such a disk on USB none has that. If the driver has several commands at
    once, the one that succeeded must have been submitted after the failure. An array goes on with its other members.
    """
    own = any(str(disk.get("name")) == one.disk for disk in story.rig.get("disk", ()))
    if not cuts or not own:
        return ()
    done = [
        _Ended(write.completed, write.issued, write.error) for write in ledger.writes if write.completed is not None
    ]
    done += [
        _Ended(flush.completed, flush.submitted, flush.error) for flush in ledger.flushes if flush.completed is not None
    ]
    failed = min((request.completed for request in done if request.error), default=None)
    if failed is None:
        return ()
    in_order = any(attached.driver == _ONE_COMMAND for attached in story.attachments(one.disk))
    later = [request.completed if in_order else request.submitted for request in done if not request.error]
    if max(later, default=failed) <= failed:
        return ()
    return (f"{one.disk}: by its ledger, a request was completed after another had failed as it was cut",)


def outlived(story: Story, disk: str, ledger: Ledger, origin: float) -> float | None:
    """When the last write or flush succeeded while the kernel had removed the disk; ``None`` if none did. ``origin`` is
    when the ledger began, DUT seconds. In 739 rounds, 228 of them on a disk that was removed, none did."""
    stays = story.attachments(disk)  # none of an array
    away = [
        (left, later.at or 0.0 if later is not None else inf)
        for stay, later in zip_longest(stays, stays[1:])
        if (left := story.detached_at(stay)) is not None
    ]
    requests: list[Write | Flush] = [*ledger.writes, *ledger.flushes]
    done = [origin + one.completed_at for one in requests if one.completed_at is not None and not one.error]
    return max((at for at in done for left, until in away if left + LATE < at < until), default=None)
