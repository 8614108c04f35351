"""Questions about cuts that several checks have: whether a cut is reliable, and whom it took."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import NamedTuple

from plugpull.checks.contact import contacts
from plugpull.checks.limits import bench_kind
from plugpull.history.cut import Cut, Switching
from plugpull.history.events import DiskAttached, DiskDetached, Judged
from plugpull.history.samples import CounterStream
from plugpull.history.story import Story
from plugpull.kernel.diagnosis.story_log import log_of

SIGNS = frozenset({"uas.error", "scsi.error", "scsi.offline", "scsi.reset", "block.error", "storage.cache-error"})
"""Kinds of kernel messages which show that something happened to a disk."""


def cuts_of(story: Story, disk: str) -> tuple[Cut, ...]:
    """The cuts of ``disk`` as it met them: cuts that overlap and hold it off together are one."""
    return story.cuts_of(disk)


def not_executed(cut: Cut) -> str:
    """Why nothing can be concluded from this cut, as a sentence; empty if the switch obeyed."""
    return f"{cut.armed.point} was not cut: {cut.off.doubt}" if cut.off.doubt else ""


def away_since(story: Story, cut: Cut, disk: str) -> Cut | None:
    """The last cut before this one, if it was restored and the disk has been away since: ``returned`` judges it."""
    earlier = [one for one in cuts_of(story, disk) if one.armed.cut < cut.armed.cut and one.on.commanded]
    if not earlier or earlier[-1].times(disk).removed_at is None:
        return None
    return earlier[-1] if earlier[-1].times(disk).returned_at is None else None


SWITCHING = 0.5
"""Seconds that an emulated switch may take to acknowledge; 346 edges took 0.22 s at most. More than that is time of the
DUT."""


def switched_at(story: Story, switching: Switching) -> float | None:
    """When the switch had certainly obeyed, DUT seconds: when it acknowledged, or ``None`` if it did not. A real switch
    may be slow; an emulated one waits only for the DUT."""
    if switching.acknowledged_at is None or switching.commanded_at is None or bench_kind(story) != "virtual":
        return switching.acknowledged_at
    return min(switching.acknowledged_at, switching.commanded_at + SWITCHING)


def unbidden(story: Story, cut: Cut, disk: str) -> str:
    """A sentence if a disk came back at its place while its cut point was still off; otherwise empty. While a contact
    that bounces is made, a disk may come back."""
    removed_at = cut.times(disk).removed_at
    was = None if cut.off.commanded_at is None else story.attachment_at(disk, cut.off.commanded_at - cut.error)
    if removed_at is None or was is None:
        return ""
    restored = float("inf") if cut.on.commanded_at is None else cut.on.commanded_at - cut.error
    made = tuple(contacts(story, cut))
    for event in story.attachments(disk):
        if event.at is None or any(span.begin <= event.at <= span.end + READ_LATE for span in made):
            continue
        if removed_at < event.at < min(restored, cut.until) and event.place == was.place:
            return f"{disk} came back at {event.at:.2f} s though {cut.restored_point} was still off"
    return ""


READ_LATE = 1.1
"""Seconds by which a busy agent may read a uevent late. The kernel does not stamp uevents, so their time is when they
were read (``dut/agent/uevents.py``)."""


def listed(story: Story, stay: DiskAttached | DiskDetached) -> CounterStream:
    """The samples that list this attachment of a disk. A sample lists all attached disks."""
    key = (stay.kname, stay.diskseq)
    return story.samples.streams.get(key) or CounterStream(key)


def gone_by(story: Story, gone: DiskDetached | None, removed_at: float) -> float:
    """The latest time of a disk's removal: when its uevent was read, or an earlier sample from which on it is missing.
    The kernel sends the uevent before it takes the disk off its list (block/genhd.c, del_gendisk)."""
    if gone is None:
        return removed_at
    missing, table, own = removed_at, story.samples, listed(story, gone)
    for row in reversed(table.before(removed_at)):
        if own.has(row):
            break
        missing = table.at[row]
    return missing


def here_by(story: Story, now: DiskAttached) -> float:
    """The latest time of a disk's arrival: when its uevent was read, or a slightly earlier sample with it."""
    at = now.at or 0.0
    own = listed(story, now)
    for row in story.samples.between(at - READ_LATE, at) if now.diskseq else ():
        seen = story.samples.at[row]
        if seen < at and own.has(row):
            return seen or at
    return at


def mates_of(story: Story, cut: Cut) -> set[str]:
    """The victims of this cut and of those that are made at once or overlap with it: the worker of a hub
    (drivers/usb/core/hub.c, hub_event) handles one after the other."""
    own = (cut, *cut.joined)
    groups = {one.armed.group for one in own if one.armed.group}
    together = (*own, *(one for one in story.cut_records if one.armed.group in groups))
    return {victim for one in together for victim in one.armed.victims}


def by_effect(cut: Cut) -> str:
    """A note on a cut whose switch cannot be read back; empty if it was."""
    return "no read-back: verified by its effect alone" if cut.off.read_back is None else ""


def ineffective(story: Story, cut: Cut, disk: str, until: float) -> str:
    """Why a cut seems to have had no effect on a disk that stayed on the kernel's list until ``until``, as a sentence;
    empty if there is a sign of an effect.

    A disk whose bytes kept moving was not cut. Without any sign (a uevent, a kernel message, a load that stopped), it
    is not known to be cut either.
    """
    begin = cut.off.acknowledged_at or cut.off.commanded_at or 0.0
    ports = ", ".join(cut.off.ports)
    stayed = f"the switch {ports} said off, but {disk} stayed: the switch cut nothing"
    # I/O in flight may still complete, or be counted when it fails, shortly after the edge.
    late = begin + (until - begin) / 2
    moved_late = story.moved(disk, late, until)
    if moved_late is None:
        seen = _complained(story, cut, disk, until)
        return "" if seen else f"{stayed}, as far as can be seen without samples of it"
    if moved_late > 0:
        return f"{stayed} ({moved_late} bytes moved between {late:.2f} s and {until:.2f} s)"
    if story.load_at(disk, cut.off.commanded_at or begin) or _complained(story, cut, disk, until):
        return ""
    return f"{stayed}, or nothing shows that it did: no load was on {disk}"


