"""Output that never fails and never blocks: a thread passes it on.

While a port is off, plugpull must not depend on the reader of its output. A closed pipe, a terminal that hung up and a
full disk make ``write`` raise. A terminal stopped with Ctrl-S and a pager that is not scrolled make it wait for ever.
"""

from __future__ import annotations

import io
import os
import select
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from queue import SimpleQueue
from typing import TextIO

MOST = 16 << 20
"""Characters kept for a slow reader. Any excess is dropped, and the output says so."""


class SteadyOutput(io.TextIOBase):
    """A text stream in front of another one. ``write`` never raises and never blocks; signal handlers may call it too.

    Once the stream behind it fails, all further output is dropped. ``close`` waits until everything is written.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        # A descriptor of its own: the interpreter ends with a fatal error if a thread still waits in the stream's.
        self._fd: int | None = None
        with suppress(OSError, ValueError, AttributeError):
            self._fd = os.dup(stream.fileno())
        self._words: SimpleQueue[str | threading.Event | None] = SimpleQueue()
        self._taken = 0
        self._passed = 0
        self._dropped = 0
        self.failure: Exception | None = None
        """The exception that the stream raised, if it failed."""
        threading.Thread(target=self._pass_on, name="output", daemon=True).start()

    # --- the interface of a text stream ---------------------------------------------------------------------------

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return getattr(self._stream, "encoding", None) or "utf-8"

    @property
    def errors(self) -> str:  # type: ignore[override]
        return "backslashreplace"

    def fileno(self) -> int:
        return self._stream.fileno() if self._fd is None else self._fd

    def isatty(self) -> bool:
        return self._fd is not None and os.isatty(self._fd)

    def writable(self) -> bool:
        return True

    def flush(self) -> None:
        """Do nothing: all output is passed on as soon as it is written."""

    def write(self, text: str) -> int:
        if self._taken - self._passed > MOST:
            self._dropped += len(text)
        else:
            self._take(self._confession() + text)
        return len(text)

    def _take(self, text: str) -> None:
        self._taken += len(text)
        self._words.put(text)

    def _confession(self) -> str:
        dropped, self._dropped = self._dropped, 0
        return f"\nplugpull: {dropped} characters of output are missing here: nobody read them\n" if dropped else ""

    def drain(self, timeout: float | None = None) -> bool:
        """Wait until all output so far has been passed on or dropped. Returns False after ``timeout`` seconds."""
        written = threading.Event()
        self._words.put(written)
        return written.wait(timeout)

    def close(self) -> None:
        if not self.closed:
            self._take(self._confession())
            self.drain()
            super().close()
            self._words.put(None)

    # --- the thread -----------------------------------------------------------------------------------------------

    def _pass_on(self) -> None:
        while True:
            item = self._words.get()
            if item is None:
                break
            if isinstance(item, threading.Event):
                item.set()
                continue
            self._passed += len(item)
            if self.failure is None:
                try:
                    self._put(item)
                except (OSError, ValueError) as error:
                    self.failure = error
        if self._fd is not None:
            os.close(self._fd)

    def _put(self, text: str) -> None:
        if self._fd is None:
            self._stream.write(text)
            self._stream.flush()
            return
        data = memoryview(text.encode(self.encoding, "backslashreplace"))
        while data:
            try:
                data = data[os.write(self._fd, data) :]
            except BlockingIOError:  # somebody set O_NONBLOCK, which all its descriptors share
                room = select.poll()
                room.register(self._fd, select.POLLOUT)
                room.poll()


@contextmanager
def steady_output() -> Iterator[None]:
    """Make standard output and error steady in the block. Its end waits for the printed text."""
    before = sys.stdout, sys.stderr
    steady = SteadyOutput(sys.stdout), SteadyOutput(sys.stderr)
    sys.stdout, sys.stderr = steady
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before
        for stream in steady:
            stream.close()
