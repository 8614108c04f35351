"""Is nothing of ours left hanging on the DUT?"""

from __future__ import annotations

from plugpull.checks.base import Check, Judgement
from plugpull.finding import Finding
from plugpull.history.events import LoadBegun, LoadEnded, ProcessStuck, Residue
from plugpull.history.reader import Story


class NothingStuck(Check, frozen=True, tag="nothing_stuck"):
    """Every load could be ended, and none of our processes is left on the DUT."""

    def judge(self, story: Story) -> Judgement:
        findings = [self._process(event) for event in story.of(ProcessStuck)]
        known = {event.disk for event in story.of(ProcessStuck)}
        findings += [
            self._finding(event.disk, f"the load on {event.disk} could not be ended", event.at)
            for event in story.of(LoadEnded)
            if event.stuck and event.disk not in known
        ]
        if not findings:  # else it is the same processes once more
            findings += [
                self._finding("", f"left on the DUT after the loads were ended: {', '.join(event.processes)}", event.at)
                for event in story.of(Residue)
                if event.processes
            ]
        unknowns = [
            f"how the load on {load.disk} ended was not recorded"
            for load in story.of(LoadBegun)
            if story.load_end(load) is None
        ]
        if not story.of(Residue):
            unknowns.append("what was left on the DUT was not looked at")
        worst = "" if findings or unknowns else "nothing stuck"
        return Judgement(findings=tuple(findings), unknowns=tuple(unknowns), worst=worst)

    def _process(self, event: ProcessStuck) -> Finding:
        what = f"process {event.pid} ({event.command}) could not be ended, state {event.state}"
        return self._finding(event.disk, what, event.at, event.stack)

    def _finding(self, subject: str, summary: str, at: float | None, evidence: tuple[str, ...] = ()) -> Finding:
        return Finding(check="nothing_stuck", subject=subject, summary=summary, at=at, evidence=evidence)


def nothing_stuck() -> NothingStuck:
    """Nothing of ours may be left on the DUT."""
    return NothingStuck()
