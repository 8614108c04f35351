"""What the DUT reports while a port is cycled: its disks, its USB devices, and its kernel's messages about devices that
the port should not affect."""

from __future__ import annotations

import posixpath
import re
import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from plugpull.dut.conversation.link import AgentGone, Message
from plugpull.errors import RigError
from plugpull.kernel.catalogue.classify import classify
from plugpull.kernel.catalogue.prefix import split_prefix
from plugpull.rig.model import Rig
from plugpull.rig.topology import CutPoint, Topology
from plugpull.switches.usb_hub import HubPort, port_of

ERRORS = frozenset(
    {
        "block.error",
        "scsi.error",
        "scsi.offline",
        "uas.error",
        "usb.enumeration-error",
        "usb.link-error",
        "usb.overcurrent",
        "usb.reset",
    }
)
"""Kinds of kernel message that a good port never causes at its neighbours."""
WATCHED = ("uevents", "the kernel log")
"""The agent's names of the watchers that are needed here."""
_USB = re.compile(r"^\d+-([\d.]+)$")
_ON_PORT = re.compile(r"\busb (usb\d+-port\d+|\d+-[\d.]+-port\d+)\b")
_ON_HUB = re.compile(r"^hub (\d+-[\d.]+):\d+\.\d+: .*\bport (\d+)\b")


@dataclass(frozen=True)
class PortScope:
    """What a port may take away."""

    serials: frozenset[str]
    """Serial numbers of disks."""
    tops: frozenset[str]
    """The kernel's names, such as "1-3", of the USB devices in its sockets, for both halves of a USB 3 socket."""

    def has_device(self, name: str) -> bool:
        return any(name == top or name.startswith(f"{top}.") for top in self.tops)


def tops_of(rig: Rig, point: CutPoint, disks: Iterable[Mapping[str, Any]]) -> frozenset[str]:
    """The kernel's names of the uppermost USB devices that a cut at ``point`` unplugs.

    They follow from the places of the disks behind them; ``disks`` are as the agent lists them. Raises RigError if a
    disk is not plugged in where the rig file says, because then another port would be measured.
    """
    topology = Topology(rig)
    paths = {controller.name: controller.path for controller in rig.controller}
    by_serial = {disk["serial"]: disk for disk in disks}
    tops = set()
    for device in (point.device, *(name.partition(".")[0] for name in point.shares_with)):
        if device == "dut":
            continue
        way = topology.path_of(device)
        ports = ".".join(map(str, way.ports))
        for declared in rig.disk:
            found = by_serial.get(declared.serial)
            if found is None or declared.name not in (device, *topology.disks_below(device)):
                continue
            names = [part for part in str(found["sysfs"]).split("/") if (usb := _USB.match(part)) and usb[1] == ports]
            if not names or not str(found["place"]).startswith(f"{paths[way.controller]}/"):
                raise RigError(
                    f"{declared.name} (serial {declared.serial}) is plugged in at "
                    f"{str(found['place']).rpartition(':')[0]}, but the rig file says {device} is at "
                    f"{paths[way.controller]}/{ports}",
                    hint="plug it in where the rig file says, or correct the rig file: see `plugpull rig discover`",
                )
            tops.add(names[-1])
    return frozenset(tops)


