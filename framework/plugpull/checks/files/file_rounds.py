"""The rounds of writing files that are on record, and why the record of a round is not reliable."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from errno import errorcode

from plugpull.history.events import (
    Acted,
    FileLedgerPart,
    FileRoundBegun,
    FileRoundEnded,
    FileRoundPlanned,
    FileScanBegun,
    FileScanEnded,
    FileScanPart,
    FilesOver,
    FilesystemChecked,
)
from plugpull.history.story import Story

_ENDED = b'"do":"end"'
"""In the last line of a ledger whose writer did all that it was to do (``integrity/oracle/files/ledger.py``)."""
_TIMES = re.compile(rb'"at":(\d+(?:\.\d+)?)')
ENDED_WITH = (None, 0, 1)
"""The statuses of a writer that ended by itself: unknown, done, and with an error of its disk."""
CLOCKS = 0.25
"""Seconds by which the clocks of a writer and of the agent may differ: both are the DUT's."""


@dataclass
class FileScan:
    """One scan of a round's directory."""

    begun: FileScanBegun
    parts: list[FileScanPart] = field(default_factory=list)
    ended: FileScanEnded | None = None


@dataclass
class FileRound:
    """One round on one disk: written, cut or not, scanned, checked, removed. ``repaired_before``: the kernel mounted it
    only after a repair. ``doubts`` are reasons why nothing can be concluded from it, sentences without the disk's name.
    """

    begun: FileRoundBegun
    parts: list[FileLedgerPart] = field(default_factory=list)
    ended: FileRoundEnded | None = None
    scan: FileScan | None = None
    removal: FileScan | None = None
    check: FilesystemChecked | None = None
    repair: FilesystemChecked | None = None
    repaired_before: bool = False
    mount: Acted | None = None
    unmounted: bool = False
    doubts: list[str] = field(default_factory=list)

    @property
    def disk(self) -> str:
        return self.begun.disk

    @property
    def disks(self) -> tuple[str, ...]:
        """The disks that its filesystem rests on."""
        return self.begun.disks or (self.disk,)

    @property
    def at(self) -> float | None:
        """When it was scanned, or else when it began, DUT seconds."""
        return self.scan.begun.at if self.scan is not None else self.begun.at

    @property
    def ledger(self) -> bytes:
        """The writer's lines, as far as they are on record without a gap."""
        return joined(self.parts)


def file_rounds(story: Story) -> tuple[FileRound, ...]:
    """The rounds of a story, in the order of their beginnings."""
    return tuple(_Assembly(story).rounds)


def missing_file_records(story: Story) -> Iterator[str]:
    """Sentences about writers and scans of files that other events show, and that are not on record."""
    begun = {(one.disk, one.run, one.round) for one in story.of(FileRoundBegun)}
    planned = {(one.disk, one.run, one.round) for one in story.of(FileRoundPlanned)}
    for disk, _, number in sorted(planned - begun):
        yield f"round {number} of the files on {disk} was about to begin, and is not on record"
    for disk, _, number in sorted(begun - planned):
        yield f"that round {number} of the files on {disk} was to begin is not on record"
    over_for = {(one.disk, one.run) for one in story.of(FilesOver)}
    for disk, run in sorted({(disk, run) for disk, run, _ in begun} - over_for):
        yield f"that run {run:x} of the files on {disk} was over is not on record"
    for over in story.of(FilesOver):
        more = sum((disk, run) == (over.disk, over.run) for disk, run, _ in begun)
        if more > over.rounds:
            yield f"{over.rounds} rounds of files were written on {over.disk}, and {more} are on record"
        for number in range(1, over.rounds + 1):
            if (over.disk, over.run, number) not in begun:
                yield f"{over.rounds} rounds of files were written on {over.disk}, and round {number} is not on record"
    jobs = {one.job for one in story.of(FileRoundBegun)} | {one.job for one in story.of(FileScanBegun)}
    pieces: list[FileLedgerPart | FileRoundEnded | FileScanPart | FileScanEnded] = [
        *story.of(FileLedgerPart),
        *story.of(FileRoundEnded),
        *story.of(FileScanPart),
        *story.of(FileScanEnded),
    ]
    for event in pieces:
        if event.job not in jobs:
            yield f"the beginning of the job {event.job} on {event.disk} is not on record"
    rounds = {one.disk for one in story.of(FileRoundBegun)}
    for check in story.of(FilesystemChecked):
        if check.disk not in rounds:
            yield f"what was written on {check.disk} is not on record"


