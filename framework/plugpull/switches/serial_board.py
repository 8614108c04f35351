"""What all relay boards on a serial port have in common: finding the port, the contact, verified edges.

A driver tells how its board is spoken to (``_switch``, and ``_states`` where the board can be asked); this sees to it
that every edge is read back, within one deadline, and that an answer which comes late is not taken for the answer to
another question.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field, model_validator

from plugpull.errors import RigError
from plugpull.rig.model import Mechanism, Table
from plugpull.switches.base import Acknowledged, Capabilities, Identity, PortByPort
from plugpull.switches.host import Closing, Host, SerialInfo, SerialLine
from plugpull.switches.kinds import Found, Wiring

MECHANISMS = frozenset({Mechanism.DATA, Mechanism.VBUS, Mechanism.DATA_VBUS, Mechanism.MAINS})
"""What the contact of a relay can be wired into."""
SETTLED = 2.0
"""Seconds a board gets to say who it is, where its silence is an answer too."""
_RULE = (
    'SUBSYSTEM=="tty", ATTRS{{idVendor}}=="{vendor:04x}", ATTRS{{idProduct}}=="{product:04x}", '
    'GROUP="dialout", MODE="0660", TAG+="uaccess", ENV{{ID_MM_DEVICE_IGNORE}}="1"'
)
"""ModemManager is told to keep away: it sends modem commands to every new port, and a relay board obeys bytes."""


@dataclass(frozen=True)
class Contact:
    """Which contact of a relay the load is wired to: "no", normally open, or "nc", normally closed."""

    wiring: Literal["no", "nc"] = "no"

    def energised(self, on: bool) -> bool:
        """What the relay's coil has to be for its port to be on (or off)."""
        return on == (self.wiring == "no")

    def on(self, energised: bool) -> bool:
        return energised == (self.wiring == "no")


class BoardOptions(Table):
    """Keys of every serial relay board. At least one of ``device`` and ``serial``; with both, the board at ``device``
    has to have that serial number."""

    device: Annotated[str, Field(pattern=r"^/dev/.")] | None = None
    """Its device file. Names under /dev/serial/by-id or by-path stay the same; /dev/ttyUSB0 does not."""
    serial: Annotated[str, Field(min_length=1)] | None = None
    """The serial number of its USB device."""
    baud: Annotated[int, Field(ge=300, le=4_000_000)] = 9600
    wiring: Literal["no", "nc"] = "no"
    """"no": a relay feeds its port while it is energised; "nc": a relay cuts its port while it is energised."""

    @model_validator(mode="after")
    def _somewhere(self) -> BoardOptions:
        if self.device is None and self.serial is None:
            raise ValueError('it needs device = "/dev/serial/by-id/..." or serial = "..."')
        return self


class SerialBoard(PortByPort, Closing):
    """A relay board. ``first`` is the name of its first port, 0 or 1."""

    first = 1

    def __init__(self, wiring: Wiring, options: BoardOptions, line: SerialLine, identity: Identity) -> None:
        self._wiring = wiring
        self._line = line
        self._contact = Contact(options.wiring)
        self._doubtful = False
        self.identity = identity
        self.capabilities = Capabilities(wiring.mechanism, read_back=False, latching=False)

    @property
    def name(self) -> str:
        return self._wiring.name

    @property
    def mechanism(self) -> Mechanism:
        return self._wiring.mechanism

    def close(self) -> None:
        self._line.close()

    def _switch(self, wanted: Mapping[int, bool], deadline: float) -> None:
        """Energise these channels (counted from 0) or let them go, and return when the board has acknowledged, if it
        does. More than one at a time only if the board is ``simultaneous``."""
        raise NotImplementedError

    def _states(self, channels: Collection[int], deadline: float) -> Mapping[int, bool]:
        """Ask the board whether these relays, and perhaps others, are energised."""
        raise NotImplementedError

    def _command(self, port: str, on: bool) -> None:
        self._edge((port,), on)

    def set_many(self, ports: Sequence[str], on: bool) -> tuple[Acknowledged, ...]:
        if not self.capabilities.simultaneous:
            return super().set_many(ports, on)
        commanded = time.monotonic()
        self._edge(ports, on)
        acknowledged = time.monotonic()
        return tuple(Acknowledged(port, commanded, acknowledged) for port in ports)

    def read(self, port: str) -> bool | None:
        channel = self._channel(port)
        if not self.capabilities.read_back:
            return None
        with self._told() as deadline:
            return self._contact.on(self._trusted_states([channel], deadline)[channel])

    def _edge(self, ports: Sequence[str], on: bool) -> None:
        channels = {self._channel(port): port for port in ports}
        energised = self._contact.energised(on)
        with self._told() as deadline:
            self._switch(dict.fromkeys(channels, energised), deadline)
            if self.capabilities.read_back:
                states = self._trusted_states(channels, deadline)
                disobeyed = [port for channel, port in channels.items() if states[channel] != energised]
                if disobeyed:
                    raise RigError(
                        f"port {', '.join(disobeyed)} was switched {_word(on)}, and the board says it is "
                        f"{_word(not on)}",
                        mend="does its relay click? Is the supply of the relays' coils connected? Does another "
                        "program speak to the board?",
                    )

    def _trusted_states(self, channels: Collection[int], deadline: float) -> Mapping[int, bool]:
        states = self._states(channels, deadline)
        if self._doubtful:
            # A question before this one got no answer, so this may have been it, come late. Two answers in a row
            # that say the same are as good as the younger of them.
            if self._states(channels, deadline) != states:
                raise RigError(
                    "the board's answers come late, and do not agree",
                    mend="unplug the board for some seconds; if it happens again, use another cable, hub or board",
                )
            self._doubtful = False
        return states

    @contextmanager
    def _told(self) -> Iterator[float]:
        """The deadline of one command, for a block whose errors say which switch it was and where it is."""
        try:
            yield time.monotonic() + self._wiring.timeout
        except RigError as error:
            self._doubtful = True
            where = "" if self.identity.place in error.what else f" ({self.identity.model} at {self.identity.place})"
            raise RigError(f"switch {self.name}{where}: {error.what}", mend=error.mend) from error

    def _channel(self, port: str) -> int:
        channel = int(port) - self.first if port.isascii() and port.isdigit() else -1
        if not 0 <= channel < self._wiring.ports:
            last = self.first + self._wiring.ports - 1
            raise RigError(f"switch {self.name} has no port {port}", mend=f"its ports are {self.first} to {last}")
        return channel


