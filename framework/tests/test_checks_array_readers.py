"""What the readers of an array meet while a member is missing."""

from __future__ import annotations

import pytest
from array_stories import ARRAY, mirror, state
from stories import GONE, SURVIVORS, Bench, healthy

from plugpull.checks import array_survived
from plugpull.history import events as ev


def met(errno: int) -> Bench:
    """fio read the array until it met this error (0: none)."""
    bench = healthy()
    mirror(bench)
    bench.add(ev.LoadEnded(at=GONE + 1.5, disk=ARRAY, job="read", asked=not errno, exit_status=0, errno=errno))
    return bench


def found(bench: Bench) -> list[str]:
    return [one.summary for one in bench.judge(array_survived(ARRAY)).findings]


@pytest.mark.parametrize(("errno", "many"), [(5, 1), (0, 0)])
def test_an_error_within_the_redundancy_is_a_finding(errno: int, many: int) -> None:
    said = "the load on array1 met an I/O error: errno 5 though only disk1 was missing"
    assert found(met(errno)) == [said] * many


def test_once_more_is_missing_than_the_level_covers_readers_may_meet_one() -> None:
    bench = met(5)
    bench.detach(SURVIVORS[0], GONE)
    bench.add(state(GONE + 1, degraded=2, word="broken", disk1="faulty", disk2="faulty"))
    assert not any("I/O error" in one for one in found(bench))
