"""Which messages and removals a cut explains.

- For the cut disk: everything from the cut until it is back. For the attachment that was cut: everything after it,
  since failed writes are logged late.
- For the hubs and the controller above it: failing requests until the disk is back, but neither a reset nor a hub that
  does not answer.
- For everything else: nothing. No cut explains a host controller that died.

Messages that disks cause when they come up are usual until the disk is up.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from plugpull.history.cut import Cut
from plugpull.history.events import DiskRecovered, DiskStalled, Edge, Uevent
from plugpull.history.story import Story
from plugpull.history.suspensions import suspensions
from plugpull.kernel.diagnosis.arrivals import attached_times
from plugpull.kernel.diagnosis.scope import About, Level, Scope, Stay
from plugpull.kernel.diagnosis.sleep import slept_unasked
from plugpull.kernel.diagnosis.story_log import log_of

MARGIN = 0.05
"""Seconds by which the stamps of the kernel log may be earlier than the edge that caused them."""
UNMEASURED = 0.25
"""The same for histories that do not record the error of the mapping: 0.14 s were seen on a busy emulated DUT."""
COMING_UP = 10.0
"""Seconds before the uevent of a disk, and ..."""
UP = 3.0
"""... after it, in which its "Attached" message is searched. It came 0 to 0.13 s before the uevent, 396 times."""
SETTLING = 1.0
"""Seconds after "Attached" in which udev's first reads are part of coming up, unless something is cut meanwhile."""
SETTLED = 1.0
"""Seconds after the return of a cut disk in which the cut still explains errors of its hubs and controller."""
CALM = 10.0
"""Seconds after a cut for good in which it explains errors of the disk's hubs and controller."""
REVIVAL = 30.0
"""Seconds after power was restored in which the cut of a disk that stays away explains errors of its hubs and
controller."""

_RESET = re.compile(r"Power-on or device reset occurred")
_USUAL = re.compile(rf"{_RESET.pattern}|not running at top speed")
_DIRTY = re.compile(
    r"not properly unmounted|not clean|kicking non-fresh|mounting (?:unchecked fs|fs with errors)"
    r"|recovery (?:required|complete)|error count since last fsck|(?:initial|last) error at time|\bbdev \S+ errs: "
    r"|FAT-fs \(\S+\): (?:error, |Filesystem has been set read-only|Corrupted directory|Couldn't remove)"
    r"|exFAT-fs \(\S+\): (?:(?:abnormal )?access to deleted|invalid start|requested sector|start_clu|valid_size)"
    r"|ntfs3(?:\(\S+\)|: \S+): (?:failed to replay|volume is dirty|It is recommend?ed to use chkdsk|Inode r=|MFT: r="
    r"|Mark volume as dirty|ino=)"
    r"|F2FS-fs \(\S+\): invalid (?:crc|cp_pack_total_block_count)"
)
"""Messages of filesystems and arrays that are used again after their disk disappeared during use. FAT, exFAT and ntfs3
write no journal, so that their tables may contradict each other from then on. f2fs has two checkpoints and tries both:
the one that was being written is invalid (fs/f2fs/checkpoint.c, get_checkpoint_version)."""
_NOT_SHARED = frozenset({"usb.overcurrent", "usb.reset", "usb.disconnect"})
"""Events that the loss of a disk does not cause at the hub above it."""
_NO_BITMAP = re.compile(r"^md\d+: (?:failed to create bitmap|invalid bitmap file superblock)")
"""The bitmap of an array is on each member, so that the loss of one does not spoil it (drivers/md/md-bitmap.c)."""
_NO_MEMORY = re.compile(
    r"[Cc](?:ouldn't|ould not|an't|annot) alloc|[Oo]ut of memory|[Nn]ot enough memory|[Nn]o memory for "
)
"""The kernel had no memory for something: a plug that is pulled is no reason for that."""
_SILENT = re.compile(r"hub_(?:ext_port|port|hub)_status failed \(err = -110\)")
"""A hub did not answer within a second when it was asked for its status (drivers/usb/core/hub.c, USB_STS_TIMEOUT). A
plug that is pulled can disturb one transfer (-71), but not keep the hub from answering."""
_UNREADABLE = re.compile(r"hub_(?:ext_port|port|hub)_status failed \(err = -\d+\)")
"""On an emulated bus nothing disturbs a transfer: a hub whose status cannot be read is in error or gone."""
_UNANSWERED = re.compile(
    r"^usb \S+: (?:device descriptor read/|device not accepting address |device firmware changed|can't set config )"
)
"""A disk that is reset does not answer, or is another afterwards (drivers/usb/core/hub.c, hub_port_init and
usb_reset_and_verify_device). None of 57 healthy resets logged one of them."""
_HANDLED = re.compile(
    r"^usb \S+: reset \S+ USB device |: uas_eh_device_reset_handler (?:start|success)$"
    r"|\] tag#\d+ (?:uas_eh_abort_handler|uas_zap_pending|CDB:) | urb: no pending cmd for uas-tag \d+$"
)
"""What the error handlers of usb-storage and uas say when they abort a command and reset the disk (drivers/usb/storage,
uas.c and transport.c). Anything more, such as a command that failed in the end, is not explained by a command that was
not answered once."""
_UNCLAIMED = re.compile(r" urb: no pending cmd for uas-tag (\d+)$")
"""The disk answered a command that uas does not know any more: one that was aborted."""
_ABORTED = re.compile(r" uas_eh_abort_handler .*?\buas-tag (\d+)\b")
NEVER = frozenset({"hcd.died"})
"""Kinds of messages that no cut explains."""
_GIVEN_UP = re.compile(
    r"xHCI host not responding to stop endpoint|WARNING: Host (?:System|Controller) Error"
    r"|root hub lost power or was reset|Abort failed to stop command ring"
)
"""Other messages of that kind: the driver gives the controller up or halts it at the same time
(drivers/usb/host/xhci-ring.c), or the controller has lost its state (drivers/usb/core/hub.c), which happens only to
suspended machines."""


