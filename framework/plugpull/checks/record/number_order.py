"""Do the numbers that the kernel and the agent give to the same lines rise together?

The agent numbers its reports as it makes them. It reads the kernel log in the order of its numbers, and uevents in the
order in which the kernel sent them. Of 12,521 reports of healthy benches none had a lower or the same number of the
kernel as the one before. If one has, lines were exchanged, doubled, or changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise

from plugpull.history.events import AgentLost, DutDied, KernelMessage, Uevent
from plugpull.history.story import NOT_THE_AGENT, Story


def numbers_fall(story: Story) -> Iterator[str]:
    """A clause for each of the two if its numbers do not rise with those of the reports."""
    if len(story.readies) != 1 or bool(story.of(AgentLost)) or bool(story.of(DutDied)):
        return
    own = (one for one in story.of(KernelMessage) if one.source not in NOT_THE_AGENT)
    log = ((one.report, one.seq) for one in own if one.report and one.seq >= 0)
    uevents = ((one.report, one.seqnum) for one in story.of(Uevent) if one.report and one.seqnum > 0)
    for what, numbers in (("records of the kernel log", log), ("uevents", uevents)):
        yield from _falls(what, numbers)


def _falls(what: str, numbers: Iterable[tuple[int, int]]) -> Iterator[str]:
    # A report that is there twice has the same two numbers: other checks report it.
    for (_, one), (report, two) in pairwise(sorted(set(numbers))):
        if two <= one:
            yield f"the {what} have the number {two} after {one}, at report {report} of the agent"
            return
