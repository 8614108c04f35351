"""Whether any data is on record as wrong, even if the scenario did not ask about it."""

from __future__ import annotations

from collections.abc import Iterable

from plugpull.checks.base import Check, Judgement, check_name
from plugpull.checks.collector import Collector
from plugpull.checks.data.data_intact import DataIntact, bad_reads
from plugpull.checks.data.nothing_lost import NothingLost
from plugpull.checks.data.opinions import gone_for_good
from plugpull.checks.data.read_twice import read_twice
from plugpull.checks.files.files_kept import FilesKept
from plugpull.checks.record.outside_counts import written_elsewhere
from plugpull.history.events import FileRoundBegun, Judged, LedgerBegun, Verified
from plugpull.history.reader import Story


class DataSound(Check, frozen=True, tag="data_sound"):
    """All data that was read back and compared was right, and so were all scanned files. Neither is required:
    ``data_intact``, ``nothing_lost`` and ``files_kept`` require it, and judge the disks that the scenario names. No
    write went to another disk, by the counts of emulated disks, and what was read twice was the same."""

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
        files = dict.fromkeys(event.disk for event in story.of(FileRoundBegun))
        if filed := _others(story, files, (check_name(FilesKept),)):
            said.take(*FilesKept(filed).judge(story).findings)
        said.take(*written_elsewhere(story), *read_twice(story))
        return said.judgement()


def _others(story: Story, disks: Iterable[str], checks: tuple[str, ...]) -> tuple[str, ...]:
    """The ``disks`` that the scenario did not give to any of these ``checks``."""
    asked: set[str] = set()
    for judged in story.of(Judged):
        for data in judged.checks:
            if data.get("check") in checks:
                about = data.get("disks")
                if about is None:
                    return ()
                asked |= {str(disk) for disk in about}
    return tuple(disk for disk in disks if disk not in asked)
