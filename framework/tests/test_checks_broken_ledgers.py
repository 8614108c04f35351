"""The check ``nothing_lost`` on a record that lacks something or contradicts itself."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
import pytest
from ledgers import RUN, Book, stamped
from sessions_on_record import judged, on_record, session, unknown, whole
from stories import CUT, GONE, SURVIVORS, VICTIM, Bench, healthy

from plugpull.checks import kept_while_powered, nothing_lost
from plugpull.history import events as ev
from plugpull.integrity.oracle.readback import ContentKind, SectorRun
from plugpull.integrity.oracle.stamp import device_number


def three_rounds() -> Bench:
    """Sector 0 is rewritten and flushed in each round; every round is read back."""
    bench = healthy()
    book, runs = session(1)
    on_record(bench, book, *runs, fill=True)
    for number in (2, 3):
        book = Book(session=number)
        newest = book.write(0)
        book.flush()
        runs = [SectorRun(ContentKind.STAMPED, 0, 1, newest.number), *runs[1:]]
        on_record(bench, book, *runs, later=10.0 * (number - 1))
    return bench


def rounds(number: int) -> tuple[str, str]:
    return f"stamp{number}-{VICTIM}", f"readback{number}-{VICTIM}"


def test_three_rounds_pass() -> None:
    judgement = judged(three_rounds())
    assert (judgement.findings, judgement.unknowns) == ((), ())


@pytest.mark.parametrize("gone", [1, 2, 3])
@pytest.mark.parametrize("kinds", ["ledger", "all"])
def test_a_round_that_is_not_on_record_is_noticed(gone: int, kinds: str) -> None:
    bench = three_rounds()
    for number in (1, 2, 3):
        bench.add(ev.StampingPlanned(at=11.0, run=RUN, session=number, disks=(VICTIM,)))
    assert judged(bench).unknowns != (), "the end is not on record yet"
    bench.add(ev.StampingOver(at=25.0, run=RUN, disks=(VICTIM,), sessions={VICTIM: 3}))
    drop = rounds(gone) if kinds == "all" else rounds(gone)[:1]
    bench.events = [event for event in bench.events if getattr(event, "job", "") not in drop]
    assert f"session {gone} of what was stamped on {VICTIM} is not on record" in unknown(bench)


def test_old_records_show_by_their_phases_that_the_last_round_is_missing() -> None:
    bench = three_rounds()
    bench.events = [event for event in bench.events if getattr(event, "job", "") not in rounds(3)]
    begun = ev.Phase(at=33.0, name="load", text="random 4 KiB writes on 1 disks")
    bench.add(begun, ev.Phase(at=46.0, name="heal"))
    assert "and that of 1 disks is not on record" in unknown(bench)
    bench.events.remove(begun)
    bench.add(ev.Phase(at=45.0, name="verify", text="reading back"))
    assert "reading back began at 45.00 s, and nothing of it is on record" in unknown(bench)


def test_a_plan_that_is_missing_is_noticed_where_the_end_is_on_record() -> None:
    bench = three_rounds()
    bench.add(ev.StampingOver(at=60.0, run=RUN, disks=(VICTIM,), sessions={VICTIM: 3}))
    for number in (1, 3):
        bench.add(ev.StampingPlanned(at=11.0, run=RUN, session=number, disks=(VICTIM,)))
    assert f"that {VICTIM} was to be stamped in session 2 is not on record" in unknown(bench)


@pytest.mark.parametrize("kind", [ev.LedgerBegun, ev.LedgerEnded, ev.ReadBackBegun, ev.ReadBackEnded])
def test_any_one_event_that_is_missing_is_noticed(kind: type[ev.Event]) -> None:
    bench = healthy()
    whole(bench)
    assert judged(bench).unknowns == ()
    bench.drop(kind)
    assert unknown(bench)


@pytest.mark.parametrize("kind", [ev.LedgerBegun, ev.LedgerPart, ev.LedgerEnded, ev.ReadBackBegun, ev.ReadBackPart])
def test_an_event_that_is_there_twice_is_noticed(kind: type[ev.Event]) -> None:
    bench = healthy()
    whole(bench)
    (doubled, *_) = [event for event in bench.events if isinstance(event, kind)]
    bench.events.append(msgspec.structs.replace(doubled))
    assert unknown(bench)


def test_pieces_out_of_order_are_noticed() -> None:
    bench = healthy()
    whole(bench)
    parts = [event for event in bench.events if isinstance(event, ev.LedgerPart)]
    one, two = bench.events.index(parts[1]), bench.events.index(parts[2])
    bench.events[one], bench.events[two] = bench.events[two], bench.events[one]
    assert "is out of order" in unknown(bench)


def test_pieces_that_leave_a_hole_or_were_not_all_received_are_noticed() -> None:
    bench = healthy()
    whole(bench)
    last = [event for event in bench.events if isinstance(event, ev.LedgerPart)][-1]
    bench.replace(ev.LedgerPart, lambda event: event == last, offset=last.offset + 7)
    assert "7 bytes are missing" in unknown(bench)
    bench = healthy()
    whole(bench)
    bench.replace(ev.LedgerEnded, received=5000)
    assert "5000 bytes of the ledger arrived" in unknown(bench)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"run": 5}, "another session, disk or run"),
        ({"device": 5}, "another session, disk or run"),
        ({"session": 2}, "session 1 of what was stamped"),
        ({"extents": ((0, 4),)}, "outside of what the session covers"),
        ({"block": 16}, "blocks of 1 sectors"),
        ({"at": 500.0}, "beginning"),
    ],
)
def test_a_beginning_that_does_not_fit_its_ledger_proves_nothing(changes: dict[str, Any], says: str) -> None:
    bench = healthy()
    book, runs = session()
    book.write(5)
    book.flush()
    on_record(bench, book, *runs, start=12.0)  # something is lost: even that proves nothing
    assert judged(bench).findings
    bench.replace(ev.LedgerBegun, **changes)
    assert unknown(bench)


@pytest.mark.parametrize("changes", [{"session": 4}, {"extents": ((0, 4),)}])
def test_a_read_back_of_another_session_or_extent_proves_nothing(changes: dict[str, Any]) -> None:
    bench = healthy()
    whole(bench)
    bench.replace(ev.ReadBackBegun, **changes)
    assert unknown(bench)


def test_read_backs_with_each_others_names_prove_nothing() -> None:
    bench = three_rounds()
    one, two = (rounds(number)[1] for number in (1, 2))
    sessions = {one: 2, two: 1}
    bench.events = [
        msgspec.structs.replace(event, session=sessions[event.job])
        if isinstance(event, ev.ReadBackBegun) and event.job in sessions
        else event
        for event in bench.events
    ]
    assert unknown(bench)


def test_a_read_back_that_ended_badly_or_short_is_noticed() -> None:
    for changes in ({"status": 1, "why": "Input/output error"}, {"status": None, "stuck": True}, {"received": 7}):
        bench = healthy()
        whole(bench)
        bench.replace(ev.ReadBackEnded, **changes)
        assert unknown(bench)


def test_two_disks_with_each_others_ledgers_prove_nothing() -> None:
    bench = healthy()
    other = SURVIVORS[0]
    for disk in (VICTIM, other):
        book, runs = session()
        book.made.device = device_number(f"S-{disk}")
        on_record(bench, book, *runs, disk=disk)
    assert judged(bench).unknowns == ()
    jobs = {f"stamp1-{VICTIM}": f"stamp1-{other}", f"stamp1-{other}": f"stamp1-{VICTIM}"}
    events = list(bench.events)
    bench.events = [
        msgspec.structs.replace(event, job=jobs[event.job]) if isinstance(event, ev.LedgerPart) else event
        for event in events
    ]
    assert "another session, disk or run" in unknown(bench)
    disks = {VICTIM: other, other: VICTIM}
    bench.events = [
        msgspec.structs.replace(event, disk=disks[event.disk]) if isinstance(event, ev.LedgerBegun) else event
        for event in events
    ]
    assert unknown(bench)


def test_a_ledger_whose_times_contradict_the_cut_proves_nothing() -> None:
    """The disk was gone for 6 s when it is said to have completed its last write."""
    bench = healthy()
    book, runs = session()
    late = book.write(5)
    late.completed_at = GONE + 6.0 - 12.0
    on_record(bench, book, *[run for run in runs if run.first != 5], stamped(late), start=12.0)
    said = unknown(bench)
    assert f"{VICTIM} was gone since" in said
    bench = healthy()
    on_record(bench, session()[0], *session()[1], start=500.0)
    assert "its ledger says that it began at 500.00 s" in unknown(bench)


def test_a_read_back_from_before_the_end_proves_nothing() -> None:
    """A cut that seems to come after it would not count, and a power loss would be held against the disk."""
    bench = healthy()
    book, runs = session()
    book.write(5)
    on_record(bench, book, *runs)
    bench.replace(ev.CutArmed, mechanism="mains", point=f"{VICTIM}.power")
    story = bench.story()
    early = tuple(
        msgspec.structs.replace(event, at=CUT - 1.5) if isinstance(event, ev.ReadBackBegun) else event
        for event in story.events
    )
    for check in (nothing_lost(), kept_while_powered()):
        judgement = check.judge(replace(story, events=early))
        assert judgement.findings == ()
        assert any("was read back at 13.50 s, and its writer ended at 16.00 s" in why for why in judgement.unknowns)
