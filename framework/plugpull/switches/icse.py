"""ICStation ICSE012A (4 relays), ICSE013A (2) and ICSE014A (8), with a PL2303 (067b:2303).

Protocol, 9600 8N1: after power-up the board answers ``50`` with its model (AB, AD, AC) and takes ``51`` to start; from
then on every byte is a mask of all relays, bit 0 the first one, 0 energised, 1 released, with no answer and no way back
but to cut its power. Sources: ICStation's product pages, libsigrok's icstation-usbrelay driver (which found the way
back missing), github.com/asm-co/icstation-5185.

So a started board must not be greeted again: the greeting would be taken for a mask that energises relays 1 to 4, 6
and 8. What it was told last is therefore remembered in the directory of plugpull's locks, under the number the kernel
gave to the USB device, which changes when it is plugged in again. A board whose relays are fed apart from USB has to
lose that supply too before it can be greeted.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from plugpull.coordination.lease import lease_directory
from plugpull.errors import RigError
from plugpull.switches.base import Identity
from plugpull.switches.host import Host, SerialLine
from plugpull.switches.kinds import Found, Kind, Wiring
from plugpull.switches.serial_board import (
    MECHANISMS,
    SETTLED,
    BoardOptions,
    SerialBoard,
    bad_answer,
    exchange,
    found_boards,
    has_ports,
    identity_of,
    opened,
)

PL2303 = (0x067B, 0x2303)
MODELS = {0xAB: "ICSE012A", 0xAD: "ICSE013A", 0xAC: "ICSE014A"}
RELAYS = {"ICSE012A": 4, "ICSE013A": 2, "ICSE014A": 8}
GREETING, START = b"\x50", b"\x51"
_NOTE = "may be an ICSE01xA or any other thing with a PL2303: the chip does not tell; ports is a guess"
_MEND = (
    "a board that another program has started does not answer, and has taken the greeting for a mask that energised "
    "relays 1 to 4, 6 and 8: unplug it from USB and from any supply of its own for some seconds, and plug it in again"
)


class Options(BoardOptions):
    model: Literal["ICSE012A", "ICSE013A", "ICSE014A"] | None = None
    """What the board has to be; by default whatever it says it is."""


@dataclass(frozen=True)
class Started:
    """What a started board is, and which of its relays are energised."""

    model: str
    energised: int = 0


def mask(energised: int, relays: int) -> bytes:
    """The byte that energises exactly these relays (bit 0 is the first)."""
    return bytes((~energised & ((1 << relays) - 1),))


def parse_model(answer: bytes) -> str:
    """The model, by the answer to the greeting. Raises RigError."""
    if len(answer) == 1 and answer[0] in MODELS:
        return MODELS[answer[0]]
    if not answer:
        raise RigError("the ICSE board did not answer the greeting (50)", mend=_MEND)
    raise bad_answer(answer, "AB, AD or AC", "the greeting (50)")


def parse_memory(text: str) -> Started | None:
    """A file of the memory; None if it is not one."""
    with suppress(ValueError, TypeError, KeyError):
        told = json.loads(text)
        model, energised = told["model"], told["energised"]
        if model in RELAYS and type(energised) is int and 0 <= energised < 1 << RELAYS[model]:
            return Started(model, energised)
    return None


class Memory:
    """What a board was told last, kept until it is plugged in again or the machine it hangs off starts anew."""

    def __init__(self, host: Host, device: str, folder: Path) -> None:
        self._file: Path | None = None
        with suppress(RigError):
            boot = host.read_text("/proc/sys/kernel/random/boot_id").strip()
            if number := _usb_number(host, device):
                self._file = folder / f"icse-{boot}-{number}.json"

    def get(self) -> Started | None:
        if self._file is not None:
            with suppress(OSError):
                return parse_memory(self._file.read_text(errors="replace"))
        return None

    def put(self, started: Started) -> None:
        """Raises RigError: what is not remembered would make the board unusable until it is unplugged."""
        if self._file is None:
            return
        try:
            self._file.parent.mkdir(mode=0o700, exist_ok=True)
            new = self._file.with_suffix(f".{os.getpid()}")
            new.write_text(json.dumps({"model": started.model, "energised": started.energised}))
            new.replace(self._file)
        except OSError as error:
            raise RigError(
                f"cannot write {self._file}: {error.strerror}", mend=f"may this user write to {self._file.parent}?"
            ) from None


def _usb_number(host: Host, device: str) -> str:
    """Bus and device number of the USB device behind a serial port; empty if there is none."""
    name = os.path.basename(host.real_path(device))
    place = host.real_path(f"/sys/class/tty/{name}/device")
    for _ in range(3):  # the port, its interface, the device
        with suppress(RigError):
            bus, number = (host.read_text(f"{place}/{what}").strip() for what in ("busnum", "devnum"))
            return f"{bus}-{number}"
        place = os.path.dirname(place)
    return ""


class Icse(SerialBoard):
    def __init__(self, wiring: Wiring, options: Options, line: SerialLine, place: Identity, memory: Memory) -> None:
        super().__init__(wiring, options, line, place)
        self._memory = memory
        self._started = memory.get() or self._start()
        model = self._started.model
        if options.model not in (None, model):
            raise RigError(f"the board is an {model}, not an {options.model}", mend=f'write model = "{model}"')
        has_ports(wiring, RELAYS[model], model)
        self.identity = replace(place, model=model)
        self.capabilities = replace(self.capabilities, simultaneous=True)

    def _start(self) -> Started:
        patience = min(SETTLED, self._wiring.timeout)
        model = parse_model(exchange(self._line, GREETING, 1, time.monotonic() + patience))
        started = Started(model)
        self._memory.put(started)
        self._line.write(START)
        return started

    def _switch(self, wanted: Mapping[int, bool], deadline: float) -> None:
        energised = self._started.energised
        for channel, on in wanted.items():
            energised = energised | 1 << channel if on else energised & ~(1 << channel)
        # Remembered first: a mask that was written and forgotten would be undone by the next one.
        self._started = Started(self._started.model, energised)
        self._memory.put(self._started)
        self._line.write(mask(energised, RELAYS[self._started.model]))


def open_board(wiring: Wiring, options: Options) -> Icse:
    with opened(wiring.host, options) as (line, info):
        memory = Memory(wiring.host, info.device, lease_directory())
        return Icse(wiring, options, line, identity_of("icse", info, "ICSE01xA"), memory)


def find(host: Host) -> Iterable[Found]:
    return found_boards(host, "icse", lambda info: (info.vendor, info.product) == PL2303, lambda info: 2, _NOTE)


KIND = Kind("icse", "ICStation ICSE012A, ICSE013A, ICSE014A", Options, open_board, MECHANISMS, find=find)
