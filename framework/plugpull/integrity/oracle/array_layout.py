"""Where md puts the sectors of an array on its members, and what the members hold of the array's stamps.

Sources: Documentation of the layouts in md(4); drivers/md/raid10.c (__raid10_find_phys) for the "near" layout;
drivers/md/raid5.c (raid5_compute_sector) for the left-symmetric layouts of RAID 5 and 6. All members are of one size.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from plugpull.integrity.oracle.readback import ContentKind, Found, SectorRun
from plugpull.integrity.oracle.rules import Extents

LEFT_SYMMETRIC = 2
NEAR_TWO = 0x102


def covers(level: str, members: Sequence[str], missing: Collection[str]) -> bool:
    """Whether every byte of an array can be read without these members. ``members`` are in the order of their slots."""
    away = set(members) & set(missing)
    if level == "raid10" and not len(members) % 2:
        # Members 2n and 2n + 1 are copies of each other.
        return not any(one in away and other in away for one, other in zip(members[::2], members[1::2], strict=True))
    return len(away) <= {"raid0": 0, "raid1": len(members) - 1, "raid10": 1, "raid5": 1, "raid6": 2}.get(level, 0)


@dataclass(frozen=True)
class ArrayLayout:
    """How an array of ``members`` spreads its sectors. ``chunk`` is in sectors, 0 for a level without chunks."""

    level: str
    members: int
    chunk: int = 0
    layout: int = 0

    @property
    def known(self) -> bool:
        """Whether this layout is one of those that are understood here."""
        if self.level == "raid1":
            return True
        wanted = {"raid0": None, "raid10": NEAR_TWO, "raid5": LEFT_SYMMETRIC, "raid6": LEFT_SYMMETRIC}
        return self.chunk > 0 and self.level in wanted and wanted[self.level] in (None, self.layout)

    @property
    def copies(self) -> int:
        """How often each sector is stored."""
        return {"raid1": self.members, "raid10": 2}.get(self.level, 1)

    @property
    def data_members(self) -> int:
        """Members' worth of chunks in a row that are not parity. A row has one chunk of each member."""
        return self.members - {"raid5": 1, "raid6": 2}.get(self.level, 0)

    def stretch(self, slot: int, sector: int) -> tuple[int, int, int] | None:
        """(array's sector, copy, sectors to the end of the chunk) of a member's sector; ``None`` for parity."""
        if self.level == "raid1":
            return sector, slot, 1 << 62
        row, within = divmod(sector, self.chunk)
        left = self.chunk - within
        if self.level == "raid10":
            number, copy = divmod(row * self.members + slot, 2)
            return number * self.chunk + within, copy, left
        if self.level == "raid0":
            return (row * self.members + slot) * self.chunk + within, 0, left
        parity = self.members - 1 - row % self.members
        data = (slot - parity - (self.members - self.data_members)) % self.members
        return None if data >= self.data_members else ((row * self.data_members + data) * self.chunk + within, 0, left)

    def slot_of(self, copy: int, sector: int) -> int:
        """The member that has a copy of an array's sector."""
        if self.level == "raid1":
            return copy
        chunk = sector // self.chunk
        if self.level == "raid10":
            return (2 * chunk + copy) % self.members
        row, data = divmod(chunk, self.data_members)
        parity = self.members - 1 - row % self.members
        return data if self.level == "raid0" else (parity + self.members - self.data_members + data) % self.members

    def _row(self, chunk: int, copy: int) -> int:
        """The row of one copy of an array's chunk."""
        return (2 * chunk + copy) // self.members if self.level == "raid10" else chunk // self.data_members

    def left_in_chunk(self, sector: int) -> int:
        """Sectors from a member's sector to the end of its chunk."""
        return 1 << 62 if self.level == "raid1" else self.chunk - sector % self.chunk

    def member_extents(self, extents: Extents) -> tuple[tuple[int, int], ...]:
        """The stretches of each member, without the offset of its data, that hold these stretches of the array."""
        if self.level == "raid1":
            return tuple(extents)
        found: list[tuple[int, int]] = []
        for first, count in sorted(extents):
            begin = self._row(first // self.chunk, 0) * self.chunk
            end = (self._row((first + count - 1) // self.chunk, 1) + 1) * self.chunk
            if found and begin <= found[-1][0] + found[-1][1]:
                begin = found.pop()[0]
            found.append((begin, end - begin))
        return tuple(found)


def copies_of(
    layout: ArrayLayout, legs: Mapping[int, Found], offsets: Mapping[int, int], extents: Extents
) -> dict[int, Found]:
    """What each copy of the array holds in ``extents``, from what was read on its members.

    ``legs`` has the members by slot, as a reader found them that looked for the stamps of the array; ``offsets`` is the
    sector at which the data begins on each. A copy that needs a member which is not in ``legs`` is incomplete.
    """
    made: dict[int, list[SectorRun]] = {copy: [] for copy in range(layout.copies)}
    for slot, found in legs.items():
        for copy, run in _of_leg(layout, slot, found, offsets[slot]):
            made[copy].extend(_inside(run, extents))
    first = next(iter(legs.values()), Found())
    of = {copy: _slots(layout, copy, legs) for copy in made}
    return {
        copy: Found(
            runs=_joined(runs),
            complete=all(legs[slot].complete for slot in of[copy]),
            logical=max((found.logical for found in legs.values()), default=0),
            session=first.session,
            run=first.run,
            device=first.device,
            problems=[problem for slot in of[copy] for problem in legs[slot].problems],
        )
        for copy, runs in made.items()
    }


def _slots(layout: ArrayLayout, copy: int, legs: Iterable[int]) -> list[int]:
    """The members that a copy may be on."""
    return [slot for slot in legs if layout.level != "raid1" or slot == copy]


def _of_leg(layout: ArrayLayout, slot: int, found: Found, offset: int) -> Iterator[tuple[int, SectorRun]]:
    own = (found.run, found.device)
    for run in found.runs:
        at = run.first
        while at < run.end:
            place = layout.stretch(slot, at - offset)
            count = min(run.end - at, layout.left_in_chunk(at - offset))
            if place is not None:
                yield place[1], _placed(run, at, count, place[0], own)
            at += count


def _placed(run: SectorRun, at: int, count: int, sector: int, own: tuple[int, int]) -> SectorRun:
    """``count`` sectors of a run on a member, from its sector ``at``, as the array's ``sector`` and those after it."""
    part = replace(run, first=sector, sectors=count)
    if run.kind is ContentKind.STAMPED:
        origin, run_number, device = at, *own
    elif run.kind is ContentKind.ELSEWHERE:
        origin, run_number, device = run.origin + at - run.first, run.run, run.device
    else:
        return part
    if (run_number, device) == own and origin == sector:
        return replace(part, kind=ContentKind.STAMPED, origin=0, run=0, device=0)
    return replace(part, kind=ContentKind.ELSEWHERE, origin=origin, run=run_number, device=device)


def _inside(run: SectorRun, extents: Extents) -> Iterator[SectorRun]:
    """The parts of a run that are inside of the extents."""
    for first, count in extents:
        begin, end = max(run.first, first), min(run.end, first + count)
        if begin < end:
            moved = begin - run.first
            yield replace(run, first=begin, sectors=end - begin, origin=run.origin + moved if run.origin else 0)


def _joined(runs: Sequence[SectorRun]) -> list[SectorRun]:
    """In rising order, with neighbours of one write as one run."""
    made: list[SectorRun] = []
    for run in sorted(runs, key=lambda one: one.first):
        last = made[-1] if made else None
        if last is not None and _continues(last, run):
            made[-1] = replace(last, sectors=last.sectors + run.sectors)
        else:
            made.append(run)
    return made


def _continues(last: SectorRun, run: SectorRun) -> bool:
    plain = run.kind in (ContentKind.STAMPED, ContentKind.ZEROED)
    return plain and (last.kind, last.number, last.end) == (run.kind, run.number, run.first)
