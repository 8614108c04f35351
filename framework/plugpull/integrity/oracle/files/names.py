"""The history of names: which slot of which directory held which object when, and what of that was kept."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from dataclasses import dataclass, field

from plugpull.errors import RigError
from plugpull.integrity.oracle.files.operations import (
    AnyOperation,
    CreateFile,
    Link,
    MakeDirectory,
    RemoveDirectory,
    Rename,
    Symlink,
    Unlink,
)

TOP = 0
"""The number of the writer's directory."""
Slot = tuple[int, str]
"""(number of a directory, name in it)."""
REFUSED = frozenset(
    {
        *(errno.EACCES, errno.EBUSY, errno.EDQUOT, errno.EEXIST, errno.EINVAL, errno.EISDIR, errno.ELOOP, errno.EMLINK),
        *(errno.ENAMETOOLONG, errno.ENOENT, errno.ENOSPC, errno.ENOTDIR, errno.ENOTEMPTY, errno.EOPNOTSUPP),
        *(errno.EPERM, errno.EXDEV),
    }
)
"""Errors of operations on names that change nothing. After any other, the change may be there or not."""


class Impossible(RigError):
    """The ledger has an operation that cannot have done what it reports."""


@dataclass
class Thing:
    """A file, a directory or a symlink that the writer made."""

    file: int
    kind: str
    made: Change | None
    inode: int = 0
    target: str = ""


@dataclass(eq=False)
class Change:
    """What an operation did to names, or may have done (``applied`` is false).

    ``holds`` is what its slots hold afterwards. ``gained``, ``dropped``: the objects that have a name more or less.
    ``moved``: the object of a rename. ``kept``: the slots in which a sync has kept it. ``doubtful``: a sync failed
    over it, so that none can keep it any more.
    """

    operation: AnyOperation
    holds: dict[Slot, int | None]
    gained: tuple[int, ...] = ()
    dropped: tuple[int, ...] = ()
    moved: int | None = None
    applied: bool = True
    doubtful: bool = False
    kept: dict[Slot, AnyOperation] = field(default_factory=dict)

    @property
    def touched(self) -> set[int]:
        return {*self.gained, *self.dropped, *(() if self.moved is None else (self.moved,))}


