"""LCUS-1, -2, -4 and -8: relay boards of LC Technology and their many copies, with a CH340 (1a86:7523).

Protocol, 9600 8N1: ``A0 n 01 sum`` energises relay n, ``A0 n 00 sum`` lets it go, with the sum of the three bytes
modulo 256; nothing is answered. Newer boards answer ``FF`` with a line of text for each relay, ``CH1: ON`` or
``CH1: OFF``, ended by CR LF; many boards answer nothing. Sources: LC Technology's product notes for LCUS-1 and LCUS-4
(http://www.chinalctech.com/cpzx/32.html), and the programs of people who use them, which also tell that the first
answer after a command may be the state before it.
"""

from __future__ import annotations

import re
import time
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Annotated

from pydantic import Field

from plugpull.switches.base import Identity
from plugpull.switches.host import Host, SerialLine
from plugpull.switches.kinds import Found, Kind, Wiring
from plugpull.switches.serial_board import (
    MECHANISMS,
    SETTLED,
    BoardOptions,
    SerialBoard,
    bad_answer,
    found_boards,
    has_ports,
    identity_of,
    left,
    opened,
)

CH340 = (0x1A86, 0x7523)
_LINE = re.compile(rb"CH([1-9][0-9]?): ?(ON|OFF)\r?\n")
_NOTE = "may be an LCUS, a SainSmart or any other thing with a CH340: the chip does not tell; ports is a guess"


class Options(BoardOptions):
    channels: Annotated[int, Field(ge=1, le=16)] | None = None
    """Relays the board has, if more than ``ports`` says: so many lines it answers."""
    read_back: bool | None = None
    """Does the board answer FF? Found out when it is opened, unless it is said here."""


def command(channel: int, energised: bool) -> bytes:
    """The bytes that switch a relay (counted from 0)."""
    head = bytes((0xA0, channel + 1, energised))
    return head + bytes((sum(head) & 0xFF,))


def parse_states(answer: bytes, channels: int) -> dict[int, bool]:
    """Which relays are energised, by the answer to FF. Raises RigError for anything but a line for each relay."""
    lines = _LINE.findall(answer)
    states = {int(number) - 1: word == b"ON" for number, word in lines}
    whole = _LINE.sub(b"", answer) == b"" and len(states) == len(lines)
    if not whole or any(channel not in states for channel in range(channels)):
        raise bad_answer(answer, f"the lines CH1 to CH{channels}", "FF")
    return states


class Lcus(SerialBoard):
    """Asks twice and believes the second answer: the first can be the state before the last command."""

    def __init__(self, wiring: Wiring, options: Options, line: SerialLine, place: Identity) -> None:
        super().__init__(wiring, options, line, place)
        self._channels = options.channels or wiring.ports
        has_ports(wiring, self._channels, "this LCUS")
        read_back = self._answers() if options.read_back is None else options.read_back
        self.capabilities = replace(self.capabilities, read_back=read_back)
        if read_back:
            self._states((), time.monotonic() + wiring.timeout)

    def _switch(self, wanted: Mapping[int, bool], deadline: float) -> None:
        for channel, energised in wanted.items():
            self._line.write(command(channel, energised))

    def _states(self, channels: Collection[int], deadline: float) -> Mapping[int, bool]:
        self._ask(deadline)
        return parse_states(self._ask(deadline), self._channels)

    def _answers(self) -> bool:
        return self._ask(time.monotonic() + min(SETTLED, self._wiring.timeout)) != b""

    def _ask(self, deadline: float) -> bytes:
        self._line.drop_input()
        self._line.write(b"\xff")
        answer = b""
        for _ in range(self._channels):
            answer += self._line.read_until(b"\n", left(deadline))
        return answer


def open_board(wiring: Wiring, options: Options) -> Lcus:
    with opened(wiring.host, options) as (line, info):
        return Lcus(wiring, options, line, identity_of("lcus", info, "LCUS"))


def find(host: Host) -> Iterable[Found]:
    return found_boards(host, "lcus", lambda info: (info.vendor, info.product) == CH340, lambda info: 1, _NOTE)


KIND = Kind("lcus", "LCUS relay boards (CH340)", Options, open_board, MECHANISMS, find=find)
