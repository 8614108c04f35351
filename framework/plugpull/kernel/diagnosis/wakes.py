"""What a resume of the whole machine explains in a plain log.

A host controller that had no power while the machine slept says so for each of its root hubs
(drivers/usb/core/hcd.c: usb_root_hub_lost_power) when it is resumed. Its devices are then reset, or are found again
after a disconnection. Neither says anything about a cable, a port, a bridge or the controller.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from plugpull.kernel.catalogue.prefix import clock_of, split_prefix
from plugpull.kernel.diagnosis.device import Device
from plugpull.kernel.diagnosis.expected import WAKING
from plugpull.kernel.diagnosis.happening import Happening

FARTHEST = 1000
"""Lines. A clock without a date says nothing about lines that are farther apart."""
DAY = 86_400
_LOST_POWER = re.compile(r"^usb usb(\d+): root hub lost power")
_RESET = frozenset({"usb.reset", "scsi.reset"})
_COMES = frozenset({"usb.connect", "storage.attach"})
_WHILE_AWAY = frozenset(
    {"block.error", "scsi.error", "scsi.offline", "storage.cache-error", "uas.error", "usb.link-error"}
)
"""What requests to a device that is not there cause."""


def with_wakes(happenings: Iterable[Happening], devices: Mapping[str, Device]) -> Iterator[Happening]:
    """The same happenings; those that a resume explains are expected."""
    resumed: dict[str, Happening] = {}
    away: set[str] = set()
    for one in happenings:
        if lost := _LOST_POWER.match(one.body):
            resumed[lost[1]] = one
            yield replace(one, expected=True)
        else:
            waking = any(_wakes(devices[key], one, resumed) for key in one.devices)
            yield replace(one, expected=True) if _explained(one, waking, away) else one


def _wakes(device: Device, one: Happening, resumed: Mapping[str, Happening]) -> bool:
    """Whether the bus of ``device`` was resumed shortly before."""
    bus = resumed.get(device.port.partition("-")[0]) if device.port else None
    seconds = _seconds(bus, one) if bus is not None else None
    return seconds is not None and 0 <= seconds <= WAKING


def _seconds(before: Happening, one: Happening) -> float | None:
    """Seconds between two events, by the clock of syslog or the journal if they have no time stamps; ``None`` if that
    is not certain."""
    if before.at is not None and one.at is not None:
        return one.at - before.at
    first, last = (clock_of(split_prefix(each.event.text)[0]) for each in (before, one))
    if first is None or last is None or one.place - before.place > FARTHEST:
        return None
    return (last - first) % DAY


def _explained(one: Happening, waking: bool, away: set[str]) -> bool:
    if one.kind == "usb.disconnect" and waking:
        away.update(one.devices)
        return True
    if one.kind in _COMES:
        away.difference_update(one.devices)
        return False
    return (waking and one.kind in _RESET) or (one.kind in _WHILE_AWAY and not away.isdisjoint(one.devices))
