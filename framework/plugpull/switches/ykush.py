"""YKUSH, YKUSH3 and YKUSH XS: USB hubs that switch the power of their ports (04d8, HID).

yepkit-pykush speaks the protocol, over the HID devices of either machine. Reports have 64 bytes. The first byte of a
command is ``10|n`` for port n up, ``n`` for down, ``20|n`` for its state, ``1a`` and ``0a`` for all ports at once,
``f0`` for the firmware's version and ``f1`` for the number of ports. The first byte of an answer is 1 if the command
was obeyed. The second byte repeats the command; in an answer about a state it is ``10|n`` if port n is up and ``n`` if
it is down. Sources: pykush 0.3.6, and Yepkit's own program ykushcmd (github.com/Yepkit/ykush), which reads the port
from the low half of that byte.

This driver adds what pykush leaves to its callers. pykush's constructor is not used: it searches for a device, loses
the product id (so that an XS has three ports), and recurses without end if the device cannot be opened. pykush waits
one second for every answer; it reads a missing or short answer as twenty times ff; and it takes the first report that
comes, even if that is the late answer to an earlier command.

Linux gives a YKUSH (f2f7, 0042) no hidraw device: as PICK16F1454 it is on the list of devices that are not to be used
as HID devices, in drivers/hid/hid-quirks.c. hidapi reaches it through libusb, a DUT's agent through usbfs.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import Annotated, Any, Literal

from pydantic import Field

from plugpull.errors import RigError
from plugpull.rig.model import Mechanism, Table
from plugpull.switches.base import Identity, SwitchContext, disobeyed, require_ports, seconds_left
from plugpull.switches.hid_switch import REPLUG, HidSwitch, choose_device, opening_device, udev_rule
from plugpull.switches.host import HidDevice, HidInfo, Host
from plugpull.switches.kinds import FoundSwitch, Kind

VENDOR = 0x04D8
Model = Literal["ykush", "ykush3", "ykush-xs"]
PRODUCTS: dict[int, tuple[Model, str, int, Mechanism]] = {
    0xF2F7: ("ykush", "YKUSH", 3, Mechanism.VBUS),
    0x0042: ("ykush", "YKUSH", 3, Mechanism.VBUS),
    0xF11B: ("ykush3", "YKUSH3", 3, Mechanism.DATA_VBUS),
    0xF0CD: ("ykush-xs", "YKUSH XS", 1, Mechanism.VBUS),
}
"""By product id: the model, its name, its number of ports, and what they interrupt. 0042 is early firmware."""
REPORT = 64
LEAST = {0x0042: 2}
"""Bytes of the shortest answer. Early firmware has shorter reports than the 20 that pykush expects."""
GREETING = 1.0
"""Seconds for questions that early firmware does not know and may not answer."""
MOST_OWED = 4
"""Late answers that are waited for after a question without an answer."""
_REPLUG = REPLUG.format(thing="YKUSH")


class YkushOptions(Table):
    """Keys of a YKUSH."""

    serial: Annotated[str, Field(min_length=1)] | None = None
    """By default the only device that is attached."""
    model: Model | None = None
    """Devices of other models are ignored."""


def parse_acknowledgement(answer: bytes, command: int) -> None:
    """Raises RigError if the answer does not say that this command was obeyed."""
    if len(answer) < 2 or answer[0] != 1:
        raise RigError(f"it did not obey the command {command:02x}: it answered {_shown(answer)}", hint=_REPLUG)
    # ykushcmd does not look at this byte, so firmware that leaves it empty is accepted.
    if answer[1] not in (0, command):
        raise RigError(
            f"it answered the command {command:02x} with the answer to {answer[1]:02x}",
            hint=f"does another program use it? {_REPLUG}",
        )


def parse_state(answer: bytes, port: int) -> bool:
    """Whether this port is up. Raises RigError for a refusal, and for the state of another port."""
    if len(answer) < 2 or answer[0] != 1:
        raise RigError(f"it does not report the state of port {port}: it answered {_shown(answer)}", hint=_REPLUG)
    if answer[1] not in (port, 0x10 | port):
        raise RigError(
            f"it was asked for port {port} and answered for another one ({_shown(answer)})",
            hint=f"does another program use it? {_REPLUG}",
        )
    return answer[1] > 0x10


def _shown(answer: bytes) -> str:
    return answer[:4].hex(" ") + (" ..." if len(answer) > 4 else "") if answer else "nothing"


class _Handle:
    """The hidapi device that pykush sees: a ``HidDevice`` with a deadline, for which a missing answer is an error."""

    def __init__(self, device: HidDevice, info: HidInfo) -> None:
        self._device = device
        self._info = info
        self._least = LEAST.get(info.product, 20)
        self.deadline = 0.0
        self.may_be_silent = False
        """Do not raise for a missing answer: pykush has a default for it."""
        self.owed = 0
        """Late answers that may still come, and must not be taken for the answers to other questions."""
        self.answer = b""

    def write(self, packet: Sequence[int]) -> int:
        self._drop_late()
        self._asked = packet[1]
        self._device.write(bytes(packet))
        return len(packet)

    def _drop_late(self) -> None:
        # Late answers, and answers to other programs: the kernel gives every report to every reader.
        while self._device.read(REPORT, 0.0):
            self.owed = max(0, self.owed - 1)
            if time.monotonic() > self.deadline:
                raise RigError("it does not stop sending reports without being asked", hint=_REPLUG)

    def read(self, max_length: int, timeout_ms: int) -> list[int]:
        patience = seconds_left(self.deadline)
        if self.may_be_silent:
            patience = min(patience, GREETING)
        begun = time.monotonic()
        self.answer = self._device.read(max_length, patience)
        if not self.answer:
            self.owed = min(MOST_OWED, self.owed + 1)
        if len(self.answer) < self._least and not self.may_be_silent:
            said = f"only {len(self.answer)} bytes of an answer" if self.answer else "no answer"
            raise RigError(
                f"it gave {said} to the command {self._asked:02x} within {time.monotonic() - begun:.1f} s", hint=_REPLUG
            )
        return list(self.answer.ljust(20, b"\0")) if len(self.answer) >= self._least else []

    def get_serial_number_string(self) -> str:
        return self._info.serial

    def get_product_string(self) -> str:
        return self._info.model

    def close(self) -> None:
        """Do nothing: pykush closes its device when it is garbage-collected, but the switch owns the device."""


def _pykush(handle: _Handle, product: int) -> Any:
    """A pykush object, made without its constructor."""
    try:
        from pykush.pykush import YKUSH
    except ImportError as error:
        raise RigError(f"yepkit-pykush is not installed: {error}", hint="pip install yepkit-pykush") from None
    made = YKUSH.__new__(YKUSH)
    made._devhandle = handle
    made._firmware_major_version = made._firmware_minor_version = None
    made._downstream_port_count = None
    made._proudct_id = product  # as it is spelt there
    return made


class Ykush(HidSwitch):
    """A YKUSH of any model."""

    def __init__(self, context: SwitchContext, device: HidDevice, info: HidInfo) -> None:
        _, model, ports, cuts = PRODUCTS[info.product]
        super().__init__(context, device, Identity("ykush", model, info.serial, "", info.path), ports)
        if context.mechanism is not cuts:
            raise RigError(
                f'a {model} interrupts {cuts}, and the rig file says mechanism = "{context.mechanism}"',
                hint=f'write mechanism = "{cuts}"',
            )
        self._handle = _Handle(device, info)
        self._ykush = _pykush(self._handle, info.product)
        # Any failure must show before the first cut. Every firmware knows this question.
        self._ykush._downstream_port_count = ports
        self._handle.deadline = time.monotonic() + context.timeout
        self._state(1)
        count, firmware = self._ask_version(ports)
        require_ports(context, count, f"a {model} with firmware {firmware}")
        self.identity = Identity("ykush", model, info.serial, firmware, info.path)

    def _ask_version(self, ports: int) -> tuple[int, str]:
        """The number of ports and the firmware's version, or pykush's defaults for what the firmware does not know."""
        self._handle.may_be_silent = True
        self._ykush._downstream_port_count = None
        self._handle.deadline = time.monotonic() + self._context.timeout
        firmware = "{}.{}".format(*self._ykush.get_firmware_version())
        count = int(self._ykush.get_downstream_port_count())
        self._handle.may_be_silent = False
        if count != ports:
            raise RigError(f"it says that it has {count} ports, but its model has {ports}", hint=_REPLUG)
        return count, firmware

    def _command(self, port: str, on: bool) -> None:
        number = self._number(port)
        with self._deadline() as self._handle.deadline:
            self._ykush.set_port_state(number, int(on))
            parse_acknowledgement(self._handle.answer, (0x10 if on else 0) | number)
            self._verify((port,), on)

    def _command_many(self, ports: Sequence[str], on: bool) -> None:
        with self._deadline() as self._handle.deadline:
            (self._ykush.set_allports_state_up if on else self._ykush.set_allports_state_down)()
            parse_acknowledgement(self._handle.answer, 0x1A if on else 0x0A)
            self._verify(ports, on)

    def read(self, port: str) -> bool | None:
        number = self._number(port)
        with self._deadline() as self._handle.deadline:
            return self._state(number)

    def _failed(self) -> None:
        self._handle.owed = max(1, self._handle.owed)

    def _verify(self, ports: Sequence[str], on: bool) -> None:
        failed = [port for port in ports if self._state(self._number(port)) != on]
        if failed:
            raise disobeyed(failed, on, f"does another program switch it? {_REPLUG}", "the YKUSH")

    def _state(self, number: int) -> bool:
        """Ask for a port's state, and once more for each late answer that may still come.

        The last of these answers then belongs to one of these questions.
        """
        states = set()
        for _ in range(1 + self._handle.owed):
            self._ykush.get_port_state(number)
            states.add(parse_state(self._handle.answer, number))
        if len(states) > 1:
            raise RigError(f"its answers about port {number} come late, and do not agree", hint=_REPLUG)
        return states.pop()


def _attached(host: Host, model: str | None = None) -> Iterable[HidInfo]:
    for product, (kind, *_) in PRODUCTS.items():
        if model in (None, kind):
            yield from host.hid_devices(VENDOR, product)


def open_ykush(context: SwitchContext, options: YkushOptions) -> Ykush:
    """Find the YKUSH and open it. Raises RigError."""
    what = next((name for kind, name, *_ in PRODUCTS.values() if kind == options.model), "YKUSH")
    info = choose_device(_attached(context.host, options.model), options.serial, what, context.host.name)
    with opening_device(context.host, info, what, what) as device:
        return Ykush(context, device, info)


def find(host: Host) -> Iterable[FoundSwitch]:
    """Every YKUSH that is attached."""
    for info in _attached(host):
        _, model, ports, cuts = PRODUCTS[info.product]
        notes = [
            "its serial number cannot be read: may this user open it?" if not info.serial else "",
            "other devices with Microchip's example firmware have this product id too"
            if info.product == 0x0042
            else "",
        ]
        yield FoundSwitch(
            "ykush",
            model,
            info.serial,
            info.path,
            ports,
            {"serial": info.serial} if info.serial else {},
            cuts,
            udev_rule(info.vendor, info.product),
            "; ".join(filter(None, notes)),
        )


KIND = Kind(
    "ykush",
    "Yepkit YKUSH, YKUSH3 and YKUSH XS USB hubs",
    YkushOptions,
    open_ykush,
    frozenset({Mechanism.VBUS, Mechanism.DATA_VBUS}),
    find=find,
    identity_keys=("serial",),
)