WAKING = 2.0
"""Seconds after a suspension in which what happened as its devices came back may be logged. The kernel resumes them
before it lets processes run, so that in 6 suspensions each reset was logged 3.9 s and more before the end."""
_FAILED = frozenset({"block.error", "fs.error", "fs.readonly", "md.failure", "scsi.offline", "storage.cache-error"})
_POWERLESS = re.compile(r"root hub lost power or was reset")
_NOT_AWAKE = re.compile(r"\bPM: (?:dpm_run_callback\(\)|(?:device \S+ )?failed to)|\bPM: .*\breturns -\d+")
"""A device could not be suspended or did not come back (drivers/base/power/main.c): sleeping is no reason for that."""
_FAILED_COMMAND = re.compile(r"FAILED Result|\bSense Key :|\bfailed: Result")


def failed(kind: str, body: str) -> bool:
    """Whether a message is about a request that failed in the end. Neither sleep nor a reset on request is a reason:
    the kernel lets no request through to a disk that sleeps, and sends again what a reset has ended."""
    return kind in _FAILED or (kind == "scsi.error" and bool(_FAILED_COMMAND.search(body)))


def never(kind: str, body: str) -> bool:
    """Whether a message reports that a host controller died, which no cut explains."""
    return kind in NEVER or bool(_GIVEN_UP.search(body))


def usual(body: str) -> bool:
    """Whether a message is one that disks cause when they come up: a reset that the device reports to the SCSI layer,
    or a link slower than the disk supports (which ``returned`` judges)."""
    return bool(_USUAL.search(body))


def margin(story: Story) -> float:
    """Seconds by which the time stamps of this story's kernel log may be early."""
    readies = story.readies
    known = [event.log_clock_error for event in readies if event.log_clock_error is not None]
    return MARGIN + max(known) if known else UNMEASURED


@dataclass(frozen=True)
class Window:
    """The time in which a cut of ``point`` explains messages about one victim (``end``), and about the hubs and the
    controller above it (``shared_end``), DUT seconds."""

    point: str
    disk: str
    begin: float
    end: float
    shared_end: float

    def covers(self, at: float) -> bool:
        return self.begin <= at <= self.end

    def shares(self, at: float) -> bool:
        return self.begin <= at <= self.shared_end


