"""Which promises of an array count when more of its members lose their power than its level covers."""

from __future__ import annotations

import base64

import pytest
from array_stories import ARRAY, mirror, stamps
from ledgers import ledger_bytes
from stories import CUT, SURVIVORS, VICTIM, Bench, healthy

from plugpull.checks import Check, legs_hold, nothing_lost
from plugpull.checks.raid.array_promises import promised
from plugpull.history import events as ev
from plugpull.integrity.oracle.ledger import Flush, Ledger, Write

BEGUN = 12.0
BEFORE, BETWEEN, LATER = CUT - BEGUN - 0.1, CUT - BEGUN + 0.1, CUT - BEGUN + 3.0


def ledger(begun: float = BEGUN) -> Ledger:
    """A write with FUA and a flush that ended before the cut, one each in its moments, and one each well after it."""
    moments = (BEFORE, BETWEEN, LATER)
    return Ledger(
        begun_ns=int(begun * 1e9),
        writes=[Write(n, n, 1, n, at - 0.01, fua=True, completed=n, completed_at=at) for n, at in enumerate(moments)],
        flushes=[Flush(n, n, at - 0.01, completed=n, completed_at=at) for n, at in enumerate(moments)],
    )


def kept(bench: Bench, of: Ledger) -> tuple[list[bool], list[bool]]:
    """Whether the writes, and the flushes, promise something."""
    made = promised(bench.story(), ARRAY, of)
    return [one.fua for one in made.writes], [not one.error for one in made.flushes]


def cut(*victims: str) -> Bench:
    bench = healthy()
    mirror(bench)
    bench.replace(ev.CutArmed, victims=victims)
    return bench


def test_what_is_answered_while_all_members_lose_their_power_is_no_promise() -> None:
    assert kept(cut(VICTIM, SURVIVORS[0]), ledger()) == ([True, False, True], [True, False, True])


def test_what_an_array_answers_without_the_members_that_it_can_spare_is_a_promise() -> None:
    assert kept(cut(VICTIM), ledger()) == ([True, True, True], [True, True, True])


@pytest.mark.parametrize("begun", [CUT + 1.0, 0.0])
def test_a_session_after_the_cut_and_one_of_an_unknown_time_are_judged_as_they_are(begun: float) -> None:
    assert kept(cut(VICTIM, SURVIVORS[0]), ledger(begun)) == ([True, True, True], [True, True, True])


def test_the_promises_of_a_disk_are_its_own() -> None:
    of = ledger()
    assert promised(cut(VICTIM, SURVIVORS[0]).story(), VICTIM, of) is of


# --- the checks ask for it --------------------------------------------------------------------------------------------


def lost(*victims: str) -> Bench:
    """A sector that was written again and flushed while the power of these members went, and is as it was before."""
    bench = cut(*victims)
    bench.replace(ev.CutArmed, mechanism="mains")
    book = stamps(bench)
    book._step += 1000
    book.write(3)
    book.flush()
    data = base64.b64encode(ledger_bytes(book.made, start=CUT - 0.9)).decode()
    bench.replace(ev.LedgerPart, at=CUT + 0.2, data=data)
    bench.replace(ev.LedgerEnded, received=len(base64.b64decode(data)))
    return bench


@pytest.mark.parametrize("check", [nothing_lost(ARRAY), legs_hold(ARRAY)], ids=["opinions", "legs_hold"])
def test_what_is_lost_of_a_promise_is_found_and_of_what_is_none_is_not(check: Check) -> None:
    assert lost(VICTIM).judge(check).findings
    assert lost(VICTIM, SURVIVORS[0]).judge(check).findings == ()
