"""What happened to each device, in order: filesystem, SCSI, block and USB events with their spacing, repeats folded.

Two things are read: a plain log (``story_of_log``), where who is who has to be gathered from its own lines, and a
scenario's history (``story_of_history``), where the uevents tell. ``culprit.py`` says who is probably to blame.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

from plugpull.history.story import Story
from plugpull.kernel.catalogue.classify import KernelEvent
from plugpull.kernel.catalogue.entry import Severity
from plugpull.kernel.catalogue.line import LogLine
from plugpull.kernel.catalogue.prefix import split_prefix
from plugpull.kernel.diagnosis.device_table import Whois
from plugpull.kernel.diagnosis.expected import Expected, usual
from plugpull.kernel.diagnosis.log_reader import LogEvent
from plugpull.kernel.diagnosis.reports import reports_in
from plugpull.kernel.diagnosis.scope import WARNING, Level, Scope, place_of
from plugpull.kernel.diagnosis.story_log import log_of

MOST = 200_000
"""Events of one log that are told as a story: what is kept in memory is bounded by it."""
TOGETHER = 1.0
"""Seconds between two events of a kind up to which they are told as one, even if one or two other kinds alternate with
them: an abort, its command and the block layer's complaint come by the dozen."""
LOOK_BACK = 3
KERNEL = "kernel"
_IDS = re.compile(r"^usb (\S+): New USB device found, idVendor=([\da-f]{4}), idProduct=([\da-f]{4})")


@dataclass(frozen=True)
class Device:
    """A disk, or what a log shows of one; or a hub, a controller, the kernel. ``port`` is its USB path and ``hubs``
    those above it; ``ids`` the bridge's VID:PID; ``identity`` what tells two devices in one port apart. Empty: not
    known."""

    key: str
    name: str
    level: Level = Level.DISK
    port: str = ""
    hubs: tuple[str, ...] = ()
    controller: str = ""
    ids: str = ""
    driver: str = ""
    identity: str = ""

    @property
    def title(self) -> str:
        if self.level is not Level.DISK:
            return self.name
        known = (f"usb {self.port}" if self.port and self.port not in self.name else "", self.ids, self.driver)
        told = ", ".join(part for part in known if part)
        return f"{self.name} ({told})" if told else self.name


@dataclass(frozen=True)
class Happening:
    """One event. ``place`` is its line in a log, or its number; ``devices`` are keys; ``expected``: a cut explains
    it. ``driver`` is the device's at that moment, where it is known."""

    place: int
    at: float | None
    event: KernelEvent
    body: str
    devices: tuple[str, ...]
    level: Level
    expected: bool = False
    driver: str = ""
    frames: tuple[str, ...] = ()

    @property
    def kind(self) -> str:
        return self.event.kind


@dataclass
class Step:
    """One or several events of a kind. ``at`` and ``until`` are those of the first and the last."""

    kind: str
    place: int
    at: float | None
    until: float | None
    text: str
    count: int = 1


@dataclass(frozen=True)
class DeviceStory:
    device: Device
    steps: tuple[Step, ...]
    troubled: bool


@dataclass(frozen=True)
class ErrorStory:
    """``happenings`` is what the stories of the devices are made of. ``cut_short``: there was more than is told.
    ``unclassified`` are warnings and worse that name a disk and are in no catalogue: what it could grow by."""

    devices: tuple[DeviceStory, ...] = ()
    happenings: tuple[Happening, ...] = ()
    cut_short: bool = False
    unclassified: tuple[str, ...] = ()

    @property
    def troubled(self) -> tuple[DeviceStory, ...]:
        return tuple(story for story in self.devices if story.troubled)


# --- from a log -------------------------------------------------------------------------------------------------


def story_of_log(events: Iterable[LogEvent]) -> ErrorStory:
    """The story of one log. Its lines are its only witness: a name that they explain nowhere stands for itself."""
    read = list(islice(events, MOST + 1))
    told = [found for found in read[:MOST] if not found.in_earlier_report]
    bodies = [(found.line, split_prefix(found.event.text)[1].strip()) for found in told]
    whois = Whois(bodies)
    devices: dict[str, Device] = {}
    happenings = []
    for found, (line, body) in zip(told, bodies, strict=True):
        keys: tuple[str, ...] = ()
        level = Level.NOTHING
        if found.event.alarming:
            body = found.report.headline if found.report else body
            device = Device(KERNEL, "the kernel", Level.NOTHING)
        else:
            who = whois.who(line, body)
            device = Device(**who._asdict())
        if device.key:
            devices[device.key] = _merged(devices.get(device.key), device)
            keys, level = (device.key,), device.level
        frames = found.report.frames if found.report else ()
        happenings.append(
            Happening(line, found.time, found.event, body, keys, level, driver=device.driver, frames=frames)
        )
    return _told(devices, happenings, cut_short=len(read) > MOST)


