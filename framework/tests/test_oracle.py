"""The oracle's rules, each with a disk that keeps it and one that breaks it."""

from __future__ import annotations

import pytest
from ledgers import DEVICE, RUN, Book, damaged, found, found_bytes, stamp, stamped, zeros

from plugpull.integrity.oracle import readback
from plugpull.integrity.oracle.decode import decode_found
from plugpull.integrity.oracle.readback import ContentKind, Found, SectorRun
from plugpull.integrity.oracle.rules import UNKNOWN_BEFORE, Opinion, judge
from plugpull.integrity.oracle.stamp import SECTOR, Stamp
from plugpull.integrity.oracle.wrong import Damage, Wrong


def opinion(
    book: Book,
    *runs: SectorRun,
    before: tuple[SectorRun, ...] | None = (zeros(0, 64),),
    size: int = 1,
    logical: int = 512,
) -> Opinion:
    return judge(book.made, found(*runs), ((0, size),), before, logical_block=logical)


def only(made: Opinion) -> Wrong:
    (wrong,) = made.wrong
    return wrong


# --- 1, 2: durable, completed, issued ---------------------------------------------------------------------------------


def test_what_was_flushed_is_there() -> None:
    book = Book()
    one = book.write(0)
    book.flush()
    made = opinion(book, stamped(one))
    assert made.intact
    assert (made.checked, made.writes, made.flushes, made.unflushed) == (1, 1, 1, 0)


def test_what_was_flushed_and_is_not_there_is_lost() -> None:
    book = Book()
    old, new = book.write(0), book.write(0)
    flush = book.flush()
    wrong = only(opinion(book, stamped(old)))
    assert (wrong.kind, wrong.first, wrong.sectors) == (Damage.LOST, 0, 1)
    assert wrong.expected() == (
        f"write 2, completed at 0.004 s, flushed from {flush.submitted_at:.3f} s to {flush.completed_at:.3f} s"
    )
    assert wrong.found() == "write 1, completed at 0.002 s"
    assert (wrong.expected_bytes(), wrong.found_bytes()) == (stamp(new, 0), stamp(old, 0))


def test_a_stamp_where_its_write_did_not_write_is_wrong_and_its_bytes_are_not_known() -> None:
    book = Book()
    one, other = book.write(0), book.write(8)
    book.flush()
    wrong = only(opinion(book, SectorRun(ContentKind.STAMPED, 0, 1, other.number)))
    assert wrong.kind is Damage.NEVER_WRITTEN
    assert (wrong.expected_bytes(), wrong.found_bytes()) == (stamp(one, 0), b"")


def test_what_was_there_before_is_lost_data_too() -> None:
    book = Book()
    book.write(0)
    book.flush()
    assert only(opinion(book, zeros(0))).kind is Damage.ZEROED
    earlier = SectorRun(ContentKind.STAMPED, 0, 1, 7)
    assert only(opinion(book, earlier, before=(earlier,))).kind is Damage.LOST


def test_a_version_that_two_promises_have_replaced_is_stale() -> None:
    book = Book()
    versions = []
    for _ in range(3):
        versions.append(book.write(0))
        book.flush()
    assert only(opinion(book, stamped(versions[0]))).kind is Damage.STALE
    assert only(opinion(book, stamped(versions[1]))).kind is Damage.LOST
    assert opinion(book, stamped(versions[2])).intact


def test_what_was_not_flushed_may_be_there_or_not() -> None:
    book = Book()
    one = book.write(0)
    book.flush()
    two, three = book.write(0), book.issue(0)
    for version, unflushed in ((one, 1), (two, 0), (three, 0)):
        made = opinion(book, stamped(version))
        assert (made.intact, made.unflushed) == (True, unflushed)
    assert not opinion(book, zeros(0)).intact


def test_a_write_with_fua_needs_no_flush() -> None:
    book = Book()
    one = book.write(0, fua=True)
    assert opinion(book, stamped(one)).intact
    assert only(opinion(book, zeros(0))).kind is Damage.ZEROED


def test_a_write_that_failed_may_be_there_or_not() -> None:
    book = Book()
    one = book.write(0)
    book.flush()
    two = book.write(0, error=5)
    book.flush()
    assert opinion(book, stamped(one)).intact
    assert opinion(book, stamped(two)).intact


# --- 3: which flush promises what -------------------------------------------------------------------------------------


def test_a_write_that_completed_after_the_flush_was_submitted_gains_nothing() -> None:
    book = Book()
    one = book.issue(0)
    flush = book.submit_flush()
    book.complete(one)
    book.complete_flush(flush)
    assert opinion(book, zeros(0)).intact
    assert opinion(book, stamped(one)).intact


@pytest.mark.parametrize("answered", [True, False])
def test_a_flush_that_failed_or_was_not_answered_promises_nothing(answered: bool) -> None:
    book = Book()
    one = book.write(0)
    flush = book.submit_flush()
    if answered:
        book.complete_flush(flush, error=5)
    assert opinion(book, zeros(0)).intact
    assert opinion(book, stamped(one)).intact


