"""Whether a cut disk was removed from the kernel's list, and how soon.

The time starts when the switch acknowledged the edge, and leaves out time in which the DUT was starved by its host
(``starved.py``). Its error is that of the clocks: within that error of the limit, the result is UNKNOWN.
"""

from __future__ import annotations

from collections.abc import Iterable

from plugpull.checks.accusation import Accusation
from plugpull.checks.base import Check, Disks, Judgement, disk_names
from plugpull.checks.claims import Claim, Evidence
from plugpull.checks.collector import Collector
from plugpull.checks.evidence import (
    away_since,
    by_effect,
    cuts_of,
    gone_by,
    ineffective,
    left_without_record,
    limit,
    mates_of,
    miswired,
    not_executed,
    seconds,
    switched_at,
    victims_of,
)
from plugpull.checks.limits import removed_within
from plugpull.checks.repeats import repeated
from plugpull.checks.starved import awake
from plugpull.checks.victims.let_go import device_kept, driver_kept
from plugpull.checks.victims.reconnected import LONG_ENOUGH, asked_first
from plugpull.checks.victims.unannounced import no_uevent, unspoken
from plugpull.history.cut import Cut
from plugpull.history.events import DiskDetached
from plugpull.history.reader import Story


class Removed(Check, frozen=True, tag="removed"):
    """Each of ``disks`` must be removed at most ``within`` seconds after every cut of it, and before it is restored. A
    cut of less than ``LONG_ENOUGH`` seconds may be over by then, and the kernel may take longer (``reconnected.py``).

    ``disks=None`` means all victims of all cuts apart from ``besides``; ``within=None`` the limit of the disk or of the
    kind of bench (``limits.py``). A disk that stays is a finding only if the cut is known to have had an effect.
    """

    disks: tuple[str, ...] | None
    within: float | None = None
    besides: tuple[str, ...] = ()

    def judge(self, story: Story) -> Judgement:
        disks = victims_of(story, self.besides) if self.disks is None else self.disks
        said = Collector(self, disks)
        if self.disks == ():
            said.doubt("removed was asked about no disk")
        took: dict[float, float] = {}
        proof = ""
        for disk in disks:
            cuts = cuts_of(story, disk)
            if not cuts:
                said.doubt(f"{disk} was never cut, so its removal cannot be judged")
            said.take(*unspoken(story, cuts, disk), *driver_kept(story, disk))
            each: list[float] = []
            for cut in cuts:
                within = self._limit(story, cut, disk)
                verdict = _one(story, cut, disk, within)
                if verdict is not None:
                    said.take(verdict)
                removed_at = cut.times(disk).removed_at
                kept = None if removed_at is None else device_kept(story, cut, disk, removed_at)
                said.take(*(() if kept is None else (kept,)))
                proof = proof or by_effect(cut)
                if removed_at is not None and cut.off.commanded_at is not None:
                    each.append(max(0.0, removed_at - cut.off.commanded_at))
                    took[each[-1]] = within
            if each:
                said.measure(repeated("removed after", disk, each, "s", better="down"))
        slowest = max(took, default=0.0)
        worst = f"gone after {seconds(slowest)} {limit(took[slowest])}{proof and f'; {proof}'}" if took else ""
        return said.judgement("" if self.disks is None and said.unknowns else worst)

    def _limit(self, story: Story, cut: Cut, disk: str) -> float:
        within = removed_within(story, disk, self.within, together=len(mates_of(story, cut)))
        return within + asked_first(story, cut, disk)

    def claims(self, story: Story) -> Iterable[Claim]:
        for disk in victims_of(story, self.besides) if self.disks is None else self.disks:
            for cut in cuts_of(story, disk):
                begin, removed_at = cut.off.commanded_at, cut.times(disk).removed_at
                if begin is not None and removed_at is not None:
                    within = self._limit(story, cut, disk)
                    what = f"{disk} was removed within {within:g} s"
                    sources = (Evidence.UEVENTS, Evidence.CLOCK)
                    yield Claim(what=what, evidence=sources, begin=begin, end=removed_at, disk=disk, limit=within)


def removed(disks: Disks | None, within: float | None = None) -> Removed:
    """Each of ``disks``, or each victim of every cut, must be gone ``within`` seconds after every cut that takes it."""
    return Removed(None if disks is None else disk_names(disks), within)


