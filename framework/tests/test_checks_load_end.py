"""The check ``ended_with_error``: users of a disk that was cut get an error, in time."""

from __future__ import annotations

import pytest
from stories import CUT, VICTIM, healthy
from test_checks_removed import never_gone

from plugpull.checks import ended_with_error
from plugpull.history import events as ev


def test_the_load_of_the_victim_ended_with_an_error() -> None:
    judgement = healthy().judge(ended_with_error(VICTIM))
    assert not judgement.findings
    assert not judgement.unknowns
    assert "after 0.09 s" in judgement.worst


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"at": CUT + 6}, "only after 6.00 s (limit 5 s)"),
        ({"asked": True, "errno": 0}, "went on until it was asked to stop"),
        ({"stuck": True}, "could not be ended"),
        ({"errno": 0, "exit_status": 0}, "ended without an error"),
    ],
)
def test_the_load_of_the_victim_did_not_end_as_it_should(change: dict[str, object], said: str) -> None:
    bench = healthy()
    bench.replace(ev.LoadEnded, lambda event: event.disk == VICTIM, **change)
    (finding,) = bench.judge(ended_with_error(VICTIM, within=5)).findings
    assert said in finding.summary


def test_a_load_on_a_disk_that_stayed_need_not_end() -> None:
    judgement = never_gone().judge(ended_with_error(VICTIM))
    assert not judgement.findings
    assert judgement.unknowns


def test_a_load_whose_end_is_not_recorded() -> None:
    bench = healthy()
    bench.drop(ev.LoadEnded)
    assert "was not recorded" in bench.judge(ended_with_error(VICTIM)).unknowns[0]


def test_an_error_that_came_late() -> None:
    bench = healthy()
    bench.replace(ev.LoadEnded, lambda event: event.disk == VICTIM, at=CUT + 6)
    assert "only after 6.00 s (limit 5 s)" in bench.judge(ended_with_error(VICTIM)).findings[0].summary
    assert not bench.judge(ended_with_error(VICTIM, within=30)).findings
    bench.starved = ((CUT + 1, CUT + 4),)
    judgement = bench.judge(ended_with_error(VICTIM))
    assert not judgement.findings
    assert "the DUT was starved meanwhile" in judgement.unknowns[0]
