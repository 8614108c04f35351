"""Numato Lab USB relay modules, 1 to 32 channels (2a19:*, CDC ACM: the baud rate does not matter).

Protocol: lines of ASCII ended by CR. Each is echoed, then answered, then a prompt ``>`` follows:
``relay on X``, ``relay off X`` and ``relay read X`` (``on`` or ``off``) with X from 0 to 9 and A to V,
``relay readall`` (hexadecimal, relay 0 the lowest bit), ``relay writeall HEX``, ``ver``, ``id get``. Line ends are
LF CR. Source: Numato Lab's user guides (numato.com, "USB Relay Module", command set), and the answers recorded in
google/makani's relay library (``\\n\\r>id get\\n\\r00000000\\n\\r>``).
"""

from __future__ import annotations

import re
import time
from collections.abc import Collection, Mapping
from dataclasses import replace

from plugpull.errors import RigError
from plugpull.switches.base import SwitchContext, require_ports, seconds_left
from plugpull.switches.host import SerialInfo, SerialLine
from plugpull.switches.serial_board import BoardOptions, SerialBoard, bad_answer, board_kind

VENDOR = 0x2A19
NUMBERS = "0123456789ABCDEFGHIJKLMNOPQRSTUV"
"""How the command set writes relays 0 to 31."""


def parse_answer(answer: bytes, command: str) -> str:
    """The answer to a command, without the echo and the prompt. Raises RigError if it is incomplete or the answer to
    another command."""
    match = re.fullmatch(rb"[\r\n >]*(?P<echo>[^\r\n>]*)[\r\n]+(?:(?P<said>[^\r\n>]*)[\r\n]+)?>", answer)
    if match is None or match["echo"] != command.encode():
        raise bad_answer(answer, "its echo, an answer and a prompt", f"{command!r}")
    said: bytes = match["said"] or b""
    if not said.isascii():
        raise bad_answer(answer, "text", f"{command!r}")
    return said.decode()


def parse_state(said: str) -> bool:
    """Whether the relay is energised, from the answer to ``relay read``. Raises RigError."""
    if said not in ("on", "off"):
        raise bad_answer(said.encode(), "on or off", "'relay read'")
    return said == "on"


def parse_mask(said: str, ports: int) -> int:
    """The answer to ``relay readall`` as bits. Raises RigError if it is not a number with enough digits."""
    if not re.fullmatch(r"[0-9A-Fa-f]{1,8}", said) or len(said) * 4 < ports:
        raise bad_answer(said.encode(), f"a hexadecimal number for {ports} relays", "'relay readall'")
    return int(said, 16)


class Numato(SerialBoard):
    """A Numato module. Small ones may not know ``relay readall``; the others switch several relays with one
    ``relay writeall``."""

    driver = "numato"
    model = "Numato relay module"

    def __init__(self, context: SwitchContext, options: BoardOptions, line: SerialLine, info: SerialInfo) -> None:
        super().__init__(context, options, line, info)
        require_ports(context, len(NUMBERS), "a Numato module", "relay")
        deadline = time.monotonic() + context.timeout
        # An empty line first: it ends an incomplete command that another program may have sent.
        line.write(b"\r")
        line.read_until(b">", min(0.5, context.timeout))
        version, number = self._ask("ver", deadline), self._ask("id get", deadline)
        parse_state(self._ask("relay read 0", deadline))
        said = self._ask("relay readall", deadline)
        self._digits = len(said)
        several = re.fullmatch("[0-9A-Fa-f]+", said) is not None and len(said) * 4 >= context.ports
        self.capabilities = replace(self.capabilities, read_back=True, simultaneous=several)
        self.identity = replace(
            self.identity, model=info.model or self.model, serial=info.serial or number, firmware=version
        )

    def _switch(self, wanted: Mapping[int, bool], deadline: float) -> None:
        if len(wanted) == 1:
            ((channel, energised),) = wanted.items()
            command = f"relay {_word(energised)} {NUMBERS[channel]}"
        else:
            states = {**self._trusted_states(wanted, deadline), **wanted}
            bits = sum(1 << channel for channel, energised in states.items() if energised)
            command = f"relay writeall {bits:0{self._digits}x}"
        if said := self._ask(command, deadline):
            raise RigError(f"the module answered {command!r} with {said!r}", hint="does it have that many relays?")

    def _states(self, channels: Collection[int], deadline: float) -> Mapping[int, bool]:
        if len(channels) == 1:
            (channel,) = channels
            return {channel: parse_state(self._ask(f"relay read {NUMBERS[channel]}", deadline))}
        mask = parse_mask(self._ask("relay readall", deadline), self._context.ports)
        return {channel: bool(mask >> channel & 1) for channel in range(self._digits * 4)}

    def _ask(self, command: str, deadline: float) -> str:
        self._line.drop_input()
        self._line.write(command.encode() + b"\r")
        answer = self._line.read_until(b">", seconds_left(deadline))
        if answer.endswith(b">") and not answer.strip(b"\r\n >"):
            answer = self._line.read_until(b">", seconds_left(deadline))  # that was the end of a late answer
        return parse_answer(answer, command)


def _word(energised: bool) -> str:
    return "on" if energised else "off"


def _ports(info: SerialInfo) -> int:
    """From the product's name, such as "Numato Lab 8 Channel USB Relay Module"."""
    number = re.search(r"(\d+)[ -]*Channel", info.model, re.IGNORECASE)
    return int(number[1]) if number else 1


KIND = board_kind(
    Numato,
    "Numato Lab USB relay modules",
    lambda info: info.vendor == VENDOR,
    ports=_ports,
    port_names="0",
    note="Numato makes GPIO modules with this vendor number too",
)
