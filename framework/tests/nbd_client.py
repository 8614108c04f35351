"""A plain NBD client that does one request at a time. Source: the NBD protocol's doc/proto.md."""

from __future__ import annotations

import socket
import struct
from pathlib import Path

_READ, _WRITE, _DISCONNECT, _FLUSH, _TRIM, _ZERO = 0, 1, 2, 3, 4, 6
_FUA = 1
_SEND_FUA = 1 << 3


class NbdError(OSError):
    """The server answered a request with an error."""


class Nbd:
    """A connection to an NBD server on a unix socket. ``size`` is the export's, in bytes."""

    def __init__(self, path: Path, timeout: float = 60.0) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.settimeout(timeout)
        self._socket.connect(str(path))
        assert self._take(16) == b"NBDMAGICIHAVEOPT"
        self._take(2)
        self._socket.sendall(struct.pack(">I", 3))  # fixed newstyle, no zeroes
        self._socket.sendall(struct.pack(">QII", 0x49484156454F5054, 1, 0))  # NBD_OPT_EXPORT_NAME, the default one
        self.size, flags = struct.unpack(">QH", self._take(10))
        self.fua = bool(flags & _SEND_FUA)

    def __enter__(self) -> Nbd:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def read(self, offset: int, length: int) -> bytes:
        self._ask(_READ, offset, length)
        return self._take(length)

    def write(self, offset: int, data: bytes, *, fua: bool = False) -> None:
        self._ask(_WRITE, offset, len(data), data, flags=_FUA if fua else 0)

    def flush(self) -> None:
        self._ask(_FLUSH, 0, 0)

    def trim(self, offset: int, length: int) -> None:
        self._ask(_TRIM, offset, length)

    def zero(self, offset: int, length: int, *, fua: bool = False) -> None:
        self._ask(_ZERO, offset, length, flags=_FUA if fua else 0)

    def close(self) -> None:
        """Hang up. Nothing is flushed by it."""
        self._socket.close()

    def submit(self, command: int, offset: int, length: int, data: bytes = b"", *, flags: int = 0) -> None:
        """Send a request and do not wait for its answer."""
        self._socket.sendall(struct.pack(">IHHQQI", 0x25609513, flags, command, 1, offset, length) + data)

    def _ask(self, command: int, offset: int, length: int, data: bytes = b"", *, flags: int = 0) -> None:
        self.submit(command, offset, length, data, flags=flags)
        magic, error, handle = struct.unpack(">IIQ", self._take(16))
        assert (magic, handle) == (0x67446698, 1)
        if error:
            raise NbdError(error, f"command {command} of {length} bytes at {offset}")

    def _take(self, count: int) -> bytes:
        data = bytearray()
        while len(data) < count:
            more = self._socket.recv(count - len(data))
            if not more:
                raise ConnectionResetError("the NBD server hung up")
            data += more
        return bytes(data)
