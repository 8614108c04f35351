"""USB relay boards by dcttech and those that copy them (16c0:05df, product "USBRelayN", HID without a driver).

Protocol: a feature report of 8 bytes without an id. Sent, its first byte is a command: ``ff n`` energises relay n (from
1), ``fd n`` lets it go, ``fe`` and ``fc`` do so with all of them. Read, it holds the board's serial number (five
characters), and in its last byte which relays are energised (bit 0 is relay 1). The USB device has no serial number.
Sources: labgrid/util/agents/usb_hid_relay.py; the firmware at github.com/u1f35c/usb-relay-firmware; the listing of
descriptors at github.com/darrylb123/usbrelay.

The machine itself gives up on such a transfer: after one second with hidapi, after five with hidraw.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Literal

from pydantic import Field

from plugpull.errors import RigError
from plugpull.rig.model import Mechanism, Table
from plugpull.switches.base import Acknowledged, Capabilities, Identity
from plugpull.switches.hid_switch import HidSwitch, has_ports, named, opened, the_one, udev_rule
from plugpull.switches.host import HidDevice, HidInfo, Host
from plugpull.switches.kinds import Found, Kind, Wiring
from plugpull.switches.serial_board import MECHANISMS, Contact

VENDOR, PRODUCT = 0x16C0, 0x05DF
REPORT = 8
_AGAIN = "unplug the board for some seconds and plug it in again; if that does not help, try another cable or hub"


class Options(Table):
    serial: Annotated[str, Field(min_length=1, max_length=10)] | None = None
    """The board's own: `plugpull switch list` prints it. By default the only board there is."""
    wiring: Literal["no", "nc"] = "no"
    """"no": a relay feeds its port while it is energised; "nc": a relay cuts its port while it is energised."""


def command(channel: int, energised: bool) -> bytes:
    """The feature report, its id first, that switches one relay (counted from 0)."""
    return bytes((0, 0xFF if energised else 0xFD, channel + 1)).ljust(1 + REPORT, b"\0")


def command_all(energised: bool) -> bytes:
    """The feature report, its id first, that switches every relay."""
    return bytes((0, 0xFE if energised else 0xFC)).ljust(1 + REPORT, b"\0")


def parse_report(report: bytes) -> tuple[str, int]:
    """The board's serial number, and which of its relays are energised. Raises RigError."""
    serial = report[:5].rstrip(b"\0")
    if len(report) != REPORT or not serial:
        said = report.hex(" ") or "nothing"
        raise RigError(
            f"it answered {said}, not the {REPORT} bytes that tell its serial number and the state of its relays",
            mend=f"is it a dcttech relay board? {_AGAIN}",
        )
    text = serial.decode("ascii", "replace")
    return (text if text.isprintable() and text.isascii() else serial.hex()), report[7]


