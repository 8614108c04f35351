"""Does each witness of one scenario tell a story that can be true: times in order, counts that can be counts?

The agent reads samples and the kernel log one after the other, so what is on record later happened later. Where it did
not, lines of another record are among these, or clocks were set.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from plugpull.history.events import AgentLost, DutDied, DutReady, KernelMessage, Sampled
from plugpull.history.story import Story

BACK = 2.0
"""Seconds by which the record may go back: threads of the agent stamp what they read before they hand it on."""
STAMPS_BACK = 1.0
"""Seconds by which a kernel message may be stamped before the one it follows: CPUs' clocks differ by microseconds, and
their offset to CLOCK_MONOTONIC is measured once."""
STAMPED = 1.0
"""Seconds within which the kernel log has to be stamped: what a cut explains is told by the time."""


def disorder(story: Story) -> Iterator[str]:
    """What of this record cannot be, a clause each."""
    yield from _samples(story)
    yield from _log(story)
    yield from _negative(story)
    yield from _restarts(story)
    yield from _serials(story)


def _samples(story: Story) -> Iterator[str]:
    times = [event.at for event in story.of(Sampled) if event.at is not None]
    back = next((two for one, two in pairwise(times) if two < one - BACK), None)
    if back is not None:
        yield f"samples go back in time, to {back:.2f} s"


def _log(story: Story) -> Iterator[str]:
    """The kernel numbers its messages in the order in which it logs them."""
    known = [event for event in story.of(KernelMessage) if event.seq >= 0 and event.at is not None]
    for one, two in pairwise(sorted(known, key=lambda event: event.seq)):
        if (two.at or 0.0) < (one.at or 0.0) - STAMPS_BACK and two.source == one.source:
            yield f"the kernel log goes back in time, from {one.at or 0.0:.2f} s to {two.at or 0.0:.2f} s"
            break
    readies = [event for event in (*story.before, *story.events) if isinstance(event, DutReady)]
    error = max((event.log_clock_error or 0.0 for event in readies), default=0.0)
    if error > STAMPED:
        yield f"the kernel log is stamped by a clock that is known to {error:.2f} s only"


def _negative(story: Story) -> Iterator[str]:
    for event in story.of(Sampled):
        kname = next((kname for kname, counters in event.disks.items() if min(counters) < 0), None)
        if kname is not None:
            yield f"a counter of {kname} is negative at {event.at or 0.0:.2f} s"
            return


def _restarts(story: Story) -> Iterator[str]:
    """A DUT that is booted in the middle of a scenario was restarted by somebody."""
    ready = False
    for event in story.events:
        if isinstance(event, AgentLost | DutDied):
            ready = False
        elif isinstance(event, DutReady):
            if ready and event.how == "booted":
                yield f"the DUT was booted at {event.at or 0.0:.2f} s, in the middle of the scenario"
            ready = True


def _serials(story: Story) -> Iterator[str]:
    """A disk of the rig is found by its serial number, so it cannot be announced with another than the rig file's."""
    for disk in story.rig.get("disk", ()):
        name, serial = str(disk.get("name")), disk.get("serial")
        first = next(iter(story.attachments(name)), None)
        if first is not None and serial and first.serial and first.serial != serial:
            yield f"{name} was announced with serial {first.serial}, and the rig file says {serial}"
