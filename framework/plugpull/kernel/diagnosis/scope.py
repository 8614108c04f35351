"""Which disks of the rig a kernel message is about, by the topology as it was when the message was printed.

The kernel reuses its names: after a replug ``sdb`` may be another disk, and ``host3`` another bridge. So a name is
looked up in the uevents (``DiskAttached``) at the message's time. The kernel uses the name of a disk from a little
before its uevent until a little after its removal.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property, lru_cache

from plugpull.history.events import DiskAttached
from plugpull.history.story import Story
from plugpull.kernel.catalogue.device_names import Names
from plugpull.kernel.diagnosis.story_log import log_of

COMING = 10.0
"""Seconds before the uevent of a disk in which messages about it are printed: usb-storage waits a second before it
scans (delay_use), and a slow disk takes its time to return its first sectors."""
SOON = 0.5
"""Seconds before the uevent of a disk in which its name means this disk and not the one that had it before. The name is
given when the disk is probed: 0 to 0.13 s before, in 396 attachments."""
GOING = 10.0
"""Seconds after the removal of a disk in which the kernel still logs messages about it, such as failed writes."""
WARNING = 4
"""KERN_WARNING (include/linux/kern_levels.h): uncatalogued messages of this level and worse (smaller numbers) count."""

_USB_PART = re.compile(r"^(\d+-\d+(?:\.\d+)*)$")
_ROOT_PART = re.compile(r"^usb\d+$")
_PCI_PART = re.compile(r"^[\da-f]{4}:[\da-f]{2}:[\da-f]{2}\.\d$")


class Level(StrEnum):
    """The kind of thing that a message is about."""

    DISK = "disk"
    HUB = "hub"
    CONTROLLER = "controller"
    ARRAY = "array"
    NOTHING = ""


@dataclass(frozen=True)
class Place:
    """The position of a disk, from its path in sysfs. ``usb`` is its USB path; ``hubs`` are the USB paths above it, the
    root hub first; ``controller`` is the PCI address of the controller, or its name if it is not on PCI."""

    address: str = ""
    host: str = ""
    usb: str = ""
    hubs: tuple[str, ...] = ()
    controller: str = ""


@lru_cache(maxsize=4096)
def place_of(sysfs: str) -> Place:
    """The position of a disk with this path in sysfs.

    An example is ``/sys/devices/pci0000:00/0000:00:10.0/usb1/1-2/1-2.1/1-2.1:1.0/host1/target1:0:0/1:0:0:0``.
    """
    parts = sysfs.split("/")
    usb = [part for part in parts if _USB_PART.match(part)]
    root = next((index for index, part in enumerate(parts) if _ROOT_PART.match(part)), None)
    pci = [part for part in parts[:root] if _PCI_PART.match(part)]
    return Place(
        address=next((part for part in parts if re.fullmatch(r"\d+:\d+:\d+:\d+", part)), ""),
        host=next((part for part in parts if re.fullmatch(r"host\d+", part)), ""),
        usb=usb[-1] if usb else "",
        hubs=(*((parts[root],) if root is not None else ()), *usb[:-1]),
        controller=pci[-1] if pci else parts[root - 1] if root else "",
    )


@dataclass(frozen=True)
class Stay:
    """One attachment, from ``begin`` to ``end``, DUT seconds."""

    disk: str
    kname: str
    place: Place
    begin: float
    end: float


@dataclass(frozen=True)
class About:
    """What a message is about: ``name`` as the kernel wrote it, and the attachments of the rig's disks that this name
    stands for. For a hub or a controller those are all disks behind it, for an array all known members."""

    level: Level = Level.NOTHING
    name: str = ""
    stays: tuple[Stay, ...] = ()

    @property
    def disks(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(stay.disk for stay in self.stays if stay.disk))


class Scope:
    """Finds the disks of the rig that the kernel log of a story is about. Names of other disks have no result."""

    def __init__(self, story: Story) -> None:
        self._story = story
        self.stays = tuple(_stay(story, attached) for attached in story.all_attachments)

    def about(self, names: Names, at: float) -> About:
        """What a message with these names is about. The name nearest to a disk counts: "sd 2:0:0:0: [sdb]" is about
        sdb."""
        return next((found for found in self._candidates(names, at) if found.disks), About())

    def _candidates(self, names: Names, at: float) -> Iterator[About]:
        # A SCSI unit without an uevent, such as an enclosure's second one, is found by its host.
        hosts = (*names.hosts, *(f"host{address.partition(':')[0]}" for address in names.addresses))
        for key, found in (("kname", names.blocks), ("address", names.addresses), ("host", hosts)):
            if found:
                yield About(Level.DISK, found[0], self._named(key, found, at))
        for path in names.usb:
            yield self._on_usb(path, at)
        if names.arrays:
            yield About(Level.ARRAY, names.arrays[0], self._members(names.arrays, at))
        for controller in names.controllers:
            behind = [stay for stay in self.stays if stay.place.controller == controller]
            yield About(Level.CONTROLLER, controller, _around(behind, at))

    def _named(self, key: str, names: Iterable[str], at: float) -> tuple[Stay, ...]:
        wanted = set(names)
        stays = [stay for stay in self.stays if (stay.kname if key == "kname" else getattr(stay.place, key)) in wanted]
        groups: defaultdict[str, list[Stay]] = defaultdict(list)
        for stay in stays:
            # Several names in one message may be several disks. Of several attachments with one name, one is there at
            # a time, apart from the units of one bridge (one host, several LUNs).
            name = stay.kname if key == "kname" else stay.place.address
            groups[name].append(stay)
        found = (_at(group, at) for group in groups.values())
        return tuple(stay for stay in found if stay is not None)

    def _on_usb(self, path: str, at: float) -> About:
        own = [stay for stay in self.stays if stay.place.usb == path]
        if own:
            by_disk: defaultdict[str, list[Stay]] = defaultdict(list)
            for stay in own:
                by_disk[stay.disk].append(stay)
            # A message about a port is about the disk that was in it last, however long ago that was.
            nearest = [_at(stays, at, float("inf"), float("inf")) for stays in by_disk.values()]
            here = [stay for stay in nearest if stay is not None]
            return About(Level.DISK, path, _around(here, at) or tuple(here))
        return About(Level.HUB, path, _around([stay for stay in self.stays if path in stay.place.hubs], at))

    # --- arrays -----------------------------------------------------------------------------------------------

    @cached_property
    def _members_by_time(self) -> dict[str, list[tuple[float, str]]]:
        """The (time, block device) pairs that the log names together with each array. There is no other source."""
        found: defaultdict[str, list[tuple[float, str]]] = defaultdict(list)
        for line in log_of(self._story).timed:
            if line.names.arrays and line.names.blocks:
                for array in line.names.arrays:
                    found[array] += [(line.at, block) for block in line.names.blocks]
        return found

    def _members(self, arrays: Iterable[str], at: float) -> tuple[Stay, ...]:
        found: list[Stay] = []
        for array in arrays:
            named = sorted(self._members_by_time.get(array, ()))
            for when, block in named[: bisect_right(named, (at, "\uffff"))]:
                found += self._named("kname", (block,), when)
        return tuple(dict.fromkeys(found))


def _stay(story: Story, attached: DiskAttached) -> Stay:
    gone = story.detached_at(attached)
    begin = float("-inf") if attached.at is None else attached.at
    return Stay(attached.disk, attached.kname, place_of(attached.sysfs), begin, float("inf") if gone is None else gone)


def _at(stays: Iterable[Stay], at: float, coming: float = COMING, going: float = GOING) -> Stay | None:
    """The attachment that had the name at ``at``: the one that begins within ``SOON``, else the current one, else the
    one that has just ended, else the one that begins within ``coming`` seconds."""
    stays = list(stays)
    soon = [stay for stay in stays if at < stay.begin <= at + SOON]
    live = [stay for stay in stays if stay.begin <= at < stay.end]
    if soon or live:
        return soon[0] if soon else live[-1]
    gone = [stay for stay in stays if stay.end <= at <= stay.end + going]
    if gone:
        return max(gone, key=lambda stay: stay.end)
    return min((stay for stay in stays if at < stay.begin <= at + coming), key=lambda stay: stay.begin, default=None)


def _around(stays: Iterable[Stay], at: float) -> tuple[Stay, ...]:
    """Those that were attached at the time, began shortly after it or ended shortly before it."""
    return tuple(stay for stay in stays if stay.begin - COMING <= at < stay.end + GOING)
