"""Whether the kernel announced every removal of a disk, in a uevent and in its log.

A missing announcement accuses the kernel only if the record has no gap: uevents and log records are numbered.
Otherwise ``reach.py`` and ``coherent.py`` report the missing evidence.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import combinations, islice
from math import inf

from plugpull.checks.accusation import Accusation
from plugpull.checks.evidence import off_the_samples
from plugpull.checks.record.log_record import gone_in_silence, numbers_whole
from plugpull.checks.starved import awake
from plugpull.history.cut import Cut
from plugpull.history.events import KernelMessage, Uevent
from plugpull.history.story import NOT_THE_AGENT, Story
from plugpull.history.time_index import TimeIndex
from plugpull.kernel.diagnosis.arrivals import AFTER
from plugpull.kernel.diagnosis.scope import place_of

LATER = 4.0
"""Seconds after its block device within which a disk's other parts are announced: at most 1.1 s in 296 removals."""
SHOWN = 8
"""The most findings and uevents given as evidence."""
AROUND = 1.0
"""Seconds after a removal for which uevents must be on record."""


def no_uevent(story: Story, cut: Cut, disk: str) -> Accusation | None:
    """An accusation if the kernel removed a disk from its list without a uevent."""
    left = off_the_samples(story, cut, disk)
    begin = cut.off.commanded_at
    if left is None or begin is None or not uevents_whole(story, begin, left + AROUND):
        return None
    was = story.attachment_at(disk, begin - cut.error)
    name = f"{disk} ({was.kname})" if was is not None else disk
    what = f"{name} was taken off the kernel's list at {left:.2f} s without being announced: there is no uevent for it"
    seen = [event for event in story.of(Uevent) if disk in event.disks and begin <= (event.at or 0.0) <= left + AROUND]
    if any((event.action, event.subsystem, event.devtype) == ("remove", "block", "disk") for event in seen):
        return None  # it was announced: what is missing is the agent's own report
    if not seen:
        return None  # nor was any other part of it: nobody listened
    evidence = tuple(
        f"{event.at or 0.0:.2f} s: {event.seqnum} {event.action} {event.devpath}" for event in seen[:SHOWN]
    )
    return Accusation(subject=disk, summary=what, at=left, evidence=evidence)


def unspoken(story: Story, cuts: Iterable[Cut], disk: str) -> Iterator[Accusation]:
    """Missing or misordered announcements of the removals of one disk, one accusation per kind."""
    for kind in (_silent, _misordered, _unannounced):
        found = [finding for cut in cuts for finding in kind(story, cut, disk)]
        if found:
            first, more = found[0], f" (and {len(found) - 1} more)" if len(found) > 1 else ""
            yield Accusation(
                subject=disk,
                summary=first.summary + more,
                at=first.at,
                evidence=tuple(finding.summary for finding in found[:SHOWN]),
            )


def _misordered(story: Story, cut: Cut, disk: str) -> Iterator[Accusation]:
    """Parts of a disk whose removal was announced after that of their parent."""
    gone, removals = cut.times(disk).removed_at, _removals(story, cut, disk)
    found = (removals[path] for path in _chain(story, cut, disk) if path in removals)
    for above, below in combinations(found, 2):
        if gone is not None and 0 < above.seqnum < below.seqnum:
            what = f"was announced before that of {_part(below.devpath)}, which hangs off it"
            yield _about(disk, f"the removal of {_part(above.devpath)} of {disk} {what}", gone)


def _unannounced(story: Story, cut: Cut, disk: str) -> Iterator[Accusation]:
    """Parts of a disk, from its USB device down to its block device, whose removal was never announced."""
    begin, gone = cut.off.commanded_at, cut.times(disk).removed_at
    if begin is None or gone is None or not uevents_whole(story, begin, gone + LATER):
        return
    chain, removals = _chain(story, cut, disk), _removals(story, cut, disk)
    again = bool(chain) and story.once(_last_added).get(chain[0], gone) > gone
    if not again and awake(story, gone, story.heard_until or gone) < LATER:
        return
    for path in chain:
        if path not in removals:
            yield _about(disk, f"the removal of {_part(path)} of {disk} was never announced", gone)


