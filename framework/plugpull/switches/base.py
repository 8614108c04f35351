"""What every switch can do, whatever it is made of."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from plugpull.rig.model import Mechanism


@dataclass(frozen=True)
class Capabilities:
    """What a switch can do, and what it cannot: a cut is only as well proved as its switch allows."""

    mechanism: Mechanism
    read_back: bool
    """Can the device be asked for a port's state? Without it a cut is verified by its effect alone."""
    latching: bool
    """Does a port keep its state when the switch loses its own power or its control cable?"""
    simultaneous: bool = False
    """Does ``set_many`` switch several ports in one command?"""
    ganged: tuple[tuple[str, ...], ...] = ()
    """Groups of ports that go off and on together, whatever is asked."""


@dataclass(frozen=True)
class Identity:
    """Which device this is. ``place`` is where it was reached (a device file, a USB path, an address without
    credentials)."""

    driver: str
    model: str = ""
    serial: str = ""
    firmware: str = ""
    place: str = ""


@dataclass(frozen=True)
class Acknowledged:
    """One edge: when it was commanded and when the device had acknowledged it, in seconds of the controller's
    ``time.monotonic()``."""

    port: str
    commanded: float
    acknowledged: float


class Switch(Protocol):
    """A thing with ports that can be turned off and on.

    ``set`` returns when the device has acknowledged; ``read`` asks the device itself for a port's state, and says None
    when it has no read-back. All raise RigError, within a deadline of their own, when the device does not do what
    it should. Closing is safe twice and changes no port.
    """

    @property
    def name(self) -> str: ...

    @property
    def mechanism(self) -> Mechanism: ...

    @property
    def capabilities(self) -> Capabilities: ...

    @property
    def identity(self) -> Identity: ...

    def set(self, port: str, on: bool) -> Acknowledged: ...

    def set_many(self, ports: Sequence[str], on: bool) -> tuple[Acknowledged, ...]:
        """Switch these as close together as the device can; one after the other where it has no command for several.
        The times tell the skew."""
        ...

    def read(self, port: str) -> bool | None: ...

    def close(self) -> None: ...


class PortByPort:
    """``set`` and ``set_many`` for a device that switches one port at a time: give it ``_command(port, on)``."""

    def _command(self, port: str, on: bool) -> None:
        """Switch one port; return when the device has acknowledged. Raises RigError."""
        raise NotImplementedError

    def set(self, port: str, on: bool) -> Acknowledged:
        commanded = time.monotonic()
        self._command(port, on)
        return Acknowledged(port, commanded, time.monotonic())

    def set_many(self, ports: Sequence[str], on: bool) -> tuple[Acknowledged, ...]:
        return tuple(self.set(port, on) for port in ports)
