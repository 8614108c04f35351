"""Findings that rest on a report of the agent which was made and is not on record."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace
from stories import BACK, CUT, DISKS, RATE, SURVIVORS, VICTIM, Bench, healthy
from test_checks_recovered import DISK, stalled
from test_on_record import numbered, with_events, without

from plugpull.checks import kept_pace, recovered, removed, returned, undisturbed
from plugpull.checks.record.lost_announcements import lost_announcements
from plugpull.history import events as ev
from plugpull.history.story import Story
from plugpull.judging.judge import judge_story
from plugpull.judging.results import Verdict

CHECKS = (removed(VICTIM), returned(VICTIM), undisturbed())


def came_back(event: Any) -> bool:
    return isinstance(event, ev.DiskAttached) and event.at == BACK


def went(event: Any) -> bool:
    return isinstance(event, ev.DiskDetached)


def survivor_came(event: Any) -> bool:
    return isinstance(event, ev.DiskAttached) and event.disk == DISK


def reset(bench: Bench) -> None:
    """A survivor is reset, which is a finding."""
    port = DISKS.index(DISK) + 1
    text = f"usb 1-1.{port}: reset high-speed USB device number 5 using xhci_hcd"
    bench.add(ev.KernelMessage(at=20.0, text=text, level=6))


def renumbered(story: Story) -> Story:
    """The story without a hole in the numbers: the agent never made the report."""
    number, events = 40, []
    for event in story.events:
        if getattr(event, "report", 0):
            number += 1
            event = replace(event, report=number)
        elif isinstance(event, ev.ScenarioEnded):
            event = replace(event, reports=number)
        events.append(event)
    return with_events(story, tuple(events))


@pytest.mark.parametrize(("lost", "whose"), [(came_back, VICTIM), (went, VICTIM), (survivor_came, DISK)])
def test_an_announcement_that_is_missing_accuses_nobody(lost: Callable[[Any], bool], whose: str) -> None:
    bench = healthy(checks=CHECKS)
    if whose == DISK:
        reset(bench)
    else:
        assert judge_story(numbered(bench.story())).verdict is Verdict.PASS
    story = without(numbered(bench.story()), lost)
    assert lost_announcements(story) == (whose,)
    result = judge_story(story)
    assert result.verdict is Verdict.UNKNOWN, result.findings


def test_a_kernel_that_does_not_announce_a_disk_is_at_fault() -> None:
    story = renumbered(without(numbered(healthy(checks=CHECKS).story()), came_back))
    assert lost_announcements(story) == ()
    result = judge_story(story)
    assert [(one.check, one.subject) for one in result.findings] == [("returned", VICTIM)]


def test_what_another_disk_did_stays_a_finding() -> None:
    bench = healthy(checks=CHECKS)
    reset(bench)
    result = judge_story(without(numbered(bench.story()), came_back))
    assert [(one.check, one.subject) for one in result.findings] == [("undisturbed", DISK)]


def test_a_reset_that_may_have_been_in_a_missing_report_is_not_missed() -> None:
    bench = stalled(resets=0)
    (finding,) = bench.judge(recovered(DISK)).findings
    assert "did not reset it" in finding.summary
    story = numbered(bench.story())
    story = without(
        story,
        lambda event: (
            isinstance(event, ev.KernelMessage)
            and (event.at or 0.0) < CUT
            and event.report == min(one.report for one in story.events if isinstance(one, ev.KernelMessage))
        ),
    )
    judged = recovered(DISK).judge(story)
    assert judged.findings == ()
    assert judged.unknowns[0].startswith(f"whether the kernel reset {DISK} is not known: 1 reports of the agent")


@pytest.mark.parametrize("known", [True, False])
def test_no_pace_is_a_finding_if_it_is_not_on_record_what_the_dut_was(known: bool) -> None:
    bench = healthy(checks=(kept_pace(SURVIVORS),), pace=lambda disk, at: RATE * (0.3 if at > CUT else 1.0))
    if not known:
        bench.drop(ev.DutReady)
    result = judge_story(bench.story())
    assert bool(result.findings) is known
    assert result.verdict is not Verdict.PASS
