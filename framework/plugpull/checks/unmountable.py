"""Could the filesystem of a disk that was cut be unmounted?"""

from __future__ import annotations

from plugpull.checks.base import Check, Disks, Judgement, disk_names
from plugpull.checks.evidence import limit, seconds
from plugpull.checks.limits import unmountable as limit_of
from plugpull.checks.starved import awake, excused
from plugpull.errors import Finding
from plugpull.history.events import Acted
from plugpull.history.reader import Story


class Unmountable(Check, frozen=True, tag="unmountable"):
    """The last ``umount`` of each of ``disks`` succeeded, and took at most ``within`` seconds.

    ``None``: the disk's limit in the rig file, or the default of the kind of bench."""

    disks: tuple[str, ...]
    within: float | None = None

    def judge(self, story: Story) -> Judgement:
        findings: list[Finding] = []
        unknowns: list[str] = []
        took: list[tuple[float, float]] = []
        for disk in self.disks:
            tries = [event for event in story.of(Acted) if event.action == "umount" and event.disk == disk]
            if not tries:
                unknowns.append(f"nobody tried to unmount {disk}")
                continue
            last, within = tries[-1], limit_of(story, disk, self.within)
            took.append((last.seconds, within))
            what = f"unmounting {disk} took {seconds(last.seconds)} {limit(within)}"
            ended = 0.0 if last.at is None else last.at
            if not last.ok:
                findings.append(self._finding(disk, f"{disk} could not be unmounted: {last.detail or '?'}", last))
            elif awake(story, ended - last.seconds, ended) > within:
                findings.append(self._finding(disk, what, last))
            elif last.seconds > within and not excused(story, ended - last.seconds, ended, within):
                unknowns.append(f"{what}, but the DUT was starved meanwhile")
        slowest, within = max(took, default=(0.0, 0.0))
        worst = f"unmounted in {seconds(slowest)} {limit(within)}" if took and not findings else ""
        return Judgement(
            findings=tuple(findings),
            unknowns=tuple(unknowns),
            worst=worst,
            subject=", ".join(self.disks),
            measured=slowest if took else None,
            limit=within if took else None,
            unit="s" if took else "",
            smallest=round(max(0.0, within - slowest), 6) if took else None,
        )

    def _finding(self, disk: str, summary: str, event: Acted) -> Finding:
        return Finding(check="unmountable", subject=disk, summary=summary, at=event.at)


def unmountable(disks: Disks, within: float | None = None) -> Unmountable:
    """The filesystem on each of ``disks`` must have been unmounted ``within`` seconds."""
    return Unmountable(disk_names(disks), within)
