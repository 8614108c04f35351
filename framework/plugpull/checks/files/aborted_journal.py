"""Syncs that returned without an error after the kernel had given up the journal of their filesystem."""

from __future__ import annotations

import re
from collections.abc import Sequence

from plugpull.checks.files.file_rounds import FileRound
from plugpull.history.events import KernelMessage
from plugpull.history.story import Story
from plugpull.integrity.oracle.files.wrong import FileWrong


def returned_after_abort(story: Story, one: FileRound, wrong: Sequence[FileWrong]) -> str:
    """Words that say so if it is true of all syncs that had promised what is wrong; empty otherwise.

    ext4 and its journal say ``Aborting journal on device sda-8.`` (fs/jbd2/journal.c, jbd2_journal_abort)."""
    begun = one.begun.at or 0.0
    stays = (story.attachment_at(disk, begun) for disk in one.disks)
    devices = [re.escape(stay.kname) for stay in stays if stay is not None]
    said = re.compile(rf"Aborting journal on device (?:{'|'.join(devices)})-")
    lines = (line for line in story.of(KernelMessage) if line.at is not None and line.at >= begun)
    aborted = next((line.at for line in lines if devices and said.match(line.text)), None)
    kept = [each.kept_by for each in wrong]
    returned = [sync.returned for sync in kept if sync is not None and sync.returned is not None]
    if aborted is None or not returned or len(returned) < len(wrong) or min(returned) <= aborted:
        return ""
    return (
        f"; the sync that promised it returned {min(returned) - aborted:.3f} s after the kernel had aborted the journal"
    )
