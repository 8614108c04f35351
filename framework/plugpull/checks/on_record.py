"""Is everything on record that was reported? The agent numbers its reports, so one that is missing leaves a hole."""

from __future__ import annotations

from plugpull.checks.base import Check, Judgement
from plugpull.checks.collector import Collector
from plugpull.checks.steps import missing_steps
from plugpull.history.events import AgentLost, DutDied, DutReady
from plugpull.history.story import Story


class OnRecord(Check, frozen=True, tag="on_record"):
    """No report of the agent and no step of the bench is missing from the record. An absent line is never a finding:
    nobody knows what it said."""

    def judge(self, story: Story) -> Judgement:
        said = Collector(self)
        said.doubt(*missing_reports(story), *missing_steps(story))
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
