"""Was a disk that was cut taken off the kernel's list, and how soon?"""

from __future__ import annotations

from plugpull.checks.base import Check, Disks, Judgement, disk_names
from plugpull.checks.evidence import by_effect, cuts_of, ineffective, limit, not_executed, seconds
from plugpull.errors import Finding
from plugpull.history.cuts import Cut
from plugpull.history.reader import Story


class Removed(Check, frozen=True, tag="removed"):
    """Every cut of each of ``disks`` must see it gone at most ``within`` seconds after the commanded edge.

    A disk that stays accuses the kernel only if the cut is known to have cut something.
    """

    disks: tuple[str, ...]
    within: float = 5.0

    def judge(self, story: Story) -> Judgement:
        findings: list[Finding] = []
        unknowns: list[str] = []
        took: list[float] = []
        proof = ""
        for disk in self.disks:
            cuts = cuts_of(story, disk)
            if not cuts:
                unknowns.append(f"{disk} was never cut, so its removal cannot be judged")
            for cut in cuts:
                verdict = self._one(story, cut, disk)
                if isinstance(verdict, Finding):
                    findings.append(verdict)
                elif isinstance(verdict, str):
                    unknowns.append(verdict)
                removed_at = cut.times(disk).removed_at
                proof = proof or by_effect(cut)
                if removed_at is not None and cut.off.commanded_at is not None:
                    took.append(max(0.0, removed_at - cut.off.commanded_at))
        worst = f"gone after {seconds(max(took))} {limit(self.within)}{proof and f'; {proof}'}" if took else ""
        return Judgement(findings=tuple(findings), unknowns=tuple(unknowns), worst=worst, subject=", ".join(self.disks))

    def _one(self, story: Story, cut: Cut, disk: str) -> Finding | str | None:
        doubt = not_executed(cut)
        if doubt or cut.off.commanded_at is None:
            return doubt
        begin, removed_at = cut.off.commanded_at, cut.times(disk).removed_at
        if removed_at is not None:
            if removed_at - begin <= self.within + cut.error:
                return None
            late = f"{disk} was removed {seconds(removed_at - begin)} after {cut.armed.point} was cut"
            return self._finding(cut, disk, late, removed_at)
        if story.attachment_at(disk, begin - cut.error) is None:
            return f"{disk} was not there when {cut.armed.point} was cut"
        deadline = begin + self.within
        watched = min(deadline, cut.restored_at or deadline, cut.until)
        if not story.covers(begin, watched):
            return f"whether {disk} was removed is not known: {story.why_not_covered(begin, watched)}"
        if by_effect(cut) and cut.kernel_saw_at is None:
            stayed = f"{disk} stayed and the kernel saw nothing, so whether {cut.armed.point} was cut is not known"
            return f"{stayed} ({by_effect(cut)})"
        nothing_cut = ineffective(story, cut, disk, watched)
        if nothing_cut:
            return nothing_cut
        if watched < deadline:
            off = seconds(watched - begin)
            return f"{cut.armed.point} was off for only {off}, too short to say that {disk} must be removed"
        stayed = f"{disk} was still on the kernel's list {self.within:g} s after {cut.armed.point} was cut"
        return self._finding(cut, disk, stayed, deadline)

    def _finding(self, cut: Cut, disk: str, what: str, at: float) -> Finding:
        evidence = (f"{', '.join(cut.off.ports)}: {by_effect(cut)}",) if by_effect(cut) else ()
        return Finding(check="removed", subject=disk, summary=f"{what} {limit(self.within)}", at=at, evidence=evidence)


def removed(disks: Disks, within: float = 5.0) -> Removed:
    """Each of ``disks`` must be gone ``within`` seconds of every cut that takes it."""
    return Removed(disk_names(disks), within)