class Expected:
    """What the cuts of a story explain. ``miswired`` are (disk, cut) pairs of disks that disappeared instead of a
    victim: the cut explains messages about them as well."""

    def __init__(self, story: Story, scope: Scope | None = None, miswired: Iterable[tuple[str, Cut]] = ()) -> None:
        self._story = story
        self._scope = scope or Scope(story)
        self.windows = (*_windows(story, miswired), *_unarmed(story))
        self._recovered = tuple(_recovered(story))
        self._stalled = tuple(_stalled(story))
        self._emulated = (story.rig.get("dut") or {}).get("kind") == "virtual"
        slept = (*suspensions(story), *slept_unasked(story))
        self._slept = tuple((begin - margin(story), end) for begin, end in slept)

    def message(self, about: About, kind: str, at: float, body: str = "") -> bool:
        """Whether a cut explains a message about these. ``kind`` is empty for an uncatalogued one."""
        asleep = self.slept(at) and not failed(kind, body) and not _NOT_AWAKE.search(body)
        if (asleep and (not never(kind, body) or _POWERLESS.search(body))) or self._reset_by_sleep(about, at, body):
            return True
        if never(kind, body) or _NO_BITMAP.search(body) or _NO_MEMORY.search(body):
            return False
        if _DIRTY.search(body):
            return any(window.disk in about.disks and window.begin <= at for window in self.windows)
        recovered = any(window.shares(at) and window.disk in about.disks for window in self._recovered)
        if recovered and not failed(kind, body) and not _UNANSWERED.search(body):
            return True
        stalls = [one for one in self._stalled if one.covers(at) and one.disk in about.disks]
        if stalls and _HANDLED.search(body) and self._was_aborted(body, min(one.begin for one in stalls), at):
            return True
        if about.level in (Level.DISK, Level.ARRAY):
            return any(self.of_stay(stay, at) for stay in about.stays)
        not_awake = bool(_NOT_AWAKE.search(body))
        silent = (_UNREADABLE if self._emulated else _SILENT).search(body)
        if about.level is Level.HUB and (not_awake or kind in _NOT_SHARED or silent):
            return self.in_blast(about.name, at) and not (silent and self._is_back(about.name, at))
        if not_awake:
            return False  # a disk that is pulled keeps no controller from waking
        return any(window.shares(at) and window.disk in about.disks for window in self.windows)

    def _was_aborted(self, body: str, begin: float, at: float) -> bool:
        """Whether the command that a message names as unknown was aborted before: another one is lost. True for every
        other message."""
        unclaimed = _UNCLAIMED.search(body)
        if unclaimed is None:
            return True
        aborts = (_ABORTED.search(line.body) for line in log_of(self._story).own_between(begin, at))
        return any(abort is not None and abort[1] == unclaimed[1] for abort in aborts)

    @staticmethod
    def powerless(body: str) -> bool:
        """Whether a message says that a controller lost its state, as one that slept may."""
        return bool(_POWERLESS.search(body))

    def slept(self, at: float) -> bool:
        """Whether the DUT was suspended at ``at``, or was waking its devices: each is reset then."""
        return any(begin <= at <= end + WAKING for begin, end in self._slept)

    def _reset_by_sleep(self, about: About, at: float, body: str) -> bool:
        """Whether a disk reports the reset of its sleep with its first command after it, however late that comes."""
        if about.level is not Level.DISK or not _RESET.search(body):
            return False
        until = max((end for _, end in self._slept if end <= at), default=None)
        if until is None or not all(stay.begin < until for stay in about.stays):
            return False
        return all(line.body != body or line.at >= at for line in log_of(self._story).own_between(until, at))

    def of_stay(self, stay: Stay, at: float) -> bool:
        """Whether a cut explains messages about this attachment of a disk at ``at``."""
        return any(
            window.disk == stay.disk
            and (window.covers(at) or (stay.begin < window.begin <= at and stay.end < math.inf))
            for window in self.windows
        )

    def of_disk(self, disk: str, at: float) -> bool:
        """Whether ``disk`` is cut at ``at``, or was cut and is not back yet."""
        return any(window.disk == disk and window.covers(at) for window in self.windows)

    def any_at(self, at: float) -> bool:
        """Whether anything is cut at ``at``."""
        return any(window.shares(at) for window in self.windows)

    def all_cut(self, disks: Iterable[str], at: float) -> bool:
        """Whether each of these disks is cut at ``at``, or has just come back."""
        return set(disks) <= {window.disk for window in self.windows if window.shares(at)}

    def in_blast(self, path: str, at: float) -> bool:
        """Whether the USB device ``path`` (``1-2.3``) is at or below a point that is cut at ``at``."""
        for window in self.windows:
            if window.begin <= at <= max(window.shared_end, window.end):
                root = self._root(window)
                if root is None or _at_or_below(path, root):
                    return True
        return False

    def _is_back(self, path: str, at: float) -> bool:
        """Whether the USB device ``path`` came before ``at`` and was not taken away again."""
        named = (one for one in self._story.of(Uevent) if one.devpath.endswith(f"/{path}"))
        moves = [one.action for one in named if (one.at or 0.0) < at - margin(self._story)]
        return [action for action in moves if action in ("add", "remove")][-1:] == ["add"]

    def hub_is_cut(self, at: float) -> bool:
        """Whether a hub, or the whole DUT, is cut at ``at``."""
        rig = self._story.rig
        open_now = (window for window in self.windows if window.begin <= at <= max(window.shared_end, window.end))
        return any(_depth_cut(rig, window.point, window.disk) is not None for window in open_now)

    # --- coming up -----------------------------------------------------------------------------------------------

    def coming_up(self, stay: Stay, at: float) -> bool:
        """Whether this attachment of a disk is coming up at ``at``: it has no uevent yet, or is not up."""
        return at <= self._up(stay)

    def _up(self, stay: Stay) -> float:
        lines = attached_times(self._story).get(stay.kname, [])
        near = [at for at in lines if stay.begin - COMING_UP <= at <= stay.begin + UP]
        if stay.begin == -math.inf:
            return stay.begin
        up = min(near, key=lambda at: abs(at - stay.begin), default=stay.begin)
        cut_meanwhile = any(up < window.begin <= up + SETTLING for window in self.windows)
        return up if cut_meanwhile else up + SETTLING

    # --- what is cut ---------------------------------------------------------------------------------------------

    def _root(self, window: Window) -> str | None:
        """USB path of what the window's cut takes away: the victim, or a hub above it. ``None``: it is not on record
        where the victim was."""
        stay = self._stay_before(window)
        if stay is None:
            return None
        depth = _depth_cut(self._story.rig, window.point, window.disk)
        hubs = stay.place.hubs
        return hubs[depth] if depth is not None and depth < len(hubs) else stay.place.usb

    def _stay_before(self, window: Window) -> Stay | None:
        stays = [stay for stay in self._scope.stays if stay.disk == window.disk and stay.begin <= window.begin]
        return max(stays, key=lambda stay: stay.begin, default=None)


