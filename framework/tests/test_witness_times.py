"""Witnesses on the DUT whose stamps are of different clocks accuse nobody."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest
from stories import BACK, CUT, healthy

from plugpull.checks.record.witness_times import witnesses_apart
from plugpull.history import events as ev
from plugpull.history.story import Story
from plugpull.judging.judge import judge_story
from plugpull.judging.results import Verdict


def moved(kind: type[ev.Event], by: float, since: float = 0.0) -> Story:
    """The healthy story with the stamps of one witness moved by so many seconds."""
    story = healthy().story()
    events = (
        msgspec.structs.replace(event, at=event.at + by)
        if isinstance(event, kind) and event.at is not None and event.at >= since
        else event
        for event in story.events
    )
    return replace(story, events=tuple(events))


@pytest.mark.parametrize(
    ("kind", "by", "since"),
    [
        (ev.KernelMessage, -4.0, 0.0),
        (ev.KernelMessage, 2.5, 0.0),
        (ev.KernelMessage, 2.5, CUT - 2.0),
        (ev.Sampled, 2.0, 0.0),
        (ev.Sampled, -3.0, 0.0),
    ],
)
def test_a_witness_with_another_clock(kind: type[ev.Event], by: float, since: float) -> None:
    story = moved(kind, by, since)
    (said,) = witnesses_apart(story)
    assert said.startswith("the record contradicts itself: the ")
    judged = judge_story(story)
    assert judged.verdict is Verdict.UNKNOWN, judged.findings
    assert said in judged.unknowns


@pytest.mark.parametrize(
    ("kind", "by", "since"),
    [(ev.KernelMessage, 0.0, 0.0), (ev.KernelMessage, -0.6, 0.0), (ev.Sampled, 0.4, 0.0), (ev.KernelMessage, 0.5, 0.0)],
)
def test_witnesses_of_one_clock(kind: type[ev.Event], by: float, since: float) -> None:
    assert witnesses_apart(moved(kind, by, since)) == ()


def test_one_uevent_that_was_read_late_is_no_other_clock() -> None:
    bench = healthy()
    bench.replace(ev.DiskAttached, lambda event: event.at == BACK, at=BACK + 3.0)
    assert witnesses_apart(bench.story()) == ()
