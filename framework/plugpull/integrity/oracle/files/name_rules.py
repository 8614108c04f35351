"""Which names may be there, for filesystems whose operations on names are atomic."""

from __future__ import annotations

from collections.abc import Iterator

from plugpull.integrity.oracle.files.names import TOP, Change, NameHistory, Slot, name_limits
from plugpull.integrity.oracle.files.operations import AnyOperation, Fsync
from plugpull.integrity.oracle.files.promises import Promises
from plugpull.integrity.oracle.files.tree import FoundName, Placing
from plugpull.integrity.oracle.files.wrong import FileDamage, FileWrong


class NameRules:
    """Judges the names of one ledger against the found ones. ``checked`` names were compared, ``kept`` must be there.

    Slot by slot: a name shows what its last kept operation put there, or something later. Object by object: it has
    neither fewer names nor more than the operations after its last kept one can have left.
    """

    def __init__(self, names: NameHistory, placing: Placing, promises: Promises) -> None:
        self._names = names
        self._placing = placing
        self._promises = promises
        self._missing: dict[Slot, set[int]] = {}
        self._misheld: dict[Slot, FoundName] = {}
        self._absent: set[int] = set()
        self._showing: dict[int, dict[Slot, FoundName]] = {}
        for slot, placed in placing.placed.items():
            for number in placed.candidates:
                self._showing.setdefault(number, {})[slot] = placed
        self.checked = 0
        self.kept = 0

    def judge(self) -> list[FileWrong]:
        """What is wrong with the names."""
        for slot in self._names.of:
            if slot[0] in self._placing.directories and slot[0] not in self._placing.unlisted:
                self._look_at(slot)
        wrong = [self._unknown(placed) for slot, placed in self._placing.placed.items() if slot not in self._names.of]
        things = sorted(self._names.things.values(), key=lambda thing: thing.kind != "directory")
        for thing in things:
            if thing.file != TOP:
                wrong += self._number_of_names(thing.file)
        wrong += [self._held_wrongly(slot, placed) for slot, placed in self._misheld.items()]
        wrong += [self._gone(slot, allowed) for slot, allowed in self._missing.items()]
        return [*wrong, *self._links()]

    def _look_at(self, slot: Slot) -> None:
        allowed, placed = self._names.allowed(slot), self._placing.placed.get(slot)
        self.checked += 1
        self.kept += None not in allowed
        if placed is None:
            if None not in allowed:
                self._missing[slot] = {number for number in allowed if number is not None}
        elif not placed.candidates & allowed:
            self._misheld[slot] = placed

    # --- object by object ---------------------------------------------------------------------------------------------

    def _number_of_names(self, number: int) -> list[FileWrong]:
        low, high = name_limits(self._names, number, keeps_moved=self._promises.keeps_moved)
        showing = self._showing.get(number, {})
        certain = [s for s, placed in showing.items() if placed.certain == number and number in self._names.ever(s)]
        if len(certain) > high >= 1:
            return [self._too_many(number, certain, high)]
        if len(showing) >= low or self._may_be_elsewhere(number):
            return []
        slots = [slot for slot in self._names.of if number in self._names.allowed(slot)]
        for slot in slots:
            self._missing.pop(slot, None)
        if any(slot in self._misheld for slot in slots):
            return []  # something else is in its place, which is one fault and not two
        self._absent.add(number)
        required = [slot for slot in slots if self._names.allowed(slot) == {number}]
        moved = any(change.moved == number and not change.kept for change in self._names.touching[number])
        kind = FileDamage.NEITHER_NAME if moved and not showing and not required else FileDamage.LOST
        slots = required or slots
        where = " or ".join(sorted(self._path(slot) for slot in slots))
        found = "nothing" if not showing else f"only {len(showing)} of {low} names"
        return [FileWrong(kind, where, self._words(number), found, kept_by=self._kept_by(slots))]

    def _too_many(self, number: int, slots: list[Slot], high: int) -> FileWrong:
        for slot in slots:
            self._misheld.pop(slot, None)
        paths = sorted(self._path(slot) for slot in slots)
        kept = self._kept_by(slots)
        expected = f"{high} name{'s' * (high > 1)} of {self._words(number)}"
        return FileWrong(FileDamage.BOTH_NAMES, paths[0], expected, " and ".join(paths), kept_by=kept)

    def _may_be_elsewhere(self, number: int) -> bool:
        """True if an object may have a name that is not seen: in a directory that could not be listed, that is reported
        as missing itself, or that was never kept. A directory that was kept and is gone was removed, and was empty."""
        directories = self._placing.directories.keys() - self._placing.unlisted
        for slot, change in self._kept_places(number):
            if slot[0] in directories or number not in self._names.allowed(slot):
                continue
            if slot[0] in self._placing.unlisted or slot[0] in self._absent:
                return True
            if not isinstance(change.kept[slot], Fsync) and not self._was_kept(slot[0]):
                return True  # an fsync of the file itself would have kept it reachable
        return False

    def _kept_places(self, number: int) -> Iterator[tuple[Slot, Change]]:
        for change in self._names.touching.get(number, []):
            for slot in change.kept:
                if change.holds[slot] == number:
                    yield slot, change

    def _was_kept(self, number: int) -> bool:
        """True if a directory was kept with all directories above it."""
        return number == TOP or any(self._was_kept(slot[0]) for slot, _ in self._kept_places(number))

    # --- slot by slot -------------------------------------------------------------------------------------------------

    def _held_wrongly(self, slot: Slot, placed: FoundName) -> FileWrong:
        kept, path = self._names.kept_change(slot), placed.entry.path
        found = " or ".join(self._words(number) for number in sorted(placed.candidates)) or f"a {placed.entry.kind}"
        allowed = self._names.allowed(slot)
        expected = " or ".join(sorted(self._words(number) for number in allowed))
        by = kept.kept[slot] if kept is not None else None
        if not placed.candidates & self._names.ever(slot):
            return FileWrong(FileDamage.FOREIGN, path, expected, found, kept_by=by)
        gone = kept is not None and kept.holds[slot] is None and kept.moved is None
        kind = FileDamage.RESURRECTED if gone else FileDamage.OLD_VERSION
        for other, numbers in list(self._missing.items()):
            if numbers & placed.candidates:
                del self._missing[other]  # it is under its old name, which is one fault and not two
        return FileWrong(kind, path, expected, found, kept_by=by)

    def _gone(self, slot: Slot, allowed: set[int]) -> FileWrong:
        kept = self._names.kept_change(slot)
        expected = " or ".join(sorted(self._words(number) for number in allowed))
        kind = FileDamage.LOST if len(allowed) == 1 else FileDamage.NEITHER_NAME
        by = kept.kept[slot] if kept is not None else None
        return FileWrong(kind, self._path(slot), expected, "nothing", kept_by=by)

    def _unknown(self, placed: FoundName) -> FileWrong:
        found = f"a {placed.entry.kind}"
        return FileWrong(FileDamage.UNKNOWN_NAME, placed.entry.path, "nothing", found)

    # --- link counts --------------------------------------------------------------------------------------------------

    def _links(self) -> list[FileWrong]:
        placing = self._placing
        if not self._promises.inodes or not placing.links:
            return []
        directories_in: dict[str, int] = {}
        for placed in placing.placed.values():
            entry = placed.entry
            if entry.kind == "directory":
                directories_in[entry.parent] = directories_in.get(entry.parent, 0) + 1
        wrong = []
        for placed in placing.placed.values():
            entry = placed.entry
            if not entry.inode or entry.errno or not placed.candidates:
                continue
            if entry.kind == "directory":
                due = 2 + directories_in.get(entry.path, 0) if self._promises.directory_links else entry.links
            else:
                due = placing.links[entry.inode]
            if entry.links != due:
                found = f"a link count of {entry.links}"
                wrong.append(FileWrong(FileDamage.LINK_COUNT, entry.path, f"a link count of {due}", found))
        return wrong

    # --- words --------------------------------------------------------------------------------------------------------

    def _words(self, number: int | None) -> str:
        if number is None:
            return "nothing"
        return f"{self._names.things[number].kind} {number}"

    def _path(self, slot: Slot) -> str:
        above = self._placing.directories.get(slot[0], f"directory {slot[0]}")
        return f"{above}/{slot[1]}" if above else slot[1]

    def _kept_by(self, slots: list[Slot]) -> AnyOperation | None:
        """The last sync that kept something in one of these slots."""
        kept: list[tuple[Change, Slot]] = [
            (change, slot) for slot in slots if (change := self._names.kept_change(slot)) is not None
        ]
        syncs = [change.kept[slot] for change, slot in kept]
        return max(syncs, key=lambda sync: sync.number, default=None)
