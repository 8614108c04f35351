"""What relay boards on a serial port share: finding the port, and edges that are verified by reading back.

A driver implements the board's protocol: ``_switch``, and ``_states`` if the board can be asked. This module reads back
every edge within one deadline, and does not take a late answer for the answer to another question.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Annotated, Any, ClassVar, Self

from pydantic import Field, model_validator

from plugpull.errors import RigError
from plugpull.rig.drivers import PortNames
from plugpull.rig.model import Mechanism, Table
from plugpull.switches.base import (
    Capabilities,
    DeviceSwitch,
    Identity,
    SwitchContext,
    disobeyed,
    require_ports,
    seconds_left,
)
from plugpull.switches.host import Host, SerialInfo, SerialLine
from plugpull.switches.kinds import FoundSwitch, Kind
from plugpull.switches.relays import MECHANISMS, Contact, ContactName

SETTLED = 2.0
"""Seconds a board gets to identify itself, if its silence is an answer too."""
_RULE = (
    'SUBSYSTEM=="tty", ATTRS{{idVendor}}=="{vendor:04x}", ATTRS{{idProduct}}=="{product:04x}", '
    'GROUP="dialout", MODE="0660", TAG+="uaccess", ENV{{ID_MM_DEVICE_IGNORE}}="1"'
)
"""The last part keeps ModemManager away: it sends modem commands to every new port, and a relay board obeys bytes."""


class PortOptions(Table):
    """Keys of everything on a serial port. At least one of ``device`` and ``serial``; with both, the device at
    ``device`` must have that serial number."""

    device: Annotated[str, Field(pattern=r"^/dev/.")] | None = None
    """Its device file. Names under /dev/serial/by-id or by-path stay the same; /dev/ttyUSB0 does not."""
    serial: Annotated[str, Field(min_length=1)] | None = None
    """The serial number of its USB device."""
    baud: Annotated[int, Field(ge=300, le=4_000_000)] = 9600

    @model_validator(mode="after")
    def _has_device_or_serial(self) -> Self:
        if self.device is None and self.serial is None:
            raise ValueError('it needs device = "/dev/serial/by-id/..." or serial = "..."')
        return self


class BoardOptions(PortOptions):
    """Keys of every serial relay board."""

    wiring: ContactName = "no"
    """"no": a relay feeds its port while it is energised; "nc": a relay cuts its port while it is energised."""


class SerialBoard(DeviceSwitch):
    """A relay board. Channels count from 0, whatever the first port is called."""

    driver: ClassVar[str]
    """The name of its kind."""
    model: ClassVar[str]
    """What the board is called until it has said more."""
    relays: ClassVar[int | None] = None
    """How many it has, if all boards of the kind have the same number."""

    def __init__(self, context: SwitchContext, options: Any, line: SerialLine, info: SerialInfo) -> None:
        identity = Identity(self.driver, self.model, info.serial, "", info.device)
        super().__init__(context, identity, Capabilities(context.mechanism, read_back=False, latching=False))
        self._options = options
        self._line = line
        self._contact = Contact(options.wiring)
        self._doubtful = False

    @classmethod
    def open(cls, context: SwitchContext, options: BoardOptions) -> Self:
        """Find the board's port and open it. Raises RigError."""
        if cls.relays is not None:
            require_ports(context, cls.relays, f"a {cls.model}", "relay")
        with opened_port(context.host, options) as (line, info):
            return cls(context, options, line, info)

    def close(self) -> None:
        self._line.close()

    def _switch(self, wanted: Mapping[int, bool], deadline: float) -> None:
        """Energise or release these channels, and return when the board has acknowledged, if it does. More than one
        channel is passed only if the board is ``simultaneous``."""
        raise NotImplementedError

    def _states(self, channels: Collection[int], deadline: float) -> Mapping[int, bool]:
        """Ask the board whether these relays, and perhaps others, are energised."""
        raise NotImplementedError

    def _command(self, port: str, on: bool) -> None:
        self._command_many((port,), on)

    def _at_once(self, ports: Sequence[str]) -> bool:
        return self.capabilities.simultaneous

    def _command_many(self, ports: Sequence[str], on: bool) -> None:
        channels = {self._channel(port): port for port in ports}
        energised = self._contact.energised(on)
        with self._deadline() as deadline:
            self._switch(dict.fromkeys(channels, energised), deadline)
            if self.capabilities.read_back:
                states = self._trusted_states(channels, deadline)
                failed = [port for channel, port in channels.items() if states[channel] != energised]
                if failed:
                    hint = (
                        "does its relay click? Is the supply of the relays' coils connected? Does another program use "
                        "the board?"
                    )
                    raise disobeyed(failed, on, hint, "the board")

    def read(self, port: str) -> bool | None:
        channel = self._channel(port)
        if not self.capabilities.read_back:
            return None
        with self._deadline() as deadline:
            return self._contact.on(self._trusted_states([channel], deadline)[channel])

    def _trusted_states(self, channels: Collection[int], deadline: float) -> Mapping[int, bool]:
        states = self._states(channels, deadline)
        if self._doubtful:
            # An earlier question got no answer, so this may be that answer, come late. If two answers in a row agree,
            # the second one holds.
            if self._states(channels, deadline) != states:
                raise RigError(
                    "the board's answers come late, and do not agree",
                    hint="unplug the board for some seconds; if it happens again, use another cable, hub or board",
                )
            self._doubtful = False
        return states

    def _failed(self) -> None:
        self._doubtful = True

    def _channel(self, port: str) -> int:
        return self._number(port) - self._context.first_port


