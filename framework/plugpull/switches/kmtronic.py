"""KMTronic USB relay boards with 1, 2, 4 or 8 relays (an FT232R, 0403:6001, like many other things).

Protocol, 9600 8N1: ``FF n 01`` energises relay n, ``FF n 00`` lets it go, with no answer. Boards of one and two relays
answer ``FF n 03`` with ``FF n s``; those of four and eight answer ``FF 09 00`` with a byte for each relay, the first
one first. 01 is on, 00 is off. Source: https://info.kmtronic.com/kmtronic-usb-relay-test-software.html
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Literal

from plugpull.switches.base import Identity
from plugpull.switches.host import Host, SerialLine
from plugpull.switches.kinds import Found, Kind, Wiring
from plugpull.switches.serial_board import (
    MECHANISMS,
    BoardOptions,
    SerialBoard,
    bad_answer,
    exchange,
    found_boards,
    has_ports,
    identity_of,
    opened,
)

FT232 = (0x0403, 0x6001)
_NOTE = "may be a KMTronic or any other thing with an FT232R: the chip does not tell; ports is a guess"


class Options(BoardOptions):
    channels: Literal[1, 2, 4, 8] | None = None
    """Relays the board has: boards of up to two answer otherwise than those of four and eight. By default the fewest
    that are at least ``ports``."""


def command(channel: int, energised: bool) -> bytes:
    """The bytes that switch a relay (counted from 0)."""
    return bytes((0xFF, channel + 1, energised))


def parse_state(answer: bytes, channel: int) -> bool:
    """Is this relay (counted from 0) energised, by the answer of a board of one or two? Raises RigError."""
    head = bytes((0xFF, channel + 1))
    if len(answer) != 3 or answer[:2] != head or answer[2] > 1:
        raise bad_answer(answer, f"{head.hex(' ')} and 00 or 01", f"for the state of relay {channel + 1}")
    return answer[2] == 1


def parse_states(answer: bytes, channels: int) -> dict[int, bool]:
    """Which relays are energised, by the answer of a board of four or eight. Raises RigError."""
    if len(answer) != channels or any(state > 1 for state in answer):
        raise bad_answer(answer, f"00 or 01 for each of {channels} relays", "for the state of its relays")
    return {channel: state == 1 for channel, state in enumerate(answer)}


class KmTronic(SerialBoard):
    def __init__(self, wiring: Wiring, options: Options, line: SerialLine, place: Identity) -> None:
        super().__init__(wiring, options, line, place)
        fits = next((count for count in (1, 2, 4, 8) if count >= wiring.ports), 8)
        self._channels: int = options.channels or fits
        has_ports(wiring, self._channels, "this KMTronic board")
        self.capabilities = replace(self.capabilities, read_back=True)
        self._states((0,), time.monotonic() + wiring.timeout)

    def _switch(self, wanted: Mapping[int, bool], deadline: float) -> None:
        for channel, energised in wanted.items():
            self._line.write(command(channel, energised))

    def _states(self, channels: Collection[int], deadline: float) -> Mapping[int, bool]:
        if self._channels > 2:
            return parse_states(exchange(self._line, b"\xff\x09\x00", self._channels, deadline), self._channels)
        return {
            channel: parse_state(exchange(self._line, bytes((0xFF, channel + 1, 3)), 3, deadline), channel)
            for channel in channels
        }


def open_board(wiring: Wiring, options: Options) -> KmTronic:
    with opened(wiring.host, options) as (line, info):
        return KmTronic(wiring, options, line, identity_of("kmtronic", info, "KMTronic"))


def find(host: Host) -> Iterable[Found]:
    return found_boards(
        host,
        "kmtronic",
        lambda info: (info.vendor, info.product) == FT232 and not info.model.startswith("DLP"),
        lambda info: 1,
        _NOTE,
    )


KIND = Kind("kmtronic", "KMTronic USB relay boards", Options, open_board, MECHANISMS, find=find)
