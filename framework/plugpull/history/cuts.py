"""Assembles each cut from its switch's edges, the kernel's messages, uevents and samples."""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeVar

from plugpull.history.attachments import Attachments, same_identity
from plugpull.history.cut import Cut, DiskTimes, Switching
from plugpull.history.events import CutArmed, CutSwitched, DiskAttached, Edge, Event, KernelMessage, Uevent
from plugpull.history.holds import Hold, begin_of, holds_of, is_mixed, joined, last_of, until_of
from plugpull.history.readings import Readings

E = TypeVar("E", bound=Event)

_DISCONNECT = re.compile(r"usb (\d+-[\d.]+): USB disconnect")

NO_READINGS = Readings()

STILL_BUSY = 1.0
"""Seconds before the cut within which a byte must have moved for the disk to count as busy when it was cut."""

SENT = 0.1
"""Seconds by which a command may seem to be sent before it was given, or after it was acknowledged."""


@dataclass(frozen=True)
class CutEvidence:
    """What cuts are assembled from: the events of one scenario that are not samples, its disks' attachments, and their
    counters."""

    events: Sequence[Event]
    attachments: Attachments
    readings: Mapping[str, Readings]

    def of(self, kind: type[E]) -> tuple[E, ...]:
        return self._by_type.get(kind, ())  # type: ignore[return-value]

    @cached_property
    def _by_type(self) -> dict[type[Event], tuple[Event, ...]]:
        found: defaultdict[type[Event], list[Event]] = defaultdict(list)
        for event in self.events:
            found[type(event)].append(event)
        return {kind: tuple(events) for kind, events in found.items()}

    @cached_property
    def signs(self) -> tuple[Uevent | KernelMessage, ...]:
        """What may be the kernel's first sign of a cut, in order of time."""
        found = [
            event
            for event in self.events
            if (isinstance(event, Uevent) and event.action == "remove")
            or (isinstance(event, KernelMessage) and event.facility == 0 and "USB disconnect" in event.text)
        ]
        return tuple(sorted((event for event in found if event.at is not None), key=lambda event: event.at or 0.0))


def assemble_cuts(evidence: CutEvidence) -> tuple[Cut, ...]:
    """Every armed cut, in the order they were armed."""
    armed = evidence.of(CutArmed)
    edges = evidence.of(Edge)
    by_cut: defaultdict[int, list[Edge]] = defaultdict(list)
    for edge in edges:
        by_cut[edge.cut].append(edge)
    single = {cut.cut: (_switching(by_cut[cut.cut], "off"), _switching(by_cut[cut.cut], "on")) for cut in armed}
    plain = [_plain(cut, *_with_mates(evidence, cut, armed, single)) for cut in armed]
    victims = dict.fromkeys(disk for cut in armed for disk in cut.victims)
    holds = {disk: holds_of(evidence.attachments, disk, plain) for disk in victims}
    cuts = [_complete(evidence, cut, plain, holds) for cut in plain]
    return tuple(replace(cut, kernel_skew=_kernel_skew(cut, cuts)) for cut in cuts)


def cuts_of_disk(evidence: CutEvidence, disk: str, cuts: Sequence[Cut]) -> tuple[Cut, ...]:
    """The assembled cuts of one disk as the disk met them: one for all that held it off together."""
    found: list[Cut] = []
    for hold in holds_of(evidence.attachments, disk, cuts):
        if is_mixed(hold):
            found.append(_of_hold(evidence, disk, hold, until_of(disk, hold, cuts)))
        else:
            found += hold
    return tuple(sorted(found, key=lambda cut: cut.armed.cut))


def _plain(armed: CutArmed, off: Switching, on: Switching) -> Cut:
    """A cut of which only the switchings are known so far."""
    if not (armed.permanent and on.commanded):
        return Cut(armed, off, on, math.inf, None, ())
    # Power restored on the way out: what comes back then does not count for the cut.
    healed = math.inf if on.commanded_at is None else on.commanded_at - on.error
    return Cut(armed, off, Switching("on"), healed, None, ())


def _complete(evidence: CutEvidence, cut: Cut, plain: Sequence[Cut], holds: Mapping[str, tuple[Hold, ...]]) -> Cut:
    """The same cut with what happened to its victims."""
    own = {disk: next(hold for hold in holds[disk] if cut in hold) for disk in cut.armed.victims}
    until = {disk: until_of(disk, hold, plain) for disk, hold in own.items()}
    made = _cut(evidence, cut.armed, cut.off, cut.on, min(until.values(), default=cut.until))
    disks = tuple(_share(evidence, cut, own[times.disk], times, until[times.disk]) for times in made.disks)
    return replace(made, disks=disks)


