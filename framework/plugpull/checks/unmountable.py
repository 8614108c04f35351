"""Could the filesystem of a disk that was cut be unmounted?"""

from __future__ import annotations

from plugpull.checks.base import Check, Disks, Judgement, disk_names
from plugpull.checks.evidence import limit, seconds
from plugpull.errors import Finding
from plugpull.history.events import Acted
from plugpull.history.reader import Story


class Unmountable(Check, frozen=True, tag="unmountable"):
    """The last ``umount`` of each of ``disks`` succeeded, and took at most ``within`` seconds."""

    disks: tuple[str, ...]
    within: float = 30.0

    def judge(self, story: Story) -> Judgement:
        findings: list[Finding] = []
        unknowns: list[str] = []
        took: list[float] = []
        for disk in self.disks:
            tries = [event for event in story.of(Acted) if event.action == "umount" and event.disk == disk]
            if not tries:
                unknowns.append(f"nobody tried to unmount {disk}")
                continue
            last = tries[-1]
            took.append(last.seconds)
            if not last.ok:
                findings.append(self._finding(disk, f"{disk} could not be unmounted: {last.detail or '?'}", last))
            elif last.seconds > self.within:
                what = f"unmounting {disk} took {seconds(last.seconds)} {limit(self.within)}"
                findings.append(self._finding(disk, what, last))
        worst = f"unmounted in {seconds(max(took))} {limit(self.within)}" if took and not findings else ""
        return Judgement(findings=tuple(findings), unknowns=tuple(unknowns), worst=worst, subject=", ".join(self.disks))

    def _finding(self, disk: str, summary: str, event: Acted) -> Finding:
        return Finding(check="unmountable", subject=disk, summary=summary, at=event.at)


def unmountable(disks: Disks, within: float = 30.0) -> Unmountable:
    """The filesystem on each of ``disks`` must have been unmounted ``within`` seconds."""
    return Unmountable(disk_names(disks), within)