def exchange(line: SerialLine, question: bytes, count: int, deadline: float) -> bytes:
    """Ask, and take up to ``count`` bytes of answer. What came unasked before is dropped first."""
    line.drop_input()
    line.write(question)
    return line.read(count, left(deadline))


def left(deadline: float) -> float:
    """Seconds until a time of ``time.monotonic()``, none if it is over."""
    return max(0.0, deadline - time.monotonic())


def bad_answer(answer: bytes, expected: str, question: str) -> RigError:
    """The error for an answer that is not one."""
    if not answer:
        return RigError(
            f"the board did not answer {question}",
            mend="is it powered, is this its port, and is the driver the right one for it? Unplug it for some seconds "
            "and plug it in again",
        )
    said = answer[:40].hex(" ") + (" ..." if len(answer) > 40 else "")
    return RigError(
        f"the board answered {question} with {said}, not with {expected}",
        mend="is the driver the right one for this board, and does no other program use its port? Unplug it for some "
        "seconds and plug it in again",
    )


def has_ports(wiring: Wiring, channels: int, model: str) -> None:
    """Raises RigError if more ports are declared than the board has relays."""
    if wiring.ports > channels:
        raise RigError(
            f"{model} has {channels} relays, and the rig file says ports = {wiring.ports}",
            mend=f"write ports = {channels} or less",
        )


@contextmanager
def opened(host: Host, options: BoardOptions) -> Iterator[tuple[SerialLine, SerialInfo]]:
    """The board's port, open, and what is known of it; closed again if the block raises."""
    info = port_of(host, options)
    line = host.serial(info.device, options.baud)
    try:
        yield line, info
    except BaseException as error:
        line.close()
        if isinstance(error, RigError) and info.device not in error.what:
            raise RigError(f"{info.device}: {error.what}", mend=error.mend) from error
        raise


def port_of(host: Host, options: BoardOptions) -> SerialInfo:
    """The port a board is to be reached at. Raises RigError if its serial number is missing, wrong or there twice."""
    ports = host.serial_ports()
    if options.device is not None:
        info = _port_at(host, options.device, ports)
        if options.serial is not None and info.serial != options.serial:
            raise RigError(
                f"the board at {options.device} has {_serial(info)}, not the serial number {options.serial}",
                mend=f"is this the right board? {_found(ports)}",
            )
        return info
    matching = [info for info in ports if info.serial == options.serial]
    if not matching:
        raise RigError(
            f"no serial port with the serial number {options.serial} on {host.name}",
            mend=f"is the board plugged in? {_found(ports)}",
        )
    if len(matching) > 1:
        devices = " and ".join(info.device for info in matching)
        raise RigError(
            f"{devices} both have the serial number {options.serial}",
            mend='name the board by its place instead: device = "/dev/serial/by-path/..."',
        )
    return matching[0]


def _port_at(host: Host, device: str, ports: Iterable[SerialInfo]) -> SerialInfo:
    real = host.real_path(device)
    known = next((info for info in ports if info.device == real), SerialInfo(device))
    return SerialInfo(device, known.vendor, known.product, known.serial, known.model)


def _found(ports: Iterable[SerialInfo]) -> str:
    usb = [f"{info.device} ({_serial(info)})" for info in ports if info.vendor is not None]
    return "there are: " + ", ".join(usb) if usb else "there is no USB serial port at all"


def _serial(info: SerialInfo) -> str:
    return f"the serial number {info.serial}" if info.serial else "no serial number"


def _word(on: bool) -> str:
    return "on" if on else "off"


def identity_of(driver: str, info: SerialInfo, model: str = "", serial: str = "", firmware: str = "") -> Identity:
    return Identity(driver, model or info.model or driver, serial or info.serial, firmware, info.device)


def found_boards(
    host: Host,
    kind: str,
    matches: Callable[[SerialInfo], bool],
    ports: Callable[[SerialInfo], int],
    note: str = "",
    own_serial: bool = True,
) -> Iterator[Found]:
    """The ports that may be a board of this kind, each with the lines of a rig file for it. ``own_serial``: no two of
    these boards have the same serial number."""
    for info in host.serial_ports():
        if info.vendor is None or info.product is None or not matches(info):
            continue
        place = stable_name(host, info, by_serial=own_serial and info.serial != "")
        rule = _RULE.format(vendor=info.vendor, product=info.product)
        yield Found(
            kind, info.model or kind, info.serial, place, ports(info), {"device": place}, Mechanism.MAINS, rule, note
        )


def stable_name(host: Host, info: SerialInfo, *, by_serial: bool) -> str:
    """A name of the port that survives a replug: by serial number, or by USB socket."""
    for folder in ("by-id", "by-path") if by_serial else ("by-path",):
        for link in host.glob(f"/dev/serial/{folder}/*"):
            if host.real_path(link) == info.device:
                return link
    return info.device
