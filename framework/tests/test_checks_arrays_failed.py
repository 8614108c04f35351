"""The checks of arrays that fail, and of what is copied to a member that comes back."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from array_stories import (
    ARRAY,
    CHECKED,
    MEMBERS,
    READDED,
    SESSION,
    mirror,
    stamps,
    state,
)
from ledgers import DEVICE, RUN, Book, ledger_bytes
from msgspec.structs import replace
from stories import CUT, GONE, SURVIVORS, VICTIM, Bench, healthy

from plugpull.checks import (
    Judgement,
    array_failed,
    kept_while_powered,
    resynced_by_bitmap,
    undisturbed,
)
from plugpull.checks.victims.users_told import UsersTold
from plugpull.history import events as ev
from plugpull.history.story import Story

# --- an array that fails ----------------------------------------------------------------------------------------------


def lost(bench: Bench, ended: float = GONE + 1.0, **end: Any) -> None:
    """A mirror whose two members are gone while it is written; the load on it ends with an error."""
    mirror(bench)
    bench.detach(SURVIVORS[0], GONE + 0.1)
    bench.load(ARRAY, 12.0, ended, **({"errno": 5, "exit_status": 1, "asked": False} | end))


def failed(bench: Bench) -> Judgement:
    return bench.judge(array_failed(ARRAY))


def test_an_array_that_fails_with_an_error_and_can_be_stopped_failed_well() -> None:
    bench = healthy()
    lost(bench)
    judgement = failed(bench)
    assert (judgement.findings, judgement.unknowns) == ((), ())
    assert judgement.worst == "its users had their error after 0.90 s (limit 30 s)"


@pytest.mark.parametrize(
    ("end", "said"),
    [
        ({"errno": 0, "exit_status": 0}, "the load on array1 had no error in 0.90 s"),
        ({"stuck": True}, "the load on array1 could not be ended after it had failed"),
    ],
)
def test_an_array_that_fails_badly_is_a_finding(end: dict[str, Any], said: str) -> None:
    bench = healthy()
    lost(bench, **end)
    (only,) = failed(bench).findings
    assert only.summary.startswith(said)


@pytest.mark.parametrize("mismatches", [0, 16])
def test_parity_must_match_after_the_array_was_assembled_again(mismatches: int) -> None:
    bench, members = healthy(), (*MEMBERS, SURVIVORS[1])
    mirror(bench, "raid5", members)
    bench.detach(SURVIVORS[0], GONE + 0.1)
    bench.load(ARRAY, 12.0, GONE + 1.0, errno=5, exit_status=1, asked=False)
    values = {"array_state": "active", "degraded": "0", "sync_action": "idle", "mismatch_cnt": str(mismatches)}
    bench.replace(ev.ArrayState, lambda event: event.at == CHECKED + 0.5, values=values)
    found = [one.summary for one in failed(bench).findings]
    assert found == ["a check of array1 found 16 sectors whose parity does not match"] * bool(mismatches)


def test_an_error_that_comes_late_is_a_finding() -> None:
    bench = healthy()
    lost(bench, GONE + 5.0)
    (only,) = bench.judge(array_failed(ARRAY, within=2.0)).findings
    assert only.summary == "the load on array1 had its error only after 4.90 s"


def test_a_failed_array_that_cannot_be_stopped_is_a_finding() -> None:
    bench = healthy()
    lost(bench)
    bench.replace(ev.ArrayActed, lambda event: event.action == "stop", ok=False, detail="busy")
    (only,) = failed(bench).findings
    assert only.summary == "array1 could not be stopped after it had failed: busy"


def test_an_error_before_the_kernel_has_removed_the_disks_is_in_time() -> None:
    """Requests to disks without power fail at once, and the disks are removed a little later."""
    bench = healthy()
    lost(bench, CUT + 0.05)
    assert "nothing was written to array1 when it failed" in failed(bench).unknowns, "one member was cut"
    bench.arm(14.9, cut=2, victims=(SURVIVORS[0],))
    bench.switch("off", CUT, cut=2)
    judgement = failed(bench)
    assert (judgement.findings, judgement.unknowns) == ((), ())
    assert judgement.worst.startswith("its users had their error after 0.00 s")


def test_an_error_before_the_cuts_is_not_of_the_failure() -> None:
    bench = healthy()
    lost(bench, CUT - 1.0)
    bench.arm(14.9, cut=2, victims=(SURVIVORS[0],))
    bench.switch("off", CUT, cut=2)
    assert "nothing was written to array1 when it failed" in failed(bench).unknowns


def test_an_array_that_did_not_fail_proves_nothing() -> None:
    bench = healthy()
    mirror(bench)
    assert "array1 never had more members missing than its level covers" in failed(bench).unknowns
    bench = healthy()
    lost(bench)
    bench.drop(ev.LoadBegun, lambda event: event.disk != ARRAY)
    assert "nothing was written to array1 when it failed" in failed(bench).unknowns


# --- a resync by the bitmap -------------------------------------------------------------------------------------------

COMPONENT = 8 << 20


def resynced(copied: int, *more: ev.Event, chunk: int = 65536) -> Judgement:
    """A mirror whose member gets ``copied`` bytes when it is put back; eight sectors were written to it meanwhile."""
    bench = healthy()
    mirror(bench)
    bench.replace(ev.ArrayMade, bitmap=chunk)
    bench.add(*more)
    book = Book()
    for sector in range(8):
        book.write(sector)
    ledger, job = ledger_bytes(book.made, start=GONE + 0.5), f"stamp1-{ARRAY}"
    bench.add(
        ev.LedgerBegun(
            at=GONE + 0.5, disk=ARRAY, job=job, run=RUN, device=DEVICE, session=1, extents=SESSION, block=1, depth=4,
            order="random", bound=1000,
        ),
        ev.LedgerPart(at=GONE + 0.6, disk=ARRAY, job=job, offset=0, data=base64.b64encode(ledger).decode()),
        ev.LedgerEnded(at=GONE + 1, disk=ARRAY, job=job, asked=True, received=len(ledger), status=0),
    )  # fmt: skip
    return resynced_by_bitmap(ARRAY).judge(with_copy(bench.story(), copied))


def with_copy(story: Story, copied: int) -> Story:
    """The story in which so many bytes are written to the victim when it is put back."""
    back = story.attachments(VICTIM)[-1]
    events = list(story.events)
    for number, event in enumerate(events):
        if isinstance(event, ev.Sampled) and (event.at or 0.0) >= READDED and back.kname in event.disks:
            counters = event.disks[back.kname]
            more = counters._replace(written_bytes=counters.written_bytes + copied)
            events[number] = replace(event, disks={**event.disks, back.kname: more})
    return Story(story.begun, tuple(events), rig=story.rig)


def test_a_member_that_gets_what_it_missed_passes() -> None:
    judgement = resynced(100_000)
    assert (judgement.findings, judgement.unknowns) == ((), ())
    (copied,) = judgement.measurements
    assert copied.value == 100_000
    assert "64 KiB were marked" in judgement.worst


def test_a_full_copy_in_spite_of_the_bitmap_is_a_finding() -> None:
    (only,) = resynced(COMPONENT).findings
    assert only.subject == VICTIM
    assert "disk1 got a full copy of" in only.summary
    assert "at most 65536 bytes were written while it was away" in only.summary


def test_a_full_copy_is_right_if_one_bit_stands_for_everything() -> None:
    assert resynced(COMPONENT, chunk=64 << 20).findings == ()


def test_a_full_copy_soon_after_a_resync_is_right() -> None:
    """A resync marks everything, and md clears the marks some seconds later."""
    assert resynced(COMPONENT, state(9.2, "resync"), state(9.9)).findings == ()


def test_looking_for_another_member_is_no_resync() -> None:
    """md says "recover" for a moment when a member fails, and copies nothing."""
    looking = state(GONE + 0.1, "recover", degraded=1, disk1="faulty")
    looking = replace(looking, values={**looking.values, "sync_completed": "none"})
    (only,) = resynced(COMPONENT, looking).findings
    assert "disk1 got a full copy of" in only.summary
    assert resynced(100_000, looking).findings == ()


def test_without_a_bitmap_or_a_return_nothing_is_known() -> None:
    assert "no array array1 with a bitmap is on record" in resynced(0, chunk=0).unknowns
    bench = healthy()
    mirror(bench)
    bench.drop(ev.ArrayActed, lambda event: event.action != "readd")
    judgement = bench.judge(resynced_by_bitmap(ARRAY))
    assert "no member was put back into array1 and was in sync after that" in judgement.unknowns


# --- what other checks make of it -------------------------------------------------------------------------------------


def test_a_write_that_one_lost_member_had_completed_is_no_accusation() -> None:
    """Both members are gone within a moment. What only one of them had, and nothing flushed, may be gone."""
    bench = healthy()
    mirror(bench)
    stamps(bench, unflushed=True)
    assert [one.subject for one in bench.judge(kept_while_powered()).findings] == [ARRAY]
    bench.arm(14.9, cut=2, victims=(SURVIVORS[0],))
    bench.switch("off", CUT, cut=2)
    assert bench.judge(kept_while_powered()).findings == ()


def test_users_of_an_array_have_no_error_before_it_may_fail() -> None:
    bench = healthy()
    lost(bench)
    assert [one.subject for one in bench.judge(UsersTold()).findings] == [ARRAY]
    bench.arm(14.9, cut=2, victims=(SURVIVORS[0],))
    bench.switch("off", CUT, cut=2)
    assert [one.subject for one in bench.judge(UsersTold()).findings if one.subject == ARRAY] == []


def test_the_member_that_is_read_instead_is_not_accused() -> None:
    bench = healthy()
    said = "md/raid1:md127: redirecting sector 0 to other mirror: sdc"
    bench.add(ev.KernelMessage(at=GONE + 0.2, text=said, level=3, seq=7))
    assert bench.judge(undisturbed()).findings == ()
    failure = "md/raid1:md127: Disk failure on sdc, disabling device."
    bench.add(ev.KernelMessage(at=GONE + 0.3, text=failure, level=2, seq=8))
    assert [one.subject for one in bench.judge(undisturbed()).findings] == [SURVIVORS[0]]


def test_a_member_under_the_load_of_its_array_is_not_idle() -> None:
    bench = healthy()
    bench.drop(ev.LoadBegun)
    assert bench.story().load_over(VICTIM, CUT) is None
    mirror(bench)
    bench.load(ARRAY, 12.0, 24.0)
    load = bench.story().load_over(VICTIM, CUT)
    assert load is not None
    assert load.disk == ARRAY
    assert bench.story().load_over(SURVIVORS[1], CUT) is None
