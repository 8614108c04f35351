"""Does the record of each disk fit itself: the fields of its announcements, its properties, its counters?

An announcement, the properties that were read then, sysfs and the samples say the same of a disk. The kernel gives no
device number to two disks at once. Who reads a disk is on record. Where they disagree, something of the record is wrong
or missing, and it accuses nobody.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise

from plugpull.checks.limits import bench_kind
from plugpull.history.events import (
    Acted,
    ArrayActed,
    Census,
    DiskAttached,
    DiskProperties,
    DiskRecovered,
    DiskStalled,
    DriveCacheSwitched,
    FileRoundBegun,
    FioRan,
    LedgerBegun,
    LedgerEnded,
    LegReadBegun,
    LoadBegun,
    LoadEnded,
    Phase,
    ReadBackBegun,
    ReadBackEnded,
    TimersSet,
    Uevent,
    Verified,
)
from plugpull.history.readings import ReadingRun
from plugpull.history.story import Story
from plugpull.kernel.diagnosis.scope import place_of

APART = 1.0
"""Seconds by which two disks with one device number may overlap: the removal of a disk is read late."""
FIELDS = ("devt", "serial", "place", "driver", "speed", "model", "sysfs")
"""What the agent reads of every disk that is announced, if it can (``dut/agent/disks.py``)."""
SAME = (("driver", "driver"), ("speed", "speed"))
"""Fields of an announcement and the properties that say the same."""
TIMEOUTS = {"timeout": "the command timeout", "eh_timeout": "the error handler's timeout"}
"""Properties of a disk that plugpull shortens, and what a message calls them."""
SECTOR = 512
USING = frozenset({"array", "fill", "measure", "mkfs", "scan", "soak", "verify"})
"""Phases in which more than what is on record may read a disk."""
NOT_READ = 2 << 20
"""Bytes that may be read from a disk while nothing on record reads it: udev and the kernel read 0.1 MB at most, on 226
healthy emulated benches."""
AROUND = 1.0
"""Seconds before and after a use of a disk in which it may be read."""
_PCI = re.compile(r"[\da-f]{4}:[\da-f]{2}:[\da-f]{2}\.\d$")
_SERIAL = re.compile(r" \(serial (.+)\)")
PROBED = 3.0
"""Seconds after the announcement of a disk in which the kernel and udev read it."""


def disk_doubts(story: Story) -> Iterator[str]:
    """What the record of the disks says against itself, a sentence each."""
    yield from _device_numbers(story)
    yield from _empty(story)
    yield from _properties(story)
    if bench_kind(story) == "virtual":
        yield from _readers(story)
        yield from _unknown_devices(story)
        yield from _not_announced(story)
        yield from _unknown_serials(story)
        yield from _timeouts(story)


def _device_numbers(story: Story) -> Iterator[str]:
    stays = [one for one in story.of(DiskAttached) if one.devt and one.at is not None]
    last: dict[str, DiskAttached] = {}
    for stay in sorted(stays, key=lambda one: one.at or 0.0):
        before = last.get(stay.devt)
        gone = None if before is None else story.detached_at(before)
        if before is not None and before.kname != stay.kname and (gone is None or gone > (stay.at or 0.0) + APART):
            yield f"{stay.disk or stay.kname} was announced with the device number of {before.disk or before.kname}"
        last[stay.devt] = stay


def _empty(story: Story) -> Iterator[str]:
    """Fields that the record has of one announcement of a disk and not of another one, and those that differ from its
    path in sysfs: its controller was in it 1,477 of 1,477 times."""
    for disk in dict.fromkeys(one.disk for one in story.of(DiskAttached) if one.disk):
        stays = [one for one in story.attachments(disk) if one.diskseq]
        for name in FIELDS:
            lacking = [one for one in stays if not getattr(one, name)]
            if lacking and len(lacking) < len(stays):
                yield f"{disk} was announced at {lacking[0].at or 0.0:.2f} s, and its {name} is not on record"
        for one in stays:
            if one.sysfs and one.sysfs.rpartition("/")[2] != one.kname:
                yield f"{disk} was announced as {one.kname}, and is {one.sysfs.rpartition('/')[2]} in sysfs"
            controller = one.place.partition("/")[0]
            if _PCI.match(controller) and one.sysfs.startswith("/sys/devices/pci") and controller not in one.sysfs:
                yield f"{disk} was announced at {one.place}, and its path in sysfs is {one.sysfs}"


def _properties(story: Story) -> Iterator[str]:
    """Properties that were read when a disk came, and are not those that it was announced with."""
    stays = {(one.kname, one.diskseq): one for one in story.of(DiskAttached) if one.disk and one.diskseq}
    for read in story.of(DiskProperties):
        stay = stays.get((read.kname, read.diskseq))
        if stay is None or read.moment != "attached" or read.disk != stay.disk:
            continue
        for field, name in SAME:
            said, found = getattr(stay, field), read.values.get(name, "")
            if said and found and said != found:
                yield f"{stay.disk} was announced with {field} {said}, and its properties say {found}"
        size = read.values.get("size", "")
        if size.isdecimal() and int(size) and stay.size and int(size) * SECTOR != stay.size:
            yield f"{stay.disk} was announced with {stay.size} bytes, and its properties say {int(size) * SECTOR}"


def _timeouts(story: Story) -> Iterator[str]:
    """Timeouts of commands at the beginning that plugpull did not set: a disk that hangs shows later than the record
    goes."""
    for name, what in TIMEOUTS.items():
        for read, value, _ in set_by_nobody(story, name):
            if read.moment == "begin":
                yield f"{what} of {read.disk} is {value} s at the beginning, and nobody set it to that"


def set_by_nobody(story: Story, name: str) -> Iterator[tuple[DiskProperties, str, frozenset[str]]]:
    """Readings of a timeout, at the beginning and at the end, that are neither what the disk came with nor what
    plugpull set one to, with their values and those that plugpull set."""
    came = {(one.kname, one.diskseq): one.values.get(name) for one in story.of(DiskProperties)[::-1]}
    given = frozenset(
        after for event in story.of(TimersSet) for path, _, after in event.changed if path.endswith(f"/{name}")
    )
    for read in story.of(DiskProperties) if given else ():
        value = read.values.get(name)
        if read.moment != "attached" and value and value != came.get((read.kname, read.diskseq)) and value not in given:
            yield read, value, given


def _unknown_devices(story: Story) -> Iterator[str]:
    """USB devices that came to an emulated controller of the rig, and are neither disks nor above them: nothing plugs
    them in. 1,325 of 1,325 devices were those of disks and hubs."""
    paths = {one.sysfs.partition("/block/")[0] for one in story.all_attachments if one.sysfs}
    controllers = {place_of(path).controller for path in paths} - {""}
    parts = {part for path in paths for part in path.split("/")}
    for event in story.of(Uevent):
        if (event.action, event.subsystem, event.devtype) != ("add", "usb", "usb_device") or event.disks:
            continue
        name = event.devpath.rpartition("/")[2]
        if "-" in name and name not in parts and place_of(event.devpath).controller in controllers:
            yield f"a USB device came at {name} at {event.at or 0.0:.2f} s, where the rig has none"
            return


def _not_announced(story: Story) -> Iterator[str]:
    """Block devices of the rig's controllers of which there is a uevent, and no announcement by the agent, which sends
    one with each: 15,995 of 15,995 times, however soon they left."""
    known = Counter(one.sysfs.removeprefix("/sys") for one in story.of(DiskAttached))
    controllers = {place_of(path).controller for path in known} - {""}
    came = Counter(
        event.devpath
        for event in story.of(Uevent)
        if (event.action, event.subsystem, event.devtype) == ("add", "block", "disk")
    )
    for path, times in came.items():
        if times > known[path] and place_of(path).controller in controllers:
            yield f"a disk came at {path.rpartition('/')[2]}, and what it was is not on record"
            return


def _unknown_serials(story: Story) -> Iterator[str]:
    """Disks that a census counted with a serial number that none had: 6,144 of 6,144 had been announced with theirs."""
    known = {one.serial for one in story.all_attachments}
    for census in story.of(Census) if known else ():
        for name in census.things.get("block device", ()):
            found = _SERIAL.search(name)
            if found is not None and found[1] not in known:
                yield f"a disk with the serial number {found[1]} was counted, and none was ever announced with it"
                return


# --- who reads a disk -------------------------------------------------------------------------------------------------


def _readers(story: Story) -> Iterator[str]:
    """Disks that were read for long while nothing on record read them."""
    if any((story.of(FioRan), story.of(ArrayActed), story.of(FileRoundBegun), story.of(LegReadBegun))):
        return
    scratch = [str(disk.get("name")) for disk in story.rig.get("disk", ()) if disk.get("scratch") is True]
    for disk in scratch:
        uses = sorted(_uses(story, disk))
        for part in story.readings(disk).parts:
            read = 0 if part.stream.columns[0].constant else _read_between(part, uses)
            if read > NOT_READ:
                yield f"{read} bytes were read from {disk}, and nothing on record read them"
                break


def _read_between(part: ReadingRun, uses: list[tuple[float, float]]) -> int:
    """Bytes read in a part outside its uses, which are in order."""
    numbers, total, free = part.column(0), 0, float("-inf")
    for begin, end in (*uses, (float("inf"), float("inf"))):
        if begin > free:
            first, last = bisect_left(part.at, free), bisect_right(part.at, begin) - 1
            if last > first:
                total += max(0, numbers[last] - numbers[first])
        free = max(free, end)
    return total


def _uses(story: Story, disk: str) -> Iterator[tuple[float, float]]:
    """The (begin, end) of what may read a disk, DUT seconds."""
    ends: dict[tuple[str, str], float] = {}
    over_at: list[LoadEnded | LedgerEnded | ReadBackEnded]
    over_at = [*story.of(LoadEnded), *story.of(LedgerEnded), *story.of(ReadBackEnded)]
    for over in over_at:
        if over.disk == disk and over.at is not None:
            ends[disk, over.job] = max(over.at, ends.get((disk, over.job), over.at))
    begins: list[LoadBegun | LedgerBegun | ReadBackBegun]
    begins = [*story.of(LoadBegun), *story.of(LedgerBegun), *story.of(ReadBackBegun)]
    for begun in begins:
        if begun.disk == disk:
            yield (begun.at or 0.0) - AROUND, ends.get((disk, begun.job), float("inf")) + AROUND
    steps: list[Acted | Verified | DiskRecovered | DiskStalled | DriveCacheSwitched] = [
        *story.of(Acted),
        *story.of(Verified),
    ]
    for step in (*steps, *story.of(DiskRecovered), *story.of(DiskStalled), *story.of(DriveCacheSwitched)):
        if step.disk == disk:
            took = step.seconds if isinstance(step, Acted) else 0.0
            yield (step.at or 0.0) - took - AROUND, (getattr(step, "until", None) or step.at or 0.0) + AROUND
    for stay in story.attachments(disk):
        yield (stay.at or 0.0) - AROUND, (stay.at or 0.0) + PROBED
    phases = [*story.of(Phase), None]
    for phase, following in pairwise(phases):
        if phase is not None and phase.name in USING:
            until = float("inf") if following is None else following.at or 0.0
            yield (phase.at or 0.0) - AROUND, until + AROUND
