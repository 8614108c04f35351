"""Requests that were completed after an earlier one had failed because the disk was cut."""

from __future__ import annotations

from typing import NamedTuple

from plugpull.checks.data.stamps import Round
from plugpull.history.cut import Cut
from plugpull.history.story import Story
from plugpull.integrity.oracle.ledger import Ledger

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
