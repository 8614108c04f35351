"""Decides what a filesystem may show after a cut, and describes what it must not.

Pure: a ledger and what was found go in, an opinion comes out. The promises are those of ``promises.py``. The rules:

- Each block of a file holds the version that the last successful sync kept, or a later one; zeros only if nothing of
  it was kept, or if it may be a hole. It never holds data of another file, place or run. The file's size is the one
  that was kept, a later one, or one on the way from one to the next.
- A name shows what its last kept operation put there, or what a later one did. What a kept operation removed stays
  removed. A rename that was not kept leaves the old name or the new one, never both and never neither.
- What an operation did that never returned, or that failed with an error of I/O, may be there or not.
- Without atomic names (FAT, exFAT, ntfs3) only this is judged: a file whose content, name and directories were kept and
  not touched since is there, whole (``settled_slots``).
- The filesystem can be mounted, its files can be read, its directories removed; link counts agree with the names. With
  a ledger of which something is missing, only this is judged.
"""

from __future__ import annotations

import errno
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import islice, product

from plugpull.integrity.oracle.files.content_rules import ContentRules
from plugpull.integrity.oracle.files.found import FoundEntry, FoundTree
from plugpull.integrity.oracle.files.ledger import FileLedger
from plugpull.integrity.oracle.files.name_rules import NameRules
from plugpull.integrity.oracle.files.names import Slot
from plugpull.integrity.oracle.files.operations import BLOCK
from plugpull.integrity.oracle.files.promises import CutEffect, Promises
from plugpull.integrity.oracle.files.replay import Replay, settled_slots
from plugpull.integrity.oracle.files.tree import FoundName, Placing, place
from plugpull.integrity.oracle.files.wrong import FileDamage, FileWrong, error_name

OF_THE_BENCH = frozenset(
    {errno.EACCES, errno.EBUSY, errno.EEXIST, errno.ENODEV, errno.ENOENT, errno.ENOMEDIUM, errno.ENXIO, errno.EPERM}
)
"""Errors of mount(2) that say nothing about the filesystem: there is no disk, or something still holds it."""
WITHOUT_LEDGER = frozenset(
    {FileDamage.UNMOUNTABLE, FileDamage.LINK_COUNT, FileDamage.UNREADABLE, FileDamage.UNREMOVABLE}
)
"""What no operation of a writer can cause. The unknown part of a ledger can have removed or changed anything else."""
CHOICES = 16
"""Ways that are tried at most, if directories could be one object or another."""


@dataclass
class FileOpinion:
    """The oracle's result for one writer's directory.

    ``names`` and ``blocks`` were compared, and ``kept`` names or files must be there. ``problems`` are the reasons why
    this opinion cannot be a PASS.
    """

    wrong: list[FileWrong] = field(default_factory=list)
    names: int = 0
    blocks: int = 0
    kept: int = 0
    problems: list[str] = field(default_factory=list)

    @property
    def intact(self) -> bool:
        """True if something was compared and nothing is wrong."""
        return not self.wrong and not self.problems and self.names > 0

    @property
    def worst(self) -> FileWrong | None:
        """The worst kind, the first of it."""
        order = list(FileDamage)
        return min(self.wrong, key=lambda wrong: order.index(wrong.kind), default=None)


def judge(ledger: FileLedger, found: FoundTree, promises: Promises, cut: CutEffect | None = None) -> FileOpinion:
    """Judge what a filesystem shows after a cut.

    ``cut`` is by default one that took the disk's power after the last operation.
    """
    opinion = FileOpinion()
    opinion.problems += [f"file ledger: {problem}" for problem in ledger.problems]
    opinion.problems += [f"scan: {problem}" for problem in found.problems]
    if found.mount_errno != 0:
        _not_mounted(opinion, found.mount_errno, promises)
        return opinion
    if not found.complete:
        opinion.problems.append("scan: it ended before everything was read")
        return opinion
    if found.errno:
        gone = found.errno == errno.ENOENT
        kind, text = (FileDamage.LOST, "nothing") if gone else (FileDamage.UNREADABLE, error_name(found.errno))
        opinion.wrong.append(FileWrong(kind, "", "a readable directory", text))
        return opinion
    replay = Replay(ledger, promises, cut or CutEffect())
    opinion.problems += [f"file ledger: {problem}" for problem in replay.problems]
    judging = _Judge(ledger, found, promises, replay)
    if promises.atomic:
        judging.all_names(opinion)
    else:
        judging.settled(opinion)
    if ledger.problems or replay.problems:
        opinion.wrong = [wrong for wrong in opinion.wrong if wrong.kind in WITHOUT_LEDGER]
    return opinion