def _complained(story: Story, cut: Cut, disk: str, until: float) -> bool:
    if cut.kernel_saw_at is not None:
        return True
    begin = (cut.off.commanded_at or 0.0) - cut.off.error
    attachment = story.attachment_at(disk, begin)
    if attachment is None:
        return False
    said = (line.event for line in log_of(story).timed if begin <= line.at <= until)
    return any(event is not None and event.kind in SIGNS and event.subject == attachment.kname for event in said)


def seconds(value: float) -> str:
    """A duration in words, such as "0.21 s"."""
    return f"{value:.2f} s" if value < 100 else f"{value:.0f} s"


def limit(value: float) -> str:
    return f"(limit {value:g} s)"


def judged_span(story: Story) -> tuple[float, float]:
    """The (begin, end) of the judged time of a scenario, DUT seconds: from its first event to its last judgement, or to
    its end if there is none. The last seconds are left out, because the agent may have had nothing to report."""
    begin, end = story.span or (0.0, 0.0)
    judged = [event.at for event in story.of(Judged) if event.at is not None]
    end = max(judged, default=end)
    return begin, max(begin, end - QUIET)


QUIET = 3.0
"""Seconds that may pass without a report of the agent. It exchanges clocks once a second (``dut/listener.py``)."""


def victims_of(story: Story, besides: Collection[str] = ()) -> tuple[str, ...]:
    """The victims of all cuts of the story, apart from ``besides``."""
    victims = (victim for cut in story.cut_records for victim in cut.armed.victims)
    return tuple(dict.fromkeys(victim for victim in victims if victim not in besides))


def miswired(story: Story) -> str:
    """Why the outlets of the bench differ from the rig file, as a sentence; empty without a sign of that.

    If a victim stayed although the switch reported off, and another disk left instead, somebody swapped two plugs. Then
    nothing that happened to either disk is a finding.
    """
    swap = next(iter(swapped(story)), None)
    if swap is None:
        return ""
    ports = ", ".join(swap.cut.off.ports)
    return (
        f"the outlets look swapped: {ports} said off for {swap.cut.armed.point}, but {swap.stayed} stayed and "
        f"{swap.left} left at {swap.at:.2f} s"
    )


class Swap(NamedTuple):
    """The disk ``left`` was removed at ``at``, DUT seconds, although ``stayed`` was to be cut."""

    cut: Cut
    stayed: str
    left: str
    at: float


def swapped(story: Story) -> tuple[Swap, ...]:
    """Each disk that left while a victim stayed."""
    return story.once(_swapped)


def _swapped(story: Story) -> tuple[Swap, ...]:
    return tuple(_swaps(story))


def _swaps(story: Story) -> Iterator[Swap]:
    for cut in story.cut_records:
        if cut.off.commanded_at is None or cut.off.doubt:
            continue
        begin = cut.off.commanded_at - cut.error
        until = min(cut.until, (cut.on.commanded_at or begin + LEFT_INSTEAD) + cut.error)
        mates = {victim for one in story.cut_records for victim in one.armed.victims if _overlap(one, begin, until)}
        stayed = [disk for disk in cut.armed.victims if _stayed(story, cut, disk, begin)]
        if not stayed:
            continue
        for event in story.of(DiskDetached):
            if event.disk and event.disk not in mates and event.at is not None and begin <= event.at <= until:
                yield Swap(cut, stayed[0], event.disk, event.at)


LEFT_INSTEAD = 5.0
"""Seconds after the edge of a permanent cut within which the removal of another disk counts as its effect."""


def _overlap(cut: Cut, begin: float, until: float) -> bool:
    off, on = cut.off.commanded_at, cut.on.commanded_at
    return off is not None and off - cut.error <= until and (on is None or on + cut.error >= begin)


def _stayed(story: Story, cut: Cut, disk: str, begin: float) -> bool:
    here = story.attachment_at(disk, begin)
    return here is not None and cut.times(disk).removed_at is None and not left_without_record(story, cut, disk)


def off_the_samples(story: Story, cut: Cut, disk: str) -> float | None:
    """The time from which on a cut disk is missing from the samples, DUT seconds; ``None`` if it stayed in them. A
    sample lists all attached disks."""
    begin = (cut.off.commanded_at or 0.0) - cut.error
    here = story.attachment_at(disk, begin)
    if here is None:
        return None
    until = min(cut.until, cut.on.commanded_at if cut.on.commanded_at is not None else float("inf"))
    table, own = story.samples, listed(story, here)
    after = [row for row in table.between(begin + 0.5, until) if begin + 0.5 < table.at[row] < until]
    if not after or own.has(after[-1]):
        return None
    return next(table.at[row] for row in after if not own.has(row))


def left_without_record(story: Story, cut: Cut, disk: str) -> str:
    """A sentence if the samples show that a disk left although no ``DiskDetached`` of it is on record; otherwise
    empty."""
    left = off_the_samples(story, cut, disk)
    here = story.attachment_at(disk, (cut.off.commanded_at or 0.0) - cut.error)
    if left is None or here is None:
        return ""
    what = f"{disk} ({here.kname}) is not on record as removed"
    return f"the record contradicts itself: {what}, and not in the samples from {left:.2f} s on"
