"""Time of a scenario in which nobody looked at the DUT: holes in its samples, and silence."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence

from plugpull.checks.starved import ANSWERS, Span, awake, gaps, slept
from plugpull.history.events import AgentLost, ClockMapped, DutDied
from plugpull.history.story import Story

LONGEST = 2.0
"""Seconds without a sample while the agent answered. In 211 scenarios that passed it was 0.35 s at most."""
INTERVALS = 10.0
"""The same in sampling intervals, if that is more."""
ANSWERED = 1.6
"""Seconds without a sample in which the agent answered twice. In 356 gaps of healthy scenarios on busy hosts, up to 3.1
s long, it answered once at most: what holds up its sampler holds up its answers."""
SILENT = 5.0
"""Seconds in which nothing at all is heard. A busy host may cause that, but then nobody knows what the DUT did: 0.89 s
at most in the same scenarios."""

ROUNDED = 0.001  # seconds: the last answer is one in which the agent answered


def holes(story: Story) -> Iterator[str]:
    """A sentence for the longest hole. Other checks report an agent that was lost and a DUT that died."""
    if bool(story.of(AgentLost)) or bool(story.of(DutDied)) or len(story.readies) != 1:
        return
    answers = sorted(event.at for event in story.of(ClockMapped) if event.at is not None)
    found = [gap for gap in gaps(story) if not slept(story, gap)]
    for gap in (*found, *(end for end in _end(story, answers) if not slept(story, end))):
        often = bisect_left(answers, gap.end) - bisect_right(answers, gap.begin)
        least = max(ANSWERED, INTERVALS * story.interval_between(gap.begin, gap.end))
        if often >= ANSWERS and gap.length > least:
            where = f"{gap.length:.2f} s at {gap.begin:.2f} s"
            yield f"the samples have a hole of {where}, and the agent answered meanwhile"
            return
    longest = max(found, key=lambda gap: gap.length, default=None)
    if longest is None:
        return
    where = f"{longest.length:.2f} s at {longest.begin:.2f} s"
    interval = story.interval_between(longest.begin, longest.end)
    if awake(story, longest.begin, longest.end) > max(LONGEST, INTERVALS * interval):
        yield f"the samples have a hole of {where}"
    elif longest.length > max(SILENT, INTERVALS * interval):
        yield f"nothing was heard of the DUT for {where}"


def _end(story: Story, answers: Sequence[float]) -> Iterator[Span]:
    """The time after the last sample in which the agent answered. In 1,415 healthy scenarios the last answer came 0.1 s
    after it at most."""
    if story.sample_times and answers:
        yield Span(max(story.sample_times), answers[-1] + ROUNDED)
