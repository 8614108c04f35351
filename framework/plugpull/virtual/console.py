"""The guest's serial console: kept whole on disk, its last lines at hand, and searched for the kernel's last words."""

from __future__ import annotations

import re
import socket
import threading
from collections import deque
from pathlib import Path

_TIMESTAMP = re.compile(r"^\[\s*(\d+\.\d+)\](?:\[[^\]]*\])? ?")
_LAST_WORDS = re.compile(r"Kernel panic - not syncing|Oops: |BUG: |general protection fault|kernel BUG at")


class Console:
    """Reads the console in a thread and appends it to ``path``."""

    def __init__(self, connection: socket.socket, path: Path) -> None:
        self._socket = connection
        self._path = path
        self._lines: deque[str] = deque(maxlen=2000)
        self._partial = ""
        self._changed = threading.Condition()
        self._closed = False
        self._thread = threading.Thread(target=self._read, name="console", daemon=True)
        self._thread.start()

    def _read(self) -> None:
        with self._path.open("ab", buffering=0) as file:
            while True:
                try:
                    data = self._socket.recv(1 << 16)
                except OSError:
                    data = b""
                if data:
                    file.write(data)
                self._take(data)
                if not data:
                    return

    def _take(self, data: bytes) -> None:
        with self._changed:
            *lines, self._partial = (self._partial + data.decode("utf-8", "replace").replace("\r", "")).split("\n")
            self._lines.extend(lines)
            self._closed = not data
            self._changed.notify_all()

    def lines(self) -> list[str]:
        with self._changed:
            return list(self._lines)

    def dying(self) -> bool:
        with self._changed:
            return any(_LAST_WORDS.search(line) for line in self._lines)

    def wait_closed(self, timeout: float) -> bool:
        """Until the guest is gone and everything it said has been read."""
        with self._changed:
            return self._changed.wait_for(lambda: self._closed, timeout)

    def last_words(self) -> list[str]:
        """From the first line of the death to the end; empty if the kernel did not die here."""
        lines = self.lines()
        for number, line in enumerate(lines):
            if _LAST_WORDS.search(line):
                return lines[number:]
        return []


def stamp_of(line: str) -> float | None:
    """Seconds on the log's clock, from a line's ``[   12.345678]`` prefix."""
    found = _TIMESTAMP.match(line)
    return float(found.group(1)) if found else None


def text_of(line: str) -> str:
    return _TIMESTAMP.sub("", line)
