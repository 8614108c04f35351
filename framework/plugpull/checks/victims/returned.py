"""Whether a cut disk came back with the same identity, and how soon.

The time starts when the switch acknowledged that it is on, and leaves out time in which the DUT was starved by its host
(``starved.py``). Its error is that of the clocks: within that error of the limit, the result is UNKNOWN.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from plugpull.checks.accusation import Accusation
from plugpull.checks.base import Check, Disks, Judgement, disk_names
from plugpull.checks.claims import Claim, Evidence
from plugpull.checks.collector import Collector
from plugpull.checks.data.power import Power, power_in
from plugpull.checks.evidence import (
    away_since,
    cuts_of,
    here_by,
    limit,
    mates_of,
    miswired,
    not_executed,
    seconds,
    switched_at,
    unbidden,
    victims_of,
)
from plugpull.checks.limits import bench_kind, returned_within
from plugpull.checks.repeats import repeated
from plugpull.checks.starved import awake
from plugpull.checks.victims.link_speed import fallen_back
from plugpull.checks.victims.missed_contacts import missed_contacts
from plugpull.checks.victims.moves import moved_back, moved_between
from plugpull.checks.victims.probing import slow_probe
from plugpull.checks.victims.properties import UNBOUND
from plugpull.checks.victims.read_rate import slow_reads
from plugpull.checks.victims.reconnected import asked_first
from plugpull.checks.victims.renamed import PROBING, renamed
from plugpull.checks.victims.return_errors import came_in_trouble
from plugpull.finding import Finding
from plugpull.history.attachments import same_identity, same_socket
from plugpull.history.cut import Cut
from plugpull.history.events import (
    DiskAttached,
    DiskDetached,
    DiskMoved,
    Judged,
    Phase,
)
from plugpull.history.reader import Story
from plugpull.judging.results import Conclusion

UNITS_APART = 1.0
"""Seconds between the announcements of two units of an emulated device; 0.06 s in 4 of 4 returns."""

NEEDS_POWER_CYCLE = "it needs a power cycle"
"""In the summary of a finding on a disk that came back only after its power was cycled."""

LATE = "came back only after"
"""In the summary of a finding on a disk that was not back in time."""


class Returned(Check, frozen=True, tag="returned"):
    """After every cut, each of ``disks`` must be announced again at most ``within`` seconds after it was restored.

    It must have the same serial number, size and driver; with ``same_place`` also the same place and a link that is not
    slower. ``disks=None`` means all victims of restored cuts apart from ``besides``; ``within=None`` the limit of the
    disk or of the kind of bench (``limits.py``). A disk that does not come back is a finding only if the switch
    confirmed that it is on and the agent was heard all the time.
    """

    disks: tuple[str, ...] | None
    within: float | None = None
    same_place: bool = True
    besides: tuple[str, ...] = ()

    def judge(self, story: Story) -> Judgement:
        said = Collector(self, (disk for disk, _ in self._cuts(story)))
        if self.disks == ():
            said.doubt("returned was asked about no disk")
        took: dict[float, float] = {}
        for disk, cuts in self._cuts(story):
            if not cuts:
                said.doubt(f"{disk} was never cut, so its return cannot be judged")
            each: list[float] = []
            for cut in cuts:
                found, doubts = self._one(story, cut, disk)
                said.take(*found, *doubts)
                returned_at = cut.times(disk).returned_at
                if returned_at is not None and cut.restored_at is not None:
                    each.append(max(0.0, returned_at - cut.restored_at))
                    took[each[-1]] = self._limit(story, cut, disk)
            if each:
                said.measure(repeated("returned after", disk, each, "s", better="down"))
            said.take(*(fallen_back(story, disk, cuts) if self.same_place else ()), *slow_reads(story, disk))
        for finding in said.findings:
            if NEEDS_POWER_CYCLE in finding.summary:
                said.conclude(_needs_power_cycle(finding))
        slowest = max(took, default=0.0)
        return said.judgement(f"back after {seconds(slowest)} {limit(took[slowest])}" if took else "")

    def claims(self, story: Story) -> Iterable[Claim]:
        for disk, cuts in self._cuts(story):
            for cut in cuts:
                begin, returned_at = cut.on.commanded_at, cut.times(disk).returned_at
                if begin is not None and returned_at is not None:
                    within = self._limit(story, cut, disk)
                    what = f"{disk} came back within {within:g} s"
                    sources = (Evidence.UEVENTS, Evidence.CLOCK)
                    yield Claim(what=what, evidence=sources, begin=begin, end=returned_at, disk=disk, limit=within)

    def _cuts(self, story: Story) -> list[tuple[str, tuple[Cut, ...]]]:
        """Each judged disk with its cuts. The standing check leaves out permanent cuts, also those that were restored
        on the way out."""
        if self.disks is not None:
            return [(disk, cuts_of(story, disk)) for disk in self.disks]
        restored = {
            disk: tuple(cut for cut in cuts_of(story, disk) if cut.on.commanded and not cut.armed.permanent)
            for disk in victims_of(story, self.besides)
        }
        return [(disk, cuts) for disk, cuts in restored.items() if cuts]

    def _limit(self, story: Story, cut: Cut, disk: str) -> float:
        together, mechanisms = len(mates_of(story, cut)), {one.armed.mechanism for one in (cut, *cut.joined)}
        limits = (returned_within(story, disk, self.within, mechanism=one, together=together) for one in mechanisms)
        return max(limits) + asked_first(story, cut, disk)

    def _one(self, story: Story, cut: Cut, disk: str) -> tuple[list[Accusation], list[str]]:
        doubt = not_executed(cut)
        if doubt or cut.off.commanded_at is None:
            return [], [doubt or f"{cut.armed.point} was cut at an unknown time"]
        was = story.attachment_at(disk, cut.off.commanded_at - cut.error)
        times = cut.times(disk)
        if was is None:
            away = away_since(story, cut, disk)
            return [], [] if away is not None else [f"{disk} was not there when {cut.armed.point} was cut"]
        if times.removed_at is None:
            return [], [miswired(story) or f"{disk} was never seen gone, so it could not come back"]
        own_accord = unbidden(story, cut, disk)
        if own_accord:
            return [], [own_accord]
        if times.returned_at is None:
            missing = self._missing(story, cut, was, times.removed_at)
            return ([], [missing]) if isinstance(missing, str) else (missing, [])
        now = next(one for one in story.attachments(disk) if one.at == times.returned_at)
        late = self._late(story, cut, now)
        findings = [late] if isinstance(late, Accusation) else []
        findings += missed_contacts(story, cut, disk, self._limit(story, cut, disk))
        findings += self._changed(story, cut, was, now)
        findings += _odd(story, cut, was, now, times.removed_at)
        slow = slow_probe(story, cut, now) if moved_between(story, was, now) is None else None
        findings += [slow] if slow is not None else []
        findings += _units(story, cut, was, now)
        doubts = [late] if isinstance(late, str) else []
        doubts += filter(None, (moved_back(story, was, now),))
        for trouble in came_in_trouble(story, cut, now):
            (findings if isinstance(trouble, Accusation) else doubts).append(trouble)  # type: ignore[arg-type]
        return findings, doubts

    def _late(self, story: Story, cut: Cut, now: DiskAttached) -> Accusation | str | None:
        """An accusation, the sentence of a doubt, or None if the disk came back in time."""
        within = self._limit(story, cut, now.disk)
        begin = switched_at(story, cut.on)
        if cut.on.doubt or begin is None:
            return f"how soon {now.disk} came back is not known: {cut.on.doubt or 'its switch did not acknowledge on'}"
        returned_at = here_by(story, now)
        took = awake(story, min(begin, returned_at), returned_at)
        if took - cut.error > within:
            late = f"{now.disk} {LATE} {seconds(took)} {limit(within)}"
            if cut.on.read_back is None:
                return f"{late}, but its switch does not report since when it is on again"
            return _accusation(now.disk, late, now)
        if took + cut.error > within:
            clocks = f"with clocks known to {seconds(cut.error)}: too close to the limit of {within:g} s"
            return f"{now.disk} came back after {seconds(took)}, {clocks}"
        return None

    def _changed(self, story: Story, cut: Cut, was: DiskAttached, now: DiskAttached) -> Iterator[Accusation]:
        disk = was.disk
        moved = moved_between(story, was, now)
        here = same_socket(now, was) or bool(moved_back(story, was, now)) if moved is None else now.place == moved.place
        if self.same_place and not here and was.place and now.place:
            before = was.place if moved is None else moved.place
            places = (now.place, before) if now.place != before else (now.sockets[0], was.sockets[0])
            yield _accusation(disk, f"{disk} came back at {places[0]} instead of {places[1]}", now)
        known = was.driver and now.driver and UNBOUND not in (was.driver, now.driver)
        if known and now.driver != was.driver and here:
            yield _accusation(disk, f"{disk} came back on {now.driver} instead of {was.driver}", now)
        if was.model and now.model and now.model != was.model:
            yield _accusation(disk, f"{disk} came back as {now.model} instead of {was.model}", now)
        if was.scsi_type != now.scsi_type and now.diskseq:
            what = f"{disk} came back as SCSI type {now.scsi_type} instead of {was.scsi_type}"
            yield _accusation(disk, what, now)
        gone_at = self._gone_again(story, cut, now)
        if gone_at is not None:
            stayed = seconds(gone_at - (now.at or 0.0))
            yield _accusation(disk, f"{disk} came back and was gone again {stayed} later", now)

    def _gone_again(self, story: Story, cut: Cut, now: DiskAttached) -> float | None:
        """When the disk left again, DUT seconds, or None. At the end of a scenario it leaves with the bench."""
        gone_at = story.detached_at(now)
        if gone_at is None or gone_at >= cut.until - cut.error or _in_doubt(story, cut, now):
            return None
        return gone_at if (gone_at, now.kname) in story.once(_detached_before_the_end) else None

    def _missing(self, story: Story, cut: Cut, was: DiskAttached, removed_at: float) -> list[Accusation] | str:
        stranger = _stranger(story, cut, was, removed_at)
        if stranger is not None:
            return [stranger]
        if cut.on.doubt:
            return f"{was.disk} did not come back, but {cut.on.doubt}"
        if cut.on.read_back is None:
            return f"{was.disk} did not come back, but its switch does not report whether it is on again"
        within = self._limit(story, cut, was.disk)
        begin = switched_at(story, cut.on) or 0.0
        deadline = begin + within
        end = min(cut.until, story.heard_until or begin)
        if not story.covers(begin, min(deadline, end)):
            return f"whether {was.disk} came back is not known: {story.why_not_covered(begin, deadline)}"
        if awake(story, begin, end) < within:
            if cut.until < deadline:
                return f"{was.disk} was cut again within the {within:g} s that it has to come back"
            why = story.why_not_covered(begin, deadline) if end < deadline else "the DUT was starved by its host"
            return f"whether {was.disk} came back is not known: {why}"
        what = f"{was.disk} did not come back within {within:g} s of {cut.restored_point} being restored"
        return [Accusation(subject=was.disk, summary=what + _revived(story, cut, was), at=deadline)]


def _detached_before_the_end(story: Story) -> frozenset[tuple[float | None, str]]:
    """(time, kernel name) of each disk that was detached before the bench was shut down."""
    ends = [
        position
        for position, event in enumerate(story.others)
        if isinstance(event, Judged) or (isinstance(event, Phase) and event.name == "heal")
    ]
    before = story.others[: max(ends, default=None)]
    return frozenset((event.at, event.kname) for event in before if isinstance(event, DiskDetached))


def returned(disks: Disks | None, within: float | None = None, *, same_place: bool = True) -> Returned:
    """Each of ``disks``, or each victim of every restored cut, must be back with the same identity ``within`` seconds
    after its power or data was restored."""
    return Returned(None if disks is None else disk_names(disks), within, same_place)


def _needs_power_cycle(finding: Finding) -> Conclusion:
    return Conclusion(
        kind="needs-power-cycle",
        subject=finding.subject,
        text=f"{finding.subject} needs a power cycle to come back: its cable alone does not bring it back.",
        evidence=(finding.summary, *finding.evidence),
    )


def _revived(story: Story, cut: Cut, was: DiskAttached) -> str:
    """A clause if the disk came back only after its power was cycled in a later cut; otherwise empty."""
    for later in story.cuts_of(was.disk):
        if later.armed.cut <= cut.armed.cut or power_in(story, later, was.disk) is not Power.LOST:
            continue
        on = later.on.commanded_at
        again = (one for one in story.attachments(was.disk) if on is not None and (one.at or 0.0) >= on - later.error)
        back = next((one for one in again if same_identity(one, was)), None)
        if on is not None and back is not None:
            took = seconds(max(0.0, (back.at or 0.0) - on))
            return f"; {NEEDS_POWER_CYCLE}: it was back {took} after {later.armed.point} was restored"
    return ""


def _stranger(story: Story, cut: Cut, was: DiskAttached, removed_at: float) -> Accusation | None:
    """The disk with another identity: an attachment with its name or at its place that is not the same disk."""
    for now in story.all_attachments:
        if now.at is None or not removed_at <= now.at < cut.until or same_identity(now, was):
            continue
        if _left_unread(story, was, now):
            continue
        if now.disk and now.disk != was.disk and any(one.disk == now.disk for one in story.of(DiskMoved)):
            continue  # it was plugged in there on purpose
        if now.disk == was.disk or (now.place == was.place and was.place):
            return _accusation(was.disk, _another(was, now), now)
    return None


def _left_unread(story: Story, was: DiskAttached, now: DiskAttached) -> bool:
    """Whether the disk left while the agent read its sysfs: then it has no diskseq, and what is empty was not read."""
    unread = not now.diskseq and story.number_of(now) != 0
    return unread and now.serial in ("", was.serial) and now.size in (0, was.size)


def _another(was: DiskAttached, now: DiskAttached) -> str:
    if now.serial != was.serial:
        return f"{was.disk} came back with serial {now.serial or '(none)'} instead of {was.serial}"
    return f"{was.disk} came back with {now.size} bytes instead of {was.size}"


def _odd(story: Story, cut: Cut, was: DiskAttached, now: DiskAttached, removed_at: float) -> Iterator[Accusation]:
    """Other faults of a return: announced with another identity first, attached twice, or with another name."""
    for other in story.all_attachments:
        if other is now or other is was or other.at is None or not removed_at <= other.at < cut.until:
            continue
        if other.disk not in ("", was.disk) or (not other.disk and other.place != was.place):
            continue
        if _left_unread(story, was, other):
            if cut.on.commanded_at is None or other.at >= cut.on.commanded_at - cut.error:
                yield _accusation(was.disk, f"{was.disk} came back and was gone again before it was read", other)
        elif not same_identity(other, was):
            yield _accusation(was.disk, f"{_another(was, other)} at first", other)
        elif other.at >= (now.at or 0.0) and _together(story, now, other):
            yield _accusation(was.disk, f"{was.disk} is attached twice, as {now.kname} and {other.kname}", other)
    if renamed(story, was, now):
        yield _accusation(
            was.disk, f"{was.disk} came back as {now.kname} although nothing held its name {was.kname}", now
        )


def _in_doubt(story: Story, cut: Cut, now: DiskAttached) -> bool:
    """Whether the disk may have left with a later cut whose time is not known."""
    later = (one for one in cuts_of(story, now.disk) if one.armed.cut > cut.armed.cut)
    return any(one.off.commanded_at is None or bool(one.off.doubt) for one in later)


def _units(story: Story, cut: Cut, was: DiskAttached, now: DiskAttached) -> Iterator[Accusation]:
    """Logical units of the disk's enclosure that were not there before, or are not there any more."""
    if moved_between(story, was, now) is not None:
        return
    begin, back = cut.off.commanded_at or 0.0, now.at or 0.0
    device = was.place.rpartition(":")[0]
    known = [one for one in story.all_attachments if one.place.rpartition(":")[0] == device and not one.disk]
    before = {one.place: one for one in known if (one.at or 0.0) < begin and _stayed(story, one, begin - cut.error)}
    after = [one for one in known if back - PROBING <= (one.at or 0.0) < cut.until and (one.at or 0.0) > begin]
    earlier = {one.place for one in known if (one.at or 0.0) < begin}
    for one in after:
        if device and one.place not in earlier:
            what = f"{was.disk} came back with another unit, {one.kname} at {one.place}, which was not there before"
            yield _accusation(was.disk, what, one)
    probing = UNITS_APART if bench_kind(story) in ("virtual", "") else PROBING
    seen = min(back + probing, cut.until)
    end = min(cut.until, story.heard_until or back)
    if not story.covers(back, seen) or awake(story, back, end) < probing:
        return
    for place, one in before.items():
        if device and place not in {other.place for other in after}:
            what = f"{was.disk} came back without its other unit, {one.kname} at {place}"
            yield _accusation(was.disk, what, now)


def _stayed(story: Story, one: DiskAttached, at: float) -> bool:
    gone = story.detached_at(one)
    return gone is None or gone > at


def _together(story: Story, one: DiskAttached, two: DiskAttached) -> bool:
    gone = story.detached_at(one)
    return (one.kname, one.diskseq) != (two.kname, two.diskseq) and (gone is None or gone > (two.at or 0.0))


def _accusation(disk: str, summary: str, now: DiskAttached) -> Accusation:
    evidence = f"{now.kname}: serial {now.serial}, {now.size} bytes, at {now.place}, {now.speed or '?'} Mb/s"
    if now.driver:
        evidence += f", {now.driver}"
    return Accusation(subject=disk, summary=summary, at=now.at, evidence=(evidence,))
