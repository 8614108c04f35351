"""Finds every device name in a kernel message, sorted by kind of name.

``classify.subject_of`` returns the one name to show to people. The names here serve to find out which disk it was.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from plugpull.kernel.catalogue.deferred import deferred


class Names(NamedTuple):
    """The device names in a message. ``usb`` holds USB paths of devices (``1-2.3``) and root hubs (``usb1``); a port is
    given as the path of the device in it. ``addresses`` are SCSI's host:channel:target:lun."""

    blocks: tuple[str, ...] = ()
    arrays: tuple[str, ...] = ()
    addresses: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    usb: tuple[str, ...] = ()
    controllers: tuple[str, ...] = ()


_BLOCK = deferred(
    r"(?<![\w/.-])(?:/dev/)?(?:(sd[a-z]{1,3})\d{0,3}|((?:nvme\d+n\d+|mmcblk\d+))(?:p\d+)?|(sr\d+))(?:-\d+)?"
    r"(?![\w/.])(?!\.\w)"
)
_ARRAY = deferred(r"(?<![\w/.])(md\d+|md_\w+)(?![\w/.])")
_ADDRESS = deferred(r"^(?:sd|scsi|sr|ses|st|sg|osst|ch) (\d+:\d+:\d+:\d+)\b")
_UNKNOWN = deferred(r"^virtio_scsi: SCSI device (\d+) (\d+) (\d+) (\d+) not found$")
"""A disk left before the driver had looked at it (drivers/scsi/virtio_scsi.c, ``virtscsi_handle_transport_reset``)."""
_HOST = deferred(r"^scsi ?(?:host)?(\d+)(?= ?:(?!\d))|\bscsi host(\d+)\b|\bscsi_eh_(\d+)\b")
_USB = deferred(
    r"^(?:usb|usb-storage|uas|hub|usbhid|onboard[_-]usb[_-]\w+) "
    r"(\d+-\d+(?:\.\d+)*)(?::\d+\.\d+)?(?:-port(\d+))?(?=[: ]|$)"
)
_ROOT = deferred(r"^(?:usb usb(\d+)(?:-port(\d+))?|hub (\d+)-0:1\.0|usb (\d+)-0:1\.0)(?=[: ]|$)")
_INTERFACE = deferred(r"\b(?:usb-storage|uas) (\d+-\d+(?:\.\d+)*):\d+\.\d+")
_PORT = deferred(r"\bport (\d+)\b")
_CONTROLLER = deferred(r"^(?:[xeuo]hci(?:[_-]\w+)*|dwc[23]) ([\da-f]{4}:[\da-f]{2}:[\da-f]{2}\.\d|[\w.-]+?)(?=[: ]|$)")


def names_in(body: str) -> Names:
    """The names in a message without its prefix."""
    return Names(
        blocks=_all(_BLOCK, body),
        arrays=_all(_ARRAY, body),
        addresses=_all(_ADDRESS, body) or tuple(":".join(found.groups()) for found in _UNKNOWN.finditer(body)),
        hosts=tuple(f"host{number}" for number in _all(_HOST, body)),
        usb=_usb(body),
        controllers=_all(_CONTROLLER, body),
    )


def _all(pattern: re.Pattern[str], body: str) -> tuple[str, ...]:
    found = (next(group for group in match.groups() if group) for match in pattern.finditer(body))
    return tuple(dict.fromkeys(found))


def _usb(body: str) -> tuple[str, ...]:
    root = _ROOT.match(body)
    if root:
        bus = root.group(1) or root.group(3) or root.group(4)
        return (_port(bus, "-", root.group(2), body),)
    device = _USB.match(body)
    if device:
        return (_port(device.group(1), ".", device.group(2), body),)
    interface = _INTERFACE.search(body)
    return (interface.group(1),) if interface else ()


def _port(device: str, joint: str, port: str | None, body: str) -> str:
    """The path of the device in the port that the message names, or of the device itself if it names no port."""
    if port is None and body.startswith("hub "):
        named = _PORT.search(body)
        port = named.group(1) if named else None
    if port is None:
        return device if joint == "." else f"usb{device}"
    return f"{device}{joint}{port}"