@dataclass
class NameHistory:
    """All names of a session. ``now`` is the state that the writer sees, ``of`` the changes of each slot in order."""

    now: dict[Slot, int] = field(default_factory=dict)
    things: dict[int, Thing] = field(default_factory=lambda: {TOP: Thing(TOP, "directory", None)})
    changes: list[Change] = field(default_factory=list)
    of: dict[Slot, list[Change]] = field(default_factory=dict)
    touching: dict[int, list[Change]] = field(default_factory=dict)
    """The changes of each object, in order."""

    # --- asking -----------------------------------------------------------------------------------------------------

    def at(self, path: str) -> int:
        """The object at a path. Raises Impossible."""
        number = TOP
        for name in path.split("/") if path else ():
            found = self.now.get((number, name))
            if found is None:
                raise Impossible(f"{path} does not exist")
            number = found
        return number

    def slot(self, path: str) -> Slot:
        """The slot that a path names, whether it holds something or not. Raises Impossible."""
        parent, _, name = path.rpartition("/")
        above = self.at(parent)
        if not name or self.things[above].kind != "directory":
            raise Impossible(f"{path} cannot be a name")
        return above, name

    def names_of(self, number: int) -> list[Slot]:
        return [slot for slot, holds in self.now.items() if holds == number]

    def kept_change(self, slot: Slot) -> Change | None:
        """The last kept change of a slot."""
        return next((change for change in reversed(self.of.get(slot, [])) if slot in change.kept), None)

    def allowed(self, slot: Slot) -> set[int | None]:
        """What a slot may hold: what the last kept change put there, or anything later."""
        allowed: set[int | None] = {None}
        for change in self.of.get(slot, []):
            if slot in change.kept:
                allowed.clear()
            allowed.add(change.holds[slot])
        return allowed

    def ever(self, slot: Slot) -> set[int]:
        """Everything that a slot may have held at any time."""
        return {holds for change in self.of.get(slot, []) if (holds := change.holds[slot]) is not None}

    def above(self, slot: Slot) -> Iterator[Slot]:
        """The slots of the directories above a slot, as they are now."""
        number = slot[0]
        while number != TOP:
            names = self.names_of(number)
            if not names:
                return
            yield names[0]
            number = names[0][0]

    # --- doing ------------------------------------------------------------------------------------------------------

    def take(self, operation: AnyOperation) -> None:
        """Play an operation on names through. Raises Impossible if it cannot have succeeded."""
        done = operation.succeeded
        if not done and operation.returned is not None and operation.errno in REFUSED:
            return
        change = self._change(operation)
        if change is None:
            return
        change.applied = done
        self.changes.append(change)
        for number in change.touched:
            self.touching.setdefault(number, []).append(change)
        for slot, holds in change.holds.items():
            self.of.setdefault(slot, []).append(change)
            if not done:
                continue
            if holds is None:
                self.now.pop(slot, None)
            else:
                self.now[slot] = holds

    def _change(self, operation: AnyOperation) -> Change | None:
        if isinstance(operation, CreateFile | MakeDirectory | Symlink):
            return self._made(operation)
        if isinstance(operation, Link):
            number, slot = self.at(operation.path), self._free(operation.to)
            return Change(operation, {slot: number}, gained=(number,))
        if isinstance(operation, Rename):
            return self._renamed(operation)
        assert isinstance(operation, Unlink | RemoveDirectory)
        slot, number = self.slot(operation.path), self.at(operation.path)
        is_directory = self.things[number].kind == "directory"
        if is_directory != isinstance(operation, RemoveDirectory) or (is_directory and self._inside(number)):
            raise Impossible(f"{operation.path} cannot be removed like this")
        return Change(operation, {slot: None}, dropped=(number,))

    def _made(self, operation: CreateFile | MakeDirectory | Symlink) -> Change:
        if operation.file in self.things:
            raise Impossible(f"object {operation.file} is made twice")
        slot = self._free(operation.path)
        kind = {CreateFile: "file", MakeDirectory: "directory", Symlink: "symlink"}[type(operation)]
        target = operation.target if isinstance(operation, Symlink) else ""
        change = Change(operation, {slot: operation.file}, gained=(operation.file,))
        self.things[operation.file] = Thing(operation.file, kind, change, operation.inode, target)
        return change

    def _renamed(self, operation: Rename) -> Change | None:
        number, old, new = self.at(operation.path), self.slot(operation.path), self.slot(operation.to)
        victim = self.now.get(new)
        if victim == number:
            return None  # rename(2): two names of one file stay as they are
        is_directory = self.things[number].kind == "directory"
        if is_directory and number in {new[0], *(slot[0] for slot in self.above(new))}:
            raise Impossible(f"{operation.path} cannot go into itself")
        if victim is not None and ((self.things[victim].kind == "directory") != is_directory or self._inside(victim)):
            raise Impossible(f"{operation.to} cannot be replaced by {operation.path}")
        dropped = () if victim is None else (victim,)
        return Change(operation, {old: None, new: number}, dropped=dropped, moved=number)

    def _free(self, path: str) -> Slot:
        slot = self.slot(path)
        if slot in self.now:
            raise Impossible(f"{path} exists already")
        return slot

    def _inside(self, number: int) -> bool:
        return any(parent == number for parent, _ in self.now)


# --- how many names an object may have --------------------------------------------------------------------------------


def name_limits(names: NameHistory, number: int, *, keeps_moved: bool) -> tuple[int, int]:
    """The smallest and the largest number of names that an object may have.

    The operations after the last kept one may each be there or not. A rename changes the number only of what it
    replaces.
    """
    touching = names.touching.get(number, [])
    last = max((at for at, change in enumerate(touching) if change.kept), default=-1)
    held: dict[Slot, Change] = {}
    for change in touching[: last + 1]:
        for slot, holds in change.holds.items() if change.applied else ():
            held.pop(slot, None)
            if holds == number:
                held[slot] = change
    later = touching[last + 1 :]
    dropped_before = sum(number in change.dropped and not change.kept for change in touching[: last + 1])
    low = sum(bool(change.kept) for change in held.values()) - sum(number in change.dropped for change in later)
    high = len(held) + sum(number in change.gained for change in later) + dropped_before
    if not keeps_moved:
        low -= sum(_reused(names, change, number) for change in later)
    return max(0, low), high


def _reused(names: NameHistory, change: Change, number: int) -> bool:
    """True if ``change`` moved an object from a slot that another object has taken since."""
    if change.moved != number:
        return False
    (old,) = [slot for slot, holds in change.holds.items() if holds is None]
    changes = names.of[old]
    after = changes[changes.index(change) + 1 :]
    return any(later.holds[old] is not None for later in after)
