"""The check ``data_intact`` on disks that were stamped: it distinguishes passes, disks and torn blocks."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from ledgers import RUN, Book, stamped, zeros
from sessions_on_record import on_record
from stories import CUT, DISKS, SIZE, SURVIVORS, VICTIM, Bench, healthy

from plugpull.checks import data_intact, kept_while_powered, nothing_lost
from plugpull.checks.data.data_sound import DataSound
from plugpull.checks.record.writer_ends import ended_otherwise
from plugpull.history import events as ev
from plugpull.integrity.oracle.ledger import Ledger, Reason, Write
from plugpull.integrity.oracle.readback import ContentKind, SectorRun

SURVIVOR = SURVIVORS[0]
Spoil = Callable[[list[Write], list[Write]], list[SectorRun]]
"""From the writes of two passes to what the disk holds."""


def passes(count: int = 2) -> tuple[Book, list[SectorRun]]:
    """A span of 8 sectors in writes of 2, written over and over without a flush until the end; what it holds then."""
    book = Book()
    book.flush()
    writes = [book.write(sector, 2) for _ in range(count) for sector in range(0, 8, 2)]
    book.flush()
    return book, [stamped(write) for write in writes[-4:]]


def bench_of(book: Book, *runs: SectorRun, disk: str = SURVIVOR) -> Bench:
    bench = healthy()
    bench.drop(ev.Verified)
    on_record(bench, book, *runs, disk=disk)
    bench.replace(ev.LedgerBegun, block=1)
    return bench


def test_a_survivor_whose_last_pass_is_there() -> None:
    book, runs = passes()
    judgement = bench_of(book, *runs).judge(data_intact(SURVIVOR))
    assert (judgement.findings, judgement.unknowns) == ((), ())
    assert judgement.worst == "data intact (8 sectors)"
    assert judgement.integrity is not None
    assert judgement.integrity.sectors_checked == 8


def test_a_writer_that_failed_and_whose_ledger_says_nothing_of_it_proves_nothing() -> None:
    book, runs = passes()
    bench = bench_of(book, *runs)
    bench.replace(ev.LedgerEnded, status=1)
    (doubt,) = bench.judge(data_intact(SURVIVOR)).unknowns
    assert doubt.endswith("its writer ended with status 1, and its ledger with no error")


@pytest.mark.parametrize(
    ("status", "reason", "what"),
    [
        (0, Reason.ASKED, ""),
        (0, Reason.DONE, ""),
        (1, Reason.ERROR, ""),
        (-9, Reason.ASKED, ""),
        (1, Reason.DONE, "its writer ended with status 1, and its ledger with no error"),
        (0, Reason.ERROR, "its writer ended with status 0, and its ledger with an error of its disk"),
    ],
)
def test_the_status_of_a_writer_and_its_ledger_say_the_same(status: int, reason: Reason, what: str) -> None:
    ended = ev.LedgerEnded(disk=SURVIVOR, job="j", asked=False, received=0, status=status)
    assert ended_otherwise(ended, Ledger(reason=reason)) == what


def foreign(first: int) -> SectorRun:
    return SectorRun(ContentKind.ELSEWHERE, first, 2, 7, run=RUN, device=99, origin=first)


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (lambda old, new: [stamped(write) for write in old], "8 durable lost"),
        (lambda old, new: [stamped(old[0]), *map(stamped, new[1:])], "2 durable lost"),
        (
            lambda old, new: [stamped(new[0]), stamped(new[1], 2, 1), stamped(old[1], 3, 1), *map(stamped, new[2:])],
            "1 d",
        ),
        (lambda old, new: [stamped(new[0]), foreign(2), *map(stamped, new[2:])], "2 foreign"),
        (lambda old, new: [stamped(new[0]), zeros(2, 2), *map(stamped, new[2:])], "2 zeroed"),
    ],
    ids=["a whole pass is lost", "a write is lost", "half a write is lost", "another disk's", "zeros"],
)
def test_what_fio_cannot_tell_is_found(spoil: Spoil, says: str) -> None:
    book, _ = passes()
    runs = spoil(book.made.writes[:4], book.made.writes[4:])
    bench = bench_of(book, *runs)
    (finding,) = bench.judge(data_intact(SURVIVOR)).findings
    assert (finding.check, finding.subject) == ("data_intact", SURVIVOR)
    assert says in finding.summary
    assert bench.judge(kept_while_powered()).findings == (), "it is reported once"


def test_wrong_data_is_a_finding_whatever_was_asked_for() -> None:
    """And is reported once if it was asked for."""
    book, _ = passes()
    bench = bench_of(book, *map(stamped, book.made.writes[:4]))
    bench.checks = ()
    (finding,) = bench.judge(DataSound()).findings
    assert finding.subject == SURVIVOR
    for asked in (data_intact(SURVIVOR), nothing_lost()):
        bench.checks = (asked,)
        assert bench.judge(DataSound()).findings == ()
    bench = healthy(checks=(data_intact(VICTIM),))
    bench.replace(ev.Verified, lambda event: event.disk == SURVIVOR, bad=((0, 512, "crc32c"),))
    assert [finding.subject for finding in bench.judge(DataSound()).findings] == [SURVIVOR]
    bench.checks = (data_intact(),)
    assert bench.judge(DataSound()).findings == ()


def test_a_comparison_before_the_cut_proves_nothing() -> None:
    bench = healthy()
    assert bench.judge(data_intact()).unknowns == ()
    bench.replace(ev.Verified, at=CUT - 1.0)
    judgement = bench.judge(data_intact())
    assert judgement.findings == ()
    assert len(judgement.unknowns) == len(DISKS)
    assert "was read back at 14.00 s, and written or cut until" in judgement.unknowns[0]


@pytest.mark.parametrize(
    ("mode", "written", "asked", "due"),
    [
        ("write", 3 * SIZE, True, SIZE),  # several passes
        ("write", 9 << 20, True, 9 << 20),  # the first pass was not over
        ("write", 3 * SIZE, False, SIZE - 14 * 65536),  # a cut may have caught four blocks ahead and eight behind
        ("read", 0, True, SIZE),  # filled before
    ],
)
def test_less_is_compared_than_was_written(mode: ev.LoadMode, written: int, asked: bool, due: int) -> None:
    for checked, doubts in (
        (due, []),
        (due - 512, [f"{due - 512} bytes of {SURVIVOR} were compared, and {due} had been written"]),
    ):
        bench = healthy(mode=mode)
        bench.replace(ev.LoadBegun, span=SIZE)
        bench.replace(ev.LoadEnded, lambda event: event.disk == SURVIVOR, written_bytes=written, asked=asked)
        bench.replace(ev.Verified, lambda event: event.disk == SURVIVOR, checked=checked)
        assert list(bench.judge(data_intact(SURVIVOR)).unknowns) == doubts


def test_a_block_of_two_passes_is_torn() -> None:
    book, runs = passes()
    old = book.made.writes[3]
    bench = bench_of(book, *runs[:3], stamped(book.made.writes[7], 6, 1), stamped(old, 7, 1))
    bench.replace(ev.ReadBackBegun, logical=1024)
    (finding,) = bench.judge(data_intact(SURVIVOR)).findings
    assert "2 torn" in finding.summary


def test_what_was_never_written_is_not_judged() -> None:
    """The load ended before its first pass was over: what lies behind is what somebody left there once."""
    book = Book()
    book.flush()
    one = book.write(0, 2)
    book.flush()
    runs = [
        stamped(one),
        zeros(2, 2),
        SectorRun(ContentKind.ELSEWHERE, 4, 2, 5, run=1, device=2, origin=4),
        zeros(6, 2),
    ]
    judgement = bench_of(book, *runs).judge(data_intact(SURVIVOR))
    assert (judgement.findings, judgement.unknowns) == ((), ())
    assert judgement.worst == "data intact (2 sectors)"
    strays = [stamped(one), zeros(2, 2), foreign(4), zeros(6, 2)]
    (finding,) = bench_of(book, *strays).judge(data_intact(SURVIVOR)).findings
    assert "2 foreign" in finding.summary, "this run's own stamps of another disk can have come by one way only"


@pytest.mark.parametrize(("power", "unpromised"), [(False, False), (True, True)])
def test_a_victim_owes_what_it_completed_unless_it_lost_its_power(power: bool, unpromised: bool) -> None:
    book = Book()
    book.flush()
    runs = [stamped(book.write(sector, 2)) for sector in range(0, 8, 2)]
    bench = bench_of(book, *runs, disk=VICTIM)
    if power:
        bench.replace(ev.CutArmed, mechanism="mains", point=f"{VICTIM}.power")
    judgement = bench.judge(data_intact(VICTIM))
    assert (judgement.findings, judgement.unknowns) == ((), ())
    assert (f"nothing had been promised of {VICTIM}" in judgement.worst) == unpromised


def test_a_stamped_disk_that_was_not_read_back_is_unknown() -> None:
    book, runs = passes()
    bench = bench_of(book, *runs)
    bench.drop(ev.ReadBackBegun)
    judgement = bench.judge(data_intact(SURVIVOR))
    assert judgement.findings == ()
    assert judgement.unknowns


def test_a_disk_that_was_filled_only_counts_as_written() -> None:
    bench = healthy(mode="read")
    bench.drop(ev.Verified)
    book = Book()
    for sector in range(0, 8, 2):
        book.write(sector, 2).fill = True
    book.flush()
    on_record(bench, book, *map(stamped, book.made.writes), disk=VICTIM, fill=True)
    judgement = bench.judge(data_intact())
    assert (judgement.findings, judgement.unknowns) == ((), ())
    assert judgement.subject == VICTIM


def test_a_disk_that_was_compared_and_had_no_load() -> None:
    """As when it lies idle after it was filled."""
    bench = healthy()
    bench.drop(ev.LoadBegun)
    bench.drop(ev.LoadEnded)
    judgement = bench.judge(data_intact())
    assert (judgement.findings, judgement.unknowns, judgement.smallest) == ((), (), 1.0)
    assert healthy().judge(data_intact()).smallest == 128.0, "fio compares blocks of 64 KiB as a whole"