def _one(story: Story, cut: Cut, disk: str, within: float) -> Accusation | str | None:
    """An accusation, the sentence of a doubt, or None if the disk was removed in time."""
    doubt = not_executed(cut)
    if doubt or cut.off.commanded_at is None:
        return doubt
    begin, removed_at = cut.off.commanded_at, cut.times(disk).removed_at
    if removed_at is not None:
        return _in_time(story, cut, disk, removed_at, within)
    if story.attachment_at(disk, begin - cut.error) is None:
        early = _left_before(story, cut, disk, begin)
        if early is not None:
            left = seconds(begin - early)
            return _accusation(cut, disk, f"{disk} left by itself, {left} before {cut.armed.point} was cut", early)
        return None if away_since(story, cut, disk) else f"{disk} was not there when {cut.armed.point} was cut"
    return _stayed(story, cut, disk, within)


def _left_before(story: Story, cut: Cut, disk: str, begin: float) -> float | None:
    """When a disk left before its cut, DUT seconds, if no other cut explains that."""
    gone = [event.at for event in story.of(DiskDetached) if event.disk == disk and event.at is not None]
    before = [at for at in gone if at < begin - cut.error]
    if not before or cut.off.read_back is None:
        return None
    others = (one for one in cuts_of(story, disk) if one is not cut and one.off.commanded_at is not None)
    if any((one.off.commanded_at or 0.0) - one.error <= before[-1] < begin for one in others):
        return None
    return before[-1]


def _in_time(story: Story, cut: Cut, disk: str, removed_at: float, within: float) -> Accusation | str | None:
    begin = switched_at(story, cut.off) or cut.off.commanded_at or 0.0
    detached = next((event for event in story.of(DiskDetached) if (event.disk, event.at) == (disk, removed_at)), None)
    removed_at = gone_by(story, detached, removed_at)
    took, restored = awake(story, min(begin, removed_at), removed_at), cut.restored_at
    late = f"{disk} was removed {seconds(took)} after {cut.armed.point} was cut"
    if took - cut.error > within:
        return _accusation(cut, disk, f"{late} {limit(within)}", removed_at)
    if restored is not None and removed_at > restored + cut.error and cut.until > restored:
        if awake(story, begin, restored) >= LONG_ENOUGH:
            return _accusation(cut, disk, f"{late}, and only after it was restored", removed_at)
        return None  # it was off for less time than a removal takes, and removed soon enough after the cut
    if took + cut.error > within:
        return f"{late}, with clocks known to {seconds(cut.error)}: too close to the limit of {within:g} s"
    return None


def _stayed(story: Story, cut: Cut, disk: str, within: float) -> Accusation | str:
    """The judgement of a disk that is not on record as removed."""
    begin = switched_at(story, cut.off) or cut.off.commanded_at or 0.0
    deadline = begin + within
    held = min(cut.restored_at or float("inf"), cut.until)
    watched = min(deadline, held)
    if not story.covers(begin, watched):
        return f"whether {disk} was removed is not known: {story.why_not_covered(begin, watched)}"
    contradiction = left_without_record(story, cut, disk)
    if contradiction:
        return no_uevent(story, cut, disk) or contradiction
    if by_effect(cut) and cut.kernel_saw_at is None:
        stayed = f"{disk} stayed and the kernel saw nothing, so whether {cut.armed.point} was cut is not known"
        return f"{stayed} ({by_effect(cut)})"
    wiring = miswired(story)
    if wiring:
        return wiring
    nothing_cut = ineffective(story, cut, disk, watched)
    if nothing_cut:
        return nothing_cut
    # A DUT on a slow host takes longer, so the disk is watched for as long as the record lasts.
    counted = awake(story, begin, max(watched, min(held, story.heard_until or watched)))
    if counted < within - cut.error:
        off = seconds(counted)
        return f"{cut.armed.point} was off for only {off}, too short to say that {disk} must be removed"
    what = f"{disk} was still on the kernel's list {within:g} s after {cut.armed.point} was cut {limit(within)}"
    return _accusation(cut, disk, what, deadline)


def _accusation(cut: Cut, disk: str, what: str, at: float) -> Accusation:
    evidence = (f"{', '.join(cut.off.ports)}: {by_effect(cut)}",) if by_effect(cut) else ()
    return Accusation(subject=disk, summary=what, at=at, evidence=evidence)
