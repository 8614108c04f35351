"""Short reads of each disk: at the end of a scenario as at its beginning."""

from __future__ import annotations

import msgspec
import pytest
from stories import SURVIVORS, VICTIM, Bench, healthy
from watched import properties, real, watched

from plugpull.checks import answered
from plugpull.checks.base import Judgement
from plugpull.history import events as ev

BEGIN, END = 11.2, 25.6
QUICK = "9.0 4.1 4.0 4.2 4.0 4.3 30.5 4.0"


def read(
    at_the_end: dict[str, str],
    disk: str = "disk2",
    bench: Bench | None = None,
    until: float = END,
    others: str = QUICK,
) -> Judgement:
    """Judged where all disks were read at the beginning and the end, one of them otherwise at the end."""
    bench = bench or healthy()
    for one in (VICTIM, *SURVIVORS):
        stays = [event for event in bench.events if isinstance(event, ev.DiskAttached) and event.disk == one]
        ends = at_the_end if one == disk else {"read_ms": others}
        last = properties(stays[-1], END, "end", **ends)
        bench.add(properties(stays[0], BEGIN, "begin", read_ms=QUICK))
        bench.add(msgspec.structs.replace(last, until=until) if one == disk else last)
    return bench.judge(answered())


def test_a_disk_that_is_read_as_soon_as_before_is_fine() -> None:
    judgement = read({"read_ms": "60.0 21.0 12.9 14.0 80.1 70.2 19.0 14.0"})
    assert (judgement.findings, judgement.unknowns) == ((), ())


@pytest.mark.parametrize("disk", [VICTIM, "disk2"], ids=["that came back", "that stayed"])
def test_a_disk_that_delays_each_command_is_named(disk: str) -> None:
    (finding,) = read({"read_ms": " ".join(["154.0"] * 8)}, disk).findings
    assert finding.subject == disk
    what = f"a short read of {disk} takes 154 ms at the end and 4 ms at the beginning"
    assert finding.summary == f"{what}: slower (limit 27 ms)"
    assert finding.evidence[1].endswith("took 154.0 154.0 154.0 154.0 154.0 154.0 154.0 154.0 ms ")


SLOW = "28.0 27.8 29.9 37.3 30.5 59.9 40.1 38.9"
"""None of them is within the limit of 27 ms."""


def test_a_busy_host_that_slows_all_disks_accuses_none_of_them() -> None:
    judgement = read({"read_ms": SLOW}, others="30.6 28.9 32.0 34.7 39.8 35.5 29.5 4.1")
    assert judgement.findings == ()
    (doubt,) = judgement.unknowns
    assert doubt.startswith(
        "a short read of disk2 takes 28 ms at the end and 4 ms at the beginning, and those of other"
    )
    assert "disks took 31 ms meanwhile" in doubt


def test_all_disks_are_named_if_none_of_them_has_a_fast_read_any_more() -> None:
    found = read({"read_ms": SLOW}, others=SLOW).findings
    assert sorted(finding.subject for finding in found) == ["disk1", "disk2", "disk3"]


def test_a_disk_is_named_though_some_reads_of_others_are_slow() -> None:
    (finding,) = read({"read_ms": SLOW}, others="30.6 28.9 32.0 4.7 9.8 5.5 9.5 4.1").findings
    assert finding.subject == "disk2"


def test_a_real_disk_may_be_slow() -> None:
    """Its owner may use it, and it may have fallen asleep."""
    assert read({"read_ms": " ".join(["154.0"] * 8)}, bench=real(watched())).findings == ()


def test_a_disk_that_nobody_used_and_that_is_dead_is_named() -> None:
    (finding,) = read({"read_error": "Input/output error"}).findings
    assert finding.summary == "disk2 is attached and cannot be read at the end: Input/output error"


@pytest.mark.parametrize(("until", "found"), [(END + 8.0, 1), (END + 3.0, 0)], ids=["it ran", "it was starved"])
def test_a_disk_that_does_not_answer(until: float, found: int) -> None:
    bench = healthy(until=36.0)
    judgement = read({"read_error": "no answer for 8 s"}, bench=bench, until=until)
    assert len(judgement.findings) == found
    assert bool(judgement.unknowns) != bool(found)


def test_a_disk_that_left_meanwhile_accuses_nobody() -> None:
    bench = healthy()
    bench.detach("disk2", END + 0.1)
    assert read({"read_error": "Input/output error"}, bench=bench).findings == ()


def test_a_disk_that_was_not_read_at_the_end_is_a_doubt() -> None:
    judgement = read({})
    assert judgement.unknowns == ("whether disk2 can be read at the end is not known: it was not read",)
