"""Whether the DUT has the same kernel and the same boot as before."""

from __future__ import annotations

from itertools import pairwise

from plugpull.checks.base import Judgement, check_name
from plugpull.checks.collector import Collector
from plugpull.checks.dut.kernel_clean import KernelClean
from plugpull.checks.dut.kernel_state import StateKept, tainted_between
from plugpull.history.events import AgentLost, ClockMapped, DutDied, DutReady
from plugpull.history.reader import Story


def same_dut(story: Story, earlier: Story | None = None) -> Judgement:
    """Compare each ``DutReady`` of a scenario with the one before it, in this scenario or in the ``earlier`` one.

    Another boot id without a death on record is a finding: the DUT restarted on its own. An emulated DUT with another
    boot id than in the previous scenario is not the snapshotted guest, and another kernel is not the one to be tested:
    both are UNKNOWN.
    """
    said = Collector(KernelClean)
    if not _readies(story) and not any(isinstance(event, DutReady) for event in story.before):
        said.doubt("which kernel the DUT ran is not on record")
        return said.judgement()
    if earlier is not None and _clocks(earlier) & _clocks(story):
        said.doubt("the record of this scenario has comparisons of the clocks that the scenario before it has")
    before = _readies(earlier)[-1:] if earlier is not None else ()
    died = any(one.of(DutDied) or one.of(AgentLost) for one in (earlier, story) if one is not None)
    said.take(*(taint.by(check_name(StateKept)) for taint in tainted_between(earlier, story)))
    for was, now in pairwise((*before, *_readies(story))):
        if was.kernel != now.kernel:
            said.doubt(f"the DUT runs kernel {now.kernel}, and ran {was.kernel} before")
        elif was.boot_id and now.boot_id and was.boot_id != now.boot_id and not died:
            if now.kind == "virtual" and was in before:
                said.doubt(f"the guest is of another boot ({now.boot_id}) than before ({was.boot_id})")
            else:
                evidence = (f"boot id {was.boot_id} before", f"boot id {now.boot_id} now")
                said.accuse("kernel", "the DUT restarted on its own", now.at, evidence)
    return said.judgement()


def _clocks(story: Story) -> set[tuple[float | None, float]]:
    """When clocks were compared, by both. The controller's clock never has one time twice."""
    return {(event.at, event.controller) for event in story.of(ClockMapped)}


def _readies(story: Story | None) -> tuple[DutReady, ...]:
    return story.of(DutReady) if story is not None else ()
