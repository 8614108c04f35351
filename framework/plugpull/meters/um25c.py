"""RDTech UM24C, UM25C and UM34C: USB meters between a disk and its port, read over a serial line of Bluetooth.

Protocol (libsigrok, ``src/hardware/rdtech-um/protocol.c``): the byte F0 is answered with 130 bytes, big-endian. Bytes
0 and 1 are the model, 2 and 3 volts, 4 and 5 amperes. The last two bytes of a UM24C or a UM25C are FF F1; the last byte
of a UM34C is the exclusive or of certain others. Pair it first, and connect it with ``rfcomm bind``: its port is
/dev/rfcomm0 then.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from operator import xor

from plugpull.errors import RigError
from plugpull.meters.base import DeviceMeter, MeterCapabilities, MeterContext, NoReading, PowerValue
from plugpull.meters.kinds import MeterKind
from plugpull.switches.base import Identity
from plugpull.switches.host import SerialInfo, SerialLine
from plugpull.switches.serial_board import PortOptions, opened_port

QUESTION = b"\xf0"
SIZE = 130
"""Bytes of an answer."""
RATE = 5.0
"""Readings per second. An answer takes 0.135 s at 9600 baud, and libsigrok asks at most every 0.1 s."""
AGE = 0.5
"""Seconds that a value can be old. It is not documented; the display changes about twice per second."""
QUIET = 0.05
"""Seconds of silence after which the line is quiet."""
MOST_OWED = 3
"""After more questions than this without an answer the port is opened again."""
UM34C_BYTES = (
    *(1, 3, 7, 9, 15, 17, 19, 23, 31, 39, 41, 45, 49, 53, 55, 57),
    *(59, 63, 67, 69, 73, 79, 83, 89, 97, 99, 109, 111, 113, 119, 121, 127),
)
"""Offsets of the bytes that the last byte of a UM34C's answer covers."""


def _static(frame: bytes) -> bool:
    return frame[-2:] == b"\xff\xf1"


def _covered(frame: bytes) -> bool:
    return frame[-1] == reduce(xor, (frame[offset] for offset in UM34C_BYTES))


@dataclass(frozen=True)
class MeterModel:
    """``volts`` and ``amps`` are what one step of a number stands for."""

    name: str
    volts: float
    amps: float
    whole: Callable[[bytes], bool]


MODELS = {
    0x0963: MeterModel("UM24C", 0.01, 0.001, _static),
    0x09C9: MeterModel("UM25C", 0.001, 0.0001, _static),
    0x0D4C: MeterModel("UM34C", 0.01, 0.001, _covered),
}


def parse_frame(frame: bytes) -> tuple[MeterModel, PowerValue]:
    """The model and the power that an answer says. Raises ``NoReading`` if it is not a whole one."""
    if len(frame) < SIZE:
        raise NoReading(f"{len(frame)} of {SIZE} bytes came" if frame else "it did not answer")
    model = MODELS.get(int.from_bytes(frame[:2], "big"))
    if model is None:
        raise NoReading(f"its answer begins with {frame[:2].hex(' ')}, which is not a UM24C, UM25C or UM34C")
    if not model.whole(frame):
        raise NoReading(f"the end of its answer does not fit: {frame[-2:].hex(' ')}")
    volts = int.from_bytes(frame[2:4], "big") * model.volts
    amps = int.from_bytes(frame[4:6], "big") * model.amps
    return model, PowerValue(volts * amps, volts, amps)


class Um25c(DeviceMeter):
    """One of these meters.

    Its answers have no number. If one is missing, it may still come, and must not be taken for the answer to a later
    question: from then on, as many answers are dropped before each reading as may still be on their way.
    """

    def __init__(self, context: MeterContext, options: PortOptions) -> None:
        self._options = options
        self._owed = 0
        """Questions without an answer."""
        self._line, info = self._open(context)
        identity = Identity("um25c", "RDTech UM", info.serial, "", info.device)
        super().__init__(context, identity, MeterCapabilities(RATE, AGE))

    def _open(self, context: MeterContext) -> tuple[SerialLine, SerialInfo]:
        with opened_port(context.host, self._options) as (line, info):
            return line, info

    def close(self) -> None:
        self._line.close()

    def _measure(self, deadline: float) -> PowerValue:
        try:
            model, power = parse_frame(self._last_answer(deadline))
        except NoReading:
            raise
        except RigError:
            self._owed = MOST_OWED + 1
            raise
        self.identity = Identity("um25c", model.name, self.identity.serial, "", self.identity.place)
        resolution = max(model.volts * (power.amps or 0.0), model.amps * (power.volts or 0.0))
        self.capabilities = MeterCapabilities(RATE, AGE, resolution)
        return power

    def _last_answer(self, deadline: float) -> bytes:
        """The answer to a question that is asked now. Raises NoReading and RigError."""
        if self._owed > MOST_OWED:
            self._line.close()
            self._line, _ = self._open(self._context)
            self._owed = 1
        for _ in range(self._owed):
            if len(self._ask(deadline)) < SIZE:
                raise NoReading("it did not answer in time")
        frame = self._ask(deadline)
        if self._line.read(1, QUIET):
            self._owed += 1
            raise NoReading("more bytes came than one answer has")
        return frame

    def _ask(self, deadline: float) -> bytes:
        self._line.drop_input()
        self._line.write(QUESTION)
        self._owed += 1
        frame = self._line.read(SIZE, max(0.0, deadline - time.monotonic()))
        if len(frame) == SIZE:
            self._owed -= 1
        return frame


KIND = MeterKind("um25c", "RDTech UM24C, UM25C, UM34C (serial over Bluetooth)", PortOptions, Um25c, "usb")