def test_writes_in_flight_together_have_no_order() -> None:
    book = Book()
    one, two = book.issue(0), book.issue(0)
    book.complete(two)
    book.complete(one)
    book.flush()
    assert opinion(book, stamped(one)).intact
    assert opinion(book, stamped(two)).intact
    assert only(opinion(book, zeros(0))).kind is Damage.ZEROED


# --- 4: order across a flush ------------------------------------------------------------------------------------------


def test_what_was_issued_after_the_flush_shows_that_order_was_not_kept() -> None:
    book = Book()
    early = book.write(0)
    book.flush()
    late = book.write(1)
    lost = only(opinion(book, zeros(0), stamped(late), size=2))
    assert lost.promised[0].write is early
    assert "the flush did not keep the order" in lost.evidence()[0]
    lost = only(opinion(book, zeros(0, 2), size=2))
    assert "nothing that was issued after that promise" in lost.evidence()[0]


# --- 5: torn ----------------------------------------------------------------------------------------------------------


def test_a_write_may_be_there_in_part() -> None:
    book = Book()
    old, new = book.write(0, 8), book.write(0, 8)
    made = opinion(book, stamped(old, 0, 3), stamped(new, 3, 5), size=8)
    assert made.intact
    assert made.unflushed == 3


def test_a_mix_inside_a_logical_block_is_torn() -> None:
    book = Book()
    old, new = book.write(0, 8), book.write(0, 8)
    wrong = only(opinion(book, stamped(old, 0, 3), stamped(new, 3, 5), size=8, logical=4096))
    assert (wrong.kind, wrong.first, wrong.sectors) == (Damage.TORN, 0, 8)
    book = Book()
    one, two = book.write(0, 8), book.write(8, 8)
    assert opinion(book, stamped(one), stamped(two), size=16, logical=4096).intact


def test_a_sector_of_two_versions_is_torn_and_says_where() -> None:
    book = Book()
    old, new = book.write(0), book.write(0)
    mixed = stamp(new, 0)[:200] + stamp(old, 0)[200:]
    wrong = only(opinion(book, damaged(0, mixed)))
    assert wrong.kind is Damage.TORN
    assert "from byte 0 on write 2, from byte " in wrong.detail
    assert "write 1" in wrong.detail
    assert wrong.found_bytes() == mixed


def test_a_sector_that_was_begun_over_zeros_is_torn() -> None:
    book = Book()
    new = book.write(0)
    wrong = only(opinion(book, damaged(0, stamp(new, 0)[:256] + bytes(256))))
    assert wrong.kind is Damage.TORN
    assert wrong.detail == "from byte 0 on write 1, from byte 256 on zeros"


# --- 6: everything else -----------------------------------------------------------------------------------------------


def test_a_sector_that_was_not_written_still_holds_what_it_held() -> None:
    book = Book()
    book.write(0)
    before = (zeros(0, 4), SectorRun(ContentKind.STAMPED, 4, 4, 9))
    made = judge(
        book.made,
        found(stamped(book.made.writes[0]), zeros(1, 3), SectorRun(ContentKind.STAMPED, 4, 4, 9)),
        ((0, 8),),
        before,
    )
    assert made.intact
    made = judge(book.made, found(stamped(book.made.writes[0]), zeros(1, 7)), ((0, 8),), before)
    assert [(wrong.kind, wrong.first, wrong.sectors) for wrong in made.wrong] == [(Damage.ZEROED, 4, 4)]


def test_flipped_bits_are_counted() -> None:
    book = Book()
    one = book.write(0)
    raw = bytearray(stamp(one, 0))
    raw[100] ^= 0b101
    wrong = only(opinion(book, damaged(0, bytes(raw))))
    assert (wrong.kind, wrong.detail) == (Damage.CORRUPT, "2 bits flipped in write 1")


def test_noise_is_corrupt() -> None:
    book = Book()
    book.write(0)
    assert only(opinion(book, damaged(0, b"\xa5" * SECTOR))).kind is Damage.CORRUPT


def test_misdirected_data_says_from_where() -> None:
    book = Book()
    one, two = book.write(0), book.write(8)
    book.flush()
    stray = SectorRun(ContentKind.ELSEWHERE, 8, 1, one.number, run=RUN, device=DEVICE, origin=0)
    wrong = only(judge(book.made, found(stamped(one), stray), ((0, 1), (8, 1)), (zeros(0, 64),)))
    assert wrong.kind is Damage.MISDIRECTED
    assert "write 1 of sector 0" in wrong.found()
    assert "8 sectors above its place, a power of two" in wrong.evidence()[0]
    assert wrong.promised[0].write is two


@pytest.mark.parametrize(("run", "device"), [(1, DEVICE), (RUN, 7)])
def test_data_of_another_run_or_disk_is_foreign(run: int, device: int) -> None:
    book = Book()
    book.write(0)
    wrong = only(opinion(book, SectorRun(ContentKind.ELSEWHERE, 0, 1, 5, run=run, device=device, origin=0)))
    assert wrong.kind is Damage.FOREIGN
    assert f"{device:016x}" in wrong.found()


