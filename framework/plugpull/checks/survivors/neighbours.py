"""Events of hubs and other USB devices of the bench that no cut explains."""

from __future__ import annotations

import re
from collections.abc import Iterator

from plugpull.checks.accusation import Accusation
from plugpull.checks.dut.complaints import SHOWN
from plugpull.checks.dut.kernel_reports import by_the_host
from plugpull.history.events import DutReady, Uevent
from plugpull.history.story import Story
from plugpull.kernel.diagnosis.expected import Expected, hub_chain, usual
from plugpull.kernel.diagnosis.scope import About, Scope, place_of
from plugpull.kernel.diagnosis.story_log import TimedLine, log_of

COLLATERAL = 2.0
"""Seconds after an edge in which it counts as the cause of an event of another device on the same controller."""

_BAD = frozenset({"usb.reset", "usb.enumeration-error", "usb.overcurrent", "usb.link-error"})
_BUS = re.compile(r"/usb(\d+)(?=/|$)")
_PORT = re.compile(r"^\d+-\d+(?:\.\d+)*$")


def _buses(story: Story) -> Iterator[tuple[str, str]]:
    """(bus number, controller) of each bus in the uevents. A USB 3 controller has two buses."""
    for event in story.of(Uevent):
        bus = _BUS.search(event.devpath)
        if bus:
            yield bus.group(1), place_of(event.devpath).controller


class Neighbours:
    """Accusations about USB devices that are not disks of the rig."""

    def __init__(self, story: Story, scope: Scope, expected: Expected) -> None:
        self._story = story
        self._expected = expected
        mine = [stay for stay in scope.stays if stay.disk]
        self._disks = {stay.place.usb for stay in mine}
        self._hubs = {hub for stay in mine for hub in stay.place.hubs}
        self._controllers = {stay.place.controller for stay in mine if stay.place.controller}
        self._buses = {stay.place.hubs[0].removeprefix("usb") for stay in mine if stay.place.hubs}
        self._buses |= {bus for bus, controller in _buses(story) if controller in self._controllers}
        self._virtual = any(ready.kind == "virtual" for ready in story.of(DutReady))
        self._names: dict[str, str] = {}
        for stay in mine:
            self._names.update(zip(stay.place.hubs[1:], hub_chain(story.rig, stay.disk), strict=False))

    def name_of(self, about: About) -> str:
        """The name of a hub in the rig file, or else in the kernel."""
        return self._names.get(about.name, about.name)

    def removed(self) -> Iterator[Accusation]:
        """Hubs that left although they were not cut, and other devices that left with a cut of something else."""
        for event in self._story.of(Uevent):
            if event.action != "remove" or (event.subsystem, event.devtype) != ("usb", "usb_device"):
                continue
            path, at = event.devpath.rpartition("/")[2], event.at
            if at is None or not _PORT.match(path) or path in self._disks:
                continue
            on_rig = place_of(event.devpath).controller in self._controllers
            if on_rig and not self._expected.in_blast(path, at) and self._is_judged(path, at):
                what = f"the hub {self._named(path)}" if path in self._hubs else f"the USB device {path}"
                summary = f"{what} left at {at:.2f} s though it was not cut"
                yield Accusation(subject=self._subject(path), summary=summary, at=at)

    def in_error(self) -> Iterator[Accusation | str]:
        """USB devices, neither disks nor hubs of the rig, that were reset or had errors. Errors that the DUT's host
        explains are doubts."""
        lines: dict[str, list[TimedLine]] = {}
        for message in log_of(self._story).own_timed:
            event = message.event
            if event is None or event.kind not in _BAD or usual(message.body):
                continue
            for path in message.names.usb:
                known = path in self._disks or path in self._hubs or path.partition("-")[0] not in self._buses
                if known or self._expected.in_blast(path, message.at) or not self._is_judged(path, message.at):
                    continue
                doubt = by_the_host(self._story, message.at, message.body, event.kind)
                if doubt:
                    yield doubt
                else:
                    lines.setdefault(path, []).append(message)
        for path, messages in lines.items():
            more = f" (and {len(messages) - 1} more)" if len(messages) > 1 else ""
            yield Accusation(
                subject=path,
                summary=f"the kernel reported an error on the USB device {path}: {messages[0].text}{more}",
                at=messages[0].at,
                evidence=tuple(message.text for message in messages[:SHOWN]),
            )

    def _is_judged(self, path: str, at: float) -> bool:
        """Judged is everything on an emulated controller, and on a real one the rig's hubs and the devices behind them.

        Other devices on a real machine's controller count only right after a cut. A hub that is cut may have a second
        half on another bus and at another port, which leaves with it."""
        if path in self._hubs:
            return True
        if self._expected.hub_is_cut(at):
            return False
        behind = any(path.startswith(f"{hub}.") for hub in self._hubs if "-" in hub)
        return self._virtual or behind or self._just_cut(at)

    def _just_cut(self, at: float) -> bool:
        edges = (at for cut in self._story.cut_records for at in (cut.off.commanded_at, cut.on.commanded_at))
        return any(edge is not None and 0 <= at - edge <= COLLATERAL for edge in edges)

    def _named(self, path: str) -> str:
        name = self._names.get(path)
        return f"{name} ({path})" if name else path

    def _subject(self, path: str) -> str:
        return self._names.get(path, path)
