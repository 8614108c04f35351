"""What the write hole may take, against a model of an array that stops in the middle of a write, and no more."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from functools import reduce
from operator import xor
from typing import Any

import pytest
from array_stories import ARRAY, act, mirror, stamps, state
from hypothesis import given, settings
from hypothesis import strategies as some
from ledgers import DEVICE, RUN, Book, damaged, stamped, zeros
from stories import BACK, SURVIVORS, VICTIM, Bench, healthy

from plugpull.checks import nothing_lost
from plugpull.checks.raid.write_hole import hole_of
from plugpull.history import events as ev
from plugpull.integrity.oracle.array_layout import ArrayLayout
from plugpull.integrity.oracle.decode import decode_ledger
from plugpull.integrity.oracle.readback import ContentKind, Found, SectorRun
from plugpull.integrity.oracle.rules import judge
from plugpull.integrity.oracle.stamp import Stamp
from plugpull.integrity.oracle.write_hole import STRIPE, open_writes, stripes_of, without_hole
from plugpull.integrity.oracle.wrong import Damage

CHUNK, ROWS = 16, 4
RAID5 = ArrayLayout("raid5", 3, CHUNK, 2)
RAID6 = ArrayLayout("raid6", 4, CHUNK, 2)

# --- the model --------------------------------------------------------------------------------------------------------


class Stopped:
    """An array whose members hold a number in each sector, the parity being the exclusive or of the data."""

    def __init__(self, layout: ArrayLayout) -> None:
        self.layout = layout
        self.members = [[0] * (ROWS * CHUNK) for _ in range(layout.members)]
        for at in range(ROWS * CHUNK):
            for slot in range(layout.members):
                place = layout.stretch(slot, at)
                self.members[slot][at] = 0 if place is None else 1000 + place[0]
            self.members[self._parity(at)][at] = self._sum(at)

    def _parity(self, at: int) -> int:
        """The member with P, which is right of no data: for RAID 6 the one before Q (test_array_layout.py)."""
        return self.layout.members - 1 - at // CHUNK % self.layout.members

    def _data(self, at: int) -> list[int]:
        return [slot for slot in range(self.layout.members) if self.layout.stretch(slot, at) is not None]

    def _sum(self, at: int) -> int:
        return reduce(xor, (self.members[slot][at] for slot in self._data(at)), 0)

    def write(self, sector: int, sectors: int, done: list[bool], parity: list[bool]) -> None:
        """A write that stopped in the middle. Of each page that it touches, ``done`` says whether the data is there,
        and ``parity`` whether its parity is."""
        pages: dict[tuple[int, int], bool] = {}
        for slot in range(self.layout.members):
            for at in range(ROWS * CHUNK):
                place = self.layout.stretch(slot, at)
                if place is None or not sector <= place[0] < sector + sectors:
                    continue
                key = (slot, at // STRIPE)
                old = self.members[slot][at]
                new = 5000 + place[0]
                if pages.setdefault(key, done[len(pages) % len(done)]):
                    self.members[slot][at] = new
                if parity[at // STRIPE % len(parity)]:
                    self.members[self._parity(at)][at] ^= old ^ new

    def read(self, missing: int) -> Iterator[tuple[int, int]]:
        """Each sector of the array, and what is read there without the member ``missing``."""
        for at in range(ROWS * CHUNK):
            for slot in self._data(at):
                place = self.layout.stretch(slot, at)
                assert place is not None
                others = (self.members[one][at] for one in self._data(at) if one != slot)
                rebuilt = reduce(xor, others, self.members[self._parity(at)][at])
                yield place[0], rebuilt if slot == missing else self.members[slot][at]


@pytest.mark.parametrize("layout", [RAID5, RAID6], ids=["raid5", "raid6"])
@settings(max_examples=60, deadline=None)
@given(drawn=some.data())
def test_whatever_a_stopped_write_spoils_is_in_the_hole(layout: ArrayLayout, drawn: some.DataObject) -> None:
    size = ROWS * CHUNK * layout.data_members
    book, array = Book(), Stopped(layout)
    # md handles the writes of one stripe together, so that each is open once.
    for at in drawn.draw(some.sets(some.integers(0, size // (4 * STRIPE) - 1), max_size=3)):
        sector = at * 4 * STRIPE + drawn.draw(some.integers(0, STRIPE))
        sectors = drawn.draw(some.integers(1, 3 * STRIPE))
        bits = some.lists(some.booleans(), min_size=4, max_size=4)
        array.write(sector, min(sectors, size - sector), drawn.draw(bits), drawn.draw(bits))
        book.issue(sector, min(sectors, size - sector))
    hole = stripes_of(layout, open_writes(book.made, powered=True))
    inside = {sector for first, count in hole for sector in range(first, first + count)}
    missing = drawn.draw(some.integers(0, layout.members - 1))
    read = dict(array.read(missing))
    assert len(read) == size
    for sector, held in read.items():
        assert held == 1000 + sector or sector in inside, sector


def test_the_hole_of_a_write_is_its_stripe_and_no_more() -> None:
    book = Book()
    book.issue(3, 2)
    assert stripes_of(RAID5, book.made.writes) == ((0, STRIPE), (CHUNK, STRIPE))
    book.issue(CHUNK + 8, 1)
    assert sorted(stripes_of(RAID5, book.made.writes)) == [(0, 8), (8, 8), (16, 8), (24, 8)]


@pytest.mark.parametrize("level", ["raid0", "raid1", "raid10"])
def test_levels_without_parity_have_none(level: str) -> None:
    book = Book()
    book.issue(0)
    layout = {"raid1": ArrayLayout("raid1", 2), "raid0": ArrayLayout("raid0", 2, CHUNK)}.get(level)
    assert stripes_of(layout or ArrayLayout("raid10", 4, CHUNK, 0x102), book.made.writes) == ()


def test_which_writes_are_open() -> None:
    book = Book()
    flushed = book.write(0)
    book.flush()
    book.write(8)
    failed = book.write(16, error=5)
    pending = book.issue(24)
    through = book.write(32, fua=True)
    book.flush(error=5)
    assert open_writes(book.made, powered=True) == [failed, pending]
    without = open_writes(book.made, powered=False)
    assert flushed not in without
    assert through not in without
    assert len(without) == 3


# --- the oracle -------------------------------------------------------------------------------------------------------

EXTENTS = ((0, 64),)


def with_open_write() -> tuple[Book, list[SectorRun]]:
    """Everything is filled and flushed; then a write to sector 0 does not end. What a whole disk would hold."""
    book = Book()
    fill = book.write(0, 64)
    book.flush()
    book.issue(0, 2)
    return book, [stamped(fill)]


def found_with(runs: list[SectorRun], *others: SectorRun) -> Found:
    """These contents, with ``others`` in their places."""
    made = list(others)
    for run in runs:
        at = run.first
        for other in sorted(others, key=lambda one: one.first):
            if at < other.first:
                made.append(replace_run(run, at, other.first - at))
            at = other.end
        made.append(replace_run(run, at, run.end - at))
    return Found(sorted((one for one in made if one.sectors), key=lambda one: one.first), complete=True, logical=512)


def replace_run(run: SectorRun, first: int, sectors: int) -> SectorRun:
    return SectorRun(run.kind, first, sectors, run.number)


def left(*others: SectorRun) -> tuple[list[tuple[Damage, int]], int]:
    book, runs = with_open_write()
    opinion = judge(book.made, found_with(runs, *others), EXTENTS)
    without_hole(opinion, stripes_of(RAID5, open_writes(book.made, powered=True)))
    return [(one.kind, one.first) for one in opinion.wrong], opinion.in_hole


def test_a_flushed_neighbour_in_the_stripe_is_in_the_hole() -> None:
    assert left(damaged(CHUNK + 3, b"\xa5" * 512)) == ([], 1)
    assert left(zeros(CHUNK, 2)) == ([], 2)


def test_a_loss_in_another_stripe_is_a_loss() -> None:
    assert left(damaged(CHUNK + STRIPE, b"\xa5" * 512)) == ([(Damage.CORRUPT, CHUNK + STRIPE)], 0)
    assert left(zeros(CHUNK + STRIPE - 1, 2)) == ([(Damage.ZEROED, CHUNK + STRIPE)], 1)


def test_a_mix_of_three_stamps_that_looks_whole_is_in_the_hole() -> None:
    """What was worked out of a flushed stamp and its neighbour before and after a write has the number of the write."""
    book, _ = with_open_write()
    new, number = book.made.writes[-1], CHUNK
    fill = book.made.writes[0]
    mixed = reduce(
        lambda one, two: bytes(map(xor, one, two)),
        (
            Stamp(RUN, DEVICE, number, fill.number, number, 64).encode(),
            Stamp(RUN, DEVICE, 0, fill.number, 0, 64).encode(),
            Stamp(RUN, DEVICE, 0, new.number, 0, 64).encode(),
        ),
    )
    assert mixed == Stamp(RUN, DEVICE, number, new.number, number, 64).encode()
    assert left(SectorRun(ContentKind.STAMPED, CHUNK, 1, new.number)) == ([], 1)
    assert left(SectorRun(ContentKind.STAMPED, CHUNK + STRIPE, 1, new.number)) == (
        [(Damage.NEVER_WRITTEN, CHUNK + STRIPE)],
        0,
    )


def test_data_of_another_place_is_never_the_holes_doing() -> None:
    strange = SectorRun(ContentKind.ELSEWHERE, CHUNK, 1, 1, run=RUN, device=DEVICE, origin=40)
    assert left(strange) == ([(Damage.MISDIRECTED, CHUNK)], 0)


# --- the record of an array -------------------------------------------------------------------------------------------


def reassembled(level: str = "raid5", degraded: int = 1, policy: str = "resync", spoiled: int = 3) -> Bench:
    """An array that was assembled again without a member, after a write to its first sector had not ended. It reads
    zeros in the sector ``spoiled``, which was flushed."""
    bench = healthy()
    mirror(bench, level, (VICTIM, SURVIVORS[0], SURVIVORS[1]))
    bench.replace(ev.ArrayMade, policy=policy)
    stamps(bench, pending=True, spoiled=(spoiled,))
    bench.add(act(BACK + 0.3, "assemble", *SURVIVORS[:2]), state(BACK + 0.35, degraded=degraded))
    return bench


def hole(bench: Bench) -> int:
    """Sectors that the hole may have taken."""
    story = bench.story()
    (part,) = [one for one in story.of(ev.LedgerPart) if one.disk == ARRAY]
    ledger = decode_ledger([(0, base64.b64decode(part.data))])
    return sum(count for _, count in hole_of(story, ARRAY, ledger, powered=True))


def test_an_array_that_ran_without_a_member_has_a_hole() -> None:
    assert hole(reassembled()) == 2 * STRIPE


NO_HOLE = [{"degraded": 0}, {"policy": "ppl"}, {"policy": "journal"}, {"level": "raid1"}]


@pytest.mark.parametrize("how", NO_HOLE, ids=str)
def test_an_array_that_was_complete_or_kept_a_log_has_none(how: dict[str, Any]) -> None:
    bench = reassembled(**how)
    assert hole(bench) == 0
    assert [one.subject for one in bench.judge(nothing_lost(ARRAY)).findings] == [ARRAY]


def test_force_opens_the_hole_of_an_array_with_a_log() -> None:
    bench = reassembled(policy="ppl")
    bench.replace(ev.ArrayActed, lambda event: event.action == "assemble", forced=True)
    assert hole(bench) == 2 * STRIPE


def test_an_assembly_that_failed_opens_nothing() -> None:
    bench = reassembled()
    bench.replace(ev.ArrayActed, lambda event: event.action == "assemble", ok=False)
    assert hole(bench) == 0


def test_an_array_that_was_never_assembled_again_has_none() -> None:
    bench = reassembled()
    bench.drop(ev.ArrayActed, lambda event: event.action != "assemble")
    assert hole(bench) == 0


def test_what_the_hole_took_is_counted_and_not_accused() -> None:
    judgement = reassembled().judge(nothing_lost(ARRAY))
    assert (judgement.findings, judgement.unknowns) == ((), ())
    assert "array1: 1 sectors are wrong in stripes that were being written when the array failed" in judgement.worst
