"""Plays a file ledger through: the history of names and of each file's content, and what the syncs kept of them."""

from __future__ import annotations

from plugpull.integrity.oracle.files.contents import ContentHistory
from plugpull.integrity.oracle.files.ledger import FileLedger
from plugpull.integrity.oracle.files.names import TOP, Change, Impossible, NameHistory, Slot
from plugpull.integrity.oracle.files.operations import (
    BLOCK,
    AnyOperation,
    AppendBlocks,
    CreateFile,
    Fsync,
    FsyncDirectory,
    Rename,
    SyncAll,
    Synced,
    SyncFilesystem,
    Truncate,
    WriteBlocks,
    WriteMapped,
)
from plugpull.integrity.oracle.files.promises import CutEffect, Promises

DATA = (WriteBlocks, AppendBlocks, WriteMapped, Truncate)


class Replay:
    """The histories of a ledger. ``problems`` are reasons why they cannot be trusted in full.

    ``broken`` is set once the filesystem failed an operation on names: nothing later is promised.
    """

    def __init__(self, ledger: FileLedger, promises: Promises, cut: CutEffect) -> None:
        self.names = NameHistory()
        self.contents: dict[int, ContentHistory] = {}
        self.problems: list[str] = []
        self._promises = promises
        self._cut = cut
        self._broken = False
        self._open: list[Change] = []
        """Changes that a sync can still keep."""
        for operation in ledger.operations:
            try:
                self._take(operation)
            except Impossible as why:
                self.problems.append(f"operation {operation.number} is impossible: {why}; the rest is not used")
                break

    def _take(self, operation: AnyOperation) -> None:
        if isinstance(operation, Synced):
            self._sync(operation)
        elif isinstance(operation, DATA):
            self._data(operation)
        else:
            self._on_names(operation)

    def _on_names(self, operation: AnyOperation) -> None:
        changes = len(self.names.changes)
        self.names.take(operation)
        if isinstance(operation, CreateFile) and operation.file in self.names.things:
            self.contents[operation.file] = ContentHistory()
        if len(self.names.changes) > changes:
            self._broken = self._broken or not operation.succeeded
            self._open.append(self.names.changes[-1])

    def _data(self, operation: WriteBlocks | AppendBlocks | WriteMapped | Truncate) -> None:
        contents = self._file(operation.path)
        if isinstance(operation, Truncate):
            if operation.size % BLOCK or operation.size < 0:
                raise Impossible(f"{operation.size} bytes are not whole blocks")
            contents.truncate(operation)
            return
        if operation.offset % BLOCK or operation.length % BLOCK or operation.length <= 0 or operation.offset < 0:
            raise Impossible(f"{operation.length} bytes at {operation.offset} are not whole blocks")
        if isinstance(operation, AppendBlocks) and operation.offset != contents.size:
            raise Impossible(f"it appends at {operation.offset}, but the file has {contents.size} bytes")
        if isinstance(operation, WriteMapped) and operation.offset + operation.length > contents.size:
            raise Impossible("it writes beyond the end of a mapping")
        contents.write(operation)
        if isinstance(operation, WriteMapped):
            first = operation.offset // BLOCK
            self._sync_blocks(operation, contents, range(first, first + operation.length // BLOCK))

    def _file(self, path: str) -> ContentHistory:
        contents = self.contents.get(self.names.at(path))
        if contents is None:
            raise Impossible(f"{path} is not a file")
        return contents

    # --- syncs ------------------------------------------------------------------------------------------------------

    def _counts(self, operation: AnyOperation) -> bool:
        """True if a sync promises something."""
        promises, cut = self._promises, self._cut
        if self._broken or not operation.succeeded or not (cut.flushes or cut.powered):
            return False
        if isinstance(operation, SyncAll | SyncFilesystem):
            return cut.before(operation.returned) and (promises.sync_flushes or cut.powered)
        return promises.late_fsync or cut.before(operation.returned)

    def _sync_blocks(self, operation: WriteMapped, contents: ContentHistory, blocks: range) -> None:
        if self._counts(operation):
            contents.keep(operation, blocks)
        elif not operation.succeeded:
            self._failed(contents)

    def _sync(self, operation: Synced) -> None:
        if isinstance(operation, SyncAll | SyncFilesystem):
            self._sync_everything(operation)
        elif isinstance(operation, FsyncDirectory):
            self._sync_names(operation, self.names.at(operation.path))
        else:
            contents = self._file(operation.path)
            if not operation.succeeded:
                self._failed(contents)
            elif self._counts(operation):
                contents.keep(operation)
                if isinstance(operation, Fsync):
                    contents.fsynced = operation.number
                    if self._promises.names_new:
                        self._keep_new(operation, self.names.at(operation.path))

    def _failed(self, contents: ContentHistory) -> None:
        contents.doubt()
        if not self._promises.old_or_new and not self._cut.powered:
            contents.garbled = True

    def _sync_everything(self, operation: SyncAll | SyncFilesystem) -> None:
        self._sync_names(operation, None)
        for contents in self.contents.values():
            if self._counts(operation):
                contents.keep(operation)
                contents.fsynced = operation.number
            elif not operation.succeeded:
                self._failed(contents)

    def _sync_names(self, operation: Synced, directory: int | None) -> None:
        """A directory was synced, or everything (``directory`` is None)."""
        for change in self._open:
            if directory is not None and all(slot[0] != directory for slot in change.holds):
                continue
            if not operation.succeeded:
                change.doubtful = change.doubtful or not change.kept
            elif self._counts(operation) and change.applied:
                self._keep(operation, change, directory)
        self._open = [one for one in self._open if not one.doubtful and len(one.kept) < len(one.holds)]

    def _keep(self, operation: AnyOperation, change: Change, directory: int | None) -> None:
        for slot in change.holds:
            if directory is None or slot[0] == directory or self._promises.atomic:
                change.kept.setdefault(slot, operation)

    def _keep_new(self, operation: AnyOperation, number: int) -> None:
        """The name that a file was created with and, while it still has that name, the directories above it."""
        made = self.names.things[number].made
        while made is not None and made.applied and not made.doubtful:
            self._keep(operation, made, None)
            ((slot, holds),) = made.holds.items()
            if slot[0] == TOP or self.names.now.get(slot) != holds:
                return
            made = self.names.things[slot[0]].made


def settled_slots(replay: Replay) -> dict[Slot, int]:
    """Files that were fsynced after their last change of content and of name, with the directories above them.

    A rename of a directory is never settled: FAT writes the new entry without the number of its first cluster at first
    (``vfat_build_slots``).
    """
    names, made = replay.names, {}
    for slot, number in names.now.items():
        contents = replay.contents.get(number)
        if contents is None or not contents.settled:
            continue
        if contents.fsynced < max(contents.touched, names.touching[number][-1].operation.number):
            continue
        above = list(names.above(slot))
        if any(isinstance(names.of[one][-1].operation, Rename) for one in above):
            continue
        if all(one in names.of[one][-1].kept for one in (slot, *above)):
            made[slot] = number
    return made
