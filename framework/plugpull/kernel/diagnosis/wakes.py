"""What a resume of the whole machine explains in a plain log.

A host controller that had no power while the machine slept says so for each of its root hubs
(drivers/usb/core/hcd.c: usb_root_hub_lost_power) when it is resumed. Its devices are then reset, or are found again
after a disconnection. Neither says anything about a cable, a port, a bridge or the controller.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from plugpull.kernel.diagnosis.device import Device
from plugpull.kernel.diagnosis.expected import WAKING
from plugpull.kernel.diagnosis.happening import Happening

_LOST_POWER = re.compile(r"^usb usb(\d+): root hub lost power")
_RESET = frozenset({"usb.reset", "scsi.reset"})
_COMES = frozenset({"usb.connect", "storage.attach"})
_WHILE_AWAY = frozenset(
    {"block.error", "scsi.error", "scsi.offline", "storage.cache-error", "uas.error", "usb.link-error"}
)
"""What requests to a device that is not there cause."""


def with_wakes(happenings: Iterable[Happening], devices: Mapping[str, Device]) -> Iterator[Happening]:
    """The same happenings; those that a resume explains are expected."""
    resumed: dict[str, float | None] = {}
    away: set[str] = set()
    for one in happenings:
        if lost := _LOST_POWER.match(one.body):
            resumed[lost[1]] = one.at
            yield replace(one, expected=True)
        else:
            waking = any(_wakes(devices[key], one, resumed) for key in one.devices)
            yield replace(one, expected=True) if _explained(one, waking, away) else one


def _wakes(device: Device, one: Happening, resumed: Mapping[str, float | None]) -> bool:
    """Whether the bus of ``device`` was resumed shortly before. Without time stamps that is not certain."""
    at = resumed.get(device.port.partition("-")[0]) if device.port else None
    return at is not None and one.at is not None and 0 <= one.at - at <= WAKING


def _explained(one: Happening, waking: bool, away: set[str]) -> bool:
    if one.kind == "usb.disconnect" and waking:
        away.update(one.devices)
        return True
    if one.kind in _COMES:
        away.difference_update(one.devices)
        return False
    return (waking and one.kind in _RESET) or (one.kind in _WHILE_AWAY and not away.isdisjoint(one.devices))