def joined(parts: list[FileLedgerPart] | list[FileScanPart]) -> bytes:
    """The bytes of a stream's pieces from its beginning, up to the first gap."""
    made = b""
    for part in parts:
        if part.offset != len(made):
            break
        try:
            made += base64.b64decode(part.data, validate=True)
        except (binascii.Error, ValueError):
            break
    return made


class _Assembly:
    def __init__(self, story: Story) -> None:
        self._place = {id(event): number for number, event in enumerate(story.others)}
        self._story = story
        self._jobs: dict[str, FileRound] = {}
        self._scans: dict[str, FileScan] = {}
        self.rounds: list[FileRound] = []
        for begun in story.of(FileRoundBegun):
            one = FileRound(begun)
            if begun.job in self._jobs:
                one.doubts.append("its beginning is on record twice")
            self._jobs.setdefault(begun.job, one)
            self.rounds.append(one)
        self._ledgers()
        self._take_scans()
        for one in self.rounds:
            self._steps(one)
            one.doubts += _incomplete(one)

    def _ledgers(self) -> None:
        for part in self._story.of(FileLedgerPart):
            if part.job in self._jobs:
                self._jobs[part.job].parts.append(part)
        for end in self._story.of(FileRoundEnded):
            one = self._jobs.get(end.job)
            if one is not None:
                if one.ended is not None:
                    one.doubts.append("the end of its writer is on record twice")
                one.ended = end

    def _take_scans(self) -> None:
        for begun in self._story.of(FileScanBegun):
            one, scan = self._written_before(begun), FileScan(begun)
            if begun.job:
                self._scans[begun.job] = scan
            if one is None:
                continue
            if (one.removal if begun.removing else one.scan) is not None:
                one.doubts.append("it was scanned twice")
            if begun.removing:
                one.removal = scan
            else:
                one.scan = scan
        for part in self._story.of(FileScanPart):
            if part.job in self._scans:
                self._scans[part.job].parts.append(part)
        for end in self._story.of(FileScanEnded):
            if end.job in self._scans:
                self._scans[end.job].ended = end

    def _written_before(self, scan: FileScanBegun) -> FileRound | None:
        """The round of a scan: the last one in that directory of the disk that began before it."""
        known = [one for one in self.rounds if (one.disk, one.begun.directory) == (scan.disk, scan.directory)]
        earlier = [one for one in known if self._place[id(one.begun)] < self._place[id(scan)]]
        return earlier[-1] if earlier else None

    def _steps(self, one: FileRound) -> None:
        """Find the mount before the scan and the check after it. What was not mounted again shows what is in memory."""
        if one.scan is None:
            return
        scanned = self._place[id(one.scan.begun)]
        ended = self._place[id(one.ended)] if one.ended is not None else self._place[id(one.begun)]
        if ended > scanned:
            one.doubts.append("its scan began before its writer ended")
        acted = [event for event in self._story.of(Acted) if event.disk == one.disk]
        between = [event for event in acted if ended < self._place[id(event)] < scanned]
        words = [event.action for event in between if event.ok]
        mounts = [event for event in between if event.action == "mount"]
        one.mount = mounts[-1] if mounts else None
        one.unmounted = "umount" in words
        if one.scan.begun.job and words[-2:] != ["umount", "mount"]:
            one.doubts.append("that the filesystem was unmounted and mounted again before the scan is not on record")
        if one.scan.begun.mount_errno and (one.mount is None or one.mount.ok):
            one.doubts.append("the mount that failed is not on record")
        following = [self._place[id(other.begun)] for other in self.rounds if other.disk == one.disk]
        until = min((place for place in following if place > scanned), default=len(self._place) + 1)
        for event in self._story.of(FilesystemChecked):
            if event.disk == one.disk and event.repaired and ended < self._place[id(event)] < scanned:
                one.repaired_before = True
            if event.disk == one.disk and scanned < self._place[id(event)] < until:
                if event.repaired:
                    one.repair = one.repair or event
                else:
                    one.check = one.check or event
        self._after_scan(one, acted)
        if one.removal is not None and one.removal.begun.repaired and one.repair is None:
            one.doubts.append("the repair of its filesystem is not on record")
        if one.repair is not None and not one.repair.overlay and not (one.removal and one.removal.begun.repaired):
            one.doubts.append("its filesystem was repaired before its files were removed, which does not say so")

    def _after_scan(self, one: FileRound, acted: list[Acted]) -> None:
        """The filesystem is unmounted for the check, if it could be mounted, and mounted for the removal."""
        assert one.scan is not None
        scanned = self._place[id(one.scan.begun)]
        if one.check is not None and not one.scan.begun.mount_errno:
            until = self._place[id(one.check)]
            steps = [event.action for event in acted if event.ok and scanned < self._place[id(event)] < until]
            if "umount" not in steps:
                one.doubts.append("that the filesystem was unmounted before its check is not on record")
        if one.check is not None and one.removal is not None:
            checked, removed = self._place[id(one.check)], self._place[id(one.removal.begun)]
            between = [event for event in acted if checked < self._place[id(event)] < removed]
            refused = one.removal.begun.mount_errno or one.removal.begun.error
            if "mount" not in [event.action for event in between if event.ok or refused]:
                one.doubts.append("that the filesystem was mounted before the removal is not on record")


