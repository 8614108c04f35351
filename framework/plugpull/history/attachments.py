"""Which disk was attached under which kernel name, and when."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise
from math import inf

from plugpull.history.events import DiskAttached, DiskDetached


@dataclass(frozen=True)
class Attachments:
    """The attachments of disks in one scenario, oldest first, beginning with those from before it."""

    attached: tuple[DiskAttached, ...]
    detached: tuple[DiskDetached, ...]

    def of(self, disk: str) -> tuple[DiskAttached, ...]:
        """The attachments of ``disk``, a disk of the rig."""
        return self._by_disk.get(disk, ())

    @cached_property
    def _by_disk(self) -> dict[str, tuple[DiskAttached, ...]]:
        found: defaultdict[str, list[DiskAttached]] = defaultdict(list)
        for event in self.attached:
            found[event.disk].append(event)
        return {disk: tuple(events) for disk, events in found.items()}

    @cached_property
    def _ends(self) -> dict[tuple[str, int], tuple[float, ...]]:
        """When each kernel name and diskseq was detached, in the order of the record."""
        found: defaultdict[tuple[str, int], list[float]] = defaultdict(list)
        for event in self.detached:
            if event.at is not None:
                found[event.kname, event.diskseq].append(event.at)
        return {key: tuple(times) for key, times in found.items()}

    def detached_at(self, attachment: DiskAttached) -> float | None:
        """When the kernel took this very attachment off its list."""
        begin = attached_at(attachment)
        times = self._ends.get((attachment.kname, self.number_of(attachment)), ())
        gone = next((at for at in times if at >= begin), None)
        return self._removed_otherwise(attachment, begin) if gone is None and self._unannounced else gone

    def _removed_otherwise(self, attachment: DiskAttached, begin: float) -> float | None:
        """When the kernel name was removed under a number that nothing was announced with, before another disk had it.
        The record contradicts itself then, but nothing else can have left."""
        later = (attached_at(one) for one in self.attached if one.kname == attachment.kname)
        until = min((at for at in later if at > begin), default=inf)
        removals = (at for kname, _, at in self._unannounced if kname == attachment.kname)
        return next((at for at in removals if begin <= at <= until), None)

    def number_of(self, attachment: DiskAttached) -> int:
        """The kernel's diskseq of an attachment; 0 if it has none. If the disk left while the agent read its sysfs, it
        was not read then: it is the number under which the kernel name was removed next."""
        if attachment.diskseq or not self._unannounced:
            return attachment.diskseq
        begin = attached_at(attachment)
        return next((number for kname, number, at in self._unannounced if kname == attachment.kname and at >= begin), 0)

    @cached_property
    def _unannounced(self) -> tuple[tuple[str, int, float], ...]:
        """(kernel name, diskseq, time) of each removal of a disk that was never announced with this number."""
        known = {(event.kname, event.diskseq) for event in self.attached}
        return tuple(
            (event.kname, event.diskseq, event.at)
            for event in self.detached
            if event.diskseq and event.at is not None and (event.kname, event.diskseq) not in known
        )

    def at(self, disk: str, at: float) -> DiskAttached | None:
        """The attachment of ``disk`` that was on the kernel's list at ``at``."""
        own, begins, ends = self._stays.get(disk, ((), (), ()))
        # Before the last one that began by then, only those need a look of which one lasted until then.
        for place in range(bisect_right(begins, at) - 1 if begins else len(own) - 1, -1, -1):
            if begins and ends[place] <= at:
                return None
            gone = self.detached_at(own[place])
            if attached_at(own[place]) <= at and (gone is None or gone > at):
                return own[place]
        return None

    @cached_property
    def _stays(self) -> dict[str, tuple[tuple[DiskAttached, ...], tuple[float, ...], tuple[float, ...]]]:
        """The attachments of each disk. If they are on record in order of time: when each began, and when the last of
        those up to it ended, DUT seconds; otherwise nothing."""
        found = {}
        for disk, own in self._by_disk.items():
            begins = tuple(map(attached_at, own))
            ordered = all(one <= two for one, two in pairwise(begins))
            gone = [inf if (end := self.detached_at(one)) is None else end for one in own]
            found[disk] = (own, begins, tuple(accumulate(gone, max))) if ordered else (own, (), ())
        return found

    def disk_at(self, kname: str, at: float) -> str | None:
        """The rig's disk that the kernel called ``kname`` at ``at``; "" if that disk is not of the rig."""
        for attachment in reversed(self.attached):
            if attachment.kname == kname and attached_at(attachment) <= at:
                gone = self.detached_at(attachment)
                return attachment.disk if gone is None or gone > at else None
        return None


def attached_at(attachment: DiskAttached) -> float:
    """When it was attached, DUT seconds: minus infinity if that was before any clock was mapped."""
    return float("-inf") if attachment.at is None else attachment.at


def same_identity(one: DiskAttached, two: DiskAttached) -> bool:
    """Whether two attachments are of one disk: the same serial number and size."""
    return (one.serial, one.size) == (two.serial, two.size)


def same_socket(now: DiskAttached, was: DiskAttached) -> bool:
    """Whether the disk is in the same socket. The two buses of a USB 3 controller number their ports separately: one
    place can be two sockets, and a disk that comes back at another speed has another place in the same socket."""
    if now.sockets and was.sockets:
        return bool(set(now.sockets) & set(was.sockets))
    return now.place == was.place
