"""YKUSH, YKUSH3 and YKUSH XS: USB hubs that switch the power of their ports (04d8, HID).

The protocol is yepkit-pykush's, over the HID devices of either machine. Reports have 64 bytes; the first of a command
is ``10|n`` for port n up, ``n`` for down, ``20|n`` for its state, ``1a`` and ``0a`` for all ports at once, ``f0`` for
the firmware's version and ``f1`` for the number of ports. The first byte of an answer is 1 if the command was obeyed,
the second repeats it, or is ``10|n`` for a port n that is up and ``n`` for one that is down. Sources: pykush 0.3.6, and
Yepkit's own program ykushcmd (github.com/Yepkit/ykush), which tells the port by the low half of that byte.

What pykush leaves to its callers is seen to here. Its constructor searches for a device, forgets the product id on the
way (so that an XS has three ports) and calls itself without end if the device cannot be opened: it is not used. It
waits one second for an answer, whatever was asked for; takes no answer, or half of one, for twenty times ff; and reads
whatever report comes first, even the late answer to an earlier command.

Linux gives a YKUSH (f2f7, 0042) no hidraw device: as PICK16F1454 it is on the list of things that are not to be used
as HID devices, in drivers/hid/hid-quirks.c. hidapi reaches it by libusb, a DUT's agent by usbfs.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated, Any, Literal

from pydantic import Field

from plugpull.errors import RigError
from plugpull.rig.model import Mechanism, Table
from plugpull.switches.base import Acknowledged, Capabilities, Identity
from plugpull.switches.hid_switch import HidSwitch, has_ports, left, named, opened, the_one, udev_rule
from plugpull.switches.host import HidDevice, HidInfo, Host
from plugpull.switches.kinds import Found, Kind, Wiring

VENDOR = 0x04D8
Model = Literal["ykush", "ykush3", "ykush-xs"]
PRODUCTS: dict[int, tuple[Model, str, int, Mechanism]] = {
    0xF2F7: ("ykush", "YKUSH", 3, Mechanism.VBUS),
    0x0042: ("ykush", "YKUSH", 3, Mechanism.VBUS),
    0xF11B: ("ykush3", "YKUSH3", 3, Mechanism.DATA_VBUS),
    0xF0CD: ("ykush-xs", "YKUSH XS", 1, Mechanism.VBUS),
}
"""By product id: the model, its name, how many ports it has, and what they interrupt. 0042 is early firmware."""
REPORT = 64
LEAST = {0x0042: 2}
"""Bytes an answer has at least. Early firmware has shorter reports; pykush wants 20."""
GREETING = 1.0
"""Seconds for the questions that early firmware does not know, and perhaps does not answer."""
MOST_OWED = 4
_AGAIN = "unplug the YKUSH for some seconds and plug it in again; if that does not help, try another cable or hub"


class Options(Table):
    serial: Annotated[str, Field(min_length=1)] | None = None
    """By default the only device there is; with two, it has to be said."""
    model: Model | None = None
    """Devices of other models are passed over."""


def parse_acknowledgement(answer: bytes, command: int) -> None:
    """Was this command obeyed? Raises RigError if not, and for the answer to something else."""
    if len(answer) < 2 or answer[0] != 1:
        raise RigError(f"it did not obey the command {command:02x}: it answered {_shown(answer)}", mend=_AGAIN)
    # ykushcmd does not look at this byte: firmware that leaves it empty must be able to pass.
    if answer[1] not in (0, command):
        raise RigError(
            f"it answered the command {command:02x} with the answer to {answer[1]:02x}",
            mend=f"does another program use it? {_AGAIN}",
        )


def parse_state(answer: bytes, port: int) -> bool:
    """Is this port up? Raises RigError for a refusal, and for the state of another port."""
    if len(answer) < 2 or answer[0] != 1:
        raise RigError(f"it does not tell the state of port {port}: it answered {_shown(answer)}", mend=_AGAIN)
    if answer[1] not in (port, 0x10 | port):
        raise RigError(
            f"it was asked for port {port} and answered for another one ({_shown(answer)})",
            mend=f"does another program use it? {_AGAIN}",
        )
    return answer[1] > 0x10


def _shown(answer: bytes) -> str:
    return answer[:4].hex(" ") + (" ..." if len(answer) > 4 else "") if answer else "nothing"


class _Handle:
    """What pykush takes for a hidapi device: ours, with a deadline, and with answers that are none as errors."""

    def __init__(self, device: HidDevice, info: HidInfo) -> None:
        self._device = device
        self._info = info
        self._least = LEAST.get(info.product, 20)
        self.deadline = 0.0
        self.indulgent = False
        """An answer may be missing: pykush knows what that means."""
        self.owed = 0
        """Answers that may still come, and would be taken for those to other questions."""
        self.answer = b""

    def write(self, packet: Sequence[int]) -> int:
        self._drop_late()
        self._asked = packet[1]
        self._device.write(bytes(packet))
        return len(packet)

    def _drop_late(self) -> None:
        # Answers that come late, and those to other programs: the kernel gives every reader every report.
        while self._device.read(REPORT, 0.0):
            self.owed = max(0, self.owed - 1)
            if time.monotonic() > self.deadline:
                raise RigError("it does not stop sending reports that nobody asked for", mend=_AGAIN)

    def read(self, max_length: int, timeout_ms: int) -> list[int]:
        patience = left(self.deadline)
        if self.indulgent:
            patience = min(patience, GREETING)
        begun = time.monotonic()
        self.answer = self._device.read(max_length, patience)
        if not self.answer:
            self.owed = min(MOST_OWED, self.owed + 1)
        if len(self.answer) < self._least and not self.indulgent:
            said = f"only {len(self.answer)} bytes of an answer" if self.answer else "no answer"
            raise RigError(
                f"it gave {said} to the command {self._asked:02x} within {time.monotonic() - begun:.1f} s", mend=_AGAIN
            )
        return list(self.answer.ljust(20, b"\0")) if len(self.answer) >= self._least else []

    def get_serial_number_string(self) -> str:
        return self._info.serial

    def get_product_string(self) -> str:
        return self._info.model

    def close(self) -> None:
        """pykush closes what it has when it is collected; the switch sees to that itself."""


def _pykush(handle: _Handle, product: int) -> Any:
    """pykush's own object without its constructor."""
    try:
        from pykush.pykush import YKUSH
    except ImportError as error:
        raise RigError(f"yepkit-pykush is not installed: {error}", mend="pip install yepkit-pykush") from None
    made = YKUSH.__new__(YKUSH)
    made._devhandle = handle
    made._firmware_major_version = made._firmware_minor_version = None
    made._downstream_port_count = None
    made._proudct_id = product  # as it is spelt there
    return made


