"""Connections to the console of a real DUT: a serial port, or a named pipe that netconsole is written to."""

from __future__ import annotations

import os
import select
import stat
from contextlib import suppress
from pathlib import Path

import serial

from plugpull.dut.console import Wire
from plugpull.errors import RigError
from plugpull.rig.model import Dut

BREAK = 0.25
"""Seconds. A UART takes a signal longer than a character for a BREAK."""
_LOOK = 0.2
"""Seconds after which a reader checks whether it was closed."""


class SerialWire:
    """A serial port of the controller. Raises RigError when it cannot be opened."""

    def __init__(self, path: str, speed: int) -> None:
        self._closed = False
        try:
            self._port = serial.Serial(path, speed, timeout=_LOOK, write_timeout=5.0, exclusive=True)
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or str(error)
            raise RigError(
                f"the DUT's console {path} cannot be opened: {why}",
                hint="is the adapter plugged in, and no terminal program open on it?",
            ) from None

    def read(self) -> bytes:
        while not self._closed:
            data: bytes = self._port.read(max(1, self._port.in_waiting))
            if data:
                return data
        self._port.close()
        return b""

    def write(self, data: bytes) -> None:
        self._port.write(data)

    def send_break(self) -> None:
        self._port.send_break(BREAK)

    def close(self) -> None:
        self._closed = True
        with suppress(OSError):
            self._port.cancel_read()


class PipeWire:
    """A named pipe: it can be read, and not written to."""

    def __init__(self, path: str) -> None:
        self._closed = False
        # Opened for writing too (Linux, fifo(7)): so it does not end when a writer closes it.
        self._fd = os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)

    def read(self) -> bytes:
        while not self._closed:
            if select.select([self._fd], [], [], _LOOK)[0]:
                with suppress(BlockingIOError):
                    return os.read(self._fd, 1 << 16)
        os.close(self._fd)
        return b""

    def write(self, data: bytes) -> None:
        raise OSError("keys cannot be sent through a pipe")

    def send_break(self) -> None:
        raise OSError("a pipe has no BREAK")

    def close(self) -> None:
        self._closed = True


def wire_of(dut: Dut) -> Wire | None:
    """The connection to the console that the rig file names, None if it names none. Raises RigError."""
    if dut.console is None:
        return None
    try:
        kind = stat.S_IFMT(Path(dut.console).stat().st_mode)
        if kind == stat.S_IFIFO:
            return PipeWire(dut.console)
    except OSError as error:
        raise RigError(
            f"the DUT's console {dut.console} cannot be opened: {error.strerror}",
            hint="is the adapter plugged in? /dev/serial/by-id has names that stay the same",
        ) from None
    if kind != stat.S_IFCHR:
        raise RigError(f"the DUT's console {dut.console} is neither a serial port nor a named pipe")
    return SerialWire(dut.console, dut.console_speed)
