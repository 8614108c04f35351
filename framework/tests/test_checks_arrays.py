"""The checks of arrays: what they make of a mirror that loses a member, and of what can go wrong with it."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from array_stories import (
    ARRAY,
    CHECKED,
    MEMBERS,
    NOTICED,
    OFFSET,
    READDED,
    SESSION,
    SYNCED,
    act,
    leg,
    mirror,
    on_leg,
    stamps,
    state,
)
from ledgers import DEVICE, RUN, Book, ledger_bytes, stamped
from stories import GONE, SURVIVORS, VICTIM, Bench, healthy

from plugpull.checks import (
    ArraySurvived,
    Judgement,
    array_survived,
    kept_while_powered,
    legs_hold,
    nothing_lost,
)
from plugpull.checks.record.coherent import coherent
from plugpull.history import events as ev
from plugpull.integrity.oracle.readback import ContentKind, SectorRun


def survived(bench: Bench) -> Judgement:
    return bench.judge(array_survived(ARRAY))


def test_a_mirror_that_loses_a_member_and_gets_it_back_survived() -> None:
    bench = healthy()
    mirror(bench)
    judgement = survived(bench)
    assert (judgement.findings, judgement.unknowns) == ((), ())
    assert judgement.worst == "array1 (raid1) lived through the loss of 1 of 2"
    (rebuild,) = judgement.measurements
    assert rebuild.name == "recover of the array"
    assert rebuild.value == pytest.approx(SYNCED - READDED, abs=0.01)


def finding(bench: Bench) -> str:
    judgement = survived(bench)
    (only,) = judgement.findings
    return only.summary


def test_an_array_that_fails_within_its_redundancy_is_a_finding() -> None:
    bench = healthy()
    mirror(bench)
    bench.add(state(GONE + 1, degraded=1, word="broken", disk1="faulty"))
    assert finding(bench) == "array1 is broken though only disk1 was missing"


def test_a_member_that_is_dropped_though_its_disk_never_left_is_a_finding() -> None:
    bench = healthy()
    mirror(bench)
    bench.add(state(GONE - 3.0, degraded=1, **{SURVIVORS[0]: "faulty"}), state(GONE - 2.9))
    assert f"did without {SURVIVORS[0]} at {GONE - 3.0:.2f} s, although its disk had not left" in finding(bench)


def test_an_array_that_notices_late_is_a_finding() -> None:
    bench = healthy(until=100.0)
    mirror(bench)
    bench.add(ev.LoadBegun(at=10.0, disk=ARRAY, job="load", mode="write", block=4096, depth=1, span=1 << 20))
    bench.replace(ev.ArrayMade, at=9.0)
    assert not bench.judge(ArraySurvived((ARRAY,), notice=NOTICED - GONE + 0.2)).findings
    (late,) = bench.judge(ArraySurvived((ARRAY,), notice=0.1)).findings
    assert "did not notice that disk1 was gone" in late.summary


def doubted(bench: Bench) -> str:
    return "; ".join(bench.judge(coherent()).unknowns)


def test_the_record_of_a_healthy_array_is_whole() -> None:
    bench = healthy()
    mirror(bench)
    stamps(bench)
    assert doubted(bench) == ""


@pytest.mark.parametrize(
    ("kind", "fields", "why"),
    [
        (ev.ArrayMade, {"spare": 2}, "cannot spare 2"),
        (ev.ArrayMade, {"members": MEMBERS[::-1]}, "was made for slot"),
        (ev.ArrayMade, {"offsets": {VICTIM: 4096}}, "where the data of array1 does not begin"),
        (ev.ArrayMade, {"array": "array2"}, "how array1 was made is not on record"),
    ],
)
def test_a_record_that_contradicts_the_array(kind: type[ev.Event], fields: dict[str, Any], why: str) -> None:
    bench = healthy()
    mirror(bench)
    stamps(bench)
    bench.replace(kind, **fields)
    assert why in doubted(bench)


def test_a_member_read_elsewhere_accuses_nobody() -> None:
    bench = healthy()
    mirror(bench)
    stamps(bench)
    bench.replace(ev.ArrayMade, offsets={VICTIM: 4096})
    judgement = bench.judge(legs_hold(ARRAY))
    assert judgement.findings == ()
    assert "was not read where the data of array1 begins" in judgement.unknowns[0]


def test_an_array_whose_states_end_early_accuses_nobody() -> None:
    bench = healthy()
    mirror(bench)
    bench.drop(ev.ArrayState, keep=lambda event: (event.at or 0.0) < READDED - 1.0)
    assert survived(bench).findings == ()
    assert "what became of array1 after" in doubted(bench)


def test_a_check_that_the_kernel_interrupted_is_a_doubt() -> None:
    bench = healthy()
    mirror(bench)
    bench.add(ev.KernelMessage(at=CHECKED + 0.4, text="md: md127: data-check interrupted.", seq=99))
    assert "the check of array1 was interrupted" in doubted(bench)


def test_a_write_error_within_the_redundancy_is_a_finding() -> None:
    bench = healthy()
    mirror(bench)
    book = Book()
    book.write(0, error=5)
    ledger = ledger_bytes(book.made, start=GONE + 1.0)
    job = f"stamp1-{ARRAY}"
    bench.add(
        ev.LedgerBegun(
            at=GONE + 1.0, disk=ARRAY, job=job, run=RUN, device=DEVICE, session=1, extents=SESSION, block=1, depth=4,
            order="random", bound=1000,
        ),
        ev.LedgerPart(at=GONE + 1.1, disk=ARRAY, job=job, offset=0, data=base64.b64encode(ledger).decode()),
        ev.LedgerEnded(at=GONE + 2, disk=ARRAY, job=job, asked=False, received=len(ledger), status=1),
    )  # fmt: skip
    assert finding(bench) == "a write to array1 ended with errno 5 though only disk1 was missing"


def test_once_more_is_missing_than_the_level_covers_the_array_may_fail() -> None:
    bench = healthy()
    mirror(bench)
    bench.detach(SURVIVORS[0], GONE)
    bench.add(state(GONE + 1, degraded=2, word="broken", disk1="faulty", disk2="faulty"))
    summaries = [one.summary for one in survived(bench).findings]
    assert not any("broken" in summary for summary in summaries)


def test_a_member_that_is_not_in_sync_in_the_end_is_a_finding() -> None:
    bench = healthy()
    mirror(bench)
    bench.drop(ev.ArrayState, lambda event: event.at < READDED or not event.values)
    bench.add(
        state(READDED, degraded=1, disk1="spare"),
        state(CHECKED, "check"),
        state(CHECKED + 0.5, degraded=1, disk1="spare"),
    )
    assert finding(bench) == "array1 was not complete in the end: disk1 spare"


def test_nobody_put_the_member_back() -> None:
    bench = healthy()
    mirror(bench)
    bench.drop(ev.ArrayActed, lambda event: event.action != "readd")
    bench.drop(ev.ArrayState, lambda event: event.at < READDED or not event.values)
    bench.add(state(CHECKED, "check", degraded=1, disk1="faulty"), state(CHECKED + 0.5, degraded=1, disk1="faulty"))
    judgement = survived(bench)
    assert judgement.findings == ()
    assert judgement.unknowns == ("nobody tried to put disk1 back into array1",)


@pytest.mark.parametrize(
    ("action", "said"),
    [
        ("readd", "disk1 could not be put into array1: refused"),
        ("stop", "array1 could not be stopped: refused"),
    ],
)
def test_a_step_that_fails_is_a_finding(action: str, said: str) -> None:
    bench = healthy()
    mirror(bench)
    bench.replace(ev.ArrayActed, lambda event: event.action == action, ok=False, detail="refused")
    assert finding(bench) == said


def readd_refused(own: str, cleared: str, *, added: bool = True) -> tuple[str, ...]:
    """The findings on a mirror whose victim is refused, with these events on record."""
    bench = healthy()
    mirror(bench)
    detail = f"no; its superblock is of event {own}, bits of the bitmap were cleared at event {cleared}"
    bench.replace(ev.ArrayActed, lambda event: event.action == "readd", ok=False, detail=detail)
    if added:
        bench.add(act(READDED + 0.1, "add", VICTIM))
    return tuple(one.summary.partition(";")[0] for one in survived(bench).findings)


def test_a_member_that_is_refused_without_a_reason_is_a_finding() -> None:
    said = ("disk1 could not be put into array1: no",)
    assert readd_refused("17", "17") == said
    assert readd_refused("18", "17") == said
    assert readd_refused("?", "18") == said
    assert readd_refused("17", "18", added=False) == said


def test_a_member_that_is_older_than_the_bitmap_may_be_refused() -> None:
    assert readd_refused("17", "18") == readd_refused("17", "19") == ()
    assert readd_refused("17", "22") == ("disk1 could not be put into array1: no",)


@pytest.mark.parametrize(("level", "found"), [("raid5", 1), ("raid1", 0)])
def test_a_mismatch_counts_where_there_is_parity(level: str, found: int) -> None:
    bench = healthy()
    mirror(bench, level, (*MEMBERS, SURVIVORS[1]) if level == "raid5" else MEMBERS)
    if level == "raid5":
        bench.replace(ev.ArrayState, lambda event: bool(event.values), members=all_in_sync())
    values = {"array_state": "active", "degraded": "0", "sync_action": "idle", "mismatch_cnt": "16"}
    bench.replace(ev.ArrayState, lambda event: event.at == CHECKED + 0.5, values=values)
    findings = survived(bench).findings
    assert len(findings) == found
    assert all("16 sectors whose parity does not match" in one.summary for one in findings)


def all_in_sync() -> dict[str, tuple[str, str]]:
    return {disk: (str(slot), "in_sync") for slot, disk in enumerate((*MEMBERS, SURVIVORS[1]))}


def test_a_written_array_that_does_not_notice_is_a_finding() -> None:
    check = ArraySurvived((ARRAY,), notice=2.0)
    bench = healthy()
    mirror(bench)
    bench.load(ARRAY, 12.0, 24.0, asked=True, asked_at=24.0)
    assert bench.judge(check).findings == ()
    bench.drop(ev.ArrayState, lambda event: "faulty" not in str(event.members) and "spare" not in str(event.members))
    (only,) = bench.judge(check).findings
    assert "did not notice that disk1 was gone" in only.summary


@pytest.mark.parametrize(
    ("lost", "said"),
    [
        (ev.ArrayMade, "no array array1 is on record"),
        (ev.ArrayState, "no state of array1 is on record"),
        (ev.ArrayActed, "nobody tried to stop array1"),
    ],
)
def test_missing_evidence_is_no_pass(lost: type[ev.Event], said: str) -> None:
    bench = healthy()
    mirror(bench)
    bench.drop(lost)
    assert said in survived(bench).unknowns
    assert not survived(bench).worst


def test_a_check_without_a_result_is_no_pass() -> None:
    bench = healthy()
    mirror(bench)
    bench.drop(ev.ArrayState, lambda event: event.at < CHECKED)
    assert "the check of array1 did not end: no result is on record" in survived(bench).unknowns


def test_nothing_was_tried_if_no_member_was_removed() -> None:
    bench = healthy()
    mirror(bench)
    bench.drop(ev.DiskDetached)
    assert "no member of array1 was removed while it ran" in survived(bench).unknowns


# --- legs -------------------------------------------------------------------------------------------------------------


def test_members_that_hold_what_was_written() -> None:
    bench = healthy()
    mirror(bench)
    stamps(bench)
    judgement = bench.judge(legs_hold(ARRAY))
    assert (judgement.findings, judgement.unknowns) == ((), ())
    assert judgement.worst == "the members hold what was written (16 sectors)"
    assert bench.judge(nothing_lost(ARRAY)).findings == ()


def test_a_stale_member_is_a_finding_although_the_array_reads_well() -> None:
    bench = healthy()
    mirror(bench)
    stamps(bench, disk1=[SectorRun(ContentKind.ZEROED, OFFSET, 8)])
    assert bench.judge(nothing_lost(ARRAY)).findings == ()
    (only,) = bench.judge(legs_hold(ARRAY)).findings
    assert only.subject == VICTIM
    assert "disk1 does not hold what array1 was given (8 zeroed), the first zeroed at sector 0" in only.summary


def divided() -> Bench:
    """A mirror one of whose members holds a write that never ended, and the other what was there before."""
    bench = healthy()
    mirror(bench)
    book = stamps(bench, pending=True)
    bench.drop(ev.LegReadBegun)
    bench.drop(ev.LegReadPart)
    bench.drop(ev.LegReadEnded)
    kept = [stamped(write) for write in book.made.writes[:8]]
    leg(bench, VICTIM, [on_leg(run) for run in [stamped(book.made.writes[-1]), *kept[1:]]])
    leg(bench, SURVIVORS[0], [on_leg(run) for run in kept])
    return bench


def test_members_that_differ_are_a_finding_although_each_may_hold_what_it_does() -> None:
    (only,) = divided().judge(legs_hold(ARRAY)).findings
    assert only.subject == ARRAY
    assert only.summary == (
        "disk1 and disk2 differ in 1 sectors although array1 was in sync, the first at sector 0 of the array:"
        " write 9 and write 1"
    )


def ending_as(action: str, start: str) -> Judgement:
    bench = divided()
    values = {"array_state": "active", "degraded": "0", "sync_action": action, "resync_start": start}
    bench.replace(ev.ArrayState, lambda event: event.at == CHECKED + 0.5, values=values)
    return bench.judge(legs_hold(ARRAY))


def test_md_freezes_an_array_that_it_stops() -> None:
    judgement = ending_as("frozen", "none")
    assert (len(judgement.findings), judgement.unknowns) == (1, ())


@pytest.mark.parametrize(("action", "start"), [("idle", "0"), ("frozen", "640"), ("resync", "none")])
def test_members_may_differ_until_the_resync_is_over(action: str, start: str) -> None:
    judgement = ending_as(action, start)
    assert judgement.findings == ()
    assert "array1 was stopped before it was in sync, so its copies are not compared" in judgement.unknowns


def test_a_history_without_the_start_of_a_resync_compares_nothing() -> None:
    bench = divided()
    values = {"array_state": "active", "degraded": "0", "sync_action": "idle"}
    bench.replace(ev.ArrayState, lambda event: bool(event.values), values=values)
    judgement = bench.judge(legs_hold(ARRAY))
    assert (judgement.findings, judgement.unknowns) == ((), ())


def test_a_member_that_was_not_in_sync_is_not_judged() -> None:
    bench = healthy()
    mirror(bench)
    stamps(bench, disk1=[SectorRun(ContentKind.ZEROED, OFFSET, 8)])
    members = {VICTIM: ("none", "faulty"), SURVIVORS[0]: ("1", "in_sync")}
    bench.replace(ev.ArrayState, lambda event: bool(event.values), members=members)
    judgement = bench.judge(legs_hold(ARRAY))
    assert judgement.findings == ()
    assert judgement.worst == "the members hold what was written (8 sectors)"


def test_a_member_that_was_not_read_is_no_pass() -> None:
    bench = healthy()
    mirror(bench)
    stamps(bench)
    bench.replace(ev.LegReadBegun, lambda event: event.disk == VICTIM, error="disk1 is not attached", job="")
    judgement = bench.judge(legs_hold(ARRAY))
    assert judgement.findings == ()
    assert "what disk1 holds of array1 is not known: disk1 is not attached" in judgement.unknowns
    bench.drop(ev.LegReadBegun)
    assert "the members of array1 were not read" in bench.judge(legs_hold(ARRAY)).unknowns


@pytest.mark.parametrize("kind", [ev.LegReadEnded, ev.LegReadPart])
def test_an_incomplete_reading_is_no_pass(kind: type[ev.Event]) -> None:
    bench = healthy()
    mirror(bench)
    stamps(bench)
    bench.drop(kind)
    judgement = bench.judge(legs_hold(ARRAY))
    assert judgement.findings == ()
    assert judgement.unknowns


def test_an_array_keeps_its_power_while_enough_members_do() -> None:
    """One member of a mirror without power: what the array completed must be there. Two: only what was flushed."""
    bench = healthy()
    bench.replace(ev.CutArmed, mechanism="mains", point=f"{VICTIM}.power")
    mirror(bench)
    stamps(bench, unflushed=True)
    assert [one.subject for one in bench.judge(kept_while_powered()).findings] == [ARRAY]
    bench.replace(ev.ArrayMade, spare=0)
    assert bench.judge(kept_while_powered()).findings == ()
