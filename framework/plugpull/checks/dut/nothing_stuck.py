"""Whether any process of the run was left on the DUT."""

from __future__ import annotations

from plugpull.checks.base import Check, Judgement
from plugpull.checks.collector import Collector
from plugpull.history.events import (
    FileRoundEnded,
    FileScanEnded,
    LedgerEnded,
    LegReadEnded,
    LoadBegun,
    LoadEnded,
    ProcessStuck,
    ReadBackEnded,
    Residue,
)
from plugpull.history.reader import Story


class NothingStuck(Check, frozen=True, tag="nothing_stuck"):
    """Every load could be ended, and no process of the run is left on the DUT."""

    def judge(self, story: Story) -> Judgement:
        said, stuck = Collector(self), story.of(ProcessStuck)
        for event in stuck:
            what = f"process {event.pid} ({event.command}) could not be ended, state {event.state}"
            said.accuse(event.disk, what, event.at, event.stack)
        known = {event.disk for event in stuck}
        for ended in story.of(LoadEnded):
            if ended.stuck and ended.disk not in known:
                said.accuse(ended.disk, f"the load on {ended.disk} could not be ended", ended.at)
        if said.clean:  # otherwise these are the same processes again
            for left in story.of(Residue):
                if left.processes:
                    what = f"left on the DUT after the loads were ended: {', '.join(left.processes)}"
                    said.accuse("", what, left.at)
        ends: list[LedgerEnded | ReadBackEnded | LegReadEnded | FileRoundEnded | FileScanEnded]
        ends = [*story.of(LedgerEnded), *story.of(ReadBackEnded), *story.of(LegReadEnded)]
        known |= {ended.disk for ended in story.of(LoadEnded) if ended.stuck}
        for over in (*ends, *story.of(FileRoundEnded), *story.of(FileScanEnded)):
            if over.stuck and over.disk not in known:
                said.accuse(over.disk, f"the process of {over.job} could not be ended", over.at)
        for load in story.of(LoadBegun):
            if story.load_end(load) is None:
                said.doubt(f"how the load on {load.disk} ended was not recorded")
        if not story.of(Residue):
            said.doubt("the processes left on the DUT were not recorded")
        return said.judgement("nothing stuck" if said.clean else "")


def nothing_stuck() -> NothingStuck:
    """No process of the run may be left on the DUT."""
    return NothingStuck()