def _windows(story: Story, miswired: Iterable[tuple[str, Cut]]) -> Iterator[Window]:
    pairs = [(disk, cut) for cut in story.cut_records for disk in cut.armed.victims]
    for disk, cut in (*pairs, *miswired):
        point = cut.armed.point
        if cut.off.commanded_at is None:
            # The cut was armed, but it is not on record whether it was made. It may have been made at any time since.
            yield Window(point, disk, cut.armed.at or 0.0, math.inf, math.inf)
            continue
        begin = cut.off.commanded_at - cut.off.error - margin(story)
        returned = _returned_at(story, disk, cut)
        if returned is not None:
            yield Window(point, disk, begin, returned, returned + SETTLED)
        elif cut.on.commanded_at is not None:
            yield Window(point, disk, begin, math.inf, cut.on.commanded_at + REVIVAL)
        else:
            calm = (cut.off.acknowledged_at or begin) + CALM
            yield Window(point, disk, begin, math.inf, calm if cut.armed.permanent else math.inf)


def _recovered(story: Story) -> Iterator[Window]:
    """Windows in which the kernel was asked to reset a disk: they explain its messages, and not that the disk left."""
    for event in story.of(DiskRecovered):
        begin = (event.at or 0.0) - margin(story)
        # One that was over before it began has a wrong time, so that its resets may be any.
        end = math.inf if event.until < begin else event.until + SETTLED
        yield Window("recovery", event.disk, min(begin, event.until), end, end)


