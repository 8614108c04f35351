"""Hubs with per-port power switching, through uhubctl (GPL-2, run as a program; written against 2.5).

Its exit status is 0 even when nothing was switched, so every edge is read back from the status word that it prints
(USB 2.0 table 11-21: power is 0x0100; USB 3.2 table 10-13: 0x0200). On a kernel with the port attribute ``disable`` it
uses that attribute, which disconnects the device in software before it turns off the power. ``-S`` keeps it to the
request to the hub, so that the cut is a cut of power. A hub need not report that request to the kernel, and some do
not, so that the kernel notices the missing device late. With ``raw = false`` uhubctl chooses the way, and the cut is
``logical``. uhubctl pairs the two halves of a USB 3 hub by container ids, which need not be unique. This driver
switches each half by itself (``-e``), and reads from the kernel which two belong together.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from plugpull.errors import RigError
from plugpull.rig.model import Mechanism, Table
from plugpull.switches.base import (
    Capabilities,
    DeviceSwitch,
    Identity,
    SwitchContext,
    disobeyed,
    require_ports,
    seconds_left,
)
from plugpull.switches.host import Host
from plugpull.switches.kinds import FoundSwitch, Kind
from plugpull.switches.programs import error_line
from plugpull.switches.usb_hub import HubPort, Location, halves_of

POWER_USB2 = 0x0100
POWER_USB3 = 0x0200
_HUB = re.compile(r"^(?:Current|New) status for hub (\S+) \[(.*)\]\s*$")
_PORT = re.compile(r"^\s+Port (\d+): ([0-9a-fA-F]{4})\b")
_VERSION = re.compile(r"\bUSB (\d)\.")
_PORTS = re.compile(r"\b(\d+) ports?\b")
_LISTING = 20.0
"""Seconds to list all hubs: each is asked for its descriptors."""


class UhubctlOptions(Table):
    """Keys of a hub switched by uhubctl."""

    location: Location
    """The hub as uhubctl lists it, either half: "1-1.4"."""
    force: bool = False
    """Also use a hub that does not claim per-port power switching (``-f``). Qualify such a hub before use."""
    raw: bool = True
    """False: through the kernel's port attribute, if there is one, which announces the cut."""
    descriptors: bool = True
    """False: do not ask devices for their names (``-N``). Asking a faulty device can hang."""


@dataclass(frozen=True)
class HubStatus:
    """The status of one hub as uhubctl prints it. ``powered`` is by port."""

    location: str
    title: str
    powered: dict[int, bool]

    @property
    def per_port(self) -> bool:
        """Whether the hub claims to switch each port by itself. A "ganged" one switches all ports at once."""
        return "ppps" in self.title

    @property
    def ports(self) -> int:
        found = _PORTS.search(self.title)
        return int(found.group(1)) if found else max(self.powered, default=0)


def parse_hubs(text: str) -> dict[str, HubStatus]:
    """The status of each hub by location. uhubctl prints a hub again after switching: the last status counts."""
    hubs: dict[str, HubStatus] = {}
    current: HubStatus | None = None
    for line in text.splitlines():
        if hub := _HUB.match(line):
            current = HubStatus(hub.group(1), hub.group(2), {})
            hubs[current.location] = current
        elif (port := _PORT.match(line)) and current is not None:
            version = _VERSION.search(current.title)
            bit = POWER_USB3 if version is not None and version.group(1) == "3" else POWER_USB2
            current.powered[int(port.group(1))] = bool(int(port.group(2), 16) & bit)
    return hubs


