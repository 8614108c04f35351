"""Whether the kernel of a DUT that kept running stayed healthy between two scenarios."""

from __future__ import annotations

from msgspec.structs import replace

from plugpull.checks.base import Check, Judgement
from plugpull.checks.collector import Collector
from plugpull.checks.dut.kernel_reports import accusation_of
from plugpull.history.events import EarlierMessage, KernelMessage
from plugpull.history.story import Story
from plugpull.kernel.diagnosis.report_groups import report_groups

KERNEL = 0
"""The syslog facility of the kernel itself."""


class KernelBetween(Check, frozen=True, tag="kernel_between"):
    """The kernel logged nothing fatal and no warning between the previous scenario and this one. Messages about disks
    belong to the cuts of the previous scenario, and are not judged."""

    def judge(self, story: Story) -> Judgement:
        said = Collector(self)
        messages = [
            KernelMessage(at=event.at, text=event.text, level=event.level, seq=event.seq)
            for event in story.of(EarlierMessage)
            if event.facility == KERNEL
        ]
        if not messages:
            return said.judgement()
        for group in report_groups(Story(story.begun, tuple(messages), rig=story.rig)):
            report = accusation_of(group)
            said.take(replace(report, summary=f"before this scenario began: {report.summary}"))
        return said.judgement("kernel log clean since the last scenario" if said.clean else "")


def kernel_between() -> KernelBetween:
    """The kernel must have logged nothing fatal since the previous scenario."""
    return KernelBetween()
