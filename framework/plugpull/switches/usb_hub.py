"""Ports of USB hubs as the kernel shows them in sysfs (Documentation/ABI/testing/sysfs-bus-usb).

A USB 3 hub is two hubs in one case, and each of its sockets is a port of both. The kernel's ``peer`` link shows which
ports share a socket. The kernel makes it from firmware tables and from how devices connect (drivers/usb/core/port.c).
"""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from plugpull.errors import RigError
from plugpull.switches.host import Host

DEVICES = "/sys/bus/usb/devices"
Location = Annotated[str, Field(pattern=r"^[0-9]+(-[0-9]+(\.[0-9]+)*)?$")]
"""A hub as the kernel and uhubctl name it: "1-1.4", or "1" for the root hub of bus 1."""
_PORT = re.compile(r"^(?:usb(\d+)|(\d+-[\d.]+))-port(\d+)$")


@dataclass(frozen=True)
class HubPort:
    """One port of one hub. ``location`` is a ``Location``; ``port`` counts from 1."""

    location: str
    port: int

    @property
    def path(self) -> str:
        """Its directory in sysfs."""
        if "-" in self.location:
            return f"{DEVICES}/{self.location}:1.0/{self.location}-port{self.port}"
        return f"{DEVICES}/{self.location}-0:1.0/usb{self.location}-port{self.port}"

    def __str__(self) -> str:
        return f"port {self.port} of hub {self.location}"


def halves_of(host: Host, location: str, port: int) -> tuple[HubPort, ...]:
    """The port, and the port of the other speed that shares its socket. Raises RigError if there is no such port."""
    asked = HubPort(location, port)
    if not host.glob(asked.path):
        raise RigError(
            f"there is no {asked} on {host.name}",
            hint="is the hub still plugged in there? `lsusb -t` lists all hubs, `plugpull switch list` the usable ones",
        )
    peer = f"{asked.path}/peer"
    if not host.glob(peer):
        return (asked,)
    found = port_of(posixpath.basename(host.real_path(peer)))
    return (asked, found) if found is not None else (asked,)


def port_of(name: str) -> HubPort | None:
    """The port with this name of its directory in sysfs: "2-1-port3", "usb2-port1"."""
    match = _PORT.match(name)
    if match is None:
        return None
    return HubPort(match.group(1) or match.group(2), int(match.group(3)))
