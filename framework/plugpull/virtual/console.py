"""The connection to a guest's serial console: a socket for its output, QMP for a BREAK."""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path

from plugpull.dut.console import DutConsole
from plugpull.errors import RigError
from plugpull.virtual.qmp import Qmp

CHARDEV = "console"
"""Its name in QEMU's command line (``machine.py``)."""


class GuestWire:
    """``qmp`` returns the connection to QEMU, or None before it exists."""

    def __init__(self, connection: socket.socket, qmp: Callable[[], Qmp]) -> None:
        self._socket = connection
        self._qmp = qmp

    def read(self) -> bytes:
        return self._socket.recv(1 << 16)

    def write(self, data: bytes) -> None:
        self._socket.sendall(data)

    def send_break(self) -> None:
        try:
            self._qmp().run("chardev-send-break", 10.0, id=CHARDEV)
        except RigError as error:
            raise OSError(error.what) from None

    def close(self) -> None:
        """Nothing to do: the machine closes the socket."""


def _no_qmp() -> Qmp:
    raise OSError("this console cannot send a BREAK")


class Console(DutConsole):
    """A guest's console. Without ``qmp`` it can be read, but it cannot send sysrq keys."""

    def __init__(self, connection: socket.socket, path: Path, qmp: Callable[[], Qmp] = _no_qmp) -> None:
        super().__init__(GuestWire(connection, qmp), path)
