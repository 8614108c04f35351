"""Time in which an emulated DUT answered its controller late although its samples were on time.

The host may keep one processor of a guest waiting and run the others. Then a disk whose interrupts that processor
handles completes nothing, while the sampler runs on another one and sees it. Seen once in 679 healthy scenarios: one of
eight disks stood still for 0.80 s, and the exchange of clocks in that time took 0.44 s, with 0.52 CPU seconds per
second from the host.
"""

from __future__ import annotations

from plugpull.checks.limits import bench_kind
from plugpull.checks.starved import BUSY, host_rate
from plugpull.history.events import ClockMapped
from plugpull.history.story import Story

LATE_ANSWER = 0.2
"""Seconds for the round trip of an exchange of clocks that is late: 164 of 13,073 on busy hosts took as long."""


def answered_late(story: Story, begin: float, end: float) -> float:
    """Seconds of [begin, end] in which an emulated DUT may have owed its controller an answer: round trips of at least
    ``LATE_ANSWER`` that reach into that time. 0 where the host ran the DUT at full speed: then it is the DUT's doing.
    """
    if bench_kind(story) != "virtual":
        return 0.0
    late = 0.0
    for one in story.of(ClockMapped):
        took, at = 2 * one.error, one.at
        if at is not None and took >= LATE_ANSWER:
            # The DUT read its clock at some time of the round trip, so it began and ended within ``took`` of that.
            late += max(0.0, min(took, at + took - begin, end - (at - took)))
    if not late or (host_rate(story, begin, end) or 0.0) >= BUSY:
        return 0.0
    return min(late, end - begin)
