"""What the rules of rig files need to know about the kinds of switch and of meter.

Switches depend on the rig, because a driver is opened with the model of a ``[[switch]]`` table, so nothing here imports
a driver. The rules see the kinds through these Protocols. The module that lists all kinds is named here as text, and
looked up when a rig file is read, as entry points are.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Literal, Protocol, cast

from plugpull.rig.model import Mechanism, Table

VIRTUAL_DRIVER = "virtual"
"""The switch driver that unplugs QEMU's devices; the only one that can cut anything on a virtual bench."""
_BOOK = "plugpull.switches.kinds"
_METERS = "plugpull.meters.kinds"

PortNames = Literal["0", "1", "any"]
"""How a kind's ports are called: "1": numbers from 1; "0": numbers from 0; "any": names."""


def first_port(names: PortNames) -> int | None:
    """The number of a kind's first port. None if its ports have names."""
    return None if names == "any" else int(names)


class Driver(Protocol):
    """The part of a ``plugpull.switches.kinds.Kind`` that a rig file can be wrong about."""

    @property
    def name(self) -> str: ...

    @property
    def options(self) -> type[Table]:
        """The keys that a ``[[switch]]`` table of this kind may have besides the common ones."""
        ...

    @property
    def mechanisms(self) -> frozenset[Mechanism]: ...

    @property
    def port_names(self) -> PortNames: ...

    @property
    def identity_keys(self) -> tuple[str, ...] | None:
        """The keys that identify a physical device. None: all keys of this kind."""
        ...


@dataclass(frozen=True)
class _Virtual:
    """The switches of a virtual bench, which have no keys of their own."""

    name: str = VIRTUAL_DRIVER
    options: type[Table] = Table
    mechanisms: frozenset[Mechanism] = frozenset(Mechanism)
    port_names: PortNames = "1"
    identity_keys: tuple[str, ...] | None = ()


VIRTUAL: Driver = _Virtual()


class DriverBook(Protocol):
    """All kinds of switch, by name."""

    def names(self) -> tuple[str, ...]: ...

    def kind_named(self, name: str) -> Driver:
        """Raises UsageError if there is no such kind, or if it cannot be loaded."""
        ...


def installed() -> DriverBook:
    """The built-in kinds, and those of other installed packages."""
    return cast("DriverBook", import_module(_BOOK))


class MeterDriver(Protocol):
    """The part of a ``plugpull.meters.kinds.MeterKind`` that a rig file can be wrong about."""

    @property
    def name(self) -> str: ...

    @property
    def options(self) -> type[Table]:
        """The keys that a ``[[meter]]`` table of this kind may have besides the common ones."""
        ...

    @property
    def virtual(self) -> bool:
        """It is for virtual benches only. All others are for real ones only."""
        ...


class MeterBook(Protocol):
    """All kinds of meter, by name."""

    def names(self) -> tuple[str, ...]: ...

    def kind_named(self, name: str) -> MeterDriver:
        """Raises UsageError if there is no such kind, or if it cannot be loaded."""
        ...


def installed_meters() -> MeterBook:
    """The built-in kinds, and those of other installed packages."""
    return cast("MeterBook", import_module(_METERS))