def _share(evidence: CutEvidence, cut: Cut, hold: Hold, times: DiskTimes, until: float) -> DiskTimes:
    """What of the times of a disk belongs to one cut of a hold: the first removes it, and it returns after the last."""
    if not is_mixed(hold):
        return times
    (whole,) = _of_hold(evidence, times.disk, hold, until).disks
    last = cut is last_of(hold)
    return DiskTimes(
        disk=times.disk,
        last_io_at=times.last_io_at,
        removed_at=whole.removed_at if cut is hold[0] else None,
        returned_at=whole.returned_at if last else None,
        first_io_at=whole.first_io_at if last else None,
    )


def _of_hold(evidence: CutEvidence, disk: str, hold: Hold, until: float) -> Cut:
    """One cut for all of a hold, with what happened to ``disk``."""
    cut = joined(hold)
    begin = begin_of(cut)
    times = _disk_times(evidence, disk, begin, begin - cut.off.error, cut.on, until)
    return replace(cut, until=until, disks=(times,))


def _with_mates(
    evidence: CutEvidence, cut: CutArmed, armed: Iterable[CutArmed], single: dict[int, tuple[Switching, Switching]]
) -> tuple[Switching, Switching]:
    """The switchings of one cut, in view of those made at once with it."""
    off, on = single[cut.cut]
    for switched in evidence.of(CutSwitched):
        if cut.cut in switched.cuts and switched.state == "off":
            off = replace(off, skew=switched.skew)
        elif cut.cut in switched.cuts:
            on = replace(on, skew=switched.skew)
    mates = [one for one in armed if cut.group and one.group == cut.group and set(one.victims) & set(cut.victims)]
    off_at = [at for one in mates if (at := single[one.cut][0].commanded_at) is not None]
    on_at = [at for one in mates if (at := single[one.cut][1].commanded_at) is not None]
    if off.commanded_at is not None:
        off = replace(off, commanded_at=min(off_at, default=off.commanded_at))
    if on.commanded_at is not None:
        on = replace(on, commanded_at=max(on_at, default=on.commanded_at))
    if on.acknowledged_at is not None:
        answers = [at for one in mates if (at := single[one.cut][1].acknowledged_at) is not None]
        on = replace(on, acknowledged_at=max(answers, default=on.acknowledged_at))
    return off, on


def _kernel_skew(cut: Cut, cuts: Iterable[Cut]) -> float | None:
    signs = [one.kernel_saw_at for one in cuts if cut.armed.group and one.armed.group == cut.armed.group]
    seen = [at for at in signs if at is not None]
    return max(seen) - min(seen) if len(seen) == len(signs) > 1 else None


def sent_otherwise(edge: Edge, commanded_at: float | None) -> bool:
    """Whether a command is said to have been sent before it was given, or after it was acknowledged: then one of the
    times is wrong. In 1,030 of 1,030 edges it was sent in between."""
    if edge.sent is None:
        return False
    early = commanded_at is not None and edge.sent < commanded_at - max(edge.error, SENT)
    return early or (edge.at is not None and edge.sent > edge.at + max(edge.error, SENT))


def _switching(edges: Iterable[Edge], state: str) -> Switching:
    """One switching of the cut that all these edges are of."""
    own = [edge for edge in edges if edge.state == state]
    if not own:
        return Switching(state)
    ports = tuple(dict.fromkeys(f"{edge.switch} port {edge.port}" for edge in own))
    commanded: dict[str, float | None] = {}
    acknowledged: dict[str, float | None] = {}
    confirmed: dict[str, bool] = {}
    for edge in own:
        port = f"{edge.switch} port {edge.port}"
        if edge.phase == "commanded":
            commanded.setdefault(port, edge.at)
        elif edge.phase == "acknowledged":
            acknowledged[port] = edge.at
            if edge.sent is not None and not sent_otherwise(edge, commanded.get(port)):
                commanded[port] = edge.sent
        elif edge.phase == "read-back":
            confirmed[port] = edge.agrees  # the last answer counts: a board may need a moment
    began = [at for at in commanded.values() if at is not None]
    answered = [at for at in acknowledged.values() if at is not None]
    return Switching(
        state,
        commanded=bool(commanded),
        commanded_at=min(began, default=None),
        acknowledged_at=max(answered) if len(answered) == len(ports) else None,
        read_back=all(confirmed.get(port, True) for port in ports) if confirmed else None,
        ports=ports,
        error=max(0.0, *(edge.error for edge in own)),
        complete={f"{edge.switch} port {edge.port}" for edge in own if edge.phase == "commanded"} == set(ports),
    )


