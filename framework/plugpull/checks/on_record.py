"""Is everything on record that was reported? The agent numbers its reports, so one that is missing leaves a hole."""

from __future__ import annotations

from plugpull.checks.base import Check, Judgement
from plugpull.checks.collector import Collector
from plugpull.checks.steps import missing_steps
from plugpull.history.events import AgentLost, DutDied, DutReady, Uevent
from plugpull.history.story import Story


class OnRecord(Check, frozen=True, tag="on_record"):
    """No report of the agent and no step of the bench is missing from the record. An absent line is never a finding:
    nobody knows what it said."""

    def judge(self, story: Story) -> Judgement:
        said = Collector(self)
        said.doubt(*missing_reports(story), *missing_uevents(story), *missing_steps(story))
        return said.judgement()


def on_record() -> OnRecord:
    """Every report of the agent and every step of the bench must be on record. It is judged for every scenario."""
    return OnRecord()


def missing_reports(story: Story) -> tuple[str, ...]:
    """How many of the agent's numbered reports are not on record, as a sentence: uevents, disks that came and went,
    kernel messages, blocked tasks, activity, properties and shortened timeouts.

    They are numbered from before the DUT is ready to the end of the scenario, which says what the last number was.
    Whether something was lost with an agent that was itself lost is said elsewhere."""
    readies, ended = story.of(DutReady), story.ended
    lost = bool(story.of(AgentLost)) or bool(story.of(DutDied))
    if len(readies) != 1 or ended is None or lost:
        return ()
    before, last = readies[0].reports, ended.reports
    if before is None or last is None:
        return ()
    highest = max((event.report for event in story.events), default=0)
    if highest > last:
        return (f"the record has report {highest} of the agent, and says that number {last} was the last",)
    numbers = {event.report for event in story.events if 0 < event.report <= last}
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
    """How many uevents are not on record, as a sentence. The kernel numbers them in one row, and the agent counts those
    that it leaves out; what the socket had no room for was neither reported nor counted."""
    events = sorted(story.of(Uevent), key=lambda event: event.seqnum)
    if len(story.of(DutReady)) != 1 or len(events) < 2 or bool(story.of(AgentLost)) or bool(story.of(DutDied)):
        return ()
    others = [event.others for event in events[1:]]
    counted = sum(other for other in others if other is not None)
    missing = events[-1].seqnum - events[0].seqnum - len(others) - counted
    if None in others or events[0].seqnum <= 0 or missing <= 0:
        return ()
    return (f"{missing} uevents of the kernel are not on record, between number {events[0].seqnum} and the last",)
