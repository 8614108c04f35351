"""Which object of the ledger each found name shows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from plugpull.integrity.oracle.files.found import FoundEntry, FoundTree
from plugpull.integrity.oracle.files.names import TOP, NameHistory, Slot, Thing


@dataclass(frozen=True)
class FoundName:
    """A found name. ``candidates`` are the objects that it can be, by inode number, stamps, kind and target."""

    entry: FoundEntry
    slot: Slot
    candidates: frozenset[int]

    @property
    def certain(self) -> int | None:
        """The object, if it can be only one."""
        return next(iter(self.candidates)) if len(self.candidates) == 1 else None


@dataclass
class Placing:
    """All found names by slot, and the paths of the found directories by number.

    ``ambiguous`` are directories that can be more than one object. ``links`` are how many names each inode number has
    in all that was found, also below directories that are not the ledger's; empty if a directory could not be listed.
    """

    placed: dict[Slot, FoundName] = field(default_factory=dict)
    directories: dict[int, str] = field(default_factory=lambda: {TOP: ""})
    ambiguous: dict[str, tuple[int, ...]] = field(default_factory=dict)
    unlisted: set[int] = field(default_factory=set)
    links: Counter[int] = field(default_factory=Counter)


def place(names: NameHistory, found: FoundTree, run: int, *, inodes: bool, choice: Mapping[str, int]) -> Placing:
    """Find out which object each name shows. ``choice`` decides what an ambiguous directory is."""
    made = Placing()
    by_inode: dict[int, set[int]] = {}
    for thing in names.things.values():
        if thing.inode and inodes:
            by_inode.setdefault(thing.inode, set()).add(thing.file)
    if not any(entry.kind == "directory" and entry.errno for entry in found.entries):
        made.links = Counter(entry.inode for entry in found.entries)
    numbers = {"": TOP}
    for entry in sorted(found.entries, key=lambda each: each.path.count("/")):
        above = numbers.get(entry.parent)
        if above is None:
            continue
        slot = above, entry.name
        stamped = _stamped(entry, run) & names.things.keys()
        known = names.ever(slot) | by_inode.get(entry.inode, set()) | stamped
        fitting = frozenset(n for n in known if _fits(entry, names.things[n], inodes=inodes))
        if fitting & stamped:
            fitting &= stamped  # without inode numbers, or if one was used again
        placed = made.placed[slot] = FoundName(entry, slot, fitting)
        if entry.kind == "directory" and fitting:
            _place_directory(names, made, placed, numbers, choice)
    return made


def _place_directory(
    names: NameHistory, made: Placing, placed: FoundName, numbers: dict[str, int], choice: Mapping[str, int]
) -> None:
    path = placed.entry.path
    options = tuple(sorted(placed.candidates & names.allowed(placed.slot) or placed.candidates, reverse=True))
    if len(options) > 1:
        made.ambiguous[path] = options
    number = choice.get(path, options[0])
    if number in made.directories:
        return  # it has two names; its content is judged under the first
    numbers[path] = number
    made.directories[number] = path
    if placed.entry.errno:
        made.unlisted.add(number)


def _stamped(entry: FoundEntry, run: int) -> set[int]:
    """The files whose stamps an entry holds."""
    return {one.file for one in entry.content if one.content == "stamped" and one.run == run}


def _fits(entry: FoundEntry, thing: Thing, *, inodes: bool) -> bool:
    if entry.kind != thing.kind or (thing.kind == "symlink" and entry.target != thing.target):
        return False
    return not (inodes and entry.inode and thing.inode) or entry.inode == thing.inode