def _incomplete(one: FileRound) -> Iterator[str]:
    """What is missing of a round's ledger and scan."""
    had = len(one.ledger)
    if one.ended is None:
        yield "the end of its writer is not on record"
    elif one.ended.received != had:
        yield f"{one.ended.received} bytes of its ledger arrived, {had} are on record"
    elif one.ended.stuck:
        yield "its writer was stuck and could not be ended"
    elif one.ended.status == 0 and _ENDED not in one.ledger and one.ledger:
        yield "its writer ended without an error, and its ledger does not end"
    elif one.ended.at is not None and _last_return(one.ledger) > one.ended.at + CLOCKS:
        yield "its writer ended before its last operation did"
    if one.ended is not None and (one.ended.why or one.ended.status not in ENDED_WITH):
        yield f"its writer ended with status {one.ended.status}: {one.ended.why or 'it does not say why'}"
    if one.check is not None and one.check.fstype != one.begun.fstype:
        yield f"it is {one.begun.fstype} by its beginning, and {one.check.fstype} by its check"
    if one.scan is None:
        yield "it was not scanned"
        return
    if not one.scan.begun.job:
        return
    yield from _unfinished(one.scan, "scan")
    if one.removal is None:
        yield "that its files were removed is not on record"
    elif (refused := one.removal.begun).mount_errno or refused.error:
        why = errorcode.get(refused.mount_errno or 0, "") or refused.error
        yield f"its filesystem could not be mounted to remove its files: {why}"
    else:
        yield from _unfinished(one.removal, "removal")


def _last_return(ledger: bytes) -> float:
    """When the last operation of a ledger returned, DUT seconds."""
    times = _TIMES.findall(ledger[-1000:])
    return float(times[-1]) if times else float("-inf")


def _unfinished(scan: FileScan, what: str) -> Iterator[str]:
    over, had = scan.ended, len(joined(scan.parts))
    if over is None:
        yield f"the end of its {what} is not on record"
    elif over.received != had:
        yield f"{over.received} bytes of its {what} arrived, {had} are on record"
    elif over.stuck or over.status != 0:
        yield f"its {what} failed: {over.why or f'status {over.status}'}"
