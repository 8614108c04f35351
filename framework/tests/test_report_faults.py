"""Faults that are not plain cuts: a mark on the timeline and a line in the list, in words."""

from __future__ import annotations

from typing import Any

import pytest
import report_stories as made
from test_report_html import HOSTILE, Page

from plugpull.faults import (
    after,
    at_random,
    bounce,
    cut,
    held,
    in_sequence,
    kernel_says,
    move,
    pause,
    repeated,
    together,
)
from plugpull.faults.codec import encode
from plugpull.faults.compose import Fault
from plugpull.faults.moving import SwapFault
from plugpull.faults.triggers import Moved, Now, Promised, Trigger
from plugpull.history import events as ev
from plugpull.report.fault_text import fault_text, trigger_text
from plugpull.report.html import render_html
from plugpull.report.narrate import Tone, narrate
from plugpull.report.svg import draw
from plugpull.report.timeline import timeline_of

BEGAN = made.START + 6.0
READ_ERRORS = {"kind": "read_errors", "disk": "disk2", "sectors": [8, 16], "when": {"kind": "now"}}
"""A fault that no version has yet."""


def fault(data: dict[str, Any], number: int = 2) -> ev.FaultInjected:
    return ev.FaultInjected(at=BEGAN, number=number, fault=data)


def page_with(*faults: ev.FaultInjected) -> Page:
    run = made.run()
    stories = run.stories | {made.PASSING: made.ordered(run.stories[made.PASSING], faults)}
    return Page(render_html(run.results, stories))


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (held(cut("disk1.cable"), 0.5), "cut of disk1.cable, held for 0.5 s"),
        (cut("hub1.cable", "disk3.power", permanent=True), "cut of hub1.cable, disk3.power, for good"),
        (repeated(cut("disk1.cable", when=after(2)), 3, 1), "3 times, 1 s apart: cut of disk1.cable (after 2 s)"),
        (in_sequence(pause(1.5), cut("disk1.cable")), "pause of 1.5 s; then cut of disk1.cable"),
        (
            together(cut("disk1.cable"), pause(kernel_says("reset"))),
            "together: cut of disk1.cable | pause until the kernel logs /reset/",
        ),
        (move({"disk1": "hub2.3"}), "move of disk1 to hub2.3"),
        (
            SwapFault((("disk1", "usb.2"), ("disk2", "usb.1")), ("disk1.cable", "disk2.cable"), after(2)),
            "swap: disk1 to usb.2, disk2 to usb.1 (after 2 s)",
        ),
        (
            bounce("disk1.cable", gaps=(0.05, 0.02, 0.1)),
            "bounce of disk1.cable: 0.05 s open, 0.02 s closed, 0.1 s open",
        ),
    ],
)
def test_a_fault_in_words(asked: Fault, words: str) -> None:
    assert fault_text(encode(asked)) == words


@pytest.mark.parametrize(
    "trigger",
    [Now(), after(2), at_random(1, 3), Moved("disk1", 1 << 20), Promised("disk1", at_random(0, 0.2)), kernel_says("x")],
)
def test_a_trigger_in_the_words_of_its_own_kind(trigger: Trigger) -> None:
    assert trigger_text(encode(trigger)) == trigger.text()


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (READ_ERRORS, "read_errors (disk disk2, sectors 8 16, when …)"),
        ({}, "?"),
        ({"kind": "held", "fault": 3}, "…, held for ? s"),
        ({"kind": "together", "faults": {"kind": "cut"}}, "together: "),
        (
            {"kind": "cut", "points": "disk1", "when": {"kind": "flood", "height": 2}},
            "cut of nothing (flood (height 2))",
        ),
    ],
)
def test_data_of_another_version_is_shown_as_it_is(data: dict[str, Any], words: str) -> None:
    assert fault_text(data) == words


def test_faults_nested_without_end_are_cut_short() -> None:
    data: dict[str, Any] = {"kind": "pause", "until": {"kind": "now"}}
    for _ in range(2000):
        data = {"kind": "held", "fault": data, "seconds": 1}
    assert fault_text(data).startswith("…, held for 1 s")


def test_it_is_a_line_in_the_list_and_a_plain_cut_is_not() -> None:
    line = narrate(fault(READ_ERRORS))
    assert line is not None
    assert (line.tone, line.words) == (Tone.CUT, "fault 2: read_errors (disk disk2, sectors 8 16, when …)")
    assert narrate(fault(encode(cut("disk1.cable")))) is None
    assert "fault 2: read_errors" in page_with(fault(READ_ERRORS)).words


def test_it_is_a_mark_on_the_timeline_and_a_plain_cut_is_not() -> None:
    events = [*made.run().stories[made.PASSING], fault(READ_ERRORS), fault(encode(cut("disk1.cable")), 3)]
    timeline = timeline_of(events, made.passing())
    (mark,) = timeline.faults
    assert (mark.number, mark.at) == (2, BEGAN)
    (drawn,) = draw(timeline, {}).faults
    units = (988 - 150) / (made.END - made.START)
    assert drawn.x == pytest.approx(150 + 6.0 * units, abs=0.2)
    assert drawn.title.startswith("fault 2, 6.000 s: read_errors")
    assert len(page_with(fault(READ_ERRORS)).all("g", "fault")) == 2, "the mark, and the key's symbol"


def test_a_report_without_faults_has_no_marks() -> None:
    assert page_with().all("path", "from") == []
    assert "fault begins" not in page_with().words
    assert "fault begins" in page_with(fault(READ_ERRORS)).words


def test_a_fault_alone_is_drawn() -> None:
    begun = ev.ScenarioBegun(id=made.PASSING, wall="", seed=1, at=made.START)
    timeline = timeline_of([begun, fault(READ_ERRORS)], made.changed(made.passing(), cuts=()))
    assert not timeline.empty


def test_hostile_names_are_shown_and_not_obeyed() -> None:
    page = page_with(fault({"kind": HOSTILE, "disk": HOSTILE}))
    assert not page.all("img")
    assert "alert(1)" in page.words