class Uhubctl(DeviceSwitch):
    """One hub, with both its halves if it is a USB 3 hub."""

    def __init__(self, context: SwitchContext, options: UhubctlOptions) -> None:
        self._options = options
        self._host = context.host
        mechanism = Mechanism.VBUS if options.raw else Mechanism.LOGICAL
        if context.mechanism is not mechanism:
            how = "by a request to the hub" if options.raw else "by the kernel's port attribute (raw = false)"
            raise RigError(
                f'a port that is switched {how} is cut by {mechanism}, and the rig file says "{context.mechanism}"',
                hint=f'write mechanism = "{mechanism}"',
            )
        super().__init__(
            context,
            Identity("uhubctl", place=f"hub {options.location}"),
            Capabilities(context.mechanism, read_back=True, latching=False),
        )
        with self._deadline() as deadline:
            version = self._host.run(["uhubctl", "-v"], seconds_left(deadline))
            self._raw = ["-S"] if options.raw and _at_least(version.stdout, (2, 5)) else []
            hub = self._hub(HubPort(options.location, 1), seconds_left(deadline))
        if hub.ports:
            require_ports(context, hub.ports, f"hub {options.location}")
        serial = re.search(r" (\S+), USB \d", hub.title)
        self.identity = Identity(
            "uhubctl",
            model=hub.title.split(",")[0],
            serial=serial.group(1) if serial else "",
            firmware=f"uhubctl {version.stdout.strip()}",
            place=f"hub {options.location}",
        )

    def _command(self, port: str, on: bool) -> None:
        number = self._number(port)
        with self._deadline() as deadline:
            for half in halves_of(self._host, self._options.location, number):
                action = [*self._raw, "-a", "on" if on else "off"]
                state = self._state(half, seconds_left(deadline), action)
                if state is not on:
                    # uhubctl may have read the status before the hub obeyed.
                    state = self._state(half, seconds_left(deadline))
                if state is not on:
                    raise disobeyed(
                        (port,), on, f"{half} claims to switch its power and does not: qualify it, or use another hub"
                    )

    def read(self, port: str) -> bool | None:
        """On if either half is on: a device has power as long as one of them feeds it."""
        number = self._number(port)
        with self._deadline() as deadline:
            halves = halves_of(self._host, self._options.location, number)
            return any(self._state(half, seconds_left(deadline)) for half in halves)

    def _state(self, half: HubPort, timeout: float, action: list[str] | None = None) -> bool:
        hub = self._hub(half, timeout, action)
        if half.port not in hub.powered:
            raise RigError(
                f"uhubctl printed nothing about {half}", hint="is the hub still plugged in? run `uhubctl` by hand"
            )
        return hub.powered[half.port]

    def _hub(self, half: HubPort, timeout: float, action: list[str] | None = None) -> HubStatus:
        line = ["uhubctl", "-e", "-l", half.location, "-p", str(half.port), *(action or [])]
        line += ["-f"] if self._options.force else []
        line += [] if self._options.descriptors else ["-N"]
        done = self._host.run(line, timeout)
        hub = parse_hubs(done.stdout).get(half.location)
        if hub is None:
            raise RigError(
                f"{' '.join(line)} ended with status {done.status}: {error_line(done)}",
                hint="is the hub plugged in there, may this user open it (udev rule: `plugpull switch list`), and does "
                "it claim to switch ports? Write force = true if you know that it can",
            )
        return hub


def _at_least(version: str, wanted: tuple[int, int]) -> bool:
    found = re.search(r"(\d+)\.(\d+)", version)
    return found is not None and (int(found.group(1)), int(found.group(2))) >= wanted


def _find(host: Host) -> Iterator[FoundSwitch]:
    try:
        hubs = parse_hubs(host.run(["uhubctl"], _LISTING).stdout)
    except RigError:
        return
    for hub in hubs.values():
        ids = re.match(r"([0-9a-f]{4}):([0-9a-f]{4})", hub.title)
        rule = ""
        if ids:
            rule = (
                f'SUBSYSTEM=="usb", DRIVER=="usb", ATTR{{idVendor}}=="{ids.group(1)}", '
                f'ATTR{{idProduct}}=="{ids.group(2)}", GROUP="dialout", MODE="0664", TAG+="uaccess"'
            )
        yield FoundSwitch(
            "uhubctl",
            hub.title.split(",")[0],
            "",
            f"hub {hub.location}",
            hub.ports,
            {"location": hub.location},
            Mechanism.VBUS,
            rule,
            "" if hub.per_port else "it switches all its ports at once",
        )


KIND = Kind(
    "uhubctl",
    "hubs with per-port power switching, through uhubctl",
    UhubctlOptions,
    Uhubctl,
    frozenset({Mechanism.VBUS, Mechanism.LOGICAL}),
    find=_find,
    identity_keys=("location",),
)