class PortObserver:
    """Collects what the DUT's agent reports. The link calls ``receive`` in its own thread."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._present: dict[str, dict[str, Any]] = {}
        self._removed: list[tuple[float, dict[str, Any]]] = []
        self._unplugged: list[tuple[float, str]] = []
        self._kernel: list[tuple[float, str]] = []
        self._lost: list[str] = []
        self._blind = ""
        self._dead = ""

    def receive(self, message: Message) -> None:
        now = time.monotonic()
        with self._changed:
            match message.get("ev"):
                case "disk.add":
                    self._present[message["disk"]["kname"]] = message["disk"]
                case "disk.remove":
                    gone = self._present.pop(message["kname"], None)
                    if gone is not None:
                        self._removed.append((now, gone))
                case "uevent":
                    if (message["action"], message["devtype"]) == ("remove", "usb_device"):
                        self._unplugged.append((now, posixpath.basename(message["devpath"])))
                case "kmsg":
                    self._kernel.append((now, message["text"]))
                case "link.lost":
                    self._dead = str(message.get("why") or "no reason given")
                case "watcher.broken":
                    self._broken(message["what"], message["why"])
                case "kmsg.lost" | "dropped":
                    self._lost.append(f"{message['count']} messages of the DUT were lost")
            self._changed.notify_all()

    def _broken(self, what: str, why: str) -> None:
        if what in WATCHED:
            self._lost.append(f"{what} could not be watched on the DUT: {why}")
        if what == WATCHED[0]:
            self._blind = why

    @property
    def lost(self) -> tuple[str, ...]:
        """Missing evidence, in sentences."""
        with self._changed:
            return tuple(dict.fromkeys(self._lost))

    @property
    def disks(self) -> tuple[dict[str, Any], ...]:
        with self._changed:
            return tuple(self._present.values())

    def wait(self, serials: frozenset[str], there: bool, timeout: float) -> float | None:
        """When all of these disks were there, or none of them. None after ``timeout`` seconds.

        Raises AgentGone if the connection broke, and RigError if the DUT's uevents cannot be watched.
        """
        with self._changed:
            reached = self._changed.wait_for(lambda: self._dead or self._blind or self._are(serials, there), timeout)
            if self._dead:
                raise AgentGone(self._dead)
            if self._blind:
                raise RigError(
                    f"uevents cannot be watched on the DUT, so a disk that goes is not noticed: {self._blind}"
                )
            return time.monotonic() if reached else None

    def _are(self, serials: frozenset[str], there: bool) -> bool:
        present = {disk["serial"] for disk in self._present.values()}
        return serials <= present if there else not serials & present

    def others(self, scope: PortScope, since: float) -> tuple[str, ...]:
        """Disks and USB devices outside the scope that went away since this time."""
        with self._changed:
            disks = [disk for at, disk in self._removed if at >= since and disk["serial"] not in scope.serials]
            devices = [name for at, name in self._unplugged if at >= since and not scope.has_device(name)]
        paths = [str(disk.get("sysfs", "")) for disk in disks]
        gone = [f"{disk['kname']} ({disk['serial'] or 'no serial'} at {disk['place']})" for disk in disks]
        gone += [f"USB device {name}" for name in devices if not any(f"/{name}/" in path for path in paths)]
        return tuple(dict.fromkeys(gone))

    def errors(self, scope: PortScope, since: float) -> tuple[str, ...]:
        """Kernel messages since this time about disks and USB devices outside the scope."""
        with self._changed:
            disks = [*self._present.values(), *(disk for at, disk in self._removed if at >= since)]
            said = [text for at, text in self._kernel if at >= since]
        knames = {disk["kname"] for disk in disks if disk["serial"] not in scope.serials}
        return tuple(text for text in said if _is_about(text, knames, scope))


def _is_about(text: str, knames: set[str], scope: PortScope) -> bool:
    event = classify(text)
    if event is None or event.kind not in ERRORS:
        return False
    name = _usb_name(text, event.subject)
    return not scope.has_device(name) if name else event.subject in knames


def _usb_name(text: str, subject: str) -> str:
    """The USB device that a message is about, or the one at the port that it is about. Empty if there is none."""
    body = split_prefix(text)[1].strip()
    if on_port := _ON_PORT.search(body):
        port = port_of(on_port[1])
    elif on_hub := _ON_HUB.match(body):
        bus, _, rest = on_hub[1].partition("-")
        port = HubPort(bus if rest == "0" else on_hub[1], int(on_hub[2]))
    else:
        return subject if _USB.match(subject) else ""
    return "" if port is None else device_at(port)


def device_at(port: HubPort) -> str:
    """The kernel's name of a device at this port."""
    return f"{port.location}{'.' if '-' in port.location else '-'}{port.port}"
