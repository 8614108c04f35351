"""What both kinds of HID switch have in common: which device it is, opening it, and errors that name it."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from plugpull.errors import RigError
from plugpull.rig.model import Mechanism
from plugpull.switches.base import Identity, PortByPort
from plugpull.switches.host import Closing, HidDevice, HidInfo, Host
from plugpull.switches.kinds import Wiring


def udev_rule(vendor: int, product: int) -> str:
    """Lets the group dialout use a HID device. It matches both the USB device, which is what hidapi's libusb side
    opens, and its hidraw node."""
    return (
        f'SUBSYSTEM=="usb|hidraw", ATTRS{{idVendor}}=="{vendor:04x}", ATTRS{{idProduct}}=="{product:04x}", '
        'GROUP="dialout", MODE="0660", TAG+="uaccess"'
    )


class HidSwitch(PortByPort, Closing):
    """A switch that is a HID device. Its handle stays open from the first command to the last."""

    def __init__(self, wiring: Wiring, device: HidDevice, identity: Identity) -> None:
        self._wiring = wiring
        self._device = device
        self.identity = identity
        self._closed = False

    @property
    def name(self) -> str:
        return self._wiring.name

    @property
    def mechanism(self) -> Mechanism:
        return self._wiring.mechanism

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._device.close()

    @contextmanager
    def _told(self) -> Iterator[float]:
        """The deadline of one command, for a block whose errors say which switch it was and where it is."""
        try:
            if self._closed:
                raise RigError("it is closed", mend="this is a defect of plugpull: please report it")
            yield time.monotonic() + self._wiring.timeout
        except RigError as error:
            where = named(self.identity.model, self.identity.serial, self.identity.place)
            raise RigError(f"switch {self.name} ({where}): {error.what}", mend=error.mend) from error

    def _number(self, port: str) -> int:
        number = int(port) if port.isascii() and port.isdigit() else 0
        if not 1 <= number <= self._wiring.ports:
            raise RigError(
                f"switch {self.name} has no port {port}", mend=f"its ports are 1 to {self._wiring.ports} (ports = ...)"
            )
        return number


def named(model: str, serial: str, place: str) -> str:
    """A device in messages."""
    return f"{model} {serial} at {place}" if serial else f"{model} at {place}"


def left(deadline: float) -> float:
    """Seconds until a time of ``time.monotonic()``, none if it is over."""
    return max(0.0, deadline - time.monotonic())


def has_ports(wiring: Wiring, count: int, model: str) -> None:
    """Raises RigError if more ports are declared than the device has."""
    if wiring.ports > count:
        has = "1 port" if count == 1 else f"{count} ports"
        raise RigError(
            f"a {model} has {has}, and the rig file says ports = {wiring.ports}",
            mend=f"write ports = {count}" + ("" if count == 1 else " or less"),
        )


def the_one(found: Iterable[HidInfo], serial: str | None, what: str, machine: str) -> HidInfo:
    """The device with this serial number, or without one the only device there is. Raises RigError."""
    devices = tuple(found)
    if not devices:
        raise RigError(f"no {what} on {machine}", mend="is it plugged in? `lsusb` lists what is")
    matching = [info for info in devices if serial in (None, info.serial)]
    unread = [info for info in devices if not info.serial]
    if not matching and unread:
        raise RigError(
            f"no {what} with the serial number {serial} on {machine}, and that of the one at "
            f"{' and '.join(info.path for info in unread)} cannot be read",
            mend=_permission(unread[0]),
        )
    if not matching:
        raise RigError(
            f"no {what} with the serial number {serial} on {machine}",
            mend=f"is this the right serial number? there are: {_listed(devices)}",
        )
    if len(matching) == 1:
        return matching[0]
    if serial is None:
        raise RigError(
            f"there is more than one {what} on {machine}: {_listed(matching)}",
            mend='say which one is meant: serial = "..."',
        )
    raise RigError(
        f"{' and '.join(info.path for info in matching)} both have the serial number {serial}",
        mend="which of them is meant cannot be told: unplug one, or plug it into another machine",
    )


def _permission(info: HidInfo) -> str:
    return (
        "does another program have it open? If it is not permitted, write this line to "
        "/etc/udev/rules.d/70-plugpull.rules, plug the device in again, and be in that group: "
        f"{udev_rule(info.vendor, info.product)}"
    )


def _listed(devices: Iterable[HidInfo]) -> str:
    return ", ".join(
        f"{f'the serial number {info.serial}' if info.serial else 'no serial number'} at {info.path}"
        for info in devices
    )


def opened(host: Host, info: HidInfo, what: str) -> HidDevice:
    """The device, open. Raises RigError with the udev rule that lets its user open it."""
    try:
        return host.hid(info)
    except RigError as error:
        raise RigError(
            f"cannot open the {named(what, info.serial, info.path)} on {host.name}: {error.what}",
            mend=_permission(info),
        ) from error
