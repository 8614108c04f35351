"""What every switch can do, and the base class that drivers share."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from plugpull.errors import RigError
from plugpull.rig.credentials import without_userinfo
from plugpull.rig.model import Mechanism
from plugpull.switches.host import Closing, Host, Person

SHORTEST = 0.01
"""Seconds that a step gets after the deadline of its command has passed."""


@dataclass(frozen=True)
class Capabilities:
    """What a switch can do. They decide how well a cut by it can be verified."""

    mechanism: Mechanism
    read_back: bool
    """The device can be asked for a port's state. Otherwise a cut is verified by its effect alone."""
    latching: bool
    """A port keeps its state when the switch loses its own power or its control cable."""
    simultaneous: bool = False
    """``set_many`` switches several ports in one command."""
    ganged: tuple[tuple[str, ...], ...] = ()
    """Groups of ports that always go off and on together, even if only one of them was named."""


@dataclass(frozen=True)
class Identity:
    """Which device this is. ``place`` is where it was reached: a device file, a USB path, or an address without
    credentials."""

    driver: str
    model: str = ""
    serial: str = ""
    firmware: str = ""
    place: str = ""

    def __str__(self) -> str:
        """The device in messages: ``YKUSH YK12345 at 1-4:1.0``, or ``EnerGenie strip, serial 01:01`` if it is known by
        its serial number alone. Empty if its place is not known."""
        serial = "" if self.serial in self.place else self.serial
        name = " ".join(filter(None, (self.model, serial)))
        joint = ", " if self.place.startswith("serial ") else " at "
        return f"{name}{joint}{self.place}" if name and self.place else self.place


@dataclass(frozen=True)
class Acknowledged:
    """One edge: when the command was sent and when the device acknowledged it, in seconds of the controller's
    ``time.monotonic()``."""

    port: str
    commanded: float
    acknowledged: float


class Switch(Protocol):
    """A device with ports that can be turned off and on.

    ``set`` returns when the device has acknowledged. ``read`` asks the device for a port's state, and returns None if
    the device has no read-back. Both raise RigError, within the switch's deadline, if the device does not do what it
    was asked. ``close`` may be called twice and changes no port.
    """

    @property
    def name(self) -> str:
        """Its name in the rig file."""
        ...

    @property
    def mechanism(self) -> Mechanism:
        """What its ports interrupt: ``data``, ``vbus``, ``data+vbus``, ``mains`` or ``logical``."""
        ...

    @property
    def capabilities(self) -> Capabilities:
        """What it can do. The same for all of its ports, at any time."""
        ...

    @property
    def identity(self) -> Identity:
        """Which device it is, for messages and the record of the run."""
        ...

    def set(self, port: str, on: bool) -> Acknowledged:
        """Turn one port on or off and return when the device has acknowledged. Raises RigError."""
        ...

    def set_many(self, ports: Sequence[str], on: bool) -> tuple[Acknowledged, ...]:
        """Switch several ports, as close together as the device can. The times in the result show how close."""
        ...

    def read(self, port: str) -> bool | None:
        """Whether the device says that a port is on; None if it cannot be asked. Raises RigError."""
        ...

    def close(self) -> None:
        """Release the device. May be called twice; changes no port."""
        ...


class PortByPort:
    """``set`` and ``set_many`` for a device that switches one port at a time. Subclasses implement ``_command``."""

    def _command(self, port: str, on: bool) -> None:
        """Switch one port; return when the device has acknowledged. Raises RigError."""
        raise NotImplementedError

    def set(self, port: str, on: bool) -> Acknowledged:
        commanded = time.monotonic()
        self._command(port, on)
        return Acknowledged(port, commanded, time.monotonic())

    def set_many(self, ports: Sequence[str], on: bool) -> tuple[Acknowledged, ...]:
        return tuple(self.set(port, on) for port in ports)


