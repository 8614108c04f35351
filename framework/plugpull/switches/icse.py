"""ICStation ICSE012A (4 relays), ICSE013A (2) and ICSE014A (8), with a PL2303 (067b:2303).

Protocol, 9600 8N1: after power-up the board answers ``50`` with its model (AB, AD, AC) and takes ``51`` to start. From
then on every byte is a mask of all relays (bit 0 is the first one; 0 energised, 1 released) without an answer. Only a
power cycle leads back to the greeting. Sources: ICStation's product pages, libsigrok's icstation-usbrelay driver,
github.com/asm-co/icstation-5185.

A started board must not be greeted again: it would take the greeting for a mask that energises relays 1 to 4, 6 and 8.
So the last mask is stored in the directory of plugpull's lock files, under the number that the kernel gave to the USB
device, which changes when the board is plugged in again. A board whose relays have a supply of their own must lose
that supply too before it can be greeted.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from plugpull.coordination.lease import lease_directory
from plugpull.errors import RigError
from plugpull.switches.base import SwitchContext, require_ports
from plugpull.switches.host import Host, SerialInfo, SerialLine
from plugpull.switches.serial_board import SETTLED, BoardOptions, SerialBoard, bad_answer, board_kind, exchange

PL2303 = (0x067B, 0x2303)
MODELS = {0xAB: "ICSE012A", 0xAD: "ICSE013A", 0xAC: "ICSE014A"}
RELAYS = {"ICSE012A": 4, "ICSE013A": 2, "ICSE014A": 8}
GREETING, START = b"\x50", b"\x51"
_RESET = (
    "a board that another program has started does not answer, and has taken the greeting for a mask that energised "
    "relays 1 to 4, 6 and 8: unplug it from USB and from any supply of its own for some seconds, and plug it in again"
)


class IcseOptions(BoardOptions):
    """Keys of an ICSE board."""

    model: Literal["ICSE012A", "ICSE013A", "ICSE014A"] | None = None
    """The expected model. By default any."""


@dataclass(frozen=True)
class StartedBoard:
    """The model of a started board, and a mask of its energised relays."""

    model: str
    energised: int = 0


def mask(energised: int, relays: int) -> bytes:
    """The byte that energises exactly these relays (bit 0 is the first)."""
    return bytes((~energised & ((1 << relays) - 1),))


def parse_model(answer: bytes) -> str:
    """The model in the answer to the greeting. Raises RigError."""
    if len(answer) == 1 and answer[0] in MODELS:
        return MODELS[answer[0]]
    if not answer:
        raise RigError("the ICSE board did not answer the greeting (50)", hint=_RESET)
    raise bad_answer(answer, "AB, AD or AC", "the greeting (50)")


def parse_memory(text: str) -> StartedBoard | None:
    """The contents of a ``BoardMemory`` file, or None if they are damaged."""
    with suppress(ValueError, TypeError, KeyError):
        stored = json.loads(text)
        model, energised = stored["model"], stored["energised"]
        if model in RELAYS and type(energised) is int and 0 <= energised < 1 << RELAYS[model]:
            return StartedBoard(model, energised)
    return None


class BoardMemory:
    """The last mask sent to a board, stored until the board is plugged in again or its machine restarts."""

    def __init__(self, host: Host, device: str, folder: Path) -> None:
        self._file: Path | None = None
        with suppress(RigError):
            boot = host.read_text("/proc/sys/kernel/random/boot_id").strip()
            if number := _usb_number(host, device):
                self._file = folder / f"icse-{boot}-{number}.json"

    def get(self) -> StartedBoard | None:
        if self._file is not None:
            with suppress(OSError):
                return parse_memory(self._file.read_text(errors="replace"))
        return None

    def put(self, started: StartedBoard) -> None:
        """Store the mask. Raises RigError, because without it the board is unusable until it is unplugged."""
        if self._file is None:
            return
        try:
            self._file.parent.mkdir(mode=0o700, exist_ok=True)
            new = self._file.with_suffix(f".{os.getpid()}")
            new.write_text(json.dumps({"model": started.model, "energised": started.energised}))
            new.replace(self._file)
        except OSError as error:
            raise RigError(
                f"cannot write {self._file}: {error.strerror}", hint=f"may this user write to {self._file.parent}?"
            ) from None


def _usb_number(host: Host, device: str) -> str:
    """Bus and device number of the USB device behind a serial port. Empty if it is not a USB device."""
    name = os.path.basename(host.real_path(device))
    place = host.real_path(f"/sys/class/tty/{name}/device")
    for _ in range(3):  # the port, its interface, the device
        with suppress(RigError):
            bus, number = (host.read_text(f"{place}/{what}").strip() for what in ("busnum", "devnum"))
            return f"{bus}-{number}"
        place = os.path.dirname(place)
    return ""


class Icse(SerialBoard):
    driver = "icse"
    model = "ICSE01xA"

    def __init__(self, context: SwitchContext, options: IcseOptions, line: SerialLine, info: SerialInfo) -> None:
        super().__init__(context, options, line, info)
        self._memory = BoardMemory(context.host, info.device, lease_directory())
        self._started = self._memory.get() or self._start()
        model = self._started.model
        if options.model not in (None, model):
            raise RigError(f"the board is an {model}, not an {options.model}", hint=f'write model = "{model}"')
        require_ports(context, RELAYS[model], f"an {model}", "relay")
        self.identity = replace(self.identity, model=model)
        self.capabilities = replace(self.capabilities, simultaneous=True)

    def _start(self) -> StartedBoard:
        patience = min(SETTLED, self._context.timeout)
        model = parse_model(exchange(self._line, GREETING, 1, time.monotonic() + patience))
        started = StartedBoard(model)
        self._memory.put(started)
        self._line.write(START)
        return started

    def _switch(self, wanted: Mapping[int, bool], deadline: float) -> None:
        energised = self._started.energised
        for channel, on in wanted.items():
            energised = energised | 1 << channel if on else energised & ~(1 << channel)
        # Stored before it is sent: if it were sent and lost, the next mask would undo it.
        self._started = StartedBoard(self._started.model, energised)
        self._memory.put(self._started)
        self._line.write(mask(energised, RELAYS[self._started.model]))


KIND = board_kind(
    Icse,
    "ICStation ICSE012A, ICSE013A, ICSE014A",
    lambda info: (info.vendor, info.product) == PL2303,
    options=IcseOptions,
    ports=lambda info: 2,
    note="may be an ICSE01xA or any other device with a PL2303: the chip does not say which; ports is a guess",
)
