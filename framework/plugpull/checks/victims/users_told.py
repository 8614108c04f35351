"""Whether the users of every cut disk got an error, and the users of other disks none."""

from __future__ import annotations

from collections.abc import Iterator

from plugpull.checks import limits
from plugpull.checks.accusation import Accusation
from plugpull.checks.base import Check, Judgement
from plugpull.checks.collector import Collector
from plugpull.checks.data.opinions import every_round
from plugpull.checks.evidence import limit, not_executed, seconds, victims_of
from plugpull.checks.raid.arrays import arrays_of, may_fail_from
from plugpull.checks.starved import awake
from plugpull.checks.victims.failed_as import failed_as_something_else, not_of_a_loss
from plugpull.history.cut import Cut
from plugpull.history.events import LoadBegun, LoadEnded
from plugpull.history.reader import Story

ANSWERED = 1.0
"""Seconds after which I/O to a removed disk fails at once (drivers/scsi/scsi_lib.c, scsi_prep_state_check). A load that
goes on for longer and then ends without an error did not get one."""


CLOCKS = 0.1
"""Seconds by which the writer's clock (microseconds since it began) may differ from the clock of the edge."""


class UsersTold(Check, frozen=True, tag="users_told"):
    """Each load with direct I/O on a victim ended by itself after the cut, with an I/O error, within the limit of the
    disk or of the kind of bench (``limits.py``, ``ended_with_error``). No load had an I/O error on a disk that was not
    cut.

    ``besides`` are the victims that the scenario gives to ``ended_with_error``, which judges them."""

    besides: tuple[str, ...] = ()

    def judge(self, story: Story) -> Judgement:
        said = Collector(self)
        said.take(*_unexpected(story), *_failed(story), *failed_as_something_else(story), *_served(story))
        said.doubt(*_contradicted(story))
        took: list[float] = []
        for disk in victims_of(story, self.besides):
            for cut in story.cut_records:
                if disk not in cut.armed.victims or not_executed(cut) or cut.times(disk).removed_at is None:
                    continue
                for load in _loads(story, cut, disk):
                    verdict = _one(story, cut, load)
                    if isinstance(verdict, Accusation | str):
                        said.take(verdict)
                    else:
                        took.append(verdict)
        worst = f"users had their error after {seconds(max(took))}" if took and said.clean else ""
        return said.judgement(worst)


def _failed(story: Story) -> Iterator[Accusation]:
    """Stamped writes and flushes that failed on a disk before any cut of it, whatever the writer reported at its
    end."""
    for judged in every_round(story):
        disk = judged.round.disk
        early = [one for one in judged.failed if one.at < _first_cut(story, disk) - CLOCKS]
        if early:
            first = min(early, key=lambda one: one.at)
            more = f" (and {len(early) - 1} more)" if len(early) > 1 else ""
            what = f"a {first.what} on {disk}, which no cut had taken, ended with errno {first.errno}{more}"
            yield Accusation(subject=disk, summary=what, at=first.at)


def _served(story: Story) -> Iterator[Accusation]:
    """Stamped writes and flushes of a disk that succeeded after the kernel had removed it."""
    for judged in every_round(story):
        if judged.outlived is not None:
            disk = judged.round.disk
            what = f"writes to {disk} were completed without an error until {judged.outlived:.2f} s"
            yield Accusation(subject=disk, summary=f"{what}, after the kernel had removed it", at=judged.outlived)


def _contradicted(story: Story) -> Iterator[str]:
    """Sessions on victims whose ledgers contradict the record. They do not show which writes failed."""
    for judged in every_round(story):
        disk = judged.round.disk
        if judged.contradicted and any(disk in cut.armed.victims for cut in story.cut_records):
            number = judged.round.begun.session
            yield f"{disk}: it is not known which writes of session {number} failed: {judged.contradicted[0]}"


def _first_cut(story: Story, disk: str) -> float:
    """The earliest time at which a cut may have taken the disk, or cuts too many members of an array. For a doubtful
    cut it is not known."""
    if disk in arrays_of(story):
        return may_fail_from(story, disk)
    if not story.attachments(disk):
        return float("-inf")  # an array: how it was made is not on record
    cuts = [cut for cut in story.cut_records if disk in cut.armed.victims]
    begins = [float("-inf") if cut.off.doubt else (cut.off.commanded_at or 0.0) - cut.error for cut in cuts]
    return min(begins, default=float("inf"))


def _unexpected(story: Story) -> Iterator[Accusation]:
    """Errors of loads before any cut of their disks."""
    for ended in story.of(LoadEnded):
        if not ended.errno or ended.at is None:
            continue
        first = _first_cut(story, ended.disk)
        if ended.at < first:
            when = f"{seconds(first - ended.at)} before its cut" if first < float("inf") else "which no cut had taken"
            yield _accusation(ended.disk, f"the load on {ended.disk} met an I/O error, {when}: {ended.message}", ended)


def _loads(story: Story, cut: Cut, disk: str) -> tuple[LoadBegun, ...]:
    """The direct loads on the disk at its removal. Buffered loads may notice an error only when they sync."""
    begin, gone = (cut.off.commanded_at or 0.0) - cut.error, cut.times(disk).removed_at or 0.0
    found = []
    for load in story.of(LoadBegun):
        if load.disk != disk or load.at is None or load.at > begin or (load.argv and "--direct=1" not in load.argv):
            continue
        ended = story.load_end(load)
        if ended is None or ended.at is None or ended.at >= begin or ended.at >= gone:
            found.append(load)
    return tuple(found)


def _one(story: Story, cut: Cut, load: LoadBegun) -> Accusation | str | float:
    """The seconds until the error, or an accusation, or the sentence of a doubt."""
    disk, ended = load.disk, story.load_end(load)
    gone = cut.times(disk).removed_at or 0.0
    within = limits.ended_with_error(story, disk)
    if ended is None or ended.at is None:
        return f"how the load on {disk} ended was not recorded"
    if ended.stuck:
        return _accusation(disk, f"the load on {disk} could not be ended", ended)
    if ended.asked and ended.asked_at is not None and ended.asked_at < gone + within and not ended.errno:
        if ended.asked_at <= gone:
            return 0.0
        if ended.asked_at > gone + ANSWERED:
            what = f"the load on {disk} ran on for {seconds(ended.asked_at - gone)} after the disk was gone, "
            return _accusation(disk, f"{what}and never got an error", ended)
        return f"the load on {disk} was asked to end {seconds(ended.asked_at - gone)} after the disk was gone"
    if not ended.errno and (ended.asked or not ended.exit_status):
        how = "went on until it was asked to end" if ended.asked else "ended without an error"
        return _accusation(disk, f"the load on {disk} {how} though the disk was gone", ended)
    if other := not_of_a_loss(story, ended):
        return other
    took = awake(story, gone, max(gone, ended.at))
    if took - cut.error > within:
        return _accusation(
            disk,
            f"the load on {disk} got its error only {seconds(took)} {limit(within)} after the disk was gone",
            ended,
        )
    return took


def _accusation(disk: str, summary: str, ended: LoadEnded) -> Accusation:
    evidence = (ended.message,) if ended.message else ()
    return Accusation(subject=disk, summary=summary, at=ended.at, evidence=evidence)
