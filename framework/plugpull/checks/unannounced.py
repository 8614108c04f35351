"""Did the kernel say of every disk that left that it did: in an uevent and in its log?

A witness that is silent accuses the kernel only if it is on record without a gap: uevents and records of the log are
numbered. Otherwise the evidence is missing, which is for ``reach.py`` and ``coherent.py`` to say.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, pairwise

from plugpull.checks.evidence import off_the_samples
from plugpull.checks.log_record import AFTER, gone_in_silence, numbers_whole
from plugpull.errors import Finding
from plugpull.history.cuts import Cut
from plugpull.history.events import DiskAttached, KernelMessage, Uevent
from plugpull.history.story import NOT_THE_AGENT, Story
from plugpull.kernel.scope import place_of

LATER = 4.0
"""Seconds after its block device within which a disk's other parts are announced: at most 1.1 s in 296 removals."""
AROUND = 1.0
"""Seconds by which the row of uevents has to go on after a disk has left."""


def no_uevent(story: Story, cut: Cut, disk: str) -> Finding | None:
    """A disk that the kernel took off its list without an uevent."""
    left = off_the_samples(story, cut, disk)
    begin = cut.off.commanded_at
    if left is None or begin is None or not uevents_whole(story, begin, left + AROUND):
        return None
    was = story.attachment_at(disk, begin - cut.error)
    name = f"{disk} ({was.kname})" if was is not None else disk
    what = f"{name} was taken off the kernel's list at {left:.2f} s without being announced: there is no uevent for it"
    seen = [event for event in story.of(Uevent) if disk in event.disks and begin <= (event.at or 0.0) <= left + AROUND]
    evidence = tuple(f"{event.at or 0.0:.2f} s: {event.seqnum} {event.action} {event.devpath}" for event in seen[:8])
    return Finding(check="removed", subject=disk, summary=what, at=left, evidence=evidence)


def parts(story: Story, cut: Cut, disk: str) -> Iterator[Finding]:
    """What the kernel said of the parts of a disk that left, from its USB device down to its block device: one that it
    never announced as removed, or only after what it hangs off."""
    begin, gone = cut.off.commanded_at, cut.times(disk).removed_at
    was = None if begin is None else story.attachment_at(disk, begin - cut.error)
    if was is None or begin is None or gone is None:
        return
    removals: dict[str, Uevent] = {}
    for event in story.of(Uevent):
        if event.action == "remove" and begin - cut.error <= (event.at or 0.0) <= gone + LATER:
            removals.setdefault(event.devpath, event)
    chain = _chain(was)
    for above, below in combinations((removals[path] for path in chain if path in removals), 2):
        if 0 < above.seqnum < below.seqnum:
            what = f"was announced before that of {_part(below.devpath)}, which hangs off it"
            yield _about(disk, f"the removal of {_part(above.devpath)} of {disk} {what}", gone)
    if uevents_whole(story, begin, gone + LATER):
        for path in chain:
            if path not in removals:
                yield _about(disk, f"the removal of {_part(path)} of {disk} was never announced", gone)


def _chain(was: DiskAttached) -> list[str]:
    """The parts of a disk in the words of uevents, the USB device first."""
    names = was.sysfs.removeprefix("/sys").split("/")
    usb = place_of(was.sysfs).usb
    if not usb or usb not in names:
        return []
    first = names.index(usb) + 1
    return ["/".join(names[:end]) for end in range(first, len(names) + 1) if names[end - 1] != "block"]


def _part(path: str) -> str:
    return path.rpartition("/")[2]


def _about(disk: str, what: str, at: float) -> Finding:
    return Finding(check="removed", subject=disk, summary=what, at=at)


def uevents_whole(story: Story, begin: float, end: float) -> bool:
    """Is every uevent of [begin, end] accounted for? False for records of agents that did not count."""
    events = [event for event in story.of(Uevent) if event.at is not None]
    before = [event for event in events if (event.at or 0.0) < begin][-1:]
    inside = [event for event in events if begin <= (event.at or 0.0) <= end]
    after = [event for event in events if (event.at or 0.0) > end][:1]
    if not before or not after:
        return False
    return all(
        two.others is not None and two.seqnum == one.seqnum + two.others + 1
        for one, two in pairwise([*before, *inside, *after])
    )


def no_log(story: Story, cut: Cut, disk: str) -> Finding | None:
    """A disk that left without a word in a kernel log that goes on after it."""
    gone = gone_in_silence(story, cut, disk)
    if gone is None or not numbers_whole(story):
        return None
    later = [event for event in story.of(KernelMessage) if (event.at or 0.0) > gone + AFTER]
    if not any(event.seq >= 0 and event.facility == 0 and event.source not in NOT_THE_AGENT for event in later):
        return None
    what = f"{disk} was removed at {gone:.2f} s and the kernel log does not say that it was disconnected"
    return _about(disk, what, gone)
