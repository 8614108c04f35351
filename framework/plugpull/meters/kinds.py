"""All kinds of power meter: the built-in ones, and those that other packages add by entry point."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from plugpull.driver_registry import DriverRegistry
from plugpull.errors import RigError, UsageError
from plugpull.meters.base import DiskActivity, Meter, MeterContext
from plugpull.rig.model import DeclaredMeter, MeterSide, Table
from plugpull.switches.host import Host

GROUP = "plugpull.meters"
"""The entry-point group: NAME = "module:KIND"."""


@dataclass(frozen=True)
class FoundMeter:
    """A meter that was found attached: its kind, which device it is, and the keys of a rig file that identify it."""

    kind: str
    model: str
    place: str
    options: dict[str, Any]
    side: MeterSide
    note: str = ""


@dataclass(frozen=True)
class MeterKind:
    """One kind of meter: what a rig file may say about it, and how it is found and opened."""

    name: str
    summary: str
    options: type[Table]
    """The keys that a ``[[meter]]`` table of this kind may have besides the common ones."""
    open: Callable[[MeterContext, Any], Meter]
    """Reach the device; the second argument is an ``options``. Raises RigError."""
    side: MeterSide
    """The side that such a meter usually measures."""
    find: Callable[[Host], Iterable[FoundMeter]] | None = None
    """List the devices of this kind that are attached to a machine."""
    virtual: bool = False
    """It is for virtual benches only. All others are for real ones only."""


_KINDS = DriverRegistry(
    "meter",
    GROUP,
    MeterKind,
    {
        "hwmon": "plugpull.meters.hwmon:KIND",
        "shelly": "plugpull.meters.shelly:KIND",
        "tasmota": "plugpull.meters.tasmota:KIND",
        "um25c": "plugpull.meters.um25c:KIND",
        "virtual": "plugpull.meters.virtual:KIND",
    },
)
names, kind_named, all_kinds = _KINDS.names, _KINDS.named, _KINDS.all


def open_meter(declared: DeclaredMeter, host: Host, activity: DiskActivity | None = None) -> Meter:
    """Open the device that a ``[[meter]]`` table declares.

    Raises UsageError if the table has a mistake, RigError if the device cannot be reached.
    """
    kind = kind_named(declared.driver)
    try:
        options = kind.options.model_validate(declared.options)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise UsageError(f"meter {declared.name}: {where}: {first['msg']}") from None
    context = MeterContext(declared.name, declared.side, declared.disks, host, declared.timeout, activity)
    try:
        return kind.open(context, options)
    except RigError as error:
        raise RigError(f"meter {declared.name}: {error.what}", hint=error.hint) from None
