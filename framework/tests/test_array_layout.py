"""Where md puts an array's sectors, against the tables of its documentation, and what that makes of read members.

The tables of RAID 10 are those of md(4); those of RAID 5 and 6 follow raid5_compute_sector of drivers/md/raid5.c for
the left-symmetric layout, P being the parity and Q the second one.
"""

from __future__ import annotations

import pytest
from ledgers import DEVICE, RUN, Book, stamped, zeros

from plugpull.integrity.oracle.agreement import disagreements
from plugpull.integrity.oracle.array_layout import ArrayLayout, copies_of, covers
from plugpull.integrity.oracle.readback import ContentKind, Found, SectorRun
from plugpull.integrity.oracle.rules import judge

TABLES = {
    ("raid0", 0): ("0 1 2", "3 4 5"),
    ("raid5", 2): ("0 1 P", "3 P 2", "P 4 5", "6 7 P"),
    ("raid6", 2): ("Q 0 1 P", "2 3 P Q", "5 P Q 4", "P Q 6 7", "Q 8 9 P"),
    ("raid10", 0x102): ("0 0 1", "1 2 2", "3 3 4"),
}
CHUNK = 4


@pytest.mark.parametrize(("level", "layout"), TABLES)
def test_each_chunk_is_where_the_documentation_has_it(level: str, layout: int) -> None:
    rows = [row.split() for row in TABLES[(level, layout)]]
    made = ArrayLayout(level, len(rows[0]), CHUNK, layout)
    assert made.known
    for number, row in enumerate(rows):
        for slot, chunk in enumerate(row):
            for within in range(CHUNK):
                place = made.stretch(slot, number * CHUNK + within)
                if not chunk.isdigit():
                    assert place is None
                    continue
                assert place is not None
                sector, copy, left = place
                assert (sector, left) == (int(chunk) * CHUNK + within, CHUNK - within)
                assert made.slot_of(copy, sector) == slot
                begin, count = made.member_extents(((sector, 1),))[0]
                assert begin <= number * CHUNK + within < begin + count


def test_a_mirror_has_every_sector_on_every_member() -> None:
    made = ArrayLayout("raid1", 3)
    assert (made.known, made.copies) == (True, 3)
    assert made.stretch(2, 77) == (77, 2, 1 << 62)
    assert made.member_extents(((0, 8), (64, 8))) == ((0, 8), (64, 8))


@pytest.mark.parametrize(
    "layout", [ArrayLayout("raid5", 3, 8, 0), ArrayLayout("raid10", 4, 8, 0x201), ArrayLayout("linear", 2)]
)
def test_other_layouts_are_not_guessed(layout: ArrayLayout) -> None:
    assert not layout.known


@pytest.mark.parametrize(
    ("level", "missing", "covered"),
    [
        ("raid0", "", True),
        ("raid0", "a", False),
        ("raid1", "abc", True),
        ("raid1", "abcd", False),
        ("raid10", "ac", True),
        ("raid10", "ab", False),
        ("raid10", "ad", True),
        ("raid5", "a", True),
        ("raid5", "ac", False),
        ("raid6", "ac", True),
        ("raid6", "acd", False),
    ],
)
def test_what_may_be_missing(level: str, missing: str, covered: bool) -> None:
    assert covers(level, "abcd", [*missing, "another"]) is covered


OFFSET = 100


def on_member(layout: ArrayLayout, slot: int, runs: list[SectorRun], sectors: int) -> Found:
    """What a reader finds on a member of an array that holds ``runs``: stamps of other places, as it sees them."""
    found = []
    for at in range(sectors):
        place = layout.stretch(slot, at)
        here = [run for run in runs if place is not None and run.first <= place[0] < run.end]
        if place is None:
            found.append(SectorRun(ContentKind.DAMAGED, OFFSET + at, 1, raw=bytes([255]) * 512))
        elif not here or here[0].kind is ContentKind.ZEROED:
            found.append(zeros(OFFSET + at))
        else:
            kind, origin = ContentKind.ELSEWHERE, place[0]
            found.append(SectorRun(kind, OFFSET + at, 1, here[0].number, run=RUN, device=DEVICE, origin=origin))
    return Found(found, complete=True, run=RUN, device=DEVICE, session=1)


