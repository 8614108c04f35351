"""KMTronic USB relay boards with 1, 2, 4 or 8 relays (an FT232R, 0403:6001, which many other devices have too).

Protocol, 9600 8N1: ``FF n 01`` energises relay n, ``FF n 00`` releases it, with no answer. Boards with one or two
relays answer ``FF n 03`` with ``FF n s``; boards with four or eight answer ``FF 09 00`` with one byte per relay, in
order. 01 is on, 00 is off. Source: https://info.kmtronic.com/kmtronic-usb-relay-test-software.html
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Literal

from plugpull.switches.base import SwitchContext, require_ports
from plugpull.switches.host import SerialInfo, SerialLine
from plugpull.switches.serial_board import BoardOptions, SerialBoard, bad_answer, board_kind, exchange

FT232 = (0x0403, 0x6001)


class KmTronicOptions(BoardOptions):
    """Keys of a KMTronic board."""

    channels: Literal[1, 2, 4, 8] | None = None
    """The number of relays on the board: small and large boards answer differently. By default the smallest board
    with at least ``ports`` relays."""


def command(channel: int, energised: bool) -> bytes:
    """The bytes that switch a relay (counted from 0)."""
    return bytes((0xFF, channel + 1, energised))


def parse_state(answer: bytes, channel: int) -> bool:
    """Whether this relay (counted from 0) is energised. For boards with one or two relays. Raises RigError."""
    head = bytes((0xFF, channel + 1))
    if len(answer) != 3 or answer[:2] != head or answer[2] > 1:
        raise bad_answer(answer, f"{head.hex(' ')} and 00 or 01", f"for the state of relay {channel + 1}")
    return answer[2] == 1


def parse_states(answer: bytes, channels: int) -> dict[int, bool]:
    """Which relays are energised. For boards with four or eight relays. Raises RigError."""
    if len(answer) != channels or any(state > 1 for state in answer):
        raise bad_answer(answer, f"00 or 01 for each of {channels} relays", "for the state of its relays")
    return {channel: state == 1 for channel, state in enumerate(answer)}


class KmTronic(SerialBoard):
    driver = "kmtronic"
    model = "KMTronic"

    def __init__(self, context: SwitchContext, options: KmTronicOptions, line: SerialLine, info: SerialInfo) -> None:
        super().__init__(context, options, line, info)
        smallest = next((count for count in (1, 2, 4, 8) if count >= context.ports), 8)
        self._channels: int = options.channels or smallest
        require_ports(context, self._channels, "this KMTronic board", "relay")
        self.capabilities = replace(self.capabilities, read_back=True)
        self._states((0,), time.monotonic() + context.timeout)

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


KIND = board_kind(
    KmTronic,
    "KMTronic USB relay boards",
    lambda info: (info.vendor, info.product) == FT232 and not info.model.startswith("DLP"),
    options=KmTronicOptions,
    note="may be a KMTronic or any other device with an FT232R: the chip does not say which; ports is a guess",
)
