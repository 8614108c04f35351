"""What ``legs_hold`` makes of a check of a mirror, whose members are read afterwards."""

from __future__ import annotations

import pytest
from array_stories import ARRAY, CHECKED, mirror, stamps
from stories import Bench, healthy

from plugpull.checks import legs_hold
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
