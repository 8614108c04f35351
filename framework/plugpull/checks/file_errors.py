"""The errors that writers of files were given."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from typing import NamedTuple

from plugpull.checks.file_rounds import file_rounds
from plugpull.history.reader import Story
from plugpull.integrity.oracle.files.ledger import decode_file_ledger

OF_THE_DEVICE = frozenset({errno.EIO, errno.ENODEV, errno.ENXIO, errno.EROFS, errno.ESHUTDOWN, errno.EUCLEAN})
"""Errors that come from the block device below: directly, or because the filesystem has given up."""


class FileError(NamedTuple):
    """An operation on files that failed at ``at``, DUT seconds."""

    what: str
    errno: int
    at: float


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
