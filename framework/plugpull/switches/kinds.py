"""All kinds of switch: the built-in ones, and those that other packages add by entry point."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from plugpull.driver_registry import DriverRegistry
from plugpull.errors import RigError, UsageError
from plugpull.rig import model
from plugpull.rig.drivers import PortNames, first_port
from plugpull.rig.model import Mechanism, Table
from plugpull.switches.base import Switch, SwitchContext
from plugpull.switches.host import Host, Person

GROUP = "plugpull.switches"
"""The entry-point group: NAME = "module:KIND"."""


@dataclass(frozen=True)
class FoundSwitch:
    """A switch that was found attached: its kind, which device it is, and the keys of a rig file that identify it."""

    kind: str
    model: str
    serial: str
    place: str
    ports: int
    options: dict[str, Any]
    mechanism: Mechanism
    udev: str = ""
    """A udev rule that lets an ordinary user switch it. Empty if no rule is needed."""
    note: str = ""


@dataclass(frozen=True)
class Kind:
    """One kind of switch: what a rig file may say about it, and how it is found and opened."""

    name: str
    summary: str
    options: type[Table]
    """The keys that a ``[[switch]]`` table of this kind may have besides the common ones."""
    open: Callable[[SwitchContext, Any], Switch]
    """Reach the device; the second argument is an ``options``. Raises RigError."""
    mechanisms: frozenset[Mechanism]
    """What a port of such a device can be wired to interrupt."""
    port_names: PortNames = "1"
    """"1": ports are numbers from 1 to ``ports``; "0": numbers from 0; "any": names of the device's own."""
    find: Callable[[Host], Iterable[FoundSwitch]] | None = None
    """List the devices of this kind that are attached to a machine."""
    identity_keys: tuple[str, ...] | None = None
    """The keys, of this kind or common to all, that identify a physical device. Two rigs whose switches have the same
    values are not used at the same time. None: all keys of this kind."""


_KINDS = DriverRegistry(
    "switch",
    GROUP,
    Kind,
    {
        "ykush": "plugpull.switches.ykush:KIND",
        "hid-relay": "plugpull.switches.hid_relay:KIND",
        "uhubctl": "plugpull.switches.uhubctl:KIND",
        "port-disable": "plugpull.switches.port_disable:KIND",
        "lcus": "plugpull.switches.lcus:KIND",
        "numato": "plugpull.switches.numato:KIND",
        "kmtronic": "plugpull.switches.kmtronic:KIND",
        "icse": "plugpull.switches.icse:KIND",
        "devantech": "plugpull.switches.devantech:KIND",
        "sainsmart": "plugpull.switches.sainsmart:KIND",
        "dlp-ior4": "plugpull.switches.dlp_ior4:KIND",
        "sispmctl": "plugpull.switches.sispmctl:KIND",
        "pdudaemon": "plugpull.switches.pdudaemon:KIND",
        "labgrid": "plugpull.switches.labgrid:KIND",
        "command": "plugpull.switches.command:KIND",
        "human": "plugpull.switches.human:KIND",
    },
)
names, kind_named, all_kinds = _KINDS.names, _KINDS.named, _KINDS.all


def options_of(kind: Kind, declared: model.DeclaredSwitch) -> Table:
    """The keys of a ``[[switch]]`` table that belong to its driver. Raises pydantic's ValidationError."""
    return kind.options.model_validate(declared.options)


def open_switch(declared: model.DeclaredSwitch, host: Host, person: Person, folder: Path = Path()) -> Switch:
    """Open the device that a ``[[switch]]`` table declares.

    Raises UsageError if the table has a mistake, RigError if the device does not answer.
    """
    kind = kind_named(declared.driver)
    try:
        options = options_of(kind, declared)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise UsageError(f"switch {declared.name}: {where}: {first['msg']}") from None
    context = SwitchContext(
        declared.name,
        declared.mechanism,
        declared.ports,
        host,
        person,
        folder,
        declared.timeout,
        first_port(kind.port_names) or 0,
    )
    try:
        return kind.open(context, options)
    except RigError as error:
        known = error.what.startswith(f"switch {declared.name}")
        raise RigError(error.what if known else f"switch {declared.name}: {error.what}", hint=error.hint) from error
