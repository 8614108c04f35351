"""USB relay boards by dcttech and their copies (16c0:05df, product "USBRelayN", HID without a kernel driver).

Protocol: a feature report of 8 bytes without an id. In a report that is sent, the first byte is a command: ``ff n``
energises relay n (from 1), ``fd n`` releases it, ``fe`` and ``fc`` do so with all relays. A report that is read holds
the board's serial number (five characters), and in its last byte which relays are energised (bit 0 is relay 1). The
USB device itself has no serial number. Sources: labgrid/util/agents/usb_hid_relay.py; the firmware at
github.com/u1f35c/usb-relay-firmware; the list of descriptors at github.com/darrylb123/usbrelay.

The machine itself gives up on such a transfer: after one second with hidapi, after five with hidraw.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Annotated

from pydantic import Field

from plugpull.errors import RigError
from plugpull.rig.model import Mechanism, Table
from plugpull.switches.base import Identity, SwitchContext, disobeyed
from plugpull.switches.hid_switch import REPLUG, HidSwitch, choose_device, open_device, opening_device, udev_rule
from plugpull.switches.host import HidDevice, HidInfo, Host
from plugpull.switches.kinds import FoundSwitch, Kind
from plugpull.switches.relays import MECHANISMS, Contact, ContactName

VENDOR, PRODUCT = 0x16C0, 0x05DF
REPORT = 8
_REPLUG = REPLUG.format(thing="board")


class HidRelayOptions(Table):
    """Keys of a dcttech relay board."""

    serial: Annotated[str, Field(min_length=1, max_length=10)] | None = None
    """The board's own: `plugpull switch list` prints it. By default the only board there is."""
    wiring: ContactName = "no"
    """"no": a relay feeds its port while it is energised; "nc": a relay cuts its port while it is energised."""


def command(channel: int, energised: bool) -> bytes:
    """The feature report, its id first, that switches one relay (counted from 0)."""
    return bytes((0, 0xFF if energised else 0xFD, channel + 1)).ljust(1 + REPORT, b"\0")


def command_all(energised: bool) -> bytes:
    """The feature report, its id first, that switches every relay."""
    return bytes((0, 0xFE if energised else 0xFC)).ljust(1 + REPORT, b"\0")


def parse_report(report: bytes) -> tuple[str, int]:
    """The board's serial number, and a mask of its energised relays. Raises RigError."""
    serial = report[:5].rstrip(b"\0")
    if len(report) != REPORT or not serial:
        said = report.hex(" ") or "nothing"
        raise RigError(
            f"it answered {said}, not the {REPORT} bytes with its serial number and the state of its relays",
            hint=f"is it a dcttech relay board? {_REPLUG}",
        )
    text = serial.decode("ascii", "replace")
    return (text if text.isprintable() and text.isascii() else serial.hex()), report[7]


class HidRelay(HidSwitch):
    """A dcttech relay board. Every command is followed by a report with the state of all relays."""

    def __init__(self, context: SwitchContext, options: HidRelayOptions, device: HidDevice, info: HidInfo) -> None:
        identity = Identity("hid-relay", _model(info), info.serial, "", info.path)
        super().__init__(context, device, identity, relays_of(info))
        self._contact = Contact(options.wiring)
        self._energised(time.monotonic() + context.timeout)

    def _command(self, port: str, on: bool) -> None:
        self._switch((port,), on, command(self._number(port) - 1, self._contact.energised(on)))

    def _command_many(self, ports: Sequence[str], on: bool) -> None:
        self._switch(ports, on, command_all(self._contact.energised(on)))

    def read(self, port: str) -> bool | None:
        channel = self._number(port) - 1
        with self._deadline() as deadline:
            return self._contact.on(bool(self._energised(deadline) >> channel & 1))

    def _switch(self, ports: Sequence[str], on: bool, report: bytes) -> None:
        wanted = self._contact.energised(on)
        with self._deadline() as deadline:
            self._device.send_feature(report)
            mask = self._energised(deadline)
            failed = [port for port in ports if bool(mask >> (self._number(port) - 1) & 1) != wanted]
            if failed:
                raise disobeyed(failed, on, f"does another program switch it? {_REPLUG}", "the board")

    def _energised(self, deadline: float) -> int:
        """A mask of the relays that are energised."""
        serial, mask = parse_report(self._device.get_feature(0, REPORT))
        if serial != self.identity.serial:
            raise RigError(f"it says that its serial number is {serial}", hint=_REPLUG)
        if time.monotonic() > deadline:
            raise RigError(f"it took longer to answer than {self._context.timeout:g} s (timeout = ...)", hint=_REPLUG)
        return mask


def _model(info: HidInfo) -> str:
    named = re.search(r"USBRelay\d+", info.model)
    return named.group() if named else "USBRelay"


def relays_of(info: HidInfo) -> int:
    """The number of relays, from the product name; 8, the largest number, if the name does not say."""
    named = re.search(r"USBRelay([1-8])\b", info.model)
    return int(named.group(1)) if named else 8


def _boards(host: Host) -> Iterator[HidInfo]:
    """HID devices that may be such boards. Everything made with V-USB shares their ids, so the product name decides
    (vusb/USB-IDs-for-free)."""
    for info in host.hid_devices(VENDOR, PRODUCT):
        if not info.model or "USBRelay" in info.model:
            yield info


def _with_serials(host: Host, refused: list[RigError]) -> Iterator[HidInfo]:
    """The boards with the serial numbers that they report. ``refused`` collects the errors of the others."""
    for info in _boards(host):
        try:
            device = open_device(host, info, "HID relay board")
            try:
                serial, _ = parse_report(device.get_feature(0, REPORT))
            finally:
                device.close()
        except RigError as error:
            where = "" if info.path in error.what else f"the HID relay board at {info.path}: "
            refused.append(RigError(f"{where}{error.what}", hint=error.hint))
            continue
        yield replace(info, serial=serial)


def open_relay(context: SwitchContext, options: HidRelayOptions) -> HidRelay:
    """Find the board and open it. Raises RigError."""
    refused: list[RigError] = []
    boards = tuple(_with_serials(context.host, refused))
    # The board that does not answer may be the one to use, or a second one with the same serial number.
    if refused and (options.serial is None or all(info.serial != options.serial for info in boards)):
        raise refused[0]
    info = choose_device(boards, options.serial, "HID relay board", context.host.name)
    with opening_device(context.host, info, "HID relay board", _model(info)) as device:
        return HidRelay(context, options, device, info)


def find(host: Host) -> Iterable[FoundSwitch]:
    """Every board that is attached."""
    refused: list[RigError] = []
    serials = {info.path: info.serial for info in _with_serials(host, refused)}
    for info in _boards(host):
        serial = serials.get(info.path, "")
        yield FoundSwitch(
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


KIND = Kind(
    "hid-relay",
    "dcttech USBRelay boards (HID)",
    HidRelayOptions,
    open_relay,
    MECHANISMS,
    find=find,
    identity_keys=("serial",),
)
