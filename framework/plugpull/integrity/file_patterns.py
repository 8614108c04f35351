"""Patterns of writing files: what a writer does on a mounted filesystem until it is ended or its disk is gone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from random import Random
from typing import Protocol

from plugpull.integrity.sequences import KINDS, NO_LINKS, ON_DATA, FileSequence, SyncKind, sequences
from plugpull.integrity.writing.files.plans import left_alone, plan_of

WITHOUT_LINKS = frozenset({"vfat", "exfat", "ntfs3"})
"""Filesystems that have no hard links; the ledger uses none on ntfs3 either."""
BETWEEN_PLANS = 1_000_000
"""Numbers for files that each plan gets."""


@dataclass(frozen=True)
class FilePlan:
    """What one round plays: its name in the history, and what the writer gets."""

    name: str
    data: object


@dataclass(frozen=True)
class FileStorm:
    """Operations drawn at random, without end. ``weights`` are how often each kind comes, relative to the others:
    ``create``, ``write``, ``append``, ``truncate``, ``replace`` (write beside it, rename over it), ``rename``,
    ``link``, ``unlink``, ``syncfs``. Of the changes, 60 % are followed by an fsync of what they changed. ``most`` names
    exist at a time."""

    name: str
    weights: Mapping[str, int] = field(default_factory=dict)
    most: int = 24

    def plan(self, fstype: str, first: int, seed: int) -> FilePlan:
        """What to play on a filesystem of this type, with numbers of files from ``first``."""
        weights = dict(self.weights)
        if fstype in WITHOUT_LINKS:
            weights.pop("link", None)
        return FilePlan(self.name, {"seed": seed, "first": first, "weights": weights, "most": self.most})


@dataclass(frozen=True)
class ShortPlans:
    """Short sequences (``integrity/sequences.py``) of ``length`` operations and a sync. Each round plays one of them,
    drawn at random; or the given ``sequence``. Of five rounds, the first ends with an fsync of a file whose data was
    changed, the second with one of a directory, the third with an fdatasync, the fourth with a sync of everything, and
    the last with any. FAT, exFAT and ntfs3 promise nothing about what was just touched: there a file that is synced
    with its directory and then left alone comes first, and has to be there."""

    length: int = 1
    sequence: FileSequence | None = None

    def plan(self, fstype: str, first: int, seed: int) -> FilePlan:
        """What to play on a filesystem of this type, with numbers of files from ``first``."""
        simple = fstype in WITHOUT_LINKS
        turn = (first // BETWEEN_PLANS - 1) % (len(_TURNS) + 1)
        chosen = self.sequence or Random(seed).choice(_all(self.length, simple, turn))
        plan = [*left_alone(first), *plan_of(chosen, first + 1)] if simple else plan_of(chosen, first)
        return FilePlan(chosen.name, plan)


_TURNS: tuple[frozenset[SyncKind], ...] = (
    frozenset({"fsync"}),
    frozenset({"fsyncdir"}),
    frozenset({"fdatasync"}),
    frozenset({"sync", "syncfs"}),
)
"""The syncs of the first rounds. Among all sequences, one in six syncs a file whose data it has changed."""


@cache
def _all(length: int, without_links: bool, turn: int) -> tuple[FileSequence, ...]:
    """The sequences of a round. ``turn`` is its number among the rounds that differ, from 0."""
    kinds = sorted(NO_LINKS, key=KINDS.index) if without_links else KINDS
    return tuple(one for one in sequences(length, kinds) if turn == len(_TURNS) or _has_turn(one, _TURNS[turn]))


def _has_turn(one: FileSequence, syncs: frozenset[SyncKind]) -> bool:
    changed = {step.path for step in one.steps if step.kind in ON_DATA or step.kind == "create"}
    return one.sync.kind in syncs and (one.sync.kind not in ("fsync", "fdatasync") or one.sync.path in changed)


class FilePattern(Protocol):
    """What a writer of files does in each round."""

    def plan(self, fstype: str, first: int, seed: int) -> FilePlan:
        """What to play on a filesystem of this type, with numbers of files from ``first``."""
        ...


file_storm = FileStorm(
    "files created, written, renamed, removed and synced",
    {
        "create": 20,
        "write": 20,
        "append": 15,
        "truncate": 5,
        "replace": 10,
        "rename": 8,
        "link": 4,
        "unlink": 12,
        "syncfs": 1,
    },
)
"""A bit of everything, with an fsync after most changes."""
rename_storm = FileStorm(
    "files renamed, also over others", {"create": 10, "replace": 30, "rename": 40, "link": 5, "unlink": 8}, most=12
)
fsync_storm = FileStorm("files appended to and synced, as logs are", {"create": 1, "append": 60, "write": 30}, most=6)
