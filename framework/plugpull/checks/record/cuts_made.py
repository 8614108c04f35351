"""Whether every armed cut was made, and its record has no contradictions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from plugpull.checks.base import Check, Judgement
from plugpull.checks.collector import Collector
from plugpull.checks.record.fault_record import fault_doubts
from plugpull.checks.record.fault_times import fault_times_doubted
from plugpull.checks.record.steps import missing_switching
from plugpull.checks.record.wiring import wiring_doubts
from plugpull.history.cut import Cut
from plugpull.history.cuts import sent_otherwise
from plugpull.history.events import CutArmed, CutSwitched, Edge
from plugpull.history.events.cuts import EdgePhase
from plugpull.history.reader import Story

AT_ONCE = 2.0
"""Cuts at once are made within so many seconds. A slow board takes 0.1 s per port; 44 emulated groups took 0.12 s."""


class CutsMade(Check, frozen=True, tag="cuts_made"):
    """Every armed cut was made and, unless it is permanent, restored, according to its switch.

    A cut that was not made is the bench's failure: it leads to UNKNOWN, never to a finding.
    """

    def judge(self, story: Story) -> Judgement:
        said, cuts = Collector(self), story.cut_records
        for cut in cuts:
            said.doubt(*_doubts(cut))
        said.doubt(*_doubled(story), *missing_switching(story), *_apart(story))
        said.doubt(*_out_of_order(story), *_refused(story), *fault_doubts(story), *wiring_doubts(story))
        said.doubt(*fault_times_doubted(story))
        return said.judgement(f"{len(cuts)} of {len(cuts)} cuts made" if cuts and said.clean else "")


def cuts_made() -> CutsMade:
    """Every armed cut must have been made."""
    return CutsMade()


def _doubts(cut: Cut) -> list[str]:
    if cut.off.doubt:
        return [f"{cut.armed.point} was not cut: {cut.off.doubt}"]
    doubts = []
    if cut.on.doubt and not cut.armed.permanent and cut.until == float("inf"):
        doubts.append(f"{cut.armed.point} may not have been restored: {cut.on.doubt}")
    on, off = cut.on.commanded_at, cut.off.commanded_at
    if on is not None and off is not None and on < off - cut.error:
        doubts.append(f"the record says that {cut.armed.point} was restored before it was cut")
    # Cuts made at once that share a disk have the times of all of them together.
    for switching in () if cut.armed.group else (cut.off, cut.on):
        commanded, answered = switching.commanded_at, switching.acknowledged_at
        if commanded is not None and answered is not None and answered < commanded - cut.error:
            doubts.append(f"the record says that {', '.join(switching.ports)} acknowledged before the command was sent")
    return doubts


def _out_of_order(story: Story) -> Iterator[str]:
    """Ports that were read back before they had acknowledged: they were asked before anything was done."""
    answers = {(edge.cut, edge.state, edge.switch, edge.port): edge for edge in _steps(story, "acknowledged")}
    for read in _steps(story, "read-back"):
        answer = answers.get((read.cut, read.state, read.switch, read.port))
        if answer is not None and (read.at or 0.0) < (answer.at or 0.0) - max(read.error, answer.error):
            yield f"{read.switch} port {read.port} was read back before it had acknowledged that it is {read.state}"
    commands = {(edge.cut, edge.state, edge.switch, edge.port): edge.at for edge in _steps(story, "commanded")}
    for key, answer in answers.items():
        if sent_otherwise(answer, commands.get(key)):
            sent = f"{answer.switch} port {answer.port} was sent the command {answer.state} at {answer.sent:.2f} s"
            yield f"{sent}, which is not between its being given and acknowledged"


def _refused(story: Story) -> Iterator[str]:
    """Switches that did not confirm a command as they acknowledged it."""
    for edge in (*_steps(story, "commanded"), *_steps(story, "acknowledged")):
        if not edge.agrees:
            yield f"{edge.switch} did not confirm that port {edge.port} is to be {edge.state}"
            return


def _steps(story: Story, phase: EdgePhase) -> Iterator[Edge]:
    return (edge for edge in story.of(Edge) if edge.phase == phase)


def _apart(story: Story) -> list[str]:
    """Ports that were to be cut at once, and were cut too far apart."""
    return [
        f"{event.ports} ports were to be cut at once, and {event.skew:.2f} s lay between the first and the last"
        for event in story.of(CutSwitched)
        if event.state == "off" and event.skew > AT_ONCE
    ]


def _doubled(story: Story) -> list[str]:
    """Cuts that are armed twice and edges that are recorded twice."""
    armed = Counter(cut.cut for cut in story.of(CutArmed))
    doubts = [f"cut {number} is on record {count} times" for number, count in armed.items() if count > 1]
    commands = (edge for edge in story.of(Edge) if edge.phase == "commanded")
    steps = Counter((edge.cut, edge.state, edge.switch, edge.port, edge.at) for edge in commands)
    doubts += [
        f"the edge {state} of cut {cut} is on record {count} times"
        for (cut, state, *_), count in steps.items()
        if count > 1
    ]
    return doubts
