"""Writing a history: one JSON object a line, appended as things happen."""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Any

import msgspec

from plugpull.errors import RigError
from plugpull.history.events import Event, RigFault, ScenarioBegun

Callback = Callable[[Event], None]
Predicate = Callable[[Event], bool]

KEPT_IN_MEMORY = 200_000
"""Events of the current scenario kept at most, so that a soak of days stays bounded."""


class Recorder:
    """Appends events to a history, from any thread.

    Each event is one ``write`` on a descriptor opened with ``O_APPEND``, so whatever was recorded is in the file even
    if the process is killed in the next instant; at worst the last line is torn.

    A write that fails (disk full) raises ``RigError`` in the thread that recorded, and again in whoever waits on the
    history or closes it, and is put on record itself as soon as writing works again.

    In memory are only the events of the current scenario. Positions in the history are counted from its first event
    and stay valid: see ``mark``.
    """

    def __init__(self, path: Path, *, keep: int = KEPT_IN_MEMORY) -> None:
        """Opens ``path`` for appending, creating it if need be. Raises ``RigError`` when that cannot be done."""
        self.path = path
        self._encoder = msgspec.json.Encoder()
        self._recorded = threading.Condition()
        self._events: deque[Event] = deque()
        self._keep = keep
        self._forgotten = 0
        self._callbacks: list[Callback] = []
        self._unwritten = 0
        self._failure: RigError | None = None
        try:
            self._fd: int | None = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise _cannot("open", path, error) from error

    def __enter__(self) -> Recorder:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close(quietly=kind is not None)

    def record(self, event: Event) -> None:
        """Appends ``event``, wakes those who wait for it, then calls the subscribers in this thread.

        Raises ``RigError`` when the event could not be written, and when the recorder was closed.
        """
        line = self._encoder.encode(_rounded(msgspec.to_builtins(event))) + b"\n"
        with self._recorded:
            self._append(line)
            if isinstance(event, ScenarioBegun):
                self._forgotten += len(self._events)
                self._events.clear()
            elif len(self._events) >= self._keep:
                self._events.popleft()
                self._forgotten += 1
            self._events.append(event)
            self._recorded.notify_all()
            callbacks = tuple(self._callbacks)
        for callback in callbacks:
            self._call(callback, event)

    def mark(self) -> int:
        """The position after the last event: take it before doing something, then look for what came ``since``."""
        with self._recorded:
            return self._forgotten + len(self._events)

    def since(self, mark: int = 0) -> tuple[Event, ...]:
        """The events recorded from position ``mark`` on; of these, those of the current scenario."""
        with self._recorded:
            return tuple(islice(self._events, max(0, mark - self._forgotten), None))

    def holds(self, mark: int) -> bool:
        """Whether memory still has everything from position ``mark`` on; if not, read the file instead."""
        with self._recorded:
            return mark >= self._forgotten

    def wait_for(self, predicate: Predicate, timeout: float, *, since: int | None = None) -> Event | None:
        """The first event that satisfies ``predicate``, or ``None`` after ``timeout`` seconds.

        Looks at what was recorded from position ``since`` on (default: from now on), then waits. ``predicate`` runs
        under the recorder's lock: it must be quick and must not record. Raises ``RigError`` when an event could not
        be written meanwhile, because then the awaited one may be lost.
        """
        deadline = time.monotonic() + timeout
        with self._recorded:
            position = self._forgotten + len(self._events) if since is None else since
            while True:
                for event in islice(self._events, max(0, position - self._forgotten), None):
                    if predicate(event):
                        return event
                position = self._forgotten + len(self._events)
                if self._failure is not None:
                    raise self._failure
                left = deadline - time.monotonic()
                if left <= 0:
                    return None
                self._recorded.wait(left)

    def subscribe(self, callback: Callback) -> Callable[[], None]:
        """Has ``callback`` called with each event, in the thread that recorded it; the result ends the subscription.

        A callback that raises is dropped and the fault recorded: the thread that records, often the one that listens
        to the DUT, must not die of it.
        """
        with self._recorded:
            self._callbacks.append(callback)

        def unsubscribe() -> None:
            with self._recorded:
                if callback in self._callbacks:
                    self._callbacks.remove(callback)

        return unsubscribe

    def close(self, *, quietly: bool = False) -> None:
        """Closes the file. Raises ``RigError`` if an event was lost, unless ``quietly``. Closing twice is harmless."""
        with self._recorded:
            if self._fd is None:
                return
            os.close(self._fd)
            self._fd = None
            failure = self._failure
        if failure is not None and not quietly:
            raise failure

    def _append(self, line: bytes) -> None:
        """Under the lock: one write, or the failure kept and raised."""
        if self._fd is None:
            raise RigError("an event was recorded after the history was closed", mend="end all threads before close()")
        if self._unwritten:
            line = self._confession() + line
        try:
            written = os.write(self._fd, line)
        except OSError as error:
            self._fail(error)
        else:
            if written < len(line):
                self._fail(OSError(f"only {written} of {len(line)} bytes were written"))
            self._unwritten = 0

    def _confession(self) -> bytes:
        """Ends the line that may be torn and says that events are missing here."""
        fault = RigFault(summary=f"{self._unwritten} events could not be written to the history")
        return b"\n" + self._encoder.encode(fault) + b"\n"

    def _fail(self, error: OSError) -> None:
        self._unwritten += 1
        self._failure = _cannot("write", self.path, error)
        self._recorded.notify_all()
        raise self._failure from error

    def _call(self, callback: Callback, event: Event) -> None:
        try:
            callback(event)
        except Exception as error:
            with self._recorded:
                if callback in self._callbacks:
                    self._callbacks.remove(callback)
            name = getattr(callback, "__qualname__", repr(callback))
            self.record(RigFault(summary=f"{name} failed on an event: {type(error).__name__}: {error}"))


def _cannot(verb: str, path: Path, error: OSError) -> RigError:
    return RigError(
        f"cannot {verb} the history {path}: {error.strerror or error}",
        mend="make room on that file system or choose another place with --out, then run again",
    )


def _rounded(data: Any) -> Any:
    """``data`` with floats rounded to microseconds: finer is noise, and lines stay short."""
    if isinstance(data, float):
        return round(data, 6)
    if isinstance(data, dict):
        return {key: _rounded(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [_rounded(value) for value in data]
    return data