def test_what_cannot_be_read_is_a_finding() -> None:
    book = Book()
    book.write(0)
    wrong = only(opinion(book, SectorRun(ContentKind.UNREADABLE, 0, 1, errno=5)))
    assert (wrong.kind, wrong.found()) == (Damage.UNREADABLE, "nothing readable (errno 5)")


def test_a_stamp_that_nobody_wrote_is_told() -> None:
    book = Book()
    book.write(0)
    assert only(opinion(book, SectorRun(ContentKind.STAMPED, 0, 1, 1 << 32 | 2))).kind is Damage.NEVER_WRITTEN
    book.write(8)
    assert only(opinion(book, SectorRun(ContentKind.STAMPED, 0, 1, 1 << 32 | 2))).kind is Damage.NEVER_WRITTEN


def test_a_version_that_an_earlier_read_back_had_shown_to_be_gone_is_stale() -> None:
    book = Book(session=3)
    newer = SectorRun(ContentKind.STAMPED, 0, 1, 2 << 32 | 5)
    older = SectorRun(ContentKind.STAMPED, 0, 1, 1 << 32 | 5)
    assert opinion(book, newer, before=(newer,)).intact
    assert only(opinion(book, older, before=(newer,))).kind is Damage.STALE


# --- what is not known ------------------------------------------------------------------------------------------------


def test_what_is_not_known_is_not_judged() -> None:
    book = Book()
    book.issue(0)
    made = opinion(book, zeros(0), before=None)
    assert (made.wrong, made.unjudged, made.intact) == ([], 1, False)
    assert made.problems == [UNKNOWN_BEFORE]


def test_findings_stand_when_the_ledger_has_lost_its_end() -> None:
    book = Book()
    book.write(0)
    book.flush()
    book.made.problems.append("the ledger ends before its session did")
    made = opinion(book, zeros(0))
    assert only(made).kind is Damage.ZEROED
    unknown = SectorRun(ContentKind.STAMPED, 0, 1, 1 << 32 | 2)
    made = opinion(book, unknown)
    assert (made.wrong, made.beyond, made.intact) == ([], 1, False)


def test_what_was_not_read_back_is_not_intact() -> None:
    book = Book()
    one = book.write(0)
    made = opinion(book, stamped(one), size=4)
    assert (made.intact, made.unjudged, made.checked) == (False, 3, 1)
    assert made.problems == ["3 sectors were not read back"]
    nothing = judge(book.made, Found(problems=["the read-back ends before everything was read"]), ((0, 4),), None)
    assert not nothing.intact
    assert not Opinion().intact, "nothing was compared"


def test_a_disk_that_became_smaller_is_not_intact() -> None:
    """The reader came to an end of it that was not there before (ENOSPC)."""
    book = Book()
    one = book.write(0)
    ended = readback.RUN.pack(ContentKind.READ, 0, 28, 0, 1, 1)
    back = decode_found([(0, found_bytes([stamped(one)])[:24] + ended)])
    made = judge(book.made, back, ((0, 8),), (zeros(0, 8),))
    assert made.wrong == []
    assert "read-back: reading back ended early (errno 28), after 1 sectors" in made.problems
    assert not made.intact


# --- the opinion as a whole -------------------------------------------------------------------------------------------


def test_neighbours_are_told_as_one_and_the_worst_comes_first() -> None:
    book = Book()
    for sector in range(6):
        book.write(sector)
    book.flush()
    writes = book.made.writes
    unreadable = SectorRun(ContentKind.UNREADABLE, 5, 1, errno=5)
    made = judge(book.made, found(zeros(0), stamped(writes[1]), zeros(2, 3), unreadable), ((0, 6),), (zeros(0, 8),))
    assert [(wrong.kind, wrong.first, wrong.sectors) for wrong in made.wrong] == [
        (Damage.ZEROED, 0, 1),
        (Damage.ZEROED, 2, 3),
        (Damage.UNREADABLE, 5, 1),
    ]
    assert made.counts == {"zeroed": 4, "unreadable": 1}
    assert made.first is made.wrong[0]
    assert made.worst is made.wrong[1]


def test_the_stamp_is_what_the_bytes_say() -> None:
    assert Stamp(RUN, DEVICE, 5, 1 << 32 | 3, 0, 1).encode() == stamp_of_hand()


def stamp_of_hand() -> bytes:
    """The layout of ``stamp.py``'s docstring, done again without its code."""
    import struct
    import zlib

    mask = (1 << 64) - 1
    run, device, sector, number = RUN, DEVICE, 5, (1 << 32) + 3
    word = run * 0x9E3779B97F4A7C15 ^ device * 0xC2B2AE3D27D4EB4F ^ sector * 0x165667B19E3779F9
    word = (word ^ number * 0xD6E8FEB86659FD93 ^ 1) & mask
    words = []
    for _ in range(57):
        word = (word ^ word << 13) & mask
        word ^= word >> 7
        word = (word ^ word << 17) & mask
        words.append(word)
    body = struct.pack("<8sQQQQII57QI", b"plugpull", run, device, sector, number, 0, 1, *words, 3)
    return body + struct.pack("<I", zlib.crc32(body))
