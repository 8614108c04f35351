"""Does the record of the DUT fit itself: its CPU time, its suspensions, its shortened timeouts, its rig file?"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from plugpull.checks.limits import bench_kind
from plugpull.checks.record.watched import recorded
from plugpull.history.events import AgentLost, ClockMapped, CutArmed, DutDied, DutReady, DutSuspended, TimersSet
from plugpull.history.story import Story
from plugpull.kernel.diagnosis.sleep import EXIT, slept_unasked
from plugpull.kernel.diagnosis.story_log import log_of

AROUND = 1.0
"""Seconds before and after a suspension in which the kernel logs it."""
STILL = 3.0
"""Seconds after which the count of the DUT's jiffies must have grown: there are 100 a second."""
BESIDE, ACCOUNTED = 0.25, 0.05
"""CPU seconds per second that QEMU's threads use beside those that emulate CPUs: at most 0.14 of 24,669 times. And
seconds by which the host's account may be off."""
SUSPENDED = "PM: suspend"
"""How the kernel's lines about a suspension begin (kernel/power/suspend.c)."""


def dut_doubts(story: Story) -> Iterator[str]:
    """What the record of the DUT says against itself, a sentence each."""
    yield from _ran_less(story)
    yield from _ran_more(story)
    yield from _no_jiffies(story)
    yield from _suspended(story)
    yield from _timers(story)
    sampled = bool(story.sample_times) or bool(story.of(AgentLost)) or bool(story.of(DutDied))
    if not sampled and bench_kind(story) == "virtual" and story.of(CutArmed) and recorded(story, "state"):
        yield "disks were cut, and no sample of any disk is on record"
    if not story.rig and story.of(CutArmed) and recorded(story, "state"):
        yield "disks were cut, and the rig file is not on record"


def _ran_less(story: Story) -> Iterator[str]:
    """CPU time that an emulated DUT had and lost again: whether it was starved is not known."""
    if len(story.of(DutReady)) != 1:
        return
    known = [(event.at or 0.0, event.ran) for event in story.of(ClockMapped) if event.ran is not None]
    for (_, one), (at, two) in pairwise(known):
        if two < one:
            yield f"the CPU time of the DUT fell from {one:.2f} s to {two:.2f} s at {at:.2f} s"
            return


def _ran_more(story: Story) -> Iterator[str]:
    """More CPU time than an emulated DUT can have had from its host, with what QEMU's own threads need."""
    ready = story.of(DutReady)
    if len(ready) != 1 or not ready[0].threads:
        return
    known = [(event.controller, event.ran) for event in story.of(ClockMapped) if event.ran is not None]
    for (begin, one), (end, two) in pairwise(known):
        most = (end - begin) * (ready[0].threads + BESIDE) + ACCOUNTED
        if two - one > most:
            many = f"{two - one:.2f} s of CPU time within {end - begin:.2f} s"
            yield f"the DUT had {many}, and {ready[0].threads} of its host's threads run its CPUs"
            return


def _no_jiffies(story: Story) -> Iterator[str]:
    """The jiffies of an emulated DUT, which are counted as long as it runs (/proc/stat). They never stood still in 44
    scenarios."""
    begin, most = 0.0, -1
    for at, _, total in story.cpu_times if bench_kind(story) == "virtual" else ():
        if total > most:
            begin, most = at, total
        elif at - begin >= STILL:
            yield f"the DUT counted no CPU time from {begin:.2f} s to {at:.2f} s, and was sampled"
            return


def _suspended(story: Story) -> Iterator[str]:
    for event in story.of(DutSuspended):
        begin, end = event.at or 0.0, event.until
        lines = log_of(story).own_between(begin - AROUND, end + AROUND) if event.ok else ()
        if event.ok and not any(SUSPENDED in line.body for line in lines):
            yield f"the DUT was suspended at {begin:.2f} s, and its kernel did not say so"
        woke = [line.at for line in log_of(story).own_between(begin, end + AROUND) if line.body.startswith(EXIT)]
        if event.ok and woke and end > max(woke) + AROUND:
            yield f"the DUT was suspended until {end:.2f} s, and by its kernel it was awake at {max(woke):.2f} s"
        if not event.ok:
            yield f"the DUT was to be suspended at {begin:.2f} s, and was not: {event.detail or '?'}"
    for begin, _ in slept_unasked(story):
        yield f"the kernel says that it was suspended at {begin:.2f} s, and that it was asked to is not on record"


def _timers(story: Story) -> Iterator[str]:
    """An emulated DUT of which no timeout was shortened, nor said why."""
    if bench_kind(story) != "virtual" or bool(story.of(AgentLost)) or bool(story.of(DutDied)):
        return
    for event in story.of(TimersSet):
        if event.moment == "begin" and not event.changed and not event.failed:
            yield "the timeouts of the kernel were not shortened: what it reports later is not on record"
