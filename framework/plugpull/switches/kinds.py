"""The kinds of switch there are: the built-in ones and those other packages add by entry point."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from plugpull.errors import RigError, UsageError
from plugpull.rig import model
from plugpull.rig.model import Mechanism, Table
from plugpull.switches.base import Switch
from plugpull.switches.host import Host, Person

GROUP = "plugpull.switches"
"""The entry-point group: NAME = "module:KIND"."""

_BUILT_IN = {
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
}


@dataclass(frozen=True)
class Wiring:
    """What a driver is opened with besides its own options."""

    name: str
    mechanism: Mechanism
    ports: int
    host: Host
    person: Person
    folder: Path = field(default_factory=Path)
    """Of the rig file: what relative paths in it are relative to."""
    timeout: float = 5.0
    """Seconds the device gets to answer one command."""


@dataclass(frozen=True)
class Found:
    """A switch that was found attached: which kind, which device, and the lines of a rig file that name it."""

    kind: str
    model: str
    serial: str
    place: str
    ports: int
    options: dict[str, Any]
    mechanism: Mechanism
    udev: str = ""
    """A rule that lets its user switch it without root, empty where none is needed."""
    note: str = ""


@dataclass(frozen=True)
class Kind:
    """One kind of switch. ``open`` reaches the device (raising RigError), ``options`` are the keys that a
    ``[[switch]]`` table of this kind may have besides the common ones."""

    name: str
    summary: str
    options: type[Table]
    open: Callable[[Wiring, Any], Switch]
    mechanisms: frozenset[Mechanism]
    """What a port of such a device can be wired to interrupt."""
    port_names: str = "1"
    """"1": ports count from 1 to ``ports``; "0": from 0; "any": names of the device's own."""
    find: Callable[[Host], Iterable[Found]] | None = None


def names() -> tuple[str, ...]:
    """All kinds by name, the built-in ones first."""
    return (*_BUILT_IN, *(point.name for point in _foreign() if point.name not in _BUILT_IN))


def _foreign() -> Iterator[Any]:
    yield from entry_points(group=GROUP)


def kind_named(name: str) -> Kind:
    """Raises UsageError for a kind there is none of, or whose package cannot be imported."""
    target = _BUILT_IN.get(name)
    try:
        if target is not None:
            module, _, attribute = target.partition(":")
            found = getattr(importlib.import_module(module), attribute)
        else:
            found = next((point.load() for point in _foreign() if point.name == name), None)
    except (ImportError, AttributeError) as error:
        raise UsageError(f"the switch driver {name!r} cannot be loaded: {error}") from None
    if found is None:
        raise UsageError(f"there is no switch driver {name!r}", mend=f"there are: {', '.join(names())}")
    if not isinstance(found, Kind):
        raise UsageError(f"the entry point of switch driver {name!r} is no plugpull.switches.kinds.Kind")
    return found


def all_kinds() -> Iterator[Kind]:
    """Every kind that can be loaded here; the others are passed over."""
    for name in names():
        try:
            yield kind_named(name)
        except UsageError:
            continue


def options_of(kind: Kind, declared: model.Switch) -> Table:
    """The driver's own keys of a ``[[switch]]`` table. Raises pydantic's ValidationError."""
    return kind.options.model_validate(declared.options)


def open_switch(declared: model.Switch, host: Host, person: Person, folder: Path = Path()) -> Switch:
    """Reach the device a ``[[switch]]`` table declares. Raises UsageError for a table that does not do, RigError for
    a device that does not answer."""
    kind = kind_named(declared.driver)
    try:
        options = options_of(kind, declared)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise UsageError(f"switch {declared.name}: {where}: {first['msg']}") from None
    wiring = Wiring(declared.name, declared.mechanism, declared.ports, host, person, folder, declared.timeout)
    try:
        return kind.open(wiring, options)
    except RigError as error:
        known = error.what.startswith(f"switch {declared.name}")
        raise RigError(error.what if known else f"switch {declared.name}: {error.what}", mend=error.mend) from error
