"""Whether every CPU still schedules at the end. The kernel reports a CPU that a driver never releases only after a
while, and the scenario may be over by then."""

from __future__ import annotations

from plugpull.checks.base import Check, Judgement
from plugpull.checks.collector import Collector
from plugpull.checks.evidence import limit, seconds
from plugpull.checks.starved import awake, starved_within
from plugpull.history.events import GracePeriod
from plugpull.history.story import Story

AWAKE = 15.0
"""Seconds in which the DUT must not have been starved: the kernel itself reports a stall after this time. A slow host
does not explain it: a grace period takes 0.1 s on an emulated DUT."""


LATE = 5.0
"""Seconds within which a grace period ends on a healthy DUT, apart from starved time: 0.46 s in 777 scenarios."""


class CpusAnswer(Check, frozen=True, tag="cpus_answer"):
    """The RCU grace period at the end of the scenario completed, and in time."""

    def judge(self, story: Story) -> Judgement:
        periods = story.of(GracePeriod)
        said = Collector(self, "kernel")
        for period in (period for period in periods if not period.ended):
            end = period.at or 0.0
            begun = end - period.seconds
            what = f"a CPU did not schedule for {seconds(period.seconds)}: no RCU grace period ended"
            if period.seconds - starved_within(story, begun, end) >= AWAKE:
                said.accuse("kernel", what, begun)
            elif period.seconds >= AWAKE:
                said.doubt(f"{what}, but the whole DUT did not run either")
            else:
                said.doubt(f"{what}, and nobody waited for the {seconds(AWAKE)} that it may take")
        for period in (period for period in periods if period.ended):
            end = period.at or 0.0
            if awake(story, end - period.seconds, end) > LATE:
                took = f"{seconds(period.seconds)} {limit(LATE)}"
                what = f"a CPU did not schedule for {took}: an RCU grace period ended late"
                said.accuse("kernel", what, end - period.seconds)
        longest = max((period.seconds for period in periods), default=0.0)
        return said.judgement(f"every CPU schedules (after {seconds(longest)})" if periods and said.clean else "")