def _stalled(story: Story) -> Iterator[Window]:
    """Windows in which a disk stood still, and was recovered: they explain what error handlers say."""
    for event in story.of(DiskStalled):
        begin, end = (event.at or 0.0) - margin(story), event.until + SETTLED
        yield Window("stall", event.disk, begin, end, end)


def _unarmed(story: Story) -> Iterator[Window]:
    """Windows for edges of cuts whose arming is not on record: every disk behind the point may have been cut."""
    armed = {cut.armed.cut for cut in story.cut_records}
    for edge in story.of(Edge):
        if edge.cut in armed or edge.state != "off" or edge.at is None:
            continue
        for disk in dict.fromkeys(one.disk for one in story.all_attachments if one.disk):
            alone = edge.point.rpartition(".")[0] == disk
            if alone or _depth_cut(story.rig, edge.point, disk) is not None:
                yield Window(edge.point, disk, edge.at - edge.error - margin(story), math.inf, math.inf)


def _returned_at(story: Story, disk: str, cut: Cut) -> float | None:
    """When the disk was attached again after this cut, and where it was before no more. A disk that stayed attached is
    back as soon as power is."""
    times = cut.times(disk)
    if times.returned_at is not None:
        return max(times.returned_at, times.removed_at or 0.0)
    removed = times.removed_at or cut.off.commanded_at or 0.0
    again = [one.at for one in story.attachments(disk) if one.at is not None and removed < one.at < cut.until]
    if again or disk not in cut.armed.victims or times.removed_at is not None:
        return min(again, default=None)
    on = cut.on.acknowledged_at or cut.on.commanded_at
    return None if on is None else on + SETTLED


# --- the rig's tree ------------------------------------------------------------------------------------------------


def _depth_cut(rig: dict[str, Any], point: str, disk: str) -> int | None:
    """The depth of the highest hub above ``disk`` that loses power or link when ``point`` is cut: 1 for a hub in a port
    of the controller, 0 for the whole DUT; ``None`` if only the disk is cut. Devices on one outlet are cut together."""
    device, _, kind = point.rpartition(".")
    if device == "dut":
        return 0
    hubs = {str(hub.get("name")): hub for hub in _tables(rig, "hub")}
    disks = {str(each.get("name")): each for each in _tables(rig, "disk")}
    outlet = {**hubs, **disks}.get(device, {}).get(kind)
    chain = enumerate(hub_chain(rig, disk), 1)
    cut = (depth for depth, hub in chain if hub == device or (outlet and hubs[hub].get(kind) == outlet))
    return next(cut, None)


def hub_chain(rig: dict[str, Any], disk: str) -> tuple[str, ...]:
    """Names of the hubs above a disk, the nearest to the controller first."""
    hubs = {str(hub.get("name")): hub for hub in _tables(rig, "hub")}
    disks = {str(each.get("name")): each for each in _tables(rig, "disk")}
    chain: list[str] = []
    holder = str(disks.get(disk, {}).get("at", "")).rpartition(".")[0]
    while holder in hubs and holder not in chain:
        chain.insert(0, holder)
        holder = str(hubs[holder].get("at", "")).rpartition(".")[0]
    return tuple(chain)


def _tables(rig: dict[str, Any], key: str) -> list[dict[str, Any]]:
    found = rig.get(key)
    return [table for table in found if isinstance(table, dict)] if isinstance(found, list) else []


def _at_or_below(path: str, root: str) -> bool:
    """Whether a USB path is ``root`` or below it. Both halves of a USB 3 hub have the same port numbers."""
    if not root:
        return False
    if root.startswith("usb"):
        return path == root or path.startswith(f"{root.removeprefix('usb')}-")
    mine, theirs = path.partition("-")[2], root.partition("-")[2]
    return bool(mine) and (mine == theirs or mine.startswith(f"{theirs}."))
