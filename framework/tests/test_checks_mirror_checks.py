"""What a mirror's check, its states and the kernel log say of one thing must agree."""

from __future__ import annotations

import pytest
from array_stories import ARRAY, CHECKED, NOTICED, READDED, STOPPED, SYNCED, mirror, stamps, state
from stories import VICTIM, Bench, healthy

from plugpull.checks import array_survived, legs_hold
from plugpull.checks.raid.array_doubts import array_doubts
from plugpull.history import events as ev


def checked(counted: str, written_until: float = CHECKED - 0.5) -> Bench:
    """A mirror whose check counted so many sectors that differ, and that was written until then."""
    bench = healthy()
    mirror(bench)
    stamps(bench)
    values = {"array_state": "active", "degraded": "0", "sync_action": "idle", "resync_start": "none"}
    values["mismatch_cnt"] = counted
    bench.replace(ev.ArrayState, lambda event: event.at == CHECKED + 0.5, values=values)
    bench.replace(ev.LedgerEnded, lambda event: event.disk == ARRAY, at=written_until)
    return bench


def test_members_that_differ_where_nobody_wrote_are_a_finding() -> None:
    (only,) = checked("128").judge(legs_hold(ARRAY)).findings
    assert only.subject == ARRAY
    assert only.summary == (
        "a check of array1 found 128 sectors that differ between its members, and they agree in everything that was "
        "written to it"
    )


@pytest.mark.parametrize(("counted", "until"), [("0", CHECKED - 0.5), ("128", CHECKED + 0.2)])
def test_a_check_without_differences_or_during_writes_passes(counted: str, until: float) -> None:
    """A mirror may hold two versions of a write that is under way (md(4), SCRUBBING AND MISMATCHES)."""
    judgement = checked(counted, until).judge(legs_hold(ARRAY))
    assert (judgement.findings, judgement.unknowns) == ((), ())


# --- what the kernel log says of a member -----------------------------------------------------------------------------

DROPPED = "md/raid1:md127: Disk failure on sdb, disabling device.\nmd/raid1:md127: Operation continuing on 1 devices."


def dropped(bench: Bench, at: float) -> str:
    bench.add(ev.KernelMessage(at=at, text=DROPPED, level=2, seq=1))
    return "; ".join(array_doubts(bench.story()))


def test_a_member_that_the_kernel_dropped_is_not_in_sync_any_more() -> None:
    bench = healthy()
    mirror(bench)
    assert "no state of it shows that" not in dropped(bench, NOTICED - 0.05)
    bench = healthy()
    mirror(bench)
    bench.replace(ev.ArrayState, lambda event: event.at == NOTICED, members=state(NOTICED).members)
    bench.replace(ev.ArrayState, lambda event: event.at == READDED, members=state(READDED).members)
    assert f"the kernel dropped {VICTIM} of {ARRAY} at" in dropped(bench, NOTICED - 0.05)


@pytest.mark.parametrize("action", ["check", "stop"])
def test_states_that_end_before_a_check_or_a_stop_accuse_nobody(action: str) -> None:
    bench = healthy()
    mirror(bench)
    at = CHECKED if action == "check" else STOPPED
    last = state(READDED + 0.1, "recover", degraded=1, disk1="spare")
    bench.drop(ev.ArrayState, lambda event: (event.at or 0.0) < at - 1.0)
    bench.replace(ev.ArrayState, lambda event: event.at == SYNCED, values=last.values, members=last.members)
    bench.replace(ev.ArrayState, lambda event: event.at == CHECKED + 0.5, values=last.values, members=last.members)
    judgement = bench.judge(array_survived(ARRAY))
    assert "was not complete in the end" not in str(judgement.findings)
    assert f"what became of {ARRAY} after {at:.2f} s is not on record" in "; ".join(array_doubts(bench.story()))


@pytest.mark.parametrize("before", [READDED + 0.3, STOPPED + 1.0])
def test_an_array_that_was_stopped_and_never_gone_has_states_that_are_not_on_record(before: float) -> None:
    """The last state may lie shortly before it was stopped, and be one in which a member is missing."""
    bench = healthy()
    mirror(bench)
    bench.drop(ev.ArrayState, keep=lambda event: (event.at or 0.0) < before)
    bench.replace(ev.ArrayActed, lambda event: event.action == "stop", at=READDED + 0.6)
    bench.drop(ev.ArrayActed, keep=lambda event: event.action in ("readd", "stop"))
    assert bench.judge(array_survived(ARRAY)).findings == ()
    assert any("what became of array1 after" in doubt for doubt in array_doubts(bench.story())) is (before < STOPPED)
