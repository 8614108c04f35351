"""The kernel log of a scenario: which lines it holds, and that each is classified once."""

from __future__ import annotations

from dataclasses import replace

import msgspec
from stories import healthy

from plugpull.history import events as ev
from plugpull.history.story import Story
from plugpull.kernel.diagnosis.report_groups import report_groups
from plugpull.kernel.diagnosis.story_log import log_of

OOPS = "BUG: kernel NULL pointer dereference, address: 0000000000000010"
REGISTERS = "RIP: 0010:usb_stor_invoke_transport+0x1b/0x5a0 [usb_storage]"
HUNG = "INFO: task fio:812 blocked for more than 120 seconds."


def story_with(*events: ev.Event) -> Story:
    story = healthy().story()
    return replace(story, events=(*story.events, *events))


def said(text: str, at: float | None, facility: int = 0) -> ev.KernelMessage:
    return ev.KernelMessage(at=at, text=text, level=1, seq=-1, facility=facility)


def test_lines_of_processes_and_of_an_earlier_scenario_are_left_out() -> None:
    story = story_with(said("early", 39.0), said("mine", 50.0), said("process", 51.0, facility=1))
    log = log_of(replace(story, begun=msgspec.structs.replace(story.begun, at=40.0)))
    own, timed = [line.text for line in log.own], [line.text for line in log.timed]
    assert own == ["mine"]
    assert timed[-2:] == ["early", "mine"]


def test_a_line_without_a_time_is_no_timed_line() -> None:
    log = log_of(story_with(said("when?", None)))
    assert "when?" in [line.text for line in log.own]
    assert "when?" not in [line.text for line in log.own_timed]


def test_the_log_and_its_lines_are_made_once_for_a_story_and_its_shorter_copies() -> None:
    story = story_with(said(OOPS, 50.0), ev.ConsoleLine(at=51.0, text="login:"))
    assert log_of(story) is log_of(story)
    shorter = replace(story, events=story.events[:-1])
    assert log_of(shorter) is not log_of(story)
    assert log_of(shorter).own[-1].event is log_of(story).own[-1].event
    assert log_of(shorter).own[-1].event is not None


def test_alarming_lines_within_five_seconds_are_one_group_with_what_follows() -> None:
    together = story_with(said(OOPS, 50.0), said(REGISTERS, 50.1), said(HUNG, 54.0), said("usb 1-1: new", 58.0))
    (group,) = report_groups(together)
    assert [line.text for line in group.lines] == [OOPS, REGISTERS, HUNG]
    assert group.headline == f"{OOPS} in usb_stor_invoke_transport"
    assert [group.covers(at) for at in (49.9, 50.5, 54.9, 55.1)] == [False, True, True, False]
    apart = story_with(said(OOPS, 50.0), said(HUNG, 55.5))
    assert [group.at for group in report_groups(apart)] == [50.0, 55.5]


def test_a_console_line_without_a_time_belongs_to_the_open_group() -> None:
    (group,) = report_groups(story_with(said(OOPS, 50.0), ev.ConsoleLine(at=None, text=REGISTERS)))
    assert [line.text for line in group.lines] == [OOPS, REGISTERS]


def test_a_healthy_log_has_no_group() -> None:
    assert report_groups(healthy().story()) == ()
