"""Did a disk that was cut come back as itself, and how soon?"""

from __future__ import annotations

from plugpull.checks.base import Check, Disks, Judgement, disk_names
from plugpull.checks.evidence import cuts_of, limit, not_executed, seconds
from plugpull.errors import Finding
from plugpull.history.cuts import Cut, same_identity
from plugpull.history.events import DiskAttached, DiskDetached, Judged
from plugpull.history.reader import Story


class Returned(Check, frozen=True, tag="returned"):
    """After every cut, each of ``disks`` must be announced again at most ``within`` seconds after power was restored.

    It must have its serial number and size, and with ``same_place`` hang where it hung, at a link no slower than
    before. That it never came back accuses it only if the switch confirmed that it is on again and the DUT was heard
    all the while.
    """

    disks: tuple[str, ...]
    within: float = 15.0
    same_place: bool = True

    def judge(self, story: Story) -> Judgement:
        findings: list[Finding] = []
        unknowns: list[str] = []
        took: list[float] = []
        for disk in self.disks:
            cuts = cuts_of(story, disk)
            if not cuts:
                unknowns.append(f"{disk} was never cut, so its return cannot be judged")
            for cut in cuts:
                verdict = self._one(story, cut, disk)
                if isinstance(verdict, str):
                    unknowns.append(verdict)
                else:
                    findings.extend(verdict)
                returned_at = cut.times(disk).returned_at
                if returned_at is not None and cut.restored_at is not None:
                    took.append(max(0.0, returned_at - cut.restored_at))
        worst = f"back after {seconds(max(took))} {limit(self.within)}" if took else ""
        return Judgement(findings=tuple(findings), unknowns=tuple(unknowns), worst=worst, subject=", ".join(self.disks))

    def _one(self, story: Story, cut: Cut, disk: str) -> list[Finding] | str:
        doubt = not_executed(cut)
        if doubt or cut.off.commanded_at is None:
            return doubt or f"{cut.armed.point} was cut at an unknown time"
        was = story.attachment_at(disk, cut.off.commanded_at - cut.error)
        times = cut.times(disk)
        if was is None:
            return f"{disk} was not there when {cut.armed.point} was cut"
        if times.removed_at is None:
            return f"{disk} was never seen gone, so it could not come back"
        own_accord = self._by_itself(story, cut, was, times.removed_at)
        if own_accord:
            return own_accord
        if times.returned_at is not None:
            return self._came_back(story, cut, was, times.returned_at)
        return self._missing(story, cut, was, times.removed_at)

    def _by_itself(self, story: Story, cut: Cut, was: DiskAttached, removed_at: float) -> str:
        """Power that comes back unbidden is the switch's doing. A disk that was moved elsewhere is not meant."""
        restored = float("inf") if cut.on.commanded_at is None else cut.on.commanded_at - cut.error
        for event in story.attachments(was.disk):
            unbidden = event.at is not None and removed_at < event.at < min(restored, cut.until)
            if unbidden and (self.same_place or event.place == was.place):
                return f"{was.disk} came back at {event.at or 0:.2f} s though {cut.armed.point} was still off"
        return ""

    def _came_back(self, story: Story, cut: Cut, was: DiskAttached, returned_at: float) -> list[Finding]:
        findings = []
        now = next(one for one in story.attachments(was.disk) if one.at == returned_at)
        if cut.restored_at is not None and returned_at - cut.restored_at > self.within + cut.error:
            late = seconds(returned_at - cut.restored_at)
            findings.append(
                self._finding(was.disk, f"{was.disk} came back only after {late} {limit(self.within)}", now)
            )
        if self.same_place and now.place != was.place:
            findings.append(self._finding(was.disk, f"{was.disk} came back at {now.place} instead of {was.place}", now))
        elif now.place == was.place and _slower(now, was):
            findings.append(
                self._finding(was.disk, f"{was.disk} came back at {now.speed} Mb/s instead of {was.speed} Mb/s", now)
            )
        gone_at = self._gone_again(story, cut, now)
        if gone_at is not None:
            stayed = seconds(gone_at - returned_at)
            findings.append(self._finding(was.disk, f"{was.disk} came back and was gone again {stayed} later", now))
        return findings

    def _gone_again(self, story: Story, cut: Cut, now: DiskAttached) -> float | None:
        """What leaves after the last judgement was asked for leaves because the bench is taken down."""
        last = max((i for i, event in enumerate(story.events) if isinstance(event, Judged)), default=len(story.events))
        detached = (event for event in story.events[:last] if isinstance(event, DiskDetached))
        gone_at = story.detached_at(now)
        if gone_at is None or gone_at >= cut.until - cut.error:
            return None
        return gone_at if any(event.at == gone_at and event.kname == now.kname for event in detached) else None

    def _missing(self, story: Story, cut: Cut, was: DiskAttached, removed_at: float) -> list[Finding] | str:
        stranger = self._stranger(story, cut, was, removed_at)
        if stranger is not None:
            return [stranger]
        if cut.on.doubt:
            return f"{was.disk} did not come back, but {cut.on.doubt}"
        if cut.on.read_back is None:
            return f"{was.disk} did not come back, but its switch cannot tell whether it is on again"
        begin = cut.on.commanded_at or 0.0
        deadline = begin + self.within
        if cut.until < deadline:
            return f"{was.disk} was cut again before its {self.within:g} s to come back were over"
        if not story.covers(begin, deadline):
            return f"whether {was.disk} came back is not known: {story.why_not_covered(begin, deadline)}"
        what = f"{was.disk} did not come back within {self.within:g} s of {cut.armed.point} being restored"
        return [Finding(check="returned", subject=was.disk, summary=what, at=deadline)]

    def _stranger(self, story: Story, cut: Cut, was: DiskAttached, removed_at: float) -> Finding | None:
        """The disk under another identity: what calls itself by its name, or hangs at its place, and is not it."""
        for now in story.all_attachments:
            if now.at is None or not removed_at <= now.at < cut.until or same_identity(now, was):
                continue
            if now.disk == was.disk or (now.place == was.place and was.place):
                if now.serial != was.serial:
                    what = f"came back with serial {now.serial or '(none)'} instead of {was.serial}"
                else:
                    what = f"came back with {now.size} bytes instead of {was.size}"
                return self._finding(was.disk, f"{was.disk} {what}", now)
        return None

    def _finding(self, disk: str, summary: str, now: DiskAttached) -> Finding:
        evidence = f"{now.kname}: serial {now.serial}, {now.size} bytes, at {now.place}, {now.speed or '?'} Mb/s"
        return Finding(check="returned", subject=disk, summary=summary, at=now.at, evidence=(evidence,))


def _slower(now: DiskAttached, was: DiskAttached) -> bool:
    try:
        return float(now.speed) < float(was.speed)
    except ValueError:
        return False


def returned(disks: Disks, within: float = 15.0, *, same_place: bool = True) -> Returned:
    """Each of ``disks`` must be back, as itself, ``within`` seconds of its power or data being restored."""
    return Returned(disk_names(disks), within, same_place)