class HidRelay(HidSwitch):
    def __init__(self, wiring: Wiring, options: Options, device: HidDevice, info: HidInfo) -> None:
        super().__init__(wiring, device, Identity("hid-relay", _model(info), info.serial, "", info.path))
        self._count = relays_of(info)
        has_ports(wiring, self._count, self.identity.model)
        self._contact = Contact(options.wiring)
        self.capabilities = Capabilities(
            wiring.mechanism, read_back=True, latching=False, simultaneous=self._count == wiring.ports > 1
        )
        self._energised(time.monotonic() + wiring.timeout)

    def _command(self, port: str, on: bool) -> None:
        self._edge({port: self._number(port) - 1}, on)

    def set_many(self, ports: Sequence[str], on: bool) -> tuple[Acknowledged, ...]:
        """All relays of the board go by one command; fewer go one after the other."""
        channels = {port: self._number(port) - 1 for port in ports}
        if len(channels) < 2 or set(channels.values()) != set(range(self._count)):
            return super().set_many(ports, on)
        commanded = time.monotonic()
        self._edge(channels, on)
        acknowledged = time.monotonic()
        return tuple(Acknowledged(port, commanded, acknowledged) for port in ports)

    def read(self, port: str) -> bool | None:
        channel = self._number(port) - 1
        with self._told() as deadline:
            return self._contact.on(bool(self._energised(deadline) >> channel & 1))

    def _edge(self, channels: Mapping[str, int], on: bool) -> None:
        energised = self._contact.energised(on)
        first = next(iter(channels.values()))
        report = command_all(energised) if len(channels) > 1 else command(first, energised)
        with self._told() as deadline:
            self._device.send_feature(report)
            told = self._energised(deadline)
            disobeyed = [port for port, channel in channels.items() if bool(told >> channel & 1) != energised]
            if disobeyed:
                raise RigError(
                    f"port {', '.join(disobeyed)} was switched {'on' if on else 'off'}, and the board says it is "
                    f"{'off' if on else 'on'}",
                    mend=f"does another program switch it? {_AGAIN}",
                )

    def _energised(self, deadline: float) -> int:
        serial, mask = parse_report(self._device.get_feature(0, REPORT))
        if serial != self.identity.serial:
            raise RigError(f"it says that its serial number is {serial}", mend=_AGAIN)
        if time.monotonic() > deadline:
            raise RigError(f"it took longer to answer than {self._wiring.timeout:g} s (timeout = ...)", mend=_AGAIN)
        return mask


def _model(info: HidInfo) -> str:
    named = re.search(r"USBRelay\d+", info.model)
    return named.group() if named else "USBRelay"


def relays_of(info: HidInfo) -> int:
    """How many relays a board has, by its product name; eight, which is the most, if that does not tell."""
    named = re.search(r"USBRelay([1-8])\b", info.model)
    return int(named.group(1)) if named else 8


def _boards(host: Host) -> Iterator[HidInfo]:
    """HID devices that may be such boards. Their ids are shared by everything made with V-USB (vusb/USB-IDs-for-free
    says: go by the names)."""
    for info in host.hid_devices(VENDOR, PRODUCT):
        if not info.model or "USBRelay" in info.model:
            yield info


def _named(host: Host, refused: list[RigError]) -> Iterator[HidInfo]:
    """The boards with the serial numbers they tell when they are asked."""
    for info in _boards(host):
        try:
            device = opened(host, info, "HID relay board")
            try:
                serial, _ = parse_report(device.get_feature(0, REPORT))
            finally:
                device.close()
        except RigError as error:
            where = "" if info.path in error.what else f"the HID relay board at {info.path}: "
            refused.append(RigError(f"{where}{error.what}", mend=error.mend))
            continue
        yield replace(info, serial=serial)


def open_relay(wiring: Wiring, options: Options) -> HidRelay:
    refused: list[RigError] = []
    boards = tuple(_named(wiring.host, refused))
    # The board that does not answer may be the one that is meant, or a second one with the same serial number.
    if refused and (options.serial is None or all(info.serial != options.serial for info in boards)):
        raise refused[0]
    info = the_one(boards, options.serial, "HID relay board", wiring.host.name)
    device = opened(wiring.host, info, "HID relay board")
    try:
        return HidRelay(wiring, options, device, info)
    except BaseException as error:
        device.close()
        if isinstance(error, RigError):
            raise RigError(f"{named(_model(info), info.serial, info.path)}: {error.what}", mend=error.mend) from error
        raise


def find(host: Host) -> Iterable[Found]:
    refused: list[RigError] = []
    named = {info.path: info.serial for info in _named(host, refused)}
    for info in _boards(host):
        serial = named.get(info.path, "")
        yield Found(
            "hid-relay",
            _model(info),
            serial,
            info.path,
            relays_of(info),
            {"serial": serial} if serial else {},
            Mechanism.MAINS,
            udev_rule(info.vendor, info.product),
            "" if serial else "its serial number cannot be read: may this user open it?",
        )


KIND = Kind("hid-relay", "dcttech USBRelay boards (HID)", Options, open_relay, MECHANISMS, find=find)