def board_kind(
    board: type[SerialBoard],
    summary: str,
    matches: Callable[[SerialInfo], bool],
    *,
    options: type[BoardOptions] = BoardOptions,
    ports: Callable[[SerialInfo], int] = lambda info: 1,
    port_names: PortNames = "1",
    note: str = "",
    unique_serials: bool = True,
) -> Kind:
    """The ``Kind`` of a serial relay board.

    ``matches`` and ``ports`` say whether a serial port may be such a board, and how many relays it has then. ``note``
    is shown with every board that is found. ``unique_serials``: no two of these boards have the same serial number.
    """

    def find(host: Host) -> Iterator[FoundSwitch]:
        for info in host.serial_ports():
            if info.vendor is None or info.product is None or not matches(info):
                continue
            place = stable_name(host, info, by_serial=unique_serials and info.serial != "")
            rule = _RULE.format(vendor=info.vendor, product=info.product)
            model = info.model or board.driver
            count, keys = board.relays or ports(info), {"device": place}
            yield FoundSwitch(board.driver, model, info.serial, place, count, keys, Mechanism.MAINS, rule, note)

    return Kind(
        board.driver, summary, options, board.open, MECHANISMS, port_names, find, identity_keys=("device", "serial")
    )


def exchange(line: SerialLine, question: bytes, count: int, deadline: float) -> bytes:
    """Send a question and return up to ``count`` bytes of answer. Input that came before the question is dropped."""
    line.drop_input()
    line.write(question)
    return line.read(count, seconds_left(deadline))


def bad_answer(answer: bytes, expected: str, question: str) -> RigError:
    """The error for a missing or an unusable answer."""
    if not answer:
        return RigError(
            f"the board did not answer {question}",
            hint="is it powered, is this its port, and is the driver the right one for it? Unplug it for some seconds "
            "and plug it in again",
        )
    said = answer[:40].hex(" ") + (" ..." if len(answer) > 40 else "")
    return RigError(
        f"the board answered {question} with {said}, not with {expected}",
        hint="is the driver the right one for this board, and does another program use its port? Unplug it for some "
        "seconds and plug it in again",
    )


@contextmanager
def opened_port(host: Host, options: PortOptions) -> Iterator[tuple[SerialLine, SerialInfo]]:
    """The board's open port, and what the machine reports about it. The port is closed again if the block raises."""
    info = port_of(host, options)
    line = host.serial(info.device, options.baud)
    try:
        yield line, info
    except BaseException as error:
        line.close()
        if isinstance(error, RigError) and info.device not in error.what:
            raise RigError(f"{info.device}: {error.what}", hint=error.hint) from error
        raise


def port_of(host: Host, options: PortOptions) -> SerialInfo:
    """The port of the board. Raises RigError if its serial number is missing, wrong, or not unique."""
    ports = host.serial_ports()
    if options.device is not None:
        info = _port_at(host, options.device, ports)
        if options.serial is not None and info.serial != options.serial:
            raise RigError(
                f"the board at {options.device} has {_serial(info)}, not the serial number {options.serial}",
                hint=f"is this the right board? {_found(ports)}",
            )
        return info
    matching = [info for info in ports if info.serial == options.serial]
    if not matching:
        raise RigError(
            f"no serial port with the serial number {options.serial} on {host.name}",
            hint=f"is the board plugged in? {_found(ports)}",
        )
    if len(matching) > 1:
        devices = " and ".join(info.device for info in matching)
        raise RigError(
            f"{devices} both have the serial number {options.serial}",
            hint='name the board by its place instead: device = "/dev/serial/by-path/..."',
        )
    return matching[0]


def _port_at(host: Host, device: str, ports: Iterable[SerialInfo]) -> SerialInfo:
    real = host.real_path(device)
    known = next((info for info in ports if info.device == real), SerialInfo(device))
    return SerialInfo(device, known.vendor, known.product, known.serial, known.model)


def _found(ports: Iterable[SerialInfo]) -> str:
    usb = [f"{info.device} ({_serial(info)})" for info in ports if info.vendor is not None]
    return "found: " + ", ".join(usb) if usb else "no USB serial port was found"


def _serial(info: SerialInfo) -> str:
    return f"the serial number {info.serial}" if info.serial else "no serial number"


def stable_name(host: Host, info: SerialInfo, *, by_serial: bool) -> str:
    """A name of the port that stays the same after a replug: by serial number, or by USB socket."""
    for folder in ("by-id", "by-path") if by_serial else ("by-path",):
        for link in host.glob(f"/dev/serial/{folder}/*"):
            if host.real_path(link) == info.device:
                return link
    return info.device