def _merged(one: Device | None, two: Device) -> Device:
    """A replugged disk has another name: it is called by both."""
    if one is None or one.name == two.name or two.name in one.name.split(", "):
        return one or two
    # What is known of it by its port alone gets its name as soon as there is one.
    generic = one.name == f"usb {one.port}"
    if two.name == f"usb {two.port}":
        return one
    return Device(**{**vars(two), "name": two.name if generic else f"{one.name}, {two.name}"})


# --- from a history ---------------------------------------------------------------------------------------------


def story_of_history(story: Story) -> ErrorStory:
    """The story of one scenario, by disks of the rig. What a cut explains is marked as expected."""
    lines = log_of(story).own_timed
    scope = story.once(Scope)
    cuts = Expected(story, scope)
    devices: dict[str, Device] = {}
    happenings = []
    unclassified = []
    for number, line in enumerate(lines, 1):
        event = line.event
        if (event is None and line.level > WARNING) or (event is not None and event.alarming):
            continue
        about = scope.about(line.names, line.at)
        if event is None:
            if about.level is Level.DISK and about.disks:
                unclassified.append(line.text)
            continue
        keys = about.disks
        if about.level in {Level.HUB, Level.CONTROLLER} and about.disks:
            keys = (about.name,)
            devices.setdefault(about.name, Device(about.name, f"{about.level} {about.name}", about.level))
        expected = cuts.message(about, event.kind, line.at, line.body)
        attached = story.attachment_at(about.disks[0], line.at) if about.disks else None
        driver = attached.driver if attached else ""
        happenings.append(Happening(number, line.at, event, line.body, keys, about.level, expected, driver))
    devices |= _disks(story, lines)
    reports = reports_in(lines)
    if reports:
        devices[KERNEL] = Device(KERNEL, "the kernel", Level.NOTHING)
    for report in reports:
        at = lines[report.first - 1].at
        happenings.append(
            Happening(report.first, at, report.event, report.headline, (KERNEL,), Level.NOTHING, frames=report.frames)
        )
    told = _told(devices, sorted(happenings, key=lambda one: one.place))
    return replace(told, unclassified=tuple(dict.fromkeys(unclassified)))


def _disks(story: Story, lines: Iterable[LogLine]) -> dict[str, Device]:
    found = (_IDS.match(line.body) for line in lines)
    ids = {one.group(1): f"{one.group(2)}:{one.group(3)}" for one in found if one}
    devices = {}
    for disk in dict.fromkeys(attached.disk for attached in story.all_attachments if attached.disk):
        attachments = story.attachments(disk)
        place = place_of(attachments[-1].sysfs)
        devices[disk] = Device(
            disk,
            f"{disk} ({', '.join(dict.fromkeys(one.kname for one in attachments))})",
            port=place.usb,
            hubs=place.hubs,
            controller=place.controller,
            ids=ids.get(place.usb, ""),
            driver=attachments[-1].driver,
            identity=disk,
        )
    return devices


# --- told -------------------------------------------------------------------------------------------------------


@dataclass
class _Telling:
    steps: list[Step] = field(default_factory=list)
    troubled: bool = False

    def take(self, happening: Happening) -> None:
        bad = happening.event.severity is not Severity.INFO and not happening.expected
        self.troubled |= bad and not usual(happening.body)
        for step in self.steps[: -LOOK_BACK - 1 : -1]:
            if step.kind == happening.kind and (step is self.steps[-1] or _close(step.until, happening.at)):
                step.count += 1
                step.until = happening.at
                return
        at = happening.at
        self.steps.append(Step(happening.kind, happening.place, at, at, happening.body))


def _close(one: float | None, two: float | None) -> bool:
    return one is None or two is None or two - one <= TOGETHER


def _told(devices: dict[str, Device], happenings: Sequence[Happening], *, cut_short: bool = False) -> ErrorStory:
    telling: defaultdict[str, _Telling] = defaultdict(_Telling)
    for happening in happenings:
        for key in happening.devices:
            telling[key].take(happening)
    stories = tuple(
        DeviceStory(device, tuple(telling[key].steps), telling[key].troubled) for key, device in devices.items()
    )
    return ErrorStory(stories, tuple(happenings), cut_short)
