"""Does every CPU still schedule at the end? One that a driver never lets go of is reported by the kernel only after a
while, and a scenario may be over before that."""

from __future__ import annotations

from plugpull.checks.base import Check, Judgement
from plugpull.checks.collector import Collector
from plugpull.checks.evidence import seconds
from plugpull.checks.starved import starved_within
from plugpull.history.events import GracePeriod
from plugpull.history.story import Story

AWAKE = 15.0
"""Seconds in which the DUT must not have been starved: after as many the kernel itself reports a stall. A slow host is
no excuse: a grace period takes 0.1 s on an emulated DUT."""


class CpusAnswer(Check, frozen=True, tag="cpus_answer"):
    """The RCU grace period that was waited for at the end of the scenario came to its end."""

    def judge(self, story: Story) -> Judgement:
        periods = story.of(GracePeriod)
        said = Collector(self, "kernel")
        for period in (period for period in periods if not period.ended):
            end = period.at or 0.0
            begun = end - period.seconds
            what = f"a CPU did not schedule for {seconds(period.seconds)}: no RCU grace period ended"
            if period.seconds - starved_within(story, begun, end) >= AWAKE:
                said.accuse("kernel", what, begun)
            else:
                said.doubt(f"{what}, but nor did the whole DUT run")
        longest = max((period.seconds for period in periods), default=0.0)
        return said.judgement(f"every CPU schedules (after {seconds(longest)})" if periods and said.clean else "")
