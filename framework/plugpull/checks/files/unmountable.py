"""Whether the filesystem of a cut disk could be unmounted."""

from __future__ import annotations

from collections.abc import Iterator

from plugpull.checks.accusation import Accusation
from plugpull.checks.base import Check, Disks, Judgement, disk_names
from plugpull.checks.collector import Collector
from plugpull.checks.evidence import limit, seconds
from plugpull.checks.limits import unmountable as limit_of
from plugpull.checks.starved import awake, excused
from plugpull.history.cut import Cut
from plugpull.history.events import Acted
from plugpull.history.reader import Story

HELD_BY_NOBODY = "held by nobody visible"
"""What the agent says of an ``umount`` that failed although no process has anything open there."""


HEALTHY_WITHIN = 30.0
"""Seconds for the ``umount`` of a filesystem whose disk is there: it may have something to write."""


class Unmountable(Check, frozen=True, tag="unmountable"):
    """The last ``umount`` of each of ``disks`` succeeded, and took at most ``within`` seconds. It counts only if the
    filesystem was mounted, and was so when the disk was cut. If it was mounted again afterwards, each ``umount`` of a
    mount that was cut counts. An earlier one may have failed because a process held it, and for no other reason.

    ``None``: the disk's limit in the rig file, or the default of the kind of bench."""

    disks: tuple[str, ...]
    within: float | None = None

    def judge(self, story: Story) -> Judgement:
        said = Collector(self, self.disks)
        took: list[tuple[float, float]] = []
        for disk in self.disks:
            tries = [event for event in story.of(Acted) if event.action == "umount" and event.disk == disk]
            if not tries:
                said.doubt(f"nobody tried to unmount {disk}")
                continue
            within = limit_of(story, disk, self.within)
            for last in _of_cut_mounts(story, disk) or (tries[-1],):
                if why := _proves_nothing(story, last):
                    said.doubt(why)
                else:
                    took.append((last.seconds, within))
                    said.take(*_held_up(story, last, within))
                    said.take(*_held_by_the_kernel(story, disk, last))
                    said.take(*_slow_later(story, last, within))
        if not took:
            return said.judgement()
        slowest, within = max(took)
        worst = "" if said.findings else f"unmounted in {seconds(slowest)} {limit(within)}"
        return said.timed(worst, slowest, within)


def _held_up(story: Story, last: Acted, within: float) -> Iterator[Accusation | str]:
    """What is wrong with an ``umount``, or a doubt about it."""
    disk, ended = last.disk, 0.0 if last.at is None else last.at
    what = f"unmounting {disk} took {seconds(last.seconds)} {limit(within)}"
    if not last.ok:
        yield Accusation(subject=disk, summary=f"{disk} could not be unmounted: {last.detail or '?'}", at=last.at)
    elif awake(story, ended - last.seconds, ended) > within:
        yield Accusation(subject=disk, summary=what, at=last.at)
    elif last.seconds > within and not excused(story, ended - last.seconds, ended, within):
        yield f"{what}, but the DUT was starved meanwhile"


def _slow_later(story: Story, last: Acted, within: float) -> Iterator[Accusation | str]:
    """The first ``umount`` of a disk after ``last`` that took too long: those of healthy mounts."""
    within = max(within, HEALTHY_WITHIN)
    for event in story.of(Acted):
        later = event.action == "umount" and event.disk == last.disk and (event.at or 0.0) > (last.at or 0.0)
        if later and event.ok and event.seconds > within:
            yield from _held_up(story, event, within)
            return


def _held_by_the_kernel(story: Story, disk: str, last: Acted) -> Iterator[Accusation]:
    """What is wrong with the tries since the cut before one that succeeded."""
    cuts = [cut.off.commanded_at for cut in story.cut_records if disk in cut.armed.victims]
    begin = min((at for at in cuts if at is not None), default=float("inf"))
    steps = [event for event in story.of(Acted) if event.disk == disk and event.action in ("mount", "umount")]
    for event in reversed(steps[: steps.index(last)]):
        if event.action == "mount" and event.ok:
            return
        if event.action == "umount" and HELD_BY_NOBODY in event.detail and (event.at or 0.0) >= begin:
            what = f"{disk} could be unmounted only later: {event.detail}"
            yield Accusation(subject=disk, summary=what, at=event.at)
            return


def _of_cut_mounts(story: Story, disk: str) -> tuple[Acted, ...]:
    """The last ``umount`` of each mount that was cut, for a disk that was mounted several times; otherwise none."""
    mounts: list[list[Acted]] = []
    for event in story.of(Acted):
        if event.disk == disk and event.action == "mount" and event.ok:
            mounts.append([event])
        elif event.disk == disk and event.action == "umount" and mounts:
            mounts[-1].append(event)
    ended = [(one[0], one[-1]) for one in mounts if len(one) > 1]
    cuts = [cut for cut in story.cut_records if disk in cut.armed.victims]
    cut_mounts = [last for mount, last in ended if any(_mounted_at(cut, mount, last) for cut in cuts)]
    return tuple(cut_mounts) if len(ended) > 1 else ()


def _proves_nothing(story: Story, last: Acted) -> str:
    """Why this ``umount`` proves nothing, as a sentence; empty if it does."""
    disk = last.disk
    steps = [event for event in story.of(Acted) if event.disk == disk and event.action in ("mount", "umount")]
    earlier = [event for event in steps[: steps.index(last)] if event.ok]
    mounts = [event for event in earlier if event.action == "mount"]
    if not mounts or (last.ok and earlier[-1] is not mounts[-1]):
        return f"the filesystem on {disk} was not mounted, so nothing is known of unmounting it"
    cuts = [cut for cut in story.cut_records if disk in cut.armed.victims]
    if not last.ok or not cuts or any(_mounted_at(cut, mounts[-1], last) for cut in cuts):
        return ""
    return f"the filesystem on {disk} was not mounted when {cuts[0].armed.point} was cut"


def _mounted_at(cut: Cut, mount: Acted, umount: Acted) -> bool:
    """Whether the filesystem was certainly mounted when its disk was cut."""
    off, gone = cut.off.commanded_at, cut.times(umount.disk).removed_at
    if off is None or mount.at is None or umount.at is None:
        return False
    surely_cut = off + cut.error if gone is None else min(off + cut.error, gone)
    return mount.at <= off - cut.error and umount.at >= surely_cut


def unmountable(disks: Disks, within: float | None = None) -> Unmountable:
    """The filesystem on each of ``disks`` must have been unmounted ``within`` seconds."""
    return Unmountable(disk_names(disks), within)
