"""What the states of an array show of a fault is a finding, and what they show of a stop or a cut is none."""

from __future__ import annotations

import base64

import pytest
from array_stories import ARRAY, CHECKED, MEMBERS, NOTICED, READDED, STOPPED, SYNCED, act, mirror, stamps, state
from ledgers import Book, ledger_bytes
from msgspec.structs import replace
from stories import CUT, GONE, SURVIVORS, VICTIM, Bench, healthy
from test_checks_array_states import EARLY, SECOND, made, said, with_value
from watched import real

from plugpull.checks import array_failed, kept_while_powered, undisturbed
from plugpull.checks.raid.arrays_sound import arrays_sound
from plugpull.checks.victims.users_told import UsersTold
from plugpull.history import events as ev

# --- findings ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("flag", ["write_error", "want_replacement", "blocked"])
def test_a_flag_of_a_failed_request_to_a_member_that_is_there_is_a_finding(flag: str) -> None:
    bench = made()
    bench.add(state(EARLY, degraded=0, **{SECOND: f"in_sync,{flag}"}), state(EARLY + 0.2))
    (only,) = said(bench)
    assert only == f"array1 marked {SECOND} {flag} at {EARLY:.2f} s, although its disk had not left"


def test_a_flag_of_the_member_that_was_cut_is_none() -> None:
    bench = made()
    bench.add(state(CUT + 0.05, degraded=0, **{VICTIM: "in_sync,write_error,want_replacement"}))
    assert said(bench) == []


@pytest.mark.parametrize("word", ["readonly", "read-auto"])
def test_an_array_that_takes_no_writes_is_a_finding(word: str) -> None:
    bench = made()
    bench.load(ARRAY, 10.0, CHECKED - 0.2, exit_status=0, asked=True)
    assert said(bench) == []
    bench.add(state(EARLY, word=word), state(EARLY + 0.1))
    assert said(bench) == [f"array1 was {word} while it was written"]


def test_an_array_may_be_read_only_while_nobody_writes() -> None:
    bench = made()
    bench.add(state(EARLY, word="read-auto"), state(EARLY + 0.1))
    assert said(bench) == []


def test_a_mismatch_that_a_check_counts_stays_one() -> None:
    bench = healthy()
    mirror(bench, "raid5", (*MEMBERS, SURVIVORS[1]) if len(SURVIVORS) > 1 else MEMBERS)
    bench.replace(ev.ArrayState, lambda event: event.at == CHECKED, values=with_value(
        CHECKED, "mismatch_cnt", "16", action="check").values)  # fmt: skip
    assert any("found 16 sectors whose parity does not match" in one for one in said(bench))


@pytest.mark.parametrize(("took", "found"), [(0.3, False), (40.0, True)])
def test_an_array_must_be_stopped_in_time(took: float, found: bool) -> None:
    bench = healthy(until=STOPPED + 60.0)
    mirror(bench)
    stop = {"at": STOPPED + took, "seconds": took}
    bench.replace(ev.ArrayActed, lambda event: event.action == "stop", **stop)
    bench.replace(ev.ArrayState, lambda event: not event.values, at=STOPPED + took)
    assert any("stopping array1 took 40" in one and "(limit 30 s)" in one for one in said(bench)) is found


@pytest.mark.parametrize(
    ("took", "dut", "limit"),
    [(2.0, "virtual", 0), (7.0, "virtual", 5), (40.0, "virtual", 5), (7.0, "ssh", 0), (40.0, "ssh", 30)],
)
def test_an_array_may_not_hold_up_who_writes_to_it(took: float, dut: str, limit: int) -> None:
    bench = healthy(until=100.0) if dut == "virtual" else real(healthy(until=100.0))
    mirror(bench)
    stamps(bench)
    book = Book()
    held = book.issue(0)
    book._step += round(took * 1000)
    book.complete(held)
    data = base64.b64encode(ledger_bytes(book.made))
    bench.replace(ev.LedgerPart, lambda event: event.disk == ARRAY, data=data.decode())
    length = len(ledger_bytes(book.made))
    bench.replace(ev.LedgerEnded, lambda event: event.disk == ARRAY, at=12.0 + took + 1.0, received=length)
    for kind in (ev.ReadBackBegun, ev.ReadBackPart, ev.ReadBackEnded):
        bench.replace(kind, lambda event: event.disk == ARRAY, at=12.0 + took + 2.0)
    held_up = [one for one in said(bench) if "a write to array1 took" in one]
    assert [f"(limit {limit} s)" in one for one in held_up] == [True] * bool(limit)


# --- assembled again --------------------------------------------------------------------------------------------------