def _cut(evidence: CutEvidence, armed: CutArmed, off: Switching, on: Switching, until: float) -> Cut:
    if off.commanded_at is None:
        disks = tuple(DiskTimes(disk=disk) for disk in armed.victims)
        return Cut(armed, off, on, until, None, disks)
    begin = off.commanded_at - off.error
    disks = tuple(_disk_times(evidence, disk, off.commanded_at, begin, on, until) for disk in armed.victims)
    return Cut(armed, off, on, until, _kernel_saw_at(evidence, armed, off.commanded_at, begin, until), disks)


def _kernel_saw_at(
    evidence: CutEvidence, armed: CutArmed, commanded_at: float, begin: float, until: float
) -> float | None:
    paths = [evidence.attachments.at(disk, commanded_at) for disk in armed.victims]
    sysfs = "/".join(attachment.sysfs for attachment in paths if attachment is not None)
    signs: list[float] = []
    known = evidence.signs
    for event in known[bisect_left(known, begin, key=lambda one: one.at or 0.0) :]:
        if event.at is None or event.at >= until:
            break
        if isinstance(event, Uevent):
            about = bool(set(event.disks) & set(armed.victims))
        else:
            # A hub's own disconnect is one too: the hub is part of its disks' paths.
            gone = _DISCONNECT.search(event.text)
            about = gone is not None and (not sysfs or gone.group(1) in sysfs.split("/"))
        if about:
            signs.append(event.at)
    return min(signs, default=None)


def _disk_times(
    evidence: CutEvidence, disk: str, commanded_at: float, begin: float, on: Switching, until: float
) -> DiskTimes:
    # The uevent can carry an earlier stamp than the command, within the error of the clocks' mapping.
    cut_off = evidence.attachments.at(disk, begin) or evidence.attachments.at(disk, commanded_at)
    if cut_off is None:
        return DiskTimes(disk=disk)
    removed_at = evidence.attachments.detached_at(cut_off)
    if removed_at is not None and removed_at >= until:
        removed_at = None
    last_io_at = _last_io_at(evidence, cut_off, begin - STILL_BUSY, until)
    if removed_at is None:
        return DiskTimes(disk=disk, last_io_at=last_io_at)
    earliest = removed_at if on.commanded_at is None else on.commanded_at - on.error
    back = next(
        (
            event
            for event in evidence.attachments.of(disk)
            if event.at is not None
            and earliest <= event.at < until
            and same_identity(event, cut_off)
            and (event.at >= removed_at or _elsewhere(event, cut_off))
        ),
        None,
    )
    return DiskTimes(
        disk=disk,
        last_io_at=last_io_at,
        removed_at=removed_at,
        returned_at=back.at if back else None,
        first_io_at=_first_io_at(evidence, back) if back else None,
    )


def _elsewhere(one: DiskAttached, before: DiskAttached) -> bool:
    """Whether a disk was attached in another place: there it may be before the kernel notices that it left this one."""
    return bool(one.place and before.place and one.place != before.place)


def _last_io_at(evidence: CutEvidence, attachment: DiskAttached, begin: float, until: float) -> float | None:
    own = evidence.readings.get(attachment.disk, NO_READINGS).of((attachment.kname, attachment.diskseq)).before(until)
    last: float | None = None
    bytes_before: int | None = None
    for part in reversed(own.parts):
        for place in range(len(part) - 1, -1, -1):
            moved = part.moved(place)
            if bytes_before is not None and bytes_before > moved:
                return last
            last, bytes_before = part.at[place], moved
            if last < begin:
                return None
    return None


def _first_io_at(evidence: CutEvidence, attachment: DiskAttached) -> float | None:
    own = evidence.readings.get(attachment.disk, NO_READINGS).of((attachment.kname, attachment.diskseq))
    for part in own.parts:
        for place in range(bisect_left(part.at, attachment.at or 0.0), len(part)):
            if part.moved(place) > 0:
                return part.at[place]
    return None
