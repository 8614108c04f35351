"""LCUS-1, -2, -4 and -8: relay boards of LC Technology and their many copies, with a CH340 (1a86:7523).

Protocol, 9600 8N1: ``A0 n 01 sum`` energises relay n, ``A0 n 00 sum`` releases it, with the sum of the three bytes
modulo 256; these commands have no answer. Newer boards answer ``FF`` with one line of text per relay, ``CH1: ON`` or
``CH1: OFF``, ended by CR LF; many boards do not answer it. Sources: LC Technology's product notes for LCUS-1 and LCUS-4
(http://www.chinalctech.com/cpzx/32.html), and programs of people who use them, which also show that the first answer
after a command may be the state before it.
"""

from __future__ import annotations

import re
import time
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Annotated

from pydantic import Field

from plugpull.switches.base import SwitchContext, require_ports, seconds_left
from plugpull.switches.host import SerialInfo, SerialLine
from plugpull.switches.serial_board import SETTLED, BoardOptions, SerialBoard, bad_answer, board_kind

CH340 = (0x1A86, 0x7523)
_LINE = re.compile(rb"CH([1-9][0-9]?): ?(ON|OFF)\r?\n")


class LcusOptions(BoardOptions):
    """Keys of an LCUS board."""

    channels: Annotated[int, Field(ge=1, le=16)] | None = None
    """The number of relays on the board, if it is not ``ports``: the board answers with that many lines."""
    read_back: bool | None = None
    """Whether the board answers FF. By default it is asked when it is opened."""


def command(channel: int, energised: bool) -> bytes:
    """The bytes that switch a relay (counted from 0)."""
    head = bytes((0xA0, channel + 1, energised))
    return head + bytes((sum(head) & 0xFF,))


def parse_states(answer: bytes, channels: int) -> dict[int, bool]:
    """Which relays are energised, from the answer to FF. Raises RigError if it is not one line per relay."""
    lines = _LINE.findall(answer)
    states = {int(number) - 1: word == b"ON" for number, word in lines}
    whole = _LINE.sub(b"", answer) == b"" and len(states) == len(lines)
    if not whole or any(channel not in states for channel in range(channels)):
        raise bad_answer(answer, f"the lines CH1 to CH{channels}", "FF")
    return states


class Lcus(SerialBoard):
    """An LCUS board. It is asked twice and the second answer counts: the first can be the state before the command."""

    driver = "lcus"
    model = "LCUS"

    def __init__(self, context: SwitchContext, options: LcusOptions, line: SerialLine, info: SerialInfo) -> None:
        super().__init__(context, options, line, info)
        self._channels = options.channels or context.ports
        require_ports(context, self._channels, "this LCUS", "relay")
        read_back = self._answers() if options.read_back is None else options.read_back
        self.capabilities = replace(self.capabilities, read_back=read_back)
        if read_back:
            self._states((), time.monotonic() + context.timeout)

    def _switch(self, wanted: Mapping[int, bool], deadline: float) -> None:
        for channel, energised in wanted.items():
            self._line.write(command(channel, energised))

    def _states(self, channels: Collection[int], deadline: float) -> Mapping[int, bool]:
        self._ask(deadline)
        return parse_states(self._ask(deadline), self._channels)

    def _answers(self) -> bool:
        return self._ask(time.monotonic() + min(SETTLED, self._context.timeout)) != b""

    def _ask(self, deadline: float) -> bytes:
        self._line.drop_input()
        self._line.write(b"\xff")
        answer = b""
        for _ in range(self._channels):
            answer += self._line.read_until(b"\n", seconds_left(deadline))
        return answer


KIND = board_kind(
    Lcus,
    "LCUS relay boards (CH340)",
    lambda info: (info.vendor, info.product) == CH340,
    options=LcusOptions,
    note="may be an LCUS, a SainSmart or any other device with a CH340: the chip does not say which; ports is a guess",
)
