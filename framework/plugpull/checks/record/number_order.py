"""Do the numbers that the kernel and the agent give to the same lines rise together?

The agent numbers its reports as it makes them. It reads the kernel log in the order of its numbers, and uevents in the
order in which the kernel sent them. Of 12,521 reports of healthy benches with Linux 6.1 none had a lower or the same
number of the kernel as the one before. If one has, lines were exchanged, doubled, or changed.

Linux 6.10 and later number a uevent before they take the lock under which they send it (lib/kobject_uevent.c,
kobject_uevent_env), so that two CPUs may send theirs in the other order. On Linux 6.12 with two CPUs, numbers fell in
14 of 146 scenarios, by 5 at most.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import pairwise

from plugpull.history.events import AgentLost, DutDied, KernelMessage, Uevent
from plugpull.history.story import NOT_THE_AGENT, Story

UNORDERED_SINCE = (6, 10)
"""The first version of Linux that may send uevents in another order than that of their numbers."""
OVERTAKEN = 8
"""The most uevents that one of them may overtake there: 5 were seen on two CPUs."""
_VERSION = re.compile(r"(\d+)\.(\d+)")


def overtaken(story: Story) -> int:
    """By how many uevents the kernel may have sent one too late."""
    for ready in story.readies:
        version = _VERSION.match(ready.kernel)
        if version is not None and (int(version[1]), int(version[2])) >= UNORDERED_SINCE:
            return OVERTAKEN
    return 0


def numbers_fall(story: Story) -> Iterator[str]:
    """A clause for each of the two if its numbers do not rise with those of the reports."""
    if len(story.readies) != 1 or bool(story.of(AgentLost)) or bool(story.of(DutDied)):
        return
    own = (one for one in story.of(KernelMessage) if one.source not in NOT_THE_AGENT)
    log = ((one.report, one.seq) for one in own if one.report and one.seq >= 0)
    uevents = ((one.report, one.seqnum) for one in story.of(Uevent) if one.report and one.seqnum > 0)
    yield from _falls("records of the kernel log", log, 0)
    yield from _falls("uevents", uevents, overtaken(story))


def _falls(what: str, numbers: Iterable[tuple[int, int]], by: int) -> Iterator[str]:
    # A report that is there twice has the same two numbers: other checks report it.
    for (_, one), (report, two) in pairwise(sorted(set(numbers))):
        if two == one or two < one - by:
            yield f"the {what} have the number {two} after {one}, at report {report} of the agent"
            return
