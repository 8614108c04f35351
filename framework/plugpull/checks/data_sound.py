"""Is any data on record as wrong, whether or not the scenario asked about it?"""

from __future__ import annotations

from collections.abc import Iterable

from plugpull.checks.base import Check, Judgement, check_name
from plugpull.checks.collector import Collector
from plugpull.checks.data_intact import DataIntact, bad_reads
from plugpull.checks.nothing_lost import NothingLost
from plugpull.checks.opinions import gone_for_good
from plugpull.history.events import Judged, LedgerBegun, Verified
from plugpull.history.reader import Story


class DataSound(Check, frozen=True, tag="data_sound"):
    """What was read back and compared was right. It does not ask for a read-back: a scenario that wants one says so
    with ``data_intact`` or ``nothing_lost``, and the disks that it asked about are left to these."""

    def judge(self, story: Story) -> Judgement:
        compared = dict.fromkeys(event.disk for event in story.of(Verified))
        stamped = dict.fromkeys(event.disk for event in story.of(LedgerBegun))
        said, intact = Collector(self), check_name(DataIntact)
        for disk in _others(story, compared, (intact,)):
            said.take(*(bad.by(intact) for bad in bad_reads(story, disk)))
        gone = gone_for_good(story)
        others = [d for d in _others(story, stamped, (intact, check_name(NothingLost))) if d not in gone]
        if others:
            said.take(*NothingLost(tuple(others)).judge(story).findings)
        return said.judgement()


def _others(story: Story, disks: Iterable[str], checks: tuple[str, ...]) -> tuple[str, ...]:
    """Those of ``disks`` that the scenario asked none of these ``checks`` about."""
    asked: set[str] = set()
    for judged in story.of(Judged):
        for data in judged.checks:
            if data.get("check") in checks:
                about = data.get("disks")
                if about is None:
                    return ()
                asked |= {str(disk) for disk in about}
    return tuple(disk for disk in disks if disk not in asked)
