"""JSON Lines over a byte stream: one object per line, both ways."""

from __future__ import annotations

import json
import os
import queue
import threading
import time
from contextlib import suppress
from typing import Any, Callable, Dict, Iterator, Optional, Union

Message = Dict[str, Any]

MAX_LINE = 4 << 20
"""A longer line is not ours; it is dropped so that a broken stream cannot eat the DUT's memory."""


def now() -> float:
    """CLOCK_MONOTONIC in seconds, the clock of everything the agent reports."""
    return time.clock_gettime(time.CLOCK_MONOTONIC)


def encode(message: Message) -> bytes:
    return json.dumps(message, separators=(",", ":")).encode() + b"\n"


class Outbox:
    """Sends messages from any thread, in order, and never blocks the sender.

    The queue is bounded. When the stream cannot keep up, ordinary messages are dropped and counted. The count is sent
    as soon as there is room, so that lost evidence is noticed.
    """

    def __init__(self, write: Callable[[bytes], None], limit: int = 50_000) -> None:
        self._write = write
        self._queue: "queue.Queue[Union[Message, bytes]]" = queue.Queue(limit)
        self._writing = threading.Lock()
        self._dropped = 0
        self._lock = threading.Lock()
        self.muted = False
        threading.Thread(target=self._run, name="outbox", daemon=True).start()

    def send(self, message: Message) -> None:
        if self.muted:
            return
        with self._lock:
            try:
                if self._dropped:
                    self._queue.put_nowait({"ev": "dropped", "at": now(), "count": self._dropped})
                    self._dropped = 0
                self._queue.put_nowait(message)
            except queue.Full:
                self._dropped += 1

    def send_waiting(self, message: Message) -> None:
        """Send what must not be dropped, and wait for room. For threads that nothing else depends on."""
        if not self.muted:
            self._queue.put(message)

    def send_line(self, line: bytes) -> None:
        """Send a message that is a line already, from this thread if the stream is free: waking another costs more."""
        if self.muted:
            return
        if self._queue.empty() and self._writing.acquire(blocking=False):
            try:
                with suppress(OSError):  # as in _run
                    self._write(line)
            finally:
                self._writing.release()
            return
        with self._lock:
            try:
                self._queue.put_nowait(line)
            except queue.Full:
                self._dropped += 1

    def drop_all(self) -> None:
        """Drop what waits to be sent: nobody reads it."""
        while True:
            try:
                self._queue.get_nowait()
            except queue.Empty:
                return

    def _run(self) -> None:
        while True:
            batch = [self._queue.get()]
            # One write for all that has piled up: a write costs more than a message.
            while len(batch) < 200:
                try:
                    batch.append(self._queue.get_nowait())
                except queue.Empty:
                    break
            data = b"".join(m if isinstance(m, bytes) else encode(m) for m in batch)
            # The reader of the stream sees its end too and decides what that means.
            with suppress(OSError), self._writing:
                self._write(data)


def write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def messages(fd: int) -> Iterator[Optional[Message]]:
    """Messages read from ``fd`` until it ends. ``None`` stands for a line that is not a message."""
    pending = b""
    while True:
        chunk = os.read(fd, 65536)
        if not chunk:
            return
        pending += chunk
        *lines, pending = pending.split(b"\n")
        if len(pending) > MAX_LINE:
            pending = b""
        for line in lines:
            if not line.strip():
                continue
            try:
                message = json.loads(line)
            except (ValueError, RecursionError):
                yield None
                continue
            yield message if isinstance(message, dict) else None
