"""What a rig file's rules need to know about the kinds of switch there are.

Dependencies point from the switches to the rig: a driver is opened with the model of a ``[[switch]]`` table. So nothing
here imports a driver. The rules see kinds through these Protocols; which module knows them all is named in one place,
as text, and looked up when a file is read, the way an entry point is.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Protocol, cast

from plugpull.rig.model import Mechanism, Table

VIRTUAL_DRIVER = "virtual"
"""The switch driver that unplugs QEMU's devices; the only one that can cut anything on a virtual bench."""
_BOOK = "plugpull.switches.kinds"


class Driver(Protocol):
    """One kind of switch: a ``plugpull.switches.kinds.Kind``, as far as a rig file can be wrong about it."""

    @property
    def name(self) -> str: ...

    @property
    def options(self) -> type[Table]:
        """The keys of its own that a ``[[switch]]`` table may have."""
        ...

    @property
    def mechanisms(self) -> frozenset[Mechanism]: ...

    @property
    def port_names(self) -> str:
        """ "1": ports count from 1; "0": from 0; "any": they have names."""
        ...


@dataclass(frozen=True)
class _Virtual:
    """The virtual bench is its own driver, and has no keys of its own."""

    name: str = VIRTUAL_DRIVER
    options: type[Table] = Table
    mechanisms: frozenset[Mechanism] = frozenset(Mechanism)
    port_names: str = "1"


VIRTUAL: Driver = _Virtual()


class DriverBook(Protocol):
    """All kinds of switch, by name."""

    def names(self) -> tuple[str, ...]: ...

    def kind_named(self, name: str) -> Driver:
        """Raises UsageError for a kind there is none of, or that cannot be loaded."""
        ...


def installed() -> DriverBook:
    """The kinds that are built in, and those that other installed packages add."""
    return cast("DriverBook", import_module(_BOOK))