@dataclass(frozen=True)
class SwitchContext:
    """What a driver is opened with, apart from the keys of its own."""

    name: str
    mechanism: Mechanism
    ports: int
    host: Host
    person: Person
    folder: Path = field(default_factory=Path)
    """The rig file's folder: relative paths in the rig file start there."""
    timeout: float = 5.0
    """Seconds the device gets to answer one command."""
    first_port: int = 1
    """The number of the first port, for a kind whose ports are numbers."""


class DeviceSwitch(PortByPort, Closing):
    """The base of drivers: name, mechanism, port numbers, and the deadline of a command.

    A driver implements ``_command``, and ``read`` if the device has read-back. One whose device can switch several
    ports in one command also implements ``_at_once`` and ``_command_many``.
    """

    def __init__(self, context: SwitchContext, identity: Identity, capabilities: Capabilities) -> None:
        self._context = context
        self.identity = identity
        self.capabilities = capabilities

    @property
    def name(self) -> str:
        return self._context.name

    @property
    def mechanism(self) -> Mechanism:
        return self._context.mechanism

    def read(self, port: str) -> bool | None:
        return None

    def close(self) -> None:
        """Release the device. By default there is nothing to release."""

    def set_many(self, ports: Sequence[str], on: bool) -> tuple[Acknowledged, ...]:
        if not self._at_once(ports):
            return super().set_many(ports, on)
        commanded = time.monotonic()
        self._command_many(ports, on)
        acknowledged = time.monotonic()
        return tuple(Acknowledged(port, commanded, acknowledged) for port in ports)

    def _at_once(self, ports: Sequence[str]) -> bool:
        """Whether the device can switch these ports in one command."""
        return False

    def _command_many(self, ports: Sequence[str], on: bool) -> None:
        """Switch these ports in one command. Called only if ``_at_once`` returned True. Raises RigError."""
        raise NotImplementedError

    @contextmanager
    def _deadline(self) -> Iterator[float]:
        """Yield the deadline of one command, in seconds of ``time.monotonic()``.

        A RigError in the block is raised again with the switch's name and place in its message.
        """
        try:
            yield time.monotonic() + self._context.timeout
        except RigError as error:
            self._failed()
            device = "" if self.identity.place in error.what else f" ({self.identity})"
            what = without_userinfo(f"switch {self.name}{device}: {error.what}")
            raise RigError(what, hint=error.hint) from None

    def _failed(self) -> None:
        """Note that a command failed: its answer may still be on its way. By default this does not matter."""

    def _number(self, port: str) -> int:
        """The number of a port. Raises RigError if the switch does not have it."""
        first = self._context.first_port
        last = first + self._context.ports - 1
        number = int(port) if port.isascii() and port.isdigit() else -1
        if not first <= number <= last:
            raise RigError(f"switch {self.name} has no port {port}", hint=f"its ports are {first} to {last}")
        return number


def seconds_left(deadline: float) -> float:
    """Seconds until a time of ``time.monotonic()``, and at least ``SHORTEST``."""
    return max(SHORTEST, deadline - time.monotonic())


def require_ports(context: SwitchContext, count: int, device: str, noun: str = "port") -> None:
    """Raises RigError if the rig file declares more ports than the device has. ``device`` is a phrase: "a YKUSH3"."""
    if context.ports > count:
        has = f"1 {noun}" if count == 1 else f"{count} {noun}s"
        raise RigError(
            f"{device} has {has}, and the rig file says ports = {context.ports}",
            hint=f"write ports = {count}" + ("" if count == 1 else " or less"),
        )


def disobeyed(ports: Sequence[str], on: bool, hint: str, source: str = "reading it back") -> RigError:
    """The error for ports that report the opposite of what they were switched to."""
    wanted, found = ("on", "off") if on else ("off", "on")
    return RigError(f"port {', '.join(ports)} was switched {wanted}, and {source} says it is {found}", hint=hint)