@pytest.mark.parametrize(
    ("level", "members", "layout"),
    [("raid1", 2, 0), ("raid0", 3, 0), ("raid10", 3, 0x102), ("raid5", 3, 2), ("raid6", 4, 2)],
)
def test_members_are_put_together_again(level: str, members: int, layout: int) -> None:
    """Each copy holds what was written; a member that missed a write makes its own copy wrong, and no other."""
    made = ArrayLayout(level, members, 0 if level == "raid1" else CHUNK, layout)
    book = Book()
    old = [book.write(sector, 2) for sector in range(0, 24, 2)]
    book.flush()
    new = book.write(8, 2)
    book.flush()
    extents = ((0, 24),)
    fresh = [stamped(write) for write in old if write.sector != 8] + [stamped(new)]
    stale = [stamped(write) for write in old]
    legs = {slot: on_member(made, slot, fresh, 48) for slot in range(members)}
    copies = copies_of(made, legs, dict.fromkeys(legs, OFFSET), extents)
    assert len(copies) == made.copies
    for copy, content in copies.items():
        assert judge(book.made, content, extents).intact, copy
    behind = made.slot_of(0, 8)
    legs[behind] = on_member(made, behind, stale, 48)
    copies = copies_of(made, legs, dict.fromkeys(legs, OFFSET), extents)
    wrong = {copy: judge(book.made, content, extents).wrong for copy, content in copies.items()}
    assert [(one.first, one.sectors) for one in wrong.pop(0)] == [(8, 2)]
    assert not any(wrong.values())


def test_a_stamp_in_the_wrong_place_of_a_member_stays_wrong() -> None:
    made, book = ArrayLayout("raid1", 2), Book()
    write = book.write(0, 4)
    book.flush()
    misplaced = SectorRun(ContentKind.ELSEWHERE, OFFSET, 4, write.number, run=RUN, device=DEVICE, origin=2)
    found = Found([misplaced], complete=True, run=RUN, device=DEVICE)
    content = copies_of(made, {0: found}, {0: OFFSET}, ((0, 4),))[0]
    assert judge(book.made, content, ((0, 4),)).counts == {"misdirected": 4}


def test_a_stamp_at_the_sector_of_the_disk_belongs_to_no_sector_of_the_array() -> None:
    """The reader takes a stamp of the disk's own sector for a good one; on a member the data is shifted."""
    made, book = ArrayLayout("raid1", 2), Book()
    write = book.write(0, 4)
    book.flush()
    found = Found([SectorRun(ContentKind.STAMPED, OFFSET, 4, write.number)], complete=True, run=RUN, device=DEVICE)
    content = copies_of(made, {0: found}, {0: OFFSET}, ((0, 4),))[0]
    assert not judge(book.made, content, ((0, 4),)).intact


def test_copies_are_compared_where_both_were_read() -> None:
    write, zero, unknown = ContentKind.STAMPED, ContentKind.ZEROED, ContentKind.UNREADABLE
    one = [SectorRun(write, 0, 8, 5), SectorRun(zero, 8, 4), SectorRun(write, 16, 4, 7)]
    assert [*disagreements(one, one)] == []
    other = [SectorRun(write, 2, 4, 5), SectorRun(write, 6, 3, 6), SectorRun(unknown, 16, 2), SectorRun(zero, 18, 4)]
    found = [(each.first, each.sectors, each.one.kind, each.other.number) for each in disagreements(one, other)]
    assert found == [(6, 2, write, 6), (8, 1, zero, 6), (18, 2, write, 0)]
    assert len([*disagreements(other, one)]) == len(found)


def test_stamps_of_other_places_are_compared_by_where_they_belong() -> None:
    elsewhere = ContentKind.ELSEWHERE
    whole = [SectorRun(elsewhere, 0, 8, 5, run=1, device=2, origin=100)]
    halves = [SectorRun(elsewhere, at, 4, 5, run=1, device=2, origin=100 + at) for at in (0, 4)]
    assert [*disagreements(whole, halves)] == []
    moved = [halves[0], SectorRun(elsewhere, 4, 4, 5, run=1, device=2, origin=100)]
    assert [each.first for each in disagreements(whole, moved)] == [4]
