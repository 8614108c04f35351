"""The SainSmart 16-channel USB relay module, 101-70-208 (CH340, 1a86:7523), not its HID namesake.

Protocol, 9600 8N1, Modbus ASCII to the address FE: function 05, write single coil, ``:FE0500nnFF00`` energises relay nn
(from 0), ``:FE0500nn0000`` releases it, each followed by the LRC of its bytes in hexadecimal and CR LF. The module's
status command has no answer, so there is no read-back. Sources: the vendor's documents 101-70-208.zip, and
github.com/ldnelso2/sainsmart, whose author found no answer to the status command and no serial number on the board.
"""

from __future__ import annotations

from collections.abc import Mapping

from plugpull.switches.lcus import CH340
from plugpull.switches.serial_board import SerialBoard, board_kind


def lrc(data: bytes) -> int:
    """The longitudinal redundancy check of Modbus ASCII: the bytes and it add up to 0 modulo 256."""
    return -sum(data) & 0xFF


def command(channel: int, energised: bool) -> bytes:
    """The frame that switches a relay (counted from 0)."""
    data = bytes((0xFE, 0x05, 0x00, channel, 0xFF if energised else 0x00, 0x00))
    return f":{data.hex().upper()}{lrc(data):02X}\r\n".encode()


class SainSmart(SerialBoard):
    driver = "sainsmart"
    model = "SainSmart 16-channel"
    relays = 16

    def _switch(self, wanted: Mapping[int, bool], deadline: float) -> None:
        for channel, energised in wanted.items():
            self._line.write(command(channel, energised))


KIND = board_kind(
    SainSmart,
    "SainSmart 16-channel USB relay module (CH340)",
    lambda info: (info.vendor, info.product) == CH340,
    note="may be a SainSmart, an LCUS or any other device with a CH340: the chip does not say which",
)
