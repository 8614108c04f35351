"""Writing a history: one JSON object per line, numbered and sealed, appended as things happen."""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Any

import msgspec

from plugpull.errors import RigError
from plugpull.history.events import Event, RigFault, RunEnded, ScenarioBegun, ScenarioEnded, Seal
from plugpull.history.packed_text import PACKED_FROM, Packer
from plugpull.history.seals import SEAL_EVERY, Chain, label_of, numbered
from plugpull.history.segments import close_end, drop_repeated, hold, last_closed_line

Callback = Callable[[Event], None]
Predicate = Callable[[Event], bool]

KEPT_IN_MEMORY = 200_000
"""Events of the current scenario kept at most, so that a soak of days stays bounded."""


class Recorder:
    """Appends events to a history, from any thread.

    Each event is one ``write`` on a descriptor opened with ``O_APPEND``, so what was recorded is in the file even
    if the process is killed in the next instant; at worst the last line is torn.

    A write that fails (disk full) raises ``RigError`` in the thread that recorded, and again in the thread that waits
    on the history or closes it. It is recorded itself as soon as writing works again.

    Lines are numbered from 1. A seal follows the end of each scenario and of the run, and every ``SEAL_EVERY`` lines:
    see ``seals.py``.

    In memory are only the events of the current scenario. Positions in the history are counted from its first event
    and stay valid: see ``mark``.
    """

    def __init__(
        self, path: Path, *, keep: int = KEPT_IN_MEMORY, held: bool = False, packed_from: int = PACKED_FROM
    ) -> None:
        """Opens ``path`` for appending, creating it if need be. Raises ``RigError`` when that cannot be done.

        ``held``: no other process may write it meanwhile, and readers see that it is being written.
        ``packed_from``: the line from which on packs are written beside it (``packs.py``)."""
        self.path = path
        self._held = held
        self._encoder = msgspec.json.Encoder()
        self._recorded = threading.Condition()
        self._events: deque[Event] = deque()
        self._keep = keep
        self._forgotten = 0
        self._callbacks: list[Callback] = []
        self._unwritten = 0
        self._failure: RigError | None = None
        self._chain = Chain()
        self._number = 0
        self._packer: Packer | None = None
        try:
            self._resume()
            # Rig files can hold passwords, and the history holds the rig file.
            self._fd: int | None = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise _cannot("open", path, error) from error
        if held and not hold(self._fd):
            os.close(self._fd)
            raise RigError(f"another process is writing the history {path}", hint="wait until that run has ended")
        if not self._number and not os.fstat(self._fd).st_size:
            self._packer = Packer(path, packed_from)

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
        body = self._encoder.encode(_rounded(msgspec.to_builtins(event)))
        with self._recorded:
            if isinstance(event, ScenarioBegun):
                self._seal()
            line = self._append(body)
            if self._packer is not None:
                self._packer.add(line)
            if isinstance(event, ScenarioEnded | RunEnded) or self._chain.lines >= SEAL_EVERY:
                self._seal()
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

    def close_segment(self) -> None:
        """Moves everything up to here into a compressed segment: see ``segments.py``. If that fails, for example
        because the disk is full, the lines stay where they are."""
        with self._recorded:
            self._seal()
            if self._fd is None or self._unwritten:
                return
            self._unpack()
            with suppress(OSError):
                fd = close_end(self.path, held=self._held)
                os.close(self._fd)
                self._fd = fd

    def close(self, *, quietly: bool = False) -> None:
        """Closes the file. Raises ``RigError`` if an event was lost, unless ``quietly``. Closing twice is harmless."""
        with self._recorded:
            if self._fd is None:
                return
            self._seal()
            os.close(self._fd)
            self._fd = None
            failure = self._failure
        if failure is not None and not quietly:
            raise failure

    def _append(self, body: bytes) -> bytes:
        """Under the lock: write one line and return it, or keep the failure and raise it."""
        if self._fd is None:
            raise RigError("an event was recorded after the history was closed", hint="end all threads before close()")
        try:
            if self._unwritten:
                self._record_loss(self._fd)
            return self._write(self._fd, body)
        except OSError as error:
            self._unwritten += 1
            self._failure = _cannot("write", self.path, error)
            self._unpack()
            self._recorded.notify_all()
            raise self._failure from error

    def _record_loss(self, fd: int) -> None:
        """End the line that may be torn, and say that events are missing here."""
        fault = RigFault(summary=f"{self._unwritten} events could not be written to the history")
        self._write(fd, self._encoder.encode(fault), before=b"\n")
        self._unwritten = 0

    def _write(self, fd: int, body: bytes, *, before: bytes = b"") -> bytes:
        """Write one line in one ``write`` and return it. The digest covers all bytes of the file, half lines too."""
        line = before + numbered(body, self._number + 1)
        written = os.write(fd, line)
        self._chain.add(line[:written])
        if written < len(line):
            raise OSError(f"only {written} of {len(line)} bytes were written")
        self._number += 1
        return line

    def _seal(self) -> None:
        """Seal the lines since the last seal, if there are any. A failure is raised when someone waits or closes."""
        if not self._chain.lines or self._unwritten:
            return
        digest = self._chain.digest
        with suppress(RigError):
            line = self._append(self._encoder.encode(Seal(digest=digest)))
            self._chain.restart(digest, line)
            if self._packer is not None:
                self._packer.seal(line, digest)

    def _unpack(self) -> None:
        """Make no more packs: the next lines do not follow the ones before."""
        if self._packer is not None:
            self._packer.end()
            self._packer = None

    def _resume(self) -> None:
        """Go on after what is in the file already, and in closed segments."""
        if not self.path.is_file():
            return
        closed = last_closed_line(self.path)
        if closed:
            label = label_of(closed)
            self._number = label.n or 0
            self._chain.restart(label.digest, closed)
            drop_repeated(self.path, self._number)
        raw = b"\n"
        with self.path.open("rb") as file:
            for raw in file:
                label = label_of(raw)
                self._number = label.n or self._number
                if label.digest:
                    self._chain.restart(label.digest, raw)
                else:
                    self._chain.add(raw)
        if not raw.endswith(b"\n"):
            self._unwritten = 1  # an earlier writer was killed in the middle of a line

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
        hint="make room on that file system or choose another place with --out, then run again",
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
