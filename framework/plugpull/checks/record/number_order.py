"""Do the numbers that the kernel and the agent give to the same lines rise together?

The agent numbers its reports as it makes them. It reads the kernel log in the order of its numbers, and uevents in the
order in which the kernel sent them. Of 12,521 reports of healthy benches with Linux 6.1 none had a lower or the same
number of the kernel as the one before. If one has, lines were exchanged, doubled, or changed.

Linux 6.10 and later number a uevent before they take the lock under which they send it (lib/kobject_uevent.c,
kobject_uevent_env), so that another CPU, and other tasks when a CPU of the guest has to wait, may send theirs first. On
Linux 6.12 with two CPUs, 207 pairs of uevents in 292 scenarios were exchanged: the later one came up to 0.26 s after
the other, whose number was up to 11 higher. Never was one of a device exchanged with one that has to wait for it: what
is below a device is added once its own addition was announced (drivers/base/core.c, device_add), and nothing of a
device comes after its removal (device_del).
"""

from __future__ import annotations

import re
from bisect import bisect_right, insort
from collections.abc import Iterable, Iterator
from itertools import pairwise

from plugpull.history.events import AgentLost, DutDied, KernelMessage, Uevent
from plugpull.history.story import NOT_THE_AGENT, Story

UNORDERED_SINCE = (6, 10)
"""The first version of Linux that may send uevents in another order than that of their numbers."""
LATE = 2.0
"""Seconds that a uevent may wait there between its number and its sending."""
COUNTED_EARLY = 12
"""The most uevents of other subsystems that may have overtaken one that is on record: 3 at most in 579 scenarios."""
_VERSION = re.compile(r"(\d+)\.(\d+)")


def unordered(story: Story) -> bool:
    """Whether the kernel may send uevents in another order than that of their numbers."""
    versions = [_VERSION.match(ready.kernel) for ready in story.readies]
    return any(one is not None and (int(one[1]), int(one[2])) >= UNORDERED_SINCE for one in versions)


def numbers_fall(story: Story) -> Iterator[str]:
    """A clause for each of the two if its numbers do not rise with those of the reports."""
    if len(story.readies) != 1 or bool(story.of(AgentLost)) or bool(story.of(DutDied)):
        return
    own = (one for one in story.of(KernelMessage) if one.source not in NOT_THE_AGENT)
    log = ((one.report, one.seq) for one in own if one.report and one.seq >= 0)
    yield from _falls("records of the kernel log", log)
    uevents = [one for one in story.of(Uevent) if one.report and one.seqnum > 0]
    if unordered(story):
        yield from _overtaken(uevents)
    else:
        yield from _falls("uevents", ((one.report, one.seqnum) for one in uevents))


def _falls(what: str, numbers: Iterable[tuple[int, int]]) -> Iterator[str]:
    # A report that is there twice has the same two numbers: other checks report it.
    for (_, one), (report, two) in pairwise(sorted(set(numbers))):
        if two <= one:
            yield f"the {what} have the number {two} after {one}, at report {report} of the agent"
            return


def _overtaken(uevents: Iterable[Uevent]) -> Iterator[str]:
    """A uevent that cannot have been overtaken by one of those with higher numbers that were reported before it."""
    sent: list[tuple[int, int, Uevent]] = []
    reports = {(one.report, one.seqnum): one for one in uevents}
    for (report, number), late in sorted(reports.items()):
        for other, _, first in sent[bisect_right(sent, (number - 1, report)) :]:
            waited = (late.at or 0.0) - (first.at or 0.0)
            if other == number or waited > LATE or _in_turn(late, first):
                when = f", {waited:.1f} s later" if waited > LATE else ""
                yield f"the uevents have the number {number} after {other}{when}, at report {report} of the agent"
                return
        insort(sent, (number, report, late))


def _in_turn(one: Uevent, two: Uevent) -> bool:
    """Whether the kernel does not begin with ``two`` before it has sent ``one``, which has the lower number."""
    if one.action == "add" and (two.devpath + "/").startswith(one.devpath + "/"):
        return True
    return two.action == "remove" and one.action != "change" and one.devpath == two.devpath