def _removals(story: Story, cut: Cut, disk: str) -> dict[str, Uevent]:
    """The first announcement of the removal of each thing from the cut until the disk's USB device is announced again,
    or to the end: on a host that runs the DUT slowly the parts of a disk went within 4.7 s of each other."""
    begin, gone = cut.off.commanded_at, cut.times(disk).removed_at
    chain, found = _chain(story, cut, disk), dict[str, Uevent]()
    if begin is None or gone is None or not chain:
        return found
    for event in story.once(_RecordedUevents).since(begin - cut.error):
        if (event.action, event.devpath) == ("add", chain[0]):
            break
        if event.action == "remove":
            found.setdefault(event.devpath, event)
    return found


def _chain(story: Story, cut: Cut, disk: str) -> list[str]:
    """The paths of a disk's parts in uevents, the USB device first."""
    begin = cut.off.commanded_at
    was = None if begin is None else story.attachment_at(disk, begin - cut.error)
    if was is None:
        return []
    names = was.sysfs.removeprefix("/sys").split("/")
    usb = place_of(was.sysfs).usb
    if not usb or usb not in names:
        return []
    first = names.index(usb) + 1
    return ["/".join(names[:end]) for end in range(first, len(names) + 1) if names[end - 1] != "block"]


def _part(path: str) -> str:
    return path.rpartition("/")[2]


def _about(disk: str, what: str, at: float) -> Accusation:
    return Accusation(subject=disk, summary=what, at=at)


def uevents_whole(story: Story, begin: float, end: float) -> bool:
    """Whether every uevent of [begin, end] is on record or counted. False for agents that did not count.

    Newer kernels may send them in another order than that of their numbers (``number_order``): only their sum counts.
    """
    events = story.once(_RecordedUevents).around(begin, end)
    others = [event.others for event in events[1:]]
    if not others or None in others:
        return False
    numbers = [event.seqnum for event in events]
    return len(set(numbers)) == len(numbers) and max(numbers) - min(numbers) == sum(1 + (one or 0) for one in others)


class _RecordedUevents:
    """The uevents of a story by time. One without a time counts as one of the beginning."""

    def __init__(self, story: Story) -> None:
        self._all = story.of(Uevent)
        self._timed = [event for event in self._all if event.at is not None]
        self._index_of_all = TimeIndex([_time(event) for event in self._all])
        self._index = TimeIndex([_time(event) for event in self._timed])

    def since(self, begin: float) -> Iterator[Uevent]:
        """Those that are not earlier than ``begin``, in the order of the record."""
        first = self._index_of_all.places(begin, inf).start
        return (event for event in islice(self._all, first, None) if _time(event) >= begin)

    def around(self, begin: float, end: float) -> list[Uevent]:
        """Those of [begin, end] that have a time, the last one before them and the first one after them, in the order
        of the record; empty if one of the two is missing."""
        places = self._index.places(begin, end)
        near = self._timed[max(0, places.start - 1) : places.stop + 1]
        before = [event for event in near if _time(event) < begin][-1:]
        inside = [event for event in near if begin <= _time(event) <= end]
        after = [event for event in near if _time(event) > end][:1]
        return [*before, *inside, *after] if before and after else []


def _time(event: Uevent) -> float:
    return event.at or 0.0


def _last_added(story: Story) -> dict[str, float]:
    """When each thing was announced for the last time, DUT seconds, by its path."""
    found: dict[str, float] = {}
    for event in story.of(Uevent):
        if event.action == "add":
            found[event.devpath] = max(found.get(event.devpath, _time(event)), _time(event))
    return found


def _silent(story: Story, cut: Cut, disk: str) -> Iterator[Accusation]:
    """A disk that left without a message in a kernel log that continues after it."""
    gone = gone_in_silence(story, cut, disk)
    if gone is None or not numbers_whole(story):
        return
    later = [event for event in story.of(KernelMessage) if (event.at or 0.0) > gone + AFTER]
    if any(event.seq >= 0 and event.facility == 0 and event.source not in NOT_THE_AGENT for event in later):
        what = f"{disk} was removed at {gone:.2f} s and the kernel log does not say that it was disconnected"
        yield _about(disk, what, gone)
