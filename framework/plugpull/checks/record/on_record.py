"""Whether all reports are on record. The agent numbers its reports, so a missing one leaves a gap."""

from __future__ import annotations

from itertools import pairwise

from plugpull.checks.base import Check, Judgement
from plugpull.checks.collector import Collector
from plugpull.checks.record.contents import missing_contents
from plugpull.checks.record.counterparts import missing_counterparts
from plugpull.checks.record.number_order import COUNTED_EARLY, unordered
from plugpull.checks.record.steps import missing_steps
from plugpull.history.events import AgentLost, DutDied, DutReady, Uevent
from plugpull.history.story import Story


class OnRecord(Check, frozen=True, tag="on_record"):
    """No report of the agent and no step of the bench is missing from the record. A missing line is never a finding,
    because its contents are unknown."""

    def judge(self, story: Story) -> Judgement:
        said = Collector(self)
        said.doubt(*missing_reports(story), *missing_uevents(story), *missing_steps(story), *missing_contents(story))
        said.doubt(*missing_counterparts(story))
        return said.judgement()


def on_record() -> OnRecord:
    """Every report of the agent and every step of the bench must be on record. It is judged for every scenario."""
    return OnRecord()


def missing_reports(story: Story) -> tuple[str, ...]:
    """How many of the agent's numbered reports are missing, as a sentence: uevents, attached and removed disks, kernel
    messages, blocked tasks, activity, properties and shortened timeouts.

    The numbers start before the DUT is ready; the end of the scenario has the last one. Other checks report an agent
    that was lost."""
    readies, ended = story.of(DutReady), story.ended
    lost = bool(story.of(AgentLost)) or bool(story.of(DutDied))
    if len(readies) != 1 or ended is None or lost:
        return ()
    before, last = readies[0].reports, ended.reports
    if before is None or last is None:
        return ()
    reports = [*story.samples.reports.values(), *(event.report for event in story.others)]
    highest = max(reports, default=0)
    if highest > last:
        return (f"the record has report {highest} of the agent, and says that number {last} was the last",)
    numbers = {report for report in reports if 0 < report <= last}
    first = min((before + 1, *numbers))
    missing = last - first + 1 - len(numbers) - ended.left_out
    if missing <= 0:
        return ()
    hole = first
    for number in sorted(numbers):
        if number != hole:
            break
        hole = number + 1
    return (f"{missing} reports of the agent are not on record; number {hole} is the first that is not there",)


def missing_uevents(story: Story) -> tuple[str, ...]:
    """How many uevents are missing, as a sentence. The kernel numbers all uevents, and the agent counts those that it
    leaves out. Uevents that did not fit into the socket were neither reported nor counted."""
    numbered = (event for event in story.of(Uevent) if event.seqnum > 0)
    events = sorted(numbered, key=lambda event: event.seqnum)
    if len(story.of(DutReady)) != 1 or len(events) < 2 or bool(story.of(AgentLost)) or bool(story.of(DutDied)):
        return ()
    others = [event.others for event in events[1:]]
    counted = sum(other for other in others if other is not None)
    missing = events[-1].seqnum - events[0].seqnum - len(others) - counted
    if None in others:
        return ()
    if missing > 0:
        return (f"{missing} uevents of the kernel are not on record, between number {events[0].seqnum} and the last",)
    room = COUNTED_EARLY if unordered(story) else 0  # the others may be counted late, but not before they came
    for one, two in pairwise(events):
        room += two.seqnum - one.seqnum - 1 - (two.others or 0)
        if room < 0:
            return (
                f"the agent counted {two.others} uevents between the kernel's numbers {one.seqnum} and {two.seqnum}",
            )
    return ()