def _not_mounted(opinion: FileOpinion, error: int | None, promises: Promises) -> None:
    if error is None:
        opinion.problems.append("nobody tried to mount the filesystem")
    elif error in OF_THE_BENCH or not promises.mounts:
        opinion.problems.append(f"the filesystem could not be mounted: {error_name(error)}")
    else:
        opinion.wrong.append(FileWrong(FileDamage.UNMOUNTABLE, "", "a filesystem that mounts", error_name(error)))


class _Judge:
    def __init__(self, ledger: FileLedger, found: FoundTree, promises: Promises, replay: Replay) -> None:
        self._ledger = ledger
        self._found = found
        self._promises = promises
        self._replay = replay
        self._content = ContentRules(ledger.run)

    def _place(self, choice: Mapping[str, int]) -> Placing:
        return place(self._replay.names, self._found, self._ledger.run, inodes=self._promises.inodes, choice=choice)

    # --- atomic names -------------------------------------------------------------------------------------------------

    def all_names(self, opinion: FileOpinion) -> None:
        """Judge all names and files. An ambiguous directory is taken for what it fits best."""
        ambiguous = self._place({}).ambiguous
        ways = [dict(zip(ambiguous, way, strict=True)) for way in islice(product(*ambiguous.values()), CHOICES)]
        results = [self._one_way(way) for way in ways]
        best = min(results, key=lambda result: len(result.wrong))
        opinion.wrong += best.wrong
        opinion.problems += best.problems
        opinion.names, opinion.blocks, opinion.kept = best.names, best.blocks, best.kept
        for one in self._found.unremovable:
            opinion.wrong.append(
                FileWrong(FileDamage.UNREMOVABLE, one.path, "removal of the empty directory", error_name(one.errno))
            )

    def _one_way(self, choice: Mapping[str, int]) -> FileOpinion:
        opinion, placing = FileOpinion(), self._place(choice)
        rules = NameRules(self._replay.names, placing, self._promises)
        opinion.wrong += rules.judge()
        opinion.names, opinion.kept = rules.checked, rules.kept
        judged: dict[int, FoundEntry] = {}
        for placed in placing.placed.values():
            entry = placed.entry
            if entry.kind != "file":
                opinion.wrong += _unreadable(entry)
            elif placed.candidates and not _same_content(entry, judged.get(entry.inode)):
                self._judge_content(opinion, entry, self._options(placed))
                judged[entry.inode] = entry
        return opinion

    def _options(self, placed: FoundName) -> Iterable[int]:
        return placed.candidates & self._replay.names.allowed(placed.slot) or placed.candidates

    def _judge_content(self, opinion: FileOpinion, entry: FoundEntry, numbers: Iterable[int]) -> None:
        if not entry.errno and _covered(entry) != -(-entry.size // BLOCK):
            opinion.problems.append(f"scan: {entry.path} was not read to its end")
            return
        opinion.blocks += _covered(entry)
        judged = [self._content.judge(entry, number, self._replay.contents[number]) for number in numbers]
        best = min(judged, key=len)
        opinion.wrong += best

    # --- only what is settled -----------------------------------------------------------------------------------------

    def settled(self, opinion: FileOpinion) -> None:
        """Judge the files that were kept and not touched since."""
        entries = {entry.path: entry for entry in self._found.entries}
        for slot, number in settled_slots(self._replay).items():
            opinion.names += 1
            opinion.kept += 1
            path = self._path(slot)
            entry = entries.get(path)
            if entry is None or entry.kind != "file":
                found = "nothing" if entry is None else f"a {entry.kind}"
                kept = self._replay.names.of[slot][-1].kept[slot]
                wrong = FileWrong(FileDamage.LOST, path, f"file {number}", found, kept_by=kept)
                opinion.wrong.append(wrong)
            else:
                self._judge_content(opinion, entry, [number])
        if not opinion.names and not opinion.problems:
            opinion.problems.append("nothing was kept and left untouched before the cut, so nothing was judged")

    def _path(self, slot: Slot) -> str:
        return "/".join([*(name for _, name in reversed(list(self._replay.names.above(slot)))), slot[1]])


def _covered(entry: FoundEntry) -> int:
    """Blocks of a file whose content was scanned, without gaps from the first on."""
    reached = 0
    for stretch in entry.content:
        if stretch.first != reached:
            break
        reached = stretch.end
    return reached


def _same_content(entry: FoundEntry, other: FoundEntry | None) -> bool:
    """True for a second name of a file, which shows the same content."""
    return other is not None and entry.inode > 0 and (entry.size, entry.content) == (other.size, other.content)


def _unreadable(entry: FoundEntry) -> list[FileWrong]:
    if not entry.errno:
        return []
    return [FileWrong(FileDamage.UNREADABLE, entry.path, f"a readable {entry.kind}", error_name(entry.errno))]
