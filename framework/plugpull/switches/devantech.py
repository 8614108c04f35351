"""Devantech USB-RLY02, -RLY08, -RLY16, -RLY82 and their relatives (04d8:ffee, CDC ACM: the baud rate does not matter).

Protocol, single bytes: ``64+n`` energises relay n (from 1), ``6E+n`` releases it, ``5C m`` sets all at once by a mask
(bit 0 is relay 1). The answer to ``5B`` is that mask, the answer to ``5A`` is the module's id and the version of its
software. Commands have no answer. Sources: the manuals of USB-RLY02, -RLY08, -RLY16 and -RLY16L
(robot-electronics.co.uk).
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from dataclasses import replace

from plugpull.switches.base import SwitchContext, require_ports
from plugpull.switches.host import SerialInfo, SerialLine
from plugpull.switches.serial_board import BoardOptions, SerialBoard, bad_answer, board_kind, exchange

USB = (0x04D8, 0xFFEE)
MODELS = {8: ("USB-RLY08", 8), 9: ("USB-RLY16", 8), 10: ("USB-RLY02", 2), 15: ("USB-RLY16L", 8)}
"""By module id: the name and the number of relays. Modules with another id have eight at most."""
LATCHING = 15
"""The id of the USB-RLY16L, whose relays keep their state without power."""


def command(channel: int, energised: bool) -> bytes:
    """The byte that switches a relay (counted from 0)."""
    return bytes(((0x65 if energised else 0x6F) + channel,))


def parse_mask(answer: bytes) -> int:
    """The mask in the answer to 5B. Raises RigError if there is no answer."""
    if len(answer) != 1:
        raise bad_answer(answer, "a byte", "for the state of its relays (5B)")
    return answer[0]


def parse_version(answer: bytes) -> tuple[int, int]:
    """Module id and software version in the answer to 5A. Raises RigError."""
    if len(answer) != 2 or answer[0] in (0x00, 0xFF):
        raise bad_answer(answer, "a module id and a version", "for its version (5A)")
    return answer[0], answer[1]


class Devantech(SerialBoard):
    driver = "devantech"
    model = "USB-RLY"

    def __init__(self, context: SwitchContext, options: BoardOptions, line: SerialLine, info: SerialInfo) -> None:
        super().__init__(context, options, line, info)
        deadline = time.monotonic() + context.timeout
        module, version = parse_version(exchange(line, b"\x5a", 2, deadline))
        model, channels = MODELS.get(module, (f"USB-RLY, module id {module}", 8))
        require_ports(context, channels, f"a {model}", "relay")
        self.identity = replace(self.identity, model=model, firmware=str(version))
        self.capabilities = replace(self.capabilities, read_back=True, simultaneous=True, latching=module == LATCHING)

    def _switch(self, wanted: Mapping[int, bool], deadline: float) -> None:
        if len(wanted) == 1:
            ((channel, energised),) = wanted.items()
            self._line.write(command(channel, energised))
            return
        states = {**self._trusted_states(wanted, deadline), **wanted}
        self._line.write(bytes((0x5C, sum(1 << channel for channel, energised in states.items() if energised))))

    def _states(self, channels: Collection[int], deadline: float) -> Mapping[int, bool]:
        mask = parse_mask(exchange(self._line, b"\x5b", 1, deadline))
        return {channel: bool(mask >> channel & 1) for channel in range(8)}


def _ports(info: SerialInfo) -> int:
    return 2 if info.model.upper().startswith(("USB-RLY02", "USB-RLY82")) else 8


KIND = board_kind(
    Devantech, "Devantech USB-RLY relay modules", lambda info: (info.vendor, info.product) == USB, ports=_ports
)
