"""A DUT's serial console: written to disk, searched for the kernel's last words, and asked for signs of life.

A BREAK followed by a key is magic sysrq (Documentation/admin-guide/sysrq.rst), served in the interrupt: it is answered
even when no process runs any more. To echo a character, the kernel has to schedule a worker (``n_tty``): the echo
distinguishes a kernel that still schedules from one that only answers interrupts.
"""

from __future__ import annotations

import re
import threading
import time
from collections import deque
from itertools import islice
from pathlib import Path
from typing import Protocol

_TIMESTAMP = re.compile(r"^\[\s*(\d+\.\d+)\](?:\[[^\]]*\])? ?")
_LAST_WORDS = re.compile(r"Kernel panic - not syncing|Oops: |BUG: |general protection fault|kernel BUG at")
KEPT = 2000
"""Lines that are kept in memory. All lines are on disk."""
LAST_WORDS = 400
"""Lines that are kept from the first sign of death on."""
LONGEST = 1 << 14
"""Characters of one line that are kept."""
LARGEST = 64 << 20
"""Bytes of a console that are kept on disk. A kernel that repeats an error without end would fill any disk."""
TRIES = 3
"""Times that a sysrq is sent before silence counts as no answer."""
_ECHO = "~"
_ERASE = b"\x15"
"""Ctrl-U: deletes the line typed so far, in case there is a login prompt."""


class Wire(Protocol):
    """The connection of a console."""

    def read(self) -> bytes:
        """Wait for data and return it. Empty at the end of the stream."""
        ...

    def write(self, data: bytes) -> None: ...

    def send_break(self) -> None: ...

    def close(self) -> None: ...


class DutConsole:
    """Reads the console in a thread and appends it to ``path``. ``wire`` may raise OSError from any method."""

    def __init__(self, wire: Wire, path: Path) -> None:
        self._wire = wire
        self._path = path
        self._lines: deque[str] = deque(maxlen=KEPT)
        self._words: list[str] = []
        self._count = 0
        self._partial = ""
        self._changed = threading.Condition()
        self._closed = False
        self._thread = threading.Thread(target=self._read, name="console", daemon=True)
        self._thread.start()

    def _read(self) -> None:
        with self._path.open("ab", buffering=0) as file:
            room = LARGEST
            while True:
                try:
                    data = self._wire.read()
                except OSError:
                    data = b""
                if data and room > 0:
                    file.write(data[:room])
                    room -= len(data)
                    if room <= 0:
                        file.write(b"\nplugpull: the console was longer than what is kept\n")
                self._take(data)
                if not data:
                    return

    def _take(self, data: bytes) -> None:
        with self._changed:
            *lines, partial = (self._partial + data.decode("utf-8", "replace").replace("\r", "")).split("\n")
            self._partial = partial[-LONGEST:]
            for line in lines:
                self._lines.append(line)
                if len(self._words) < LAST_WORDS and (self._words or _LAST_WORDS.search(line)):
                    self._words.append(line)
            self._count += len(lines)
            self._closed = not data
            self._changed.notify_all()

    def close(self) -> None:
        """Close the wire. Safe to call twice."""
        self._wire.close()
        self._thread.join(5)

    # --- what it said -----------------------------------------------------------------------------------------------

    def lines(self) -> list[str]:
        """The last lines."""
        with self._changed:
            return list(self._lines)

    def mark(self) -> int:
        """The present position, for ``since``."""
        with self._changed:
            return self._count

    def since(self, mark: int) -> list[str]:
        """The kept lines after ``mark``, and the unfinished line."""
        with self._changed:
            return self._since(mark)

    def _since(self, mark: int) -> list[str]:
        kept = min(len(self._lines), self._count - mark)
        return [*islice(self._lines, len(self._lines) - kept, None), self._partial]

    def dying(self) -> bool:
        with self._changed:
            return bool(self._words)

    def wait_closed(self, timeout: float) -> bool:
        """Wait until the console ended and everything was read. Returns whether it did."""
        with self._changed:
            return self._changed.wait_for(lambda: self._closed, timeout)

    def wait_dying(self, timeout: float) -> bool:
        """Wait until there are last words, or the console ended. Returns whether there are any."""
        with self._changed:
            self._changed.wait_for(lambda: bool(self._words) or self._closed, timeout)
            return bool(self._words)

    def wait_said(self, wanted: re.Pattern[str], timeout: float) -> bool:
        """Wait until a kept line matches ``wanted``. Returns whether one does."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed or any(map(wanted.search, self._lines)), timeout)
            return any(map(wanted.search, self._lines))

    def last_words(self) -> list[str]:
        """The lines from the first sign of death on; empty if there is none."""
        with self._changed:
            return list(self._words)

    def pause(self, quiet: float, timeout: float) -> None:
        """Wait until nothing came for ``quiet`` seconds."""
        deadline = time.monotonic() + timeout
        with self._changed:
            while time.monotonic() < deadline:
                before = (self._count, self._partial)
                if not self._changed.wait_for(lambda: (self._count, self._partial) != before or self._closed, quiet):  # noqa: B023
                    return
                if self._closed:
                    return

    # --- signs of life ----------------------------------------------------------------------------------------------

    def sysrq(self, key: str, timeout: float) -> list[str] | None:
        """Send BREAK and ``key``. Returns the kernel's answer, None if there is none in time.

        A kernel that refuses the key says so, which is a sign of life too.
        """
        mark = self.mark()
        for _ in range(TRIES):
            try:
                self._wire.send_break()
                self._wire.write(key.encode())
            except OSError:
                return None
            # A BREAK that meets a character not yet taken from the UART's FIFO is lost on the 8250 driver.
            if self._heard("sysrq: ", mark, timeout / TRIES):
                break
        else:
            return None
        self.pause(1.0, timeout)
        return [line for line in self.since(mark) if line]

    def echoes(self, timeout: float) -> bool:
        """Whether a character is echoed. A kernel that answers interrupts and schedules nothing does not echo it."""
        mark = self.mark()
        try:
            self._wire.write(_ECHO.encode())
            heard = self._heard(_ECHO, mark, timeout)
            self._wire.write(_ERASE)
        except OSError:
            return False
        return heard

    def _heard(self, what: str, mark: int, timeout: float) -> bool:
        with self._changed:
            return self._changed.wait_for(
                lambda: any(what in line for line in self._since(mark)) or self._closed, timeout
            ) and any(what in line for line in self._since(mark))


def stamp_of(line: str) -> float | None:
    """Seconds on the log's clock, from a line's ``[   12.345678]`` prefix."""
    found = _TIMESTAMP.match(line)
    return float(found.group(1)) if found else None


def text_of(line: str) -> str:
    return _TIMESTAMP.sub("", line)
