"""Whether a disk that was plugged into another socket was found there, by its identity and not by its place."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from plugpull.checks.accusation import Accusation
from plugpull.checks.base import Check, Disks, Judgement, disk_names
from plugpull.checks.claims import Claim, Evidence
from plugpull.checks.collector import Collector
from plugpull.checks.evidence import limit, seconds
from plugpull.checks.limits import returned_within
from plugpull.checks.repeats import repeated
from plugpull.checks.starved import awake
from plugpull.checks.victims.moves import home_of
from plugpull.checks.victims.reconnected import asked_before
from plugpull.history.attachments import same_identity
from plugpull.history.events import DiskAttached, DiskMoved
from plugpull.history.reader import Story


class FoundAgain(Check, frozen=True, tag="found_again"):
    """Each of ``disks`` that was plugged into another socket must be announced there at most ``within`` seconds later,
    with its serial number, size, model and driver. ``disks=None`` means all that were moved; ``within=None`` is the
    limit of ``returned``.

    The link may be slower there. The way back is judged by ``returned``."""

    disks: tuple[str, ...] | None
    within: float | None = None

    def judge(self, story: Story) -> Judgement:
        said = Collector(self, self._disks(story))
        took: dict[float, float] = {}
        for disk in self._disks(story):
            each: list[float] = []
            for move, until in _moves(story, disk):
                within = self._limit(story, disk, move)
                found = _found(story, move, until)
                said.take(*_judged(story, move, until, found, within))
                if found is not None:
                    each.append(max(0.0, (found.at or 0.0) - move.until))
                    took[each[-1]] = within
            if each:
                said.measure(repeated("found again after", disk, each, "s", better="down"))
            if self.disks is not None and not list(_moves(story, disk)):
                said.doubt(f"{disk} was never plugged into another socket, so whether it is found there is not known")
        slowest = max(took, default=0.0)
        return said.judgement(f"found again after {seconds(slowest)} {limit(took[slowest])}" if took else "")

    def claims(self, story: Story) -> Iterable[Claim]:
        for disk in self._disks(story):
            for move, until in _moves(story, disk):
                found, within = _found(story, move, until), self._limit(story, disk, move)
                if found is not None:
                    what = f"{disk} was found again within {within:g} s"
                    sources = (Evidence.UEVENTS, Evidence.CLOCK)
                    begin, end = move.at or 0.0, found.at or 0.0
                    yield Claim(what=what, evidence=sources, begin=begin, end=end, disk=disk, limit=within)

    def _disks(self, story: Story) -> tuple[str, ...]:
        return tuple(dict.fromkeys(move.disk for move in story.of(DiskMoved))) if self.disks is None else self.disks

    def _limit(self, story: Story, disk: str, move: DiskMoved) -> float:
        together = sum(other.at == move.at for other in story.of(DiskMoved))
        within = returned_within(story, disk, self.within, mechanism="data", together=together)
        return within + asked_before(story, move)


def found_again(disks: Disks, within: float | None = None) -> FoundAgain:
    """Each of ``disks`` that was plugged into another socket (``move``) must be found there as itself."""
    return FoundAgain(disk_names(disks), within)


def _moves(story: Story, disk: str) -> Iterator[tuple[DiskMoved, float]]:
    """Each move of a disk away from its own socket, and when the next one began."""
    moves = [move for move in story.of(DiskMoved) if move.disk == disk]
    for number, move in enumerate(moves):
        if move.socket != home_of(story, disk):
            yield move, (moves[number + 1].at or 0.0) if number + 1 < len(moves) else math.inf


def _found(story: Story, move: DiskMoved, until: float) -> DiskAttached | None:
    """The first announcement of the disk while it was in the other socket."""
    inside = (one for one in story.attachments(move.disk) if one.at is not None and (move.at or 0.0) <= one.at < until)
    return next(inside, None)


def _judged(
    story: Story, move: DiskMoved, until: float, found: DiskAttached | None, within: float
) -> Iterator[Accusation | str]:
    if found is None:
        yield _missing(story, move, until, within)
        return
    took = awake(story, move.until, max(move.until, found.at or 0.0))
    if took > within:
        yield _about(move, f"{move.disk} was found again only after {seconds(took)} {limit(within)}", found)
    if found.place != move.place:
        yield _about(move, f"{move.disk} was found at {found.place} instead of {move.place}", found)
    first = next((one for one in story.attachments(move.disk) if (one.at or 0.0) < (move.at or 0.0)), None)
    if first is not None:
        yield from _changed(move, first, found)


def _changed(move: DiskMoved, was: DiskAttached, now: DiskAttached) -> Iterator[Accusation]:
    if not same_identity(now, was):
        kind = "serial" if now.serial != was.serial else "size"
        before, after = getattr(was, kind), getattr(now, kind)
        yield _about(move, f"{move.disk} was found in {move.socket} with {kind} {after} instead of {before}", now)
    for kind, before, after in (("as", was.model, now.model), ("on", was.driver, now.driver)):
        if before and after and before != after:
            yield _about(move, f"{move.disk} was found in {move.socket} {kind} {after} instead of {before}", now)


def _missing(story: Story, move: DiskMoved, until: float, within: float) -> Accusation | str:
    deadline = move.until + within
    heard = min(until, story.heard_until or move.until)
    if not story.covers(move.until, min(deadline, heard)) or awake(story, move.until, heard) < within:
        why = story.why_not_covered(move.until, deadline) or "it was not watched for long enough"
        return f"whether {move.disk} was found again in {move.socket} is not known: {why}"
    stranger = _stranger(story, move, until)
    if stranger is not None:
        what = f"{move.disk} was found in {move.socket} with serial {stranger.serial or '(none)'}"
        return _about(move, what, stranger)
    what = f"{move.disk} was not found within {within:g} s of being plugged into {move.socket}"
    return Accusation(subject=move.disk, summary=what, at=deadline)


def _stranger(story: Story, move: DiskMoved, until: float) -> DiskAttached | None:
    """A disk that is not of the rig, in the socket that the disk was plugged into."""
    there = (one for one in story.all_attachments if not one.disk and one.place == move.place)
    return next((one for one in there if (move.at or 0.0) <= (one.at or 0.0) < until), None)


def _about(move: DiskMoved, what: str, found: DiskAttached) -> Accusation:
    evidence = f"{found.kname}: serial {found.serial}, {found.size} bytes, at {found.place}, {found.speed or '?'} Mb/s"
    return Accusation(subject=move.disk, summary=what, at=found.at, evidence=(evidence,))
