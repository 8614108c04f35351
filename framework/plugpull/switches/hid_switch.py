"""What the HID drivers share: choosing the device, opening it, and a handle that stays open."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from plugpull.errors import RigError
from plugpull.switches.base import Capabilities, DeviceSwitch, Identity, SwitchContext, require_ports
from plugpull.switches.host import HidDevice, HidInfo, Host

REPLUG = "unplug the {thing} for some seconds and plug it in again; if that does not help, try another cable or hub"


def udev_rule(vendor: int, product: int) -> str:
    """A udev rule that lets the group dialout use a HID device.

    It matches the USB device, which hidapi opens through libusb, and its hidraw node.
    """
    return (
        f'SUBSYSTEM=="usb|hidraw", ATTRS{{idVendor}}=="{vendor:04x}", ATTRS{{idProduct}}=="{product:04x}", '
        'GROUP="dialout", MODE="0660", TAG+="uaccess"'
    )


class HidSwitch(DeviceSwitch):
    """A switch that is a HID device with ``count`` ports. Its handle stays open until ``close``."""

    def __init__(self, context: SwitchContext, device: HidDevice, identity: Identity, count: int) -> None:
        require_ports(context, count, f"a {identity.model}")
        at_once = count == context.ports > 1
        capabilities = Capabilities(context.mechanism, read_back=True, latching=False, simultaneous=at_once)
        super().__init__(context, identity, capabilities)
        self._device = device
        self._count = count
        self._closed = False

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._device.close()

    @contextmanager
    def _deadline(self) -> Iterator[float]:
        with super()._deadline() as deadline:
            if self._closed:
                raise RigError("it is closed", hint="this is a defect of plugpull: please report it")
            yield deadline

    def _at_once(self, ports: Sequence[str]) -> bool:
        """One command switches all ports of the device. Fewer are switched one after the other."""
        numbers = {self._number(port) for port in ports}
        return len(numbers) > 1 and numbers == set(range(1, self._count + 1))


def choose_device(found: Iterable[HidInfo], serial: str | None, what: str, machine: str) -> HidInfo:
    """The device with this serial number, or, without one, the only device. Raises RigError."""
    devices = tuple(found)
    if not devices:
        raise RigError(f"no {what} on {machine}", hint="is it plugged in? `lsusb` lists USB devices")
    matching = [info for info in devices if serial in (None, info.serial)]
    unread = [info for info in devices if not info.serial]
    if not matching and unread:
        raise RigError(
            f"no {what} with the serial number {serial} on {machine}, and that of the one at "
            f"{' and '.join(info.path for info in unread)} cannot be read",
            hint=_permission(unread[0]),
        )
    if not matching:
        raise RigError(
            f"no {what} with the serial number {serial} on {machine}",
            hint=f"is this the right serial number? found: {_listed(devices)}",
        )
    if len(matching) == 1:
        return matching[0]
    if serial is None:
        raise RigError(
            f"there is more than one {what} on {machine}: {_listed(matching)}",
            hint='name the one to use: serial = "..."',
        )
    raise RigError(
        f"{' and '.join(info.path for info in matching)} both have the serial number {serial}",
        hint="plugpull cannot distinguish them: unplug one, or plug it into another machine",
    )


def _permission(info: HidInfo) -> str:
    return (
        "does another program have it open? If you may not open it, write this line to "
        "/etc/udev/rules.d/70-plugpull.rules, plug the device in again, and add yourself to that group: "
        f"{udev_rule(info.vendor, info.product)}"
    )


def _listed(devices: Iterable[HidInfo]) -> str:
    return ", ".join(
        f"{f'the serial number {info.serial}' if info.serial else 'no serial number'} at {info.path}"
        for info in devices
    )


def open_device(host: Host, info: HidInfo, what: str) -> HidDevice:
    """The opened device. Raises RigError with the udev rule that lets an ordinary user open it."""
    try:
        return host.hid(info)
    except RigError as error:
        raise RigError(
            f"cannot open the {device_name(what, info)} on {host.name}: {error.what}",
            hint=_permission(info),
        ) from error


@contextmanager
def opening_device(host: Host, info: HidInfo, what: str, model: str) -> Iterator[HidDevice]:
    """The opened device, for a block that makes a switch of it. If the block raises, the device is closed again, and
    a RigError names the device."""
    device = open_device(host, info, what)
    try:
        yield device
    except BaseException as error:
        device.close()
        if isinstance(error, RigError):
            raise RigError(f"{device_name(model, info)}: {error.what}", hint=error.hint) from error
        raise


def device_name(model: str, info: HidInfo) -> str:
    """A device in messages: ``YKUSH YK12345 at 1-4:1.0``."""
    return str(Identity("", model, info.serial, "", info.path))