class Ykush(HidSwitch):
    def __init__(self, wiring: Wiring, device: HidDevice, info: HidInfo) -> None:
        _, model, ports, cuts = PRODUCTS[info.product]
        super().__init__(wiring, device, Identity("ykush", model, info.serial, "", info.path))
        has_ports(wiring, ports, model)
        if wiring.mechanism is not cuts:
            raise RigError(
                f'a {model} interrupts {cuts}, and the rig file says mechanism = "{wiring.mechanism}"',
                mend=f'write mechanism = "{cuts}"',
            )
        self._handle = _Handle(device, info)
        self._ykush = _pykush(self._handle, info.product)
        # It is to be all there before anything is cut by it. Every firmware knows this question.
        self._ykush._downstream_port_count = ports
        self._handle.deadline = time.monotonic() + wiring.timeout
        self._state(1)
        self._count, firmware = self._greet(ports)
        has_ports(wiring, self._count, f"{model} with firmware {firmware}")
        self.identity = Identity("ykush", model, info.serial, firmware, info.path)
        self.capabilities = Capabilities(
            wiring.mechanism, read_back=True, latching=False, simultaneous=self._count == wiring.ports > 1
        )

    def _greet(self, ports: int) -> tuple[int, str]:
        """How many ports it has and its firmware's version, as far as it knows."""
        self._handle.indulgent = True
        self._ykush._downstream_port_count = None
        self._handle.deadline = time.monotonic() + self._wiring.timeout
        firmware = "{}.{}".format(*self._ykush.get_firmware_version())
        count = int(self._ykush.get_downstream_port_count())
        self._handle.indulgent = False
        if count != ports:
            raise RigError(f"it says that it has {count} ports, and its kind has {ports}", mend=_AGAIN)
        return count, firmware

    def _command(self, port: str, on: bool) -> None:
        number = self._number(port)
        with self._told() as self._handle.deadline:
            self._ykush.set_port_state(number, int(on))
            parse_acknowledgement(self._handle.answer, (0x10 if on else 0) | number)
            self._verify((number,), on)

    def set_many(self, ports: Sequence[str], on: bool) -> tuple[Acknowledged, ...]:
        """All ports of the device go by one command; fewer go one after the other."""
        numbers = [self._number(port) for port in ports]
        if len(numbers) < 2 or set(numbers) != set(range(1, self._count + 1)):
            return super().set_many(ports, on)
        commanded = time.monotonic()
        with self._told() as self._handle.deadline:
            (self._ykush.set_allports_state_up if on else self._ykush.set_allports_state_down)()
            parse_acknowledgement(self._handle.answer, 0x1A if on else 0x0A)
            self._verify(numbers, on)
        acknowledged = time.monotonic()
        return tuple(Acknowledged(port, commanded, acknowledged) for port in ports)

    def read(self, port: str) -> bool | None:
        number = self._number(port)
        with self._told() as self._handle.deadline:
            return self._state(number)

    @contextmanager
    def _told(self) -> Iterator[float]:
        try:
            with super()._told() as deadline:
                yield deadline
        except RigError:
            # Whatever it was, an answer may still be under way.
            self._handle.owed = max(1, self._handle.owed)
            raise

    def _verify(self, numbers: Iterable[int], on: bool) -> None:
        disobeyed = [str(number) for number in numbers if self._state(number) != on]
        if disobeyed:
            raise RigError(
                f"port {', '.join(disobeyed)} was switched {'on' if on else 'off'}, and the YKUSH says it is "
                f"{'off' if on else 'on'}",
                mend=f"does another program switch it? {_AGAIN}",
            )

    def _state(self, number: int) -> bool:
        """Ask once, and once more for each answer that is still owed: the last one is then no older than this."""
        told = set()
        for _ in range(1 + self._handle.owed):
            self._ykush.get_port_state(number)
            told.add(parse_state(self._handle.answer, number))
        if len(told) > 1:
            raise RigError(f"its answers about port {number} come late, and do not agree", mend=_AGAIN)
        return told.pop()


def _attached(host: Host, model: str | None = None) -> Iterable[HidInfo]:
    for product, (kind, *_) in PRODUCTS.items():
        if model in (None, kind):
            yield from host.hid_devices(VENDOR, product)


def open_ykush(wiring: Wiring, options: Options) -> Ykush:
    what = next((name for kind, name, *_ in PRODUCTS.values() if kind == options.model), "YKUSH")
    info = the_one(_attached(wiring.host, options.model), options.serial, what, wiring.host.name)
    device = opened(wiring.host, info, what)
    try:
        return Ykush(wiring, device, info)
    except BaseException as error:
        device.close()
        if isinstance(error, RigError):
            raise RigError(f"{named(what, info.serial, info.path)}: {error.what}", mend=error.mend) from error
        raise


def find(host: Host) -> Iterable[Found]:
    for info in _attached(host):
        _, model, ports, cuts = PRODUCTS[info.product]
        notes = [
            "its serial number cannot be read: may this user open it?" if not info.serial else "",
            "other things made with Microchip's example firmware have this product id too"
            if info.product == 0x0042
            else "",
        ]
        yield Found(
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
    Options,
    open_ykush,
    frozenset({Mechanism.VBUS, Mechanism.DATA_VBUS}),
    find=find,
)
