"""Programs that the controller sends, and output of which nothing may be lost."""

from __future__ import annotations

import base64
import hashlib
import io
import marshal
import os
import threading
import time
import zipfile
import zlib
from importlib.util import MAGIC_NUMBER
from typing import IO, Callable, Dict

from .disks import Refused
from .wire import Message, now

WINDOW = 256 << 10
"""Bytes that may be unacknowledged when another chunk is sent. Further output waits in the pipe, and then the program
waits. This bounds what can be lost with this machine."""
CHUNK = 32 << 10
BOUND = WINDOW + 2 * CHUNK + (64 << 10) + (64 << 10)
"""Bytes that can be under way: the window with the chunk that fills it, the chunk in hand, a pipe (pipe(7)), and what
the writer has collected and not written (``pending`` in its main.c)."""
GATHER = 0.03
"""Seconds between two chunks. Passing on a few bytes all the time would keep this machine busy."""


class Stream:
    """A program's standard output on its way to the controller, in order and without gaps."""

    def __init__(self, job: str, send: Callable[[Message], None]) -> None:
        self._job = job
        self._send = send
        self._sent = 0
        self._acknowledged = 0
        self._changed = threading.Condition()
        self._given_up = False

    def carry(self, source: IO[bytes]) -> None:
        """Pass on ``source`` until it ends. When nobody acknowledges any more, its rest is read and thrown away."""
        while True:
            chunk: bytes = source.read1(CHUNK)  # type: ignore[attr-defined]
            if not chunk:
                return
            with self._changed:
                while self._sent - self._acknowledged >= WINDOW and not self._given_up:
                    self._changed.wait()
                if self._given_up:
                    continue
                offset, self._sent = self._sent, self._sent + len(chunk)
            data = base64.b64encode(chunk).decode("ascii")
            self._send({"ev": "stream", "at": now(), "job": self._job, "offset": offset, "data": data})
            if len(chunk) < CHUNK:
                time.sleep(GATHER)  # until there is more to say; whoever waits for this waits no longer than that

    def acknowledge(self, upto: int) -> None:
        with self._changed:
            self._acknowledged = max(self._acknowledged, upto)
            self._changed.notify_all()

    def give_up(self) -> None:
        """Stop waiting for acknowledgements: the controller is gone."""
        with self._changed:
            self._given_up = True
            self._changed.notify_all()


def in_memory(name: str, data: bytes) -> int:
    """A read-only descriptor of a file in memory with this content (memfd_create(2))."""
    fd = os.memfd_create(name, os.MFD_CLOEXEC)
    with os.fdopen(fd, "wb") as file:
        file.write(data)
        file.flush()
        # A file that somebody holds open for writing cannot be run (ETXTBSY).
        return os.open("/proc/self/fd/%d" % fd, os.O_RDONLY | os.O_CLOEXEC)


_SAME_TIME = (1980, 1, 1, 0, 0, 0)
"""The first that a zip file can name: the clock of a board may be at 1970."""


def compiled(program: bytes) -> bytes:
    """A zip file of Python sources with their compiled code instead, for this Python. A program that is started often
    then starts sooner: the one for files took 29 ms instead of 37 ms on a machine that is not emulated."""
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(program)) as sources, zipfile.ZipFile(made, "w") as archive:
        for name in sources.namelist():
            code = compile(sources.read(name), name, "exec", dont_inherit=True)
            # 12 bytes that say which source it was made of (PEP 552): without a source they are not read.
            archive.writestr(zipfile.ZipInfo(name + "c", _SAME_TIME), MAGIC_NUMBER + bytes(12) + marshal.dumps(code))
    return made.getvalue()


class Programs:
    """Programs kept in memory (memfd_create(2)), by their digest. Nothing is written to a file system."""

    def __init__(self) -> None:
        self._kept: Dict[str, int] = {}

    def has(self, digest: str) -> bool:
        return digest in self._kept

    def keep(self, digest: str, data: str) -> None:
        """``data`` is base64 of a zlib stream. Raises Refused if its digest is not ``digest``."""
        program = zlib.decompress(base64.b64decode(data))
        if hashlib.sha256(program).hexdigest() != digest:
            raise Refused("the program arrived damaged")
        if program.startswith(b"PK"):
            program = compiled(program)
        self._kept[digest] = in_memory("plugpull-writer", program)

    def open(self, digest: str) -> int:
        """A descriptor of one's own to run it from."""
        if digest not in self._kept:
            raise Refused("the program %s was not sent" % digest[:12])
        return os.dup(self._kept[digest])
