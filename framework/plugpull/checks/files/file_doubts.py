"""Contradictions in the record of a round of files, and what shows that its filesystem was damaged or slow to mount."""

from __future__ import annotations

import re
from collections.abc import Iterator
from errno import errorcode

from plugpull.checks.accusation import Accusation
from plugpull.checks.evidence import limit, seconds
from plugpull.checks.files.file_errors import OF_THE_DEVICE
from plugpull.checks.files.file_rounds import FileRound, joined
from plugpull.checks.files.filesystem_check import MAY_BE_UNCLEAN
from plugpull.checks.starved import awake
from plugpull.history.cut import Cut
from plugpull.history.events import Acted, FilesystemChecked
from plugpull.history.story import Story
from plugpull.integrity.oracle.files.found import FoundEntry, decode_found_tree
from plugpull.integrity.oracle.files.ledger import FileLedger
from plugpull.integrity.oracle.files.promises import PROMISES
from plugpull.kernel.diagnosis.story_log import log_of

FAILED = 1
"""Exit status of a writer of files that met an error."""
CLOCKS = 0.1
"""Seconds before the command of a cut in which an error may still be the cut's: the two are of two clocks."""
MOUNTED_WITHIN = 60.0
"""Seconds in which a filesystem is recovered and mounted. It took 0.03 to 1.3 s on emulated benches."""
_DAMAGED = re.compile(
    r"JBD2: (?:recovery failed|Invalid checksum|journal checksum|bad block)|error count since last fsck"
    r"|mounting fs with errors|errs: wr \d+, rd \d+, flush \d+, (?:corrupt [1-9]|corrupt \d+, gen [1-9])"
    r"|Cannot recover all fsync data"
)
"""What the kernel logs when it recovers a filesystem that is damaged, or that recorded an error while its disk was
there (fs/jbd2/recovery.c, fs/ext4/super.c, fs/btrfs/volumes.c, fs/f2fs/super.c). The loss of a disk causes none of it:
nothing can be recorded on a disk that is gone."""


def round_doubts(story: Story, one: FileRound, ledger: FileLedger, cuts: tuple[Cut, ...]) -> Iterator[str]:
    """Contradictions of a round, a sentence each, without the disk's name."""
    yield from _scans_of_others(one)
    yield from _scans_differ(one)
    yield from _ended_otherwise(one, ledger)
    yield from _refused(story, one, ledger, cuts)
    yield from _mounted_only_later(story, one)


def recovery_faults(story: Story, one: FileRound) -> Iterator[Accusation]:
    """What the kernel says of a filesystem with a journal while it recovers it, and a mount that takes too long."""
    mount = one.mount
    if mount is None or mount.at is None or one.begun.fstype in MAY_BE_UNCLEAN:
        return
    begin = mount.at - mount.seconds
    end = max((scan.begun.at or 0.0 for scan in (one.scan, one.removal) if scan is not None), default=mount.at)
    what = f"the {one.begun.fstype} on {one.disk}"
    lines = [line for line in log_of(story).own_timed if begin - CLOCKS <= line.at <= end]
    damaged = next((line for line in lines if _DAMAGED.search(line.body)), None)
    if damaged is not None:
        yield Accusation(
            subject=one.disk,
            summary=f"the kernel found {what} damaged when it mounted it again: {damaged.body}",
            at=damaged.at,
            evidence=(damaged.text,),
        )
    took = awake(story, begin, mount.at)
    if mount.ok and took > MOUNTED_WITHIN:
        yield Accusation(
            subject=one.disk, summary=f"mounting {what} took {seconds(took)} {limit(MOUNTED_WITHIN)}", at=mount.at
        )


def _scans_of_others(one: FileRound) -> Iterator[str]:
    """Scans that are said to be of another round. 496 of 496 were of their own."""
    for scan in filter(None, (one.scan, one.removal)):
        if scan.begun.round != one.begun.round:
            yield f"its scan is said to be of round {scan.begun.round}"


