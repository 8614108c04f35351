"""The errors that writers of files were given."""

from __future__ import annotations

import errno
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from plugpull.checks.accusation import Accusation
from plugpull.checks.files.file_rounds import FileRound, file_rounds
from plugpull.history.cut import Cut
from plugpull.history.reader import Story
from plugpull.integrity.oracle.files.ledger import decode_file_ledger

OF_THE_DEVICE = frozenset({errno.EIO, errno.ENODEV, errno.ENXIO, errno.EROFS, errno.ESHUTDOWN, errno.EUCLEAN})
"""Errors that come from the block device below: directly, or because the filesystem has given up."""


CLOCKS = 0.1
"""Seconds before the command of a cut in which an error may still be the cut's: the two are of two clocks."""


class FileError(NamedTuple):
    """An operation on files that failed at ``at``, DUT seconds."""

    what: str
    errno: int
    at: float


def failed_with_power(story: Story, one: FileRound, cuts: Iterable[Cut]) -> Iterator[Accusation]:
    """An accusation for the first error of the device that a writer met while its disk was attached and before any cut
    of it. What holds files on an array says itself when it may fail (``array_survived``)."""
    if one.disks != (one.disk,):
        return
    begins = [cut.off.commanded_at for cut in cuts]
    if None in begins:
        return
    first = min((at for at in begins if at is not None), default=float("inf"))
    error = max((cut.error for cut in cuts), default=0.0)
    for operation in decode_file_ledger(one.ledger).operations:
        at = operation.returned or operation.submitted
        if operation.errno not in OF_THE_DEVICE or at >= first - error - CLOCKS:
            continue
        here = story.attachment_at(one.disk, at)
        if here is not None and here == story.attachment_at(one.disk, one.begun.at or at):
            what = str(operation.__struct_config__.tag)
            summary = f"{what} of a file on {one.disk} failed with errno {operation.errno} although nothing was cut"
            yield Accusation(subject=one.disk, summary=summary, at=at)
        return


def device_errors(story: Story, name: str) -> Iterator[FileError]:
    """The first error of the block device in each round of files on a target."""
    for one in file_rounds(story):
        if one.disk != name:
            continue
        for operation in decode_file_ledger(one.ledger).operations:
            if operation.errno in OF_THE_DEVICE:
                what = str(operation.__struct_config__.tag)
                yield FileError(what, operation.errno, operation.returned or operation.submitted)
                break
