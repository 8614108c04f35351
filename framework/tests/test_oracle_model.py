"""The oracle against a disk that is played through: whatever it can hold is legal, and nothing else is.

The model shares nothing with the oracle. It plays a session on one sector step by step and keeps every state that the
disk can be in: what the medium holds, what the cache holds, and which writes are under way. A write under way may reach
the cache at any moment until it is over; the cache may reach the medium at any moment; a flush that succeeds is
answered only when all that was completed before it was submitted has reached the medium. Then the power goes.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from ledgers import DEVICE, RUN, Book, damaged, found, found_bytes, ledger_bytes, stamp, stamped

from plugpull.integrity.oracle.decode import decode_found, decode_ledger
from plugpull.integrity.oracle.ledger import Ledger, Write
from plugpull.integrity.oracle.readback import ContentKind, SectorRun
from plugpull.integrity.oracle.rules import judge
from plugpull.integrity.oracle.wrong import Damage

EXAMPLES = int(os.environ.get("PLUGPULL_FUZZ", "300"))
"""PLUGPULL_FUZZ=20000 takes some minutes."""
SECTORS = 3
BEFORE = 0
"""What the model calls the content from before the session."""
thorough = settings(
    max_examples=EXAMPLES,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


# --- sessions ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Step:
    """``what`` is issue, complete, fail, submit, answer or refuse; ``which`` chooses among what is under way."""

    what: str
    which: int = 0
    sector: int = 0
    sectors: int = 1
    fua: bool = False


steps = st.builds(
    Step,
    st.sampled_from(["issue"] * 4 + ["complete"] * 4 + ["fail", "submit", "submit", "answer", "answer", "refuse"]),
    st.integers(0, 3),
    st.integers(0, SECTORS - 1),
    st.integers(1, SECTORS),
    st.booleans() | st.just(False),
)
sessions = st.lists(steps, max_size=24)


def played(plan: list[Step]) -> Book:
    """The ledger of a session that does this; steps that are impossible are passed over."""
    book = Book()
    for step in plan:
        flying = [write for write in book.made.writes if write.completed is None]
        flushing = [flush for flush in book.made.flushes if flush.completed is None]
        if step.what == "issue" and len(flying) < 3:
            book.issue(step.sector, min(step.sectors, SECTORS - step.sector), fua=step.fua)
        elif step.what in ("complete", "fail") and flying:
            book.complete(flying[step.which % len(flying)], error=5 if step.what == "fail" else 0)
        elif step.what == "submit" and not flushing:
            book.submit_flush()
        elif step.what in ("answer", "refuse") and flushing:
            book.complete_flush(flushing[0], error=5 if step.what == "refuse" else 0)
    return book


# --- the disk ---------------------------------------------------------------------------------------------------------

State = tuple[int, int, frozenset[int]]
"""Of one sector: what the medium holds, what the cache holds (the same if nothing is cached), and which writes to it
are issued and have not reached the cache."""


def held(ledger: Ledger, sector: int) -> set[int]:
    """Everything that one sector of the medium can hold when the power goes after the last step."""
    writes = {w.number: w for w in ledger.writes if w.sector <= sector < w.end}
    events: list[tuple[int, str, int]] = [(w.issued, "issued", w.number) for w in writes.values()]
    events += [(w.completed, "over", w.number) for w in writes.values() if w.completed is not None]
    events += [(f.submitted, "submitted", f.number) for f in ledger.flushes]
    events += [(f.completed, "flushed", f.number) for f in ledger.flushes if f.completed is not None and not f.error]
    states: set[tuple[State, frozenset[int]]] = {((BEFORE, BEFORE, frozenset()), frozenset())}
    completed: set[int] = set()
    owed: dict[int, set[int]] = {}
    for _, what, number in sorted(events):
        states = set(closure(states))
        if what == "issued":
            states = {((m, c, under | {number}), seen) for (m, c, under), seen in states}
        elif what == "over":
            write = writes[number]
            if write.error:
                states = {((m, c, under - {number}), seen) for (m, c, under), seen in states}
            else:
                # It has reached the cache by now; with FUA the medium too.
                states = {(s, seen) for s, seen in states if number not in s[2]}
                if write.fua:
                    states = {(s, seen) for s, seen in states if number in seen}
                completed.add(number)
        elif what == "submitted":
            owed[number] = set(completed)
        else:
            states = {(s, seen) for s, seen in states if owed[number] <= seen}
    return {s[0] for s, _ in closure(states)}


def closure(states: set[tuple[State, frozenset[int]]]) -> Iterator[tuple[State, frozenset[int]]]:
    """All states that these can reach without a command: writes under way reach the cache, the cache reaches
    the medium. ``seen`` are the writes that have reached the medium, or were replaced in the cache by one that came
    later and has."""
    todo, known = list(states), set(states)
    while todo:
        (medium, cache, under), seen = state = todo.pop()
        yield state
        after: list[tuple[State, frozenset[int]]] = []
        for number in under:
            # What the cache held is replaced: it is as good as on the medium once its successor is.
            after.append(((medium, number, under - {number}), seen | {-number}))
        if cache != medium or cache:
            arrived = seen | {cache} | {-number for number in seen if number < 0}
            after.append(((cache, cache, under), frozenset(arrived)))
        for one in after:
            if one not in known:
                known.add(one)
                todo.append(one)


# --- they agree -------------------------------------------------------------------------------------------------------


def content(write: Write | None, sector: int) -> SectorRun:
    return stamped(write, sector, 1) if write is not None else SectorRun(ContentKind.ZEROED, sector, 1)


@thorough
@given(sessions)
@example([Step("issue"), Step("complete"), Step("submit"), Step("answer")])
@example([Step("issue", fua=True), Step("issue"), Step("complete"), Step("complete")])
def test_what_a_disk_can_hold_is_legal_and_nothing_else_is(plan: list[Step]) -> None:
    book = played(plan)
    before = tuple(SectorRun(ContentKind.ZEROED, sector, 1) for sector in range(SECTORS))
    for sector in range(SECTORS):
        possible = held(book.made, sector)
        for write in (None, *(w for w in book.made.writes if w.sector <= sector < w.end)):
            number = write.number if write is not None else BEFORE
            made = judge(book.made, found(content(write, sector)), ((sector, 1),), before)
            assert made.intact == (number in possible), (sector, number, possible, book.made)


DAMAGES = ("torn", "flipped", "foreign", "misdirected", "noise", "unreadable")


@thorough
@given(sessions, st.integers(0, SECTORS - 1), st.sampled_from(DAMAGES), st.integers(8, 496), st.integers(0, 4095))
def test_damage_is_never_legal(plan: list[Step], sector: int, damage: str, byte: int, bit: int) -> None:
    book = played(plan)
    here = [write for write in book.made.writes if write.sector <= sector < write.end]
    whole = stamp(here[-1], sector) if here else bytes(512)
    flipped = bytearray(whole)
    flipped[bit // 8] ^= 1 << bit % 8
    runs = {
        "torn": damaged(sector, whole[:byte] + bytes(b ^ 255 for b in whole[byte:])),
        "flipped": damaged(sector, bytes(flipped)),
        "foreign": SectorRun(ContentKind.ELSEWHERE, sector, 1, 5, run=1, device=DEVICE, origin=sector),
        "misdirected": SectorRun(ContentKind.ELSEWHERE, sector, 1, 5, run=RUN, device=DEVICE, origin=sector + 8),
        "noise": damaged(sector, b"\x5a" * 512),
        "unreadable": SectorRun(ContentKind.UNREADABLE, sector, 1, errno=5),
    }
    before = tuple(SectorRun(ContentKind.ZEROED, number, 1) for number in range(SECTORS))
    made = judge(book.made, found(runs[damage]), ((sector, 1),), before)
    (wrong,) = made.wrong
    assert wrong.kind in set(Damage) - {Damage.LOST, Damage.STALE, Damage.ZEROED, Damage.NEVER_WRITTEN}
    assert wrong.found()


# --- the same through the bytes ---------------------------------------------------------------------------------------


@thorough
@given(sessions)
def test_a_ledger_survives_the_way_from_the_dut(plan: list[Step]) -> None:
    book = played(plan).made
    data = ledger_bytes(book)
    pieces = [(at, data[at : at + 37]) for at in range(0, len(data), 37)]
    made = decode_ledger(pieces)
    assert made.problems == []
    positions = [(w.number, w.sector, w.sectors, w.fua, w.error, w.completed is None) for w in book.writes]
    assert [(w.number, w.sector, w.sectors, w.fua, w.error, w.completed is None) for w in made.writes] == positions
    for sector in range(SECTORS):
        assert held(made, sector) == held(book, sector)


@thorough
@given(sessions, st.data())
def test_a_ledger_that_lost_something_never_makes_a_disk_intact(plan: list[Step], data: st.DataObject) -> None:
    """Cut off, with a gap, or with a piece that came twice: what is found wrong is wrong with the whole ledger too."""
    book = played(plan)
    whole = ledger_bytes(book.made)
    pieces = [(at, whole[at : at + 24]) for at in range(0, len(whole), 24)]
    number = data.draw(st.integers(0, len(pieces) - 1))
    how = data.draw(st.sampled_from(["truncated", "gap", "twice", "cut"]))
    if how == "truncated":
        pieces = pieces[:number]
    elif how == "gap":
        pieces = pieces[:number] + pieces[number + 1 :]
    elif how == "twice":
        pieces = [*pieces, pieces[number]]
    else:
        at, piece = pieces[number]
        pieces = [*pieces[:number], (at, piece[:-1])]
    made = decode_ledger(pieces)
    made.session = made.session or 1
    made.run, made.device = RUN, DEVICE
    assert made.problems
    before = tuple(SectorRun(ContentKind.ZEROED, sector, 1) for sector in range(SECTORS))
    for sector in range(SECTORS):
        for write in (None, *(w for w in book.made.writes if w.sector <= sector < w.end)):
            opinion = judge(made, found(content(write, sector)), ((sector, 1),), before)
            assert not opinion.intact
            if opinion.wrong:
                assert judge(book.made, found(content(write, sector)), ((sector, 1),), before).wrong


@thorough
@given(st.lists(st.tuples(st.integers(0, 200), st.binary(max_size=80)), max_size=6), st.booleans())
def test_arbitrary_bytes_are_refused_without_a_crash(pieces: list[tuple[int, bytes]], begins: bool) -> None:
    begun = ledger_bytes(Book().made)[:64]
    parts = [(0, begun), *((at + 64, piece) for at, piece in pieces)] if begins else pieces
    ledger, back = decode_ledger(parts), decode_found(parts)
    opinion = judge(ledger, back, ((0, 64),), None)
    assert not opinion.intact


@thorough
@given(
    st.lists(st.tuples(st.sampled_from(list(ContentKind)[:-1]), st.integers(1, 9)), max_size=8), st.integers(0, 4000)
)
def test_a_read_back_survives_the_way_and_loses_nothing_silently(
    kinds: list[tuple[ContentKind, int]], cut: int
) -> None:
    runs, at = [], 0
    for kind, sectors in kinds:
        sectors = 1 if kind is ContentKind.DAMAGED else sectors
        raw = b"\x11" * 512 if kind is ContentKind.DAMAGED else b""
        place = (7, 8, 9) if kind is ContentKind.ELSEWHERE else (0, 0, 0)
        number = 5 if kind in (ContentKind.STAMPED, ContentKind.ELSEWHERE) else 0
        runs.append(SectorRun(kind, at, sectors, number, 0, *place, raw=raw))
        at += sectors
    data = found_bytes(runs)
    whole = decode_found([(0, data)])
    assert (whole.runs, whole.problems, whole.complete) == (runs, [], True)
    short = decode_found([(0, data[: cut % len(data)])])
    assert short.problems
