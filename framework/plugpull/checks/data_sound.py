"""Is any data on record as wrong, whether or not the scenario asked about it?"""

from __future__ import annotations

from plugpull.checks.base import Check, Judgement
from plugpull.checks.data_intact import DataIntact
from plugpull.checks.nothing_lost import NothingLost
from plugpull.errors import Finding
from plugpull.history.reader import Story


class DataSound(Check, frozen=True, tag="data_sound"):
    """What was read back and compared was right. It does not ask for a read-back: a scenario that wants one says so
    with ``data_intact`` or ``nothing_lost``, and those of them that it asked for (``besides``) are left to it."""

    besides: tuple[str, ...] = ()

    def judge(self, story: Story) -> Judgement:
        findings: list[Finding] = []
        for name, check in (("data_intact", DataIntact(None)), ("nothing_lost", NothingLost(None))):
            if name not in self.besides:
                findings += check.judge(story).findings
        return Judgement(findings=tuple(findings))
