"""Is the DUT still the one it was: the same kernel, the same boot?"""

from __future__ import annotations

from itertools import pairwise

from plugpull.checks.base import Judgement
from plugpull.checks.kernel_state import tainted_between
from plugpull.finding import Finding
from plugpull.history.events import AgentLost, DutDied, DutReady
from plugpull.history.reader import Story


def same_dut(story: Story, earlier: Story | None = None) -> Judgement:
    """Compare each ``DutReady`` of a scenario with the one before it, in this scenario or in the ``earlier`` one.

    A DUT that has another boot id without its death being on record restarted on its own: that is a finding. An
    emulated one that has another than in the scenario before is not the guest that was snapshotted, and one whose
    kernel is another is not the DUT that was to be tested: both are UNKNOWN.
    """
    if not _readies(story) and not any(isinstance(event, DutReady) for event in story.before):
        return Judgement(unknowns=("which kernel the DUT ran is not on record",))
    before = _readies(earlier)[-1:] if earlier is not None else ()
    died = any(one.of(DutDied) or one.of(AgentLost) for one in (earlier, story) if one is not None)
    findings: list[Finding] = list(tainted_between(earlier, story))
    unknowns: list[str] = []
    for was, now in pairwise((*before, *_readies(story))):
        if was.kernel != now.kernel:
            unknowns.append(f"the DUT runs kernel {now.kernel}, and ran {was.kernel} before")
        elif was.boot_id and now.boot_id and was.boot_id != now.boot_id and not died:
            if now.kind == "virtual" and was in before:
                unknowns.append(f"the guest is of another boot ({now.boot_id}) than before ({was.boot_id})")
            else:
                evidence = (f"boot id {was.boot_id} before", f"boot id {now.boot_id} now")
                what = "the DUT restarted on its own"
                findings.append(
                    Finding(check="kernel_clean", subject="kernel", summary=what, at=now.at, evidence=evidence)
                )
    return Judgement(findings=tuple(findings), unknowns=tuple(unknowns))


def _readies(story: Story | None) -> tuple[DutReady, ...]:
    return story.of(DutReady) if story is not None else ()