def assembled(bench: Bench, *, stale: bool, **members: str) -> list[str]:
    mirror(bench)
    bench.detach(SECOND, GONE + 0.1)
    bench.load(ARRAY, 12.0, GONE + 1.0, errno=5, exit_status=1, asked=False)
    if not stale:
        bench.drop(ev.ArrayState, lambda event: event.at not in (NOTICED, READDED))
    bench.add(act(STOPPED - 1.0, "assemble", *MEMBERS), state(STOPPED - 0.8, degraded=len(members), **members))
    return [one.summary for one in bench.judge(array_failed(ARRAY)).findings]


def test_an_array_that_is_assembled_whole_has_all_members_in_the_end() -> None:
    assert assembled(healthy(), stale=False) == []
    said = assembled(healthy(), stale=False, **{VICTIM: "faulty"})
    assert said == ["array1 was assembled with disk1, and did without in the end"]


def test_a_member_that_the_array_had_gone_on_without_may_be_left_out() -> None:
    assert assembled(healthy(), stale=True, **{VICTIM: "faulty"}) == []


@pytest.mark.parametrize(
    ("action", "degraded", "accused"), [("frozen", 0, False), ("idle", 0, False), ("idle", 1, True)]
)
def test_members_that_go_while_an_array_is_stopped_are_not_missing(action: str, degraded: int, accused: bool) -> None:
    bench = healthy()
    assert assembled(bench, stale=False) == []
    apart = state(STOPPED - 0.05, action, degraded, word="clean")
    bench.add(replace(apart, members={disk: says for disk, says in apart.members.items() if disk != VICTIM}))
    said = [one.summary for one in bench.judge(array_failed(ARRAY)).findings]
    assert said == ["array1 was assembled with disk1, and did without in the end"] * accused


def test_an_array_that_has_let_all_its_members_go_is_being_stopped() -> None:
    bench = healthy()
    assert assembled(bench, stale=False) == []
    bench.add(replace(state(STOPPED - 0.05, "idle", word="clean"), members={}))
    assert bench.judge(array_failed(ARRAY)).findings == ()


# --- set aside --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("at", "cut_again", "found"), [(SYNCED + 1.0, False, 1), (SYNCED + 1.0, True, 0), (READDED - 0.2, False, 0)]
)
def test_a_member_that_was_put_back_may_not_be_set_aside_again(at: float, cut_again: bool, found: int) -> None:
    bench = healthy(until=100.0)
    mirror(bench)
    bench.add(state(at, degraded=1, **{VICTIM: "faulty"}))
    if cut_again:
        bench.detach(VICTIM, at - 0.1)
    said = [one.summary for one in bench.judge(arrays_sound()).findings]
    assert sum(f"set {VICTIM} aside as faulty" in one for one in said) == found


def test_a_load_on_an_array_of_which_the_making_is_not_on_record_accuses_nobody() -> None:
    bench = healthy()
    mirror(bench)
    stamps(bench, unflushed=True)
    load = ev.LoadBegun(at=11.0, disk=ARRAY, job="load", mode="write", block=4096, depth=1, span=4096, kname="md127")
    bench.add(load, ev.LoadEnded(at=CUT + 1.0, disk=ARRAY, job="load", asked=False, exit_status=1, errno=5))
    checks = (undisturbed(), kept_while_powered(), UsersTold())

    def accused() -> set[str]:
        return {one.check for check in checks for one in bench.judge(check).findings if one.subject == ARRAY}

    assert accused() == {"undisturbed", "kept_while_powered", "users_told"}
    bench.drop(ev.ArrayMade)
    assert accused() == set()


def test_a_member_that_was_put_back_may_have_no_failed_request() -> None:
    bench = healthy(until=100.0)
    mirror(bench)
    members = {VICTIM: ("0", "in_sync,write_error")}
    one = state(SYNCED + 1.0)
    bench.add(replace(one, members=one.members | members))
    said = [one.summary for one in bench.judge(arrays_sound()).findings]
    assert said == [
        f"{ARRAY} counts a failed request to {VICTIM} (in_sync,write_error, slot 0) though nothing had taken it"
    ]


@pytest.mark.parametrize(
    ("word", "found"), [("active\nidle", 0), ("clean\npending", 0), ("broken", 1), ("broken\nr", 1)]
)
def test_a_state_that_changed_while_it_was_read_is_the_one_before(word: str, found: int) -> None:
    bench = healthy()
    mirror(bench)
    bench.add(state(GONE + 1.0, degraded=1, word=word, disk1="faulty"))
    assert len(said(bench)) == found
