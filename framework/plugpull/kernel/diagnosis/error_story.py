"""What happened to each device, in order: filesystem, SCSI, block and USB events, with repeats combined.

``story_of_log`` reads a plain log and identifies the devices by the log's own lines (``device_table.py``).
``story_of_history`` reads a scenario's history and identifies the disks by their uevents. ``culprit.py`` names the
probable cause.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

from plugpull.history.story import Story
from plugpull.kernel.catalogue.entry import Severity
from plugpull.kernel.catalogue.line import LogLine
from plugpull.kernel.catalogue.prefix import split_prefix
from plugpull.kernel.diagnosis.device import Device
from plugpull.kernel.diagnosis.device_table import DeviceTable
from plugpull.kernel.diagnosis.expected import Expected, usual
from plugpull.kernel.diagnosis.happening import Happening
from plugpull.kernel.diagnosis.log_reader import LogEvent
from plugpull.kernel.diagnosis.other_hardware import hardware_of
from plugpull.kernel.diagnosis.reports import reports_in
from plugpull.kernel.diagnosis.scope import WARNING, Level, Scope, place_of
from plugpull.kernel.diagnosis.story_log import log_of
from plugpull.kernel.diagnosis.wakes import with_wakes

MOST = 200_000
"""Events of one log that are part of its story: this bounds the memory."""
TOGETHER = 1.0
"""Seconds between two events of a kind up to which they are one step, even if other kinds alternate with them: an
abort, its command and the block layer's error come by the dozen."""
LOOK_BACK = 3
"""Steps before the current one in which an event of the same kind is looked for."""
KERNEL = "kernel"
THE_KERNEL = Device(KERNEL, "the kernel", Level.NOTHING)
_FOUND = ": New USB device found"
"""The second line about a device that is detected, in most logs: the first one announces it."""
_IDS = re.compile(r"^usb (\S+): New USB device found, idVendor=([\da-f]{4}), idProduct=([\da-f]{4})")


@dataclass
class StoryStep:
    """One or several events of a kind. ``at`` is the time of the first, ``until`` that of the last, seconds."""

    kind: str
    place: int
    at: float | None
    until: float | None
    text: str
    count: int = 1


@dataclass(frozen=True)
class DeviceStory:
    """What happened to one device. ``troubled`` is true if any of it was an error that no cut explains."""

    device: Device
    steps: tuple[StoryStep, ...]
    troubled: bool


@dataclass(frozen=True)
class ErrorStory:
    """What happened to every device of a log. ``happenings`` are all its events, in order. ``cut_short`` is true if the
    log has more than ``MOST`` events. ``unclassified`` are warnings and worse that name a disk and are not in the
    catalogue: candidates for new entries."""

    devices: tuple[DeviceStory, ...] = ()
    happenings: tuple[Happening, ...] = ()
    cut_short: bool = False
    unclassified: tuple[str, ...] = ()

    @property
    def troubled(self) -> tuple[DeviceStory, ...]:
        return tuple(story for story in self.devices if story.troubled)


# --- from a log -------------------------------------------------------------------------------------------------


def story_of_log(events: Iterable[LogEvent]) -> ErrorStory:
    """The story of one log. A name that no line of the log explains is shown as it is. Each error belongs to
    a device: if it names none, to the kind of hardware that it is about."""
    read = list(islice(events, MOST + 1))
    kept = [found for found in read[:MOST] if not found.in_earlier_report]
    bodies = [(found.line, split_prefix(found.event.text)[1].strip()) for found in kept]
    table = DeviceTable(bodies)
    devices: dict[str, Device] = {}
    happenings = []
    for found, (line, body) in zip(kept, bodies, strict=True):
        device: Device | None
        if found.event.alarming:
            body = found.report.headline if found.report else body
            device = THE_KERNEL
        else:
            device = table.find(line, found.continues or body)
            if device is None and found.event.severity is Severity.ERROR:
                device = hardware_of(found.event.kind, found.subject, found.continues or body)
        if device is not None:
            devices[device.key] = _merged(devices.get(device.key), device)
        happenings.append(
            Happening(
                line,
                found.time,
                found.event,
                body,
                (device.key,) if device else (),
                device.level if device else Level.NOTHING,
                driver=device.driver if device else "",
                frames=found.report.frames if found.report else (),
            )
        )
    return _story(devices, tuple(with_wakes(happenings, devices)), cut_short=len(read) > MOST)


def _merged(one: Device | None, two: Device) -> Device:
    """A disk that was replugged has two names: both are shown."""
    if one is None or one.name == two.name or two.name in one.name.split(", "):
        return one or two
    if two.name == f"usb {two.port}":
        return one
    named_by_port = one.name == f"usb {one.port}"
    return replace(two, name=two.name if named_by_port else f"{one.name}, {two.name}")


# --- from a history ---------------------------------------------------------------------------------------------


def story_of_history(story: Story) -> ErrorStory:
    """The story of one scenario, by disks of the rig. Events that a cut explains are marked as expected."""
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
        devices[KERNEL] = THE_KERNEL
    for report in reports:
        at = lines[report.first - 1].at
        happenings.append(
            Happening(report.first, at, report.event, report.headline, (KERNEL,), Level.NOTHING, frames=report.frames)
        )
    found = _story(devices, sorted(happenings, key=lambda one: one.place))
    return replace(found, unclassified=tuple(dict.fromkeys(unclassified)))


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


# --- the steps of each device -----------------------------------------------------------------------------------


@dataclass
class _Steps:
    """Combines the events of one device into steps."""

    steps: list[StoryStep] = field(default_factory=list)
    troubled: bool = False
    announced: bool = False

    def add(self, happening: Happening) -> None:
        if happening.kind == "usb.connect":
            found = _FOUND in happening.body
            second, self.announced = found and self.announced, not found
            if second:
                return
        bad = happening.event.severity is not Severity.INFO and not happening.expected
        self.troubled |= bad and not usual(happening.body)
        for step in self.steps[: -LOOK_BACK - 1 : -1]:
            if step.kind == happening.kind and (step is self.steps[-1] or _close(step.until, happening.at)):
                step.count += 1
                step.until = happening.at
                return
        at = happening.at
        self.steps.append(StoryStep(happening.kind, happening.place, at, at, happening.body))


def _close(one: float | None, two: float | None) -> bool:
    return one is None or two is None or two - one <= TOGETHER


def _story(devices: dict[str, Device], happenings: Sequence[Happening], *, cut_short: bool = False) -> ErrorStory:
    by_device: defaultdict[str, _Steps] = defaultdict(_Steps)
    for happening in happenings:
        for key in happening.devices:
            by_device[key].add(happening)
    stories = tuple(
        DeviceStory(device, tuple(by_device[key].steps), by_device[key].troubled) for key, device in devices.items()
    )
    return ErrorStory(stories, tuple(happenings), cut_short)
