"""Does every disk answer that was not cut? Requests in flight of which none is completed are a disk that hangs."""

from __future__ import annotations

from collections.abc import Iterator

from plugpull.checks.base import Check, Judgement
from plugpull.checks.collector import Collector
from plugpull.checks.evidence import cuts_of, seconds
from plugpull.checks.evidence import limit as limit_words
from plugpull.checks.limits import bench_kind
from plugpull.checks.starved import awake, granted
from plugpull.history.events import Sampled
from plugpull.history.story import Story

VIRTUAL = 3.0
"""Seconds on an emulated bench. The longest on healthy ones, over 78 scenarios: 0.80 s, for a flush."""
REAL = 20.0
"""Seconds on a real bench: a disk that has gone to sleep needs up to 10 to spin up, and a command is given up after 15
(``dut/agent/timers.py``)."""


class Answered(Check, frozen=True, tag="answered"):
    """A disk that was not cut never has requests in flight and completes none for longer than ``limit`` seconds.
    ``None`` is the default of the bench's kind. The longest single request of a survivor is for ``kept_pace``."""

    limit: float | None = None

    def judge(self, story: Story) -> Judgement:
        limit = self.limit if self.limit is not None else VIRTUAL if bench_kind(story) in ("virtual", "") else REAL
        said = Collector(self)
        longest, accused = 0.0, set[str]()
        for disk, begin, end in _unanswered(story):
            took = awake(story, begin, end) * granted(story, begin, end)
            longest = max(longest, took)
            if took > limit and disk not in accused:
                what = (
                    f"{disk} completed nothing for {seconds(took)} while requests were in flight {limit_words(limit)}"
                )
                said.accuse(disk, what, begin)
                accused.add(disk)
        worst = f"requests answered (within {seconds(longest)}, limit {limit:g} s)" if longest and said.clean else ""
        return said.judgement(worst)


def answered(limit: float | None = None) -> Answered:
    """A disk that was not cut must complete a request every ``limit`` seconds while some are in flight."""
    return Answered(limit)


def _unanswered(story: Story) -> Iterator[tuple[str, float, float]]:
    """(disk, begin, end) of each time in which requests were in flight and none was completed."""
    owners = {(one.kname, one.diskseq): one.disk for one in story.all_attachments if one.disk}
    waiting: dict[tuple[str, int], tuple[float, float, tuple[int, int]]] = {}
    for sample in story.of(Sampled):
        at = sample.at or 0.0
        for kname, counters in sample.disks.items():
            key = (kname, counters.diskseq)
            if key not in owners or _cut(story, owners[key], at):
                waiting.pop(key, None)
                continue
            begin, last, done = waiting.get(key, (at, at, (-1, -1)))
            if done == (counters.reads, counters.writes) and counters.in_flight > 0:
                waiting[key] = (begin, at, done)
                continue
            if last > begin:
                yield owners[key], begin, last
            waiting[key] = (at, at, (counters.reads, counters.writes))
    for key, (begin, last, _) in waiting.items():
        if last > begin:
            yield owners[key], begin, last


def _cut(story: Story, disk: str, at: float) -> bool:
    """Is this disk cut at this time, or on its way back?"""
    for cut in cuts_of(story, disk):
        begin = cut.off.commanded_at
        back = cut.times(disk).returned_at
        if begin is not None and begin - cut.error <= at and (back is None or at <= back):
            return True
    return False