def _scans_differ(one: FileRound) -> Iterator[str]:
    """Differences between the scan and the removal, although nothing was repaired or cut in between."""
    if one.scan is None or one.removal is None or one.removal.begun.repaired or not one.scan.begun.job:
        return
    before, after = decode_found_tree(joined(one.scan.parts)), decode_found_tree(joined(one.removal.parts))
    if before.problems or after.problems or before.errno or not before.complete:
        return
    if one.removal.begun.job and not after.removal_tried and not after.errno:
        yield "that its files were removed is not on record"
    first, second = ({entry.path: entry for entry in tree.entries} for tree in (before, after))
    for path in sorted(first.keys() | second.keys()):
        if path not in second:
            yield f"{path} was found by the scan, and was not there any more when the files were removed"
            return
        if path not in first:
            yield f"{path} was there when the files were removed, and was not found by the scan"
            return
        if changed := _changed(one.begun.fstype, first[path], second[path]):
            yield f"{path} had another {changed} when the files were removed than the scan found"
            return


def _changed(fstype: str, one: FoundEntry, other: FoundEntry) -> str:
    """The name of what differs; empty if nothing does. Filesystems without inode numbers make up new ones."""
    values: dict[str, tuple[object, object]] = {"kind": (one.kind, other.kind), "target": (one.target, other.target)}
    if any(name == fstype and promises.inodes for name, promises in PROMISES.items()):
        values |= {"inode number": (one.inode, other.inode), "link count": (one.links, other.links)}
    if one.kind == "file":
        values["size"] = (one.size, other.size)
    if not one.errno:
        values["readability"] = (0, other.errno)
    return next((name for name, (was, now) in values.items() if was != now), "")


def _ended_otherwise(one: FileRound, ledger: FileLedger) -> Iterator[str]:
    """A writer that ended as if all were well although an operation of it failed, or the other way round. 250 of 250
    agreed."""
    failed = next((operation for operation in ledger.operations if operation.errno), None)
    if one.ended is not None and one.ended.status == FAILED and failed is None:
        yield "its writer ended with an error, and none of its operations failed"
    if one.ended is not None and one.ended.status == 0 and failed is not None:
        what, name = str(failed.__struct_config__.tag), errorcode.get(failed.errno, str(failed.errno))
        yield f"its writer ended without an error, and {what}, operation {failed.number}, failed with {name}"


def _refused(story: Story, one: FileRound, ledger: FileLedger, cuts: tuple[Cut, ...]) -> Iterator[str]:
    """An operation that failed before any cut with an error that is not the device's: every plan can be done."""
    begins = [cut.off.commanded_at for cut in cuts]
    if None in begins:
        return
    first = min((at for at in begins if at is not None), default=float("inf"))
    error = max((cut.error for cut in cuts), default=0.0)
    for operation in ledger.operations:
        at = operation.returned or operation.submitted
        if operation.errno and operation.errno not in OF_THE_DEVICE and at < first - error - CLOCKS:
            name = errorcode.get(operation.errno, str(operation.errno))
            what = str(operation.__struct_config__.tag)
            yield f"{what}, operation {operation.number}, failed with {name} although nothing was cut"
            return


def _mounted_only_later(story: Story, one: FileRound) -> Iterator[str]:
    """A mount that failed while the disk was there, before one that succeeded without a repair between them."""
    if one.mount is None or not one.mount.ok or one.mount.at is None:
        return
    for event in story.of(Acted):
        if event.disk != one.disk or event.action != "mount" or event.ok or not _between(one, event):
            continue
        if _undisturbed(story, one, event) and not _repaired_since(story, one, event):
            yield f"its mount failed before it succeeded: {event.detail or 'the reason is not on record'}"
            return


def _repaired_since(story: Story, one: FileRound, event: Acted) -> bool:
    repairs = [check.at for check in story.of(FilesystemChecked) if check.disk == one.disk and check.repaired]
    until = one.mount.at if one.mount is not None else None
    return any((event.at or 0.0) <= (at or 0.0) <= (until or 0.0) for at in repairs)


def _between(one: FileRound, event: Acted) -> bool:
    assert one.mount is not None
    return event.at is not None and (one.begun.at or 0.0) <= event.at <= (one.mount.at or 0.0)


def _undisturbed(story: Story, one: FileRound, event: Acted) -> bool:
    """Whether the disks of a round were attached during a mount, and not cut about that time."""
    end = event.at or 0.0
    begin = end - event.seconds
    for disk in one.disks:
        there = story.attachment_at(disk, begin)
        if there is None or there != story.attachment_at(disk, end):
            return False
    times = [cut.off.commanded_at for cut in story.cut_records if set(cut.armed.victims) & set(one.disks)]
    return not any(at is None or begin - 1.0 <= at <= end for at in times)
