"""A disk that stands still while the DUT's answers are late may be a processor that its host kept waiting."""

from __future__ import annotations

import msgspec
import pytest
from stories import CUT, Bench, healthy

from plugpull.checks import kept_pace
from plugpull.checks.base import Judgement
from plugpull.checks.late_answers import answered_late
from plugpull.history import events as ev
from plugpull.history.story import Story

DISK = "disk2"
STILL = (CUT + 0.1, CUT + 1.0)
"""0.9 s, of 0.5 s that are allowed."""


def stalled() -> Bench:
    return healthy(pace=lambda disk, at: 0.0 if disk == DISK and STILL[0] <= at < STILL[1] else 2e7)


def exchanged(bench: Bench, at: float, error: float, rate: float | None = None) -> Story:
    """The story with one exchange that took long, and the CPU seconds per second that the host gave the DUT."""
    bench.add(ev.ClockMapped(at=at, controller=at + 600.0, error=error))
    made = bench.story()
    events = tuple(
        msgspec.structs.replace(one, ran=rate * (one.at or 0.0)) if isinstance(one, ev.ClockMapped) and rate else one
        for one in made.events
    )
    return Story(made.begun, events, rig=made.rig)


def judged(story: Story) -> Judgement:
    return kept_pace(DISK).judge(story)


def test_a_stall_that_a_late_answer_may_explain_is_a_doubt() -> None:
    judgement = judged(exchanged(stalled(), STILL[0] + 0.5, 0.3, rate=0.4))
    assert not judgement.findings
    said = f"{DISK} stood still for 0.90 s (limit 0.5 s), but the DUT's answers were late as well, by up to 0.60 s"
    assert said in judgement.unknowns


@pytest.mark.parametrize(
    ("at", "error", "rate"),
    [
        (STILL[0] + 0.5, 0.05, 0.4),
        (STILL[0] + 0.5, 0.12, 0.4),
        (STILL[1] + 1.0, 0.3, 0.4),
        (STILL[1] + 0.5, 0.3, 0.4),
        (STILL[0] + 0.5, 0.3, 0.98),
    ],
    ids=["in time", "late by less than is too much", "another time", "a little of it", "its host ran it"],
)
def test_a_stall_that_it_does_not_explain_is_a_finding(at: float, error: float, rate: float) -> None:
    judgement = judged(exchanged(stalled(), at, error, rate))
    assert [finding.summary for finding in judgement.findings] == [f"{DISK} stood still for 0.90 s (limit 0.5 s)"]


def test_a_stall_without_a_late_answer_is_a_finding_beside_a_longer_one_with_one() -> None:
    def pace(disk: str, at: float) -> float:
        still = STILL[0] <= at < STILL[1] or STILL[1] + 1.0 <= at < STILL[1] + 1.8
        return 0.0 if disk == DISK and still else 2e7

    judgement = judged(exchanged(healthy(pace=pace), STILL[0] + 0.5, 0.3, rate=0.4))
    assert f"{DISK} stood still for 0.80 s (limit 0.5 s)" in [finding.summary for finding in judgement.findings]


def test_a_real_dut_has_its_processors_to_itself() -> None:
    story = exchanged(stalled(), STILL[0] + 0.5, 0.3)
    rig = {**story.rig, "dut": {"kind": "local"}}
    assert answered_late(Story(story.begun, story.events, rig=rig), *STILL) == 0.0


def test_no_more_is_explained_than_passed() -> None:
    story = exchanged(healthy(), STILL[0] + 0.5, 5.0, rate=0.4)
    assert answered_late(story, *STILL) == pytest.approx(STILL[1] - STILL[0])
