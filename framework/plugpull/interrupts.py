"""Signal handling while ports may be off: the first signal ends the work, and none interrupts the restoring.

Python runs a signal's handler in the main thread between any two instructions. A handler that raises can therefore
prevent a ``finally`` block from being entered, and one that prints can raise an error of the print. So there is one
handler object. It raises once, and only while that is allowed; code that restores power holds it back. In a callback of
the interpreter (``__del__``, a weak reference's, one that C calls) Python ignores what is raised, and only reports it
to ``sys.unraisablehook``; such a signal is sent again.
"""

from __future__ import annotations

import math
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

from plugpull.output import SteadyOutput

ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)
"""Signals that end a run on purpose: kill(1), Ctrl-C, a terminal that hangs up, Ctrl-backslash."""
DEADLY = (
    signal.SIGUSR1,
    signal.SIGUSR2,
    signal.SIGALRM,
    signal.SIGVTALRM,
    signal.SIGPROF,
    signal.SIGXCPU,
    signal.SIGIO,
)
"""Signals without a meaning for plugpull whose default action would end the process at once. They end the work in order
instead, unless something else handles them."""
STOPPING = (signal.SIGTTOU, signal.SIGTTIN)
"""Signals that stop a background process that prints or reads, and would leave ports off. They are ignored."""
INSIST = 0.1
"""Seconds until an unhandled signal is sent again."""
AGAIN = 10.0
"""Seconds after a signal during which another one does not raise, because the first is still being handled. Ctrl-C held
down sends thirty a second."""


class Signals:
    """The handler of all signals while ``signals_raise`` or ``signals_held`` is active."""

    def __init__(self) -> None:
        self._holds = 0
        self._after = 0
        self._raised: float | None = None
        self._waiting: list[int] = []
        self._said = False
        self._last: tuple[int, KeyboardInterrupt] | None = None
        self.ran: dict[int, float] = {}
        """The time of ``time.monotonic()`` at which each signal was last handled."""

    def __call__(self, number: int, frame: FrameType | None) -> None:
        self.ran[number] = time.monotonic()
        recently = self._raised is not None and time.monotonic() - self._raised < AGAIN
        if self._holds or recently:
            if not self._said:
                self._said = True
                _say("restoring power; please wait")
            if self._holds:
                self._waiting.append(number)
            return
        self._raised = time.monotonic()
        self._waiting.clear()
        # Signals are held again from here on, even if this interrupts the statement that allowed them.
        self._holds = self._after
        error = _ended_by(number)
        self._last = (number, error)
        raise error

    def ignored(self, error: BaseException | None) -> int | None:
        """The signal whose exception this is. It had no effect, so the signal waits to be handled once more."""
        if self._last is None or error is not self._last[1]:
            return None
        number = self._last[0]
        self._last = self._raised = None
        self._holds -= self._after
        self._waiting.append(number)
        self.ran[number] = 0.0
        return number

    def refuse(self, number: int, frame: FrameType | None) -> None:
        """Handle Ctrl-Z: a stopped process cannot restore power."""
        _say("not stopped, because a port may be off; end it with Ctrl-C")

    @contextmanager
    def interruptible(self) -> Iterator[None]:
        """A block within ``signals_held`` that a signal may end.

        However it ends, signals are held again when the ``finally`` block around it is entered.
        """
        self._after = self._holds
        try:
            self._holds = 0
            if self._waiting:
                self._holds = self._after
                raise _ended_by(self._waiting.pop())
            yield
        finally:
            self._holds = self._after
            self._after = 0

    def hold(self) -> None:
        self._holds += 1

    def let_go(self, *, then_raise: bool) -> None:
        self._holds -= 1
        if self._holds:
            return
        self._after = 0
        self._said = False
        if self._waiting:
            first = self._waiting[0]
            self._waiting.clear()
            if then_raise:
                self._raised = time.monotonic()
                raise _ended_by(first)


@contextmanager
def signals_raise() -> Iterator[Signals]:
    """Signals that would end the process raise KeyboardInterrupt, which unwinds everything.

    The next one raises after ``AGAIN`` seconds at the earliest. SIGHUP is left alone if the process was started with it
    ignored (nohup(1)).
    """
    signals = Signals()
    before: dict[int, Any] = {}
    for each in (*ENDING, *DEADLY, *STOPPING, signal.SIGTSTP):
        found = signal.getsignal(each)
        nohup = each == signal.SIGHUP and found is signal.SIG_IGN
        if found is not None and not nohup and (each in ENDING or found is signal.SIG_DFL):
            before[each] = found
        if each in (*ENDING, *DEADLY) and each in before:
            signals.ran[each] = 0.0
    insistence = _Insistence(signals)
    report = sys.unraisablehook

    def notice(unraisable: Any) -> None:
        number = signals.ignored(unraisable.exc_value)
        if number is None:
            report(unraisable)
        else:
            insistence.again(number)

    try:
        for number in before:
            signal.signal(number, _handler(signals, number))
        insistence.begin()
        sys.unraisablehook = notice
        yield signals
    finally:
        signals.hold()
        sys.unraisablehook = report
        insistence.end()
        for number, handler in before.items():
            signal.signal(number, handler)
        signals.let_go(then_raise=True)


@contextmanager
def signals_held(*, then_raise: bool = True) -> Iterator[Signals]:
    """Signals wait while the block restores power and shuts the bench down.

    Afterwards the first of them raises KeyboardInterrupt, unless ``then_raise`` is false.
    """
    handler: Any = signal.getsignal(signal.SIGTERM)
    if not isinstance(handler, Signals):
        with signals_raise(), signals_held(then_raise=then_raise) as signals:
            yield signals
        return
    handler.hold()
    try:
        yield handler
    finally:
        handler.let_go(then_raise=then_raise)


class _Insistence:
    """Makes sure that signals are handled soon, whatever the main thread waits for.

    A signal that arrives just before the main thread enters a system call does not interrupt that call. Its handler
    runs when the call returns, which may take minutes. So each signal wakes a thread (``signal.set_wakeup_fd``), which
    sends it to the main thread again until its handler has run.
    """

    def __init__(self, signals: Signals) -> None:
        self._signals = signals
        self._main = threading.get_ident()
        self._over = threading.Event()
        self._reading, self._writing = os.pipe2(os.O_CLOEXEC)
        os.set_blocking(self._writing, False)  # set_wakeup_fd requires it
        self._thread = threading.Thread(target=self._insist, name="signals", daemon=True)
        self._before: int | None = None

    def begin(self) -> None:
        self._thread.start()
        self._before = signal.set_wakeup_fd(self._writing, warn_on_full_buffer=False)

    def end(self) -> None:
        if self._before is not None:
            signal.set_wakeup_fd(self._before)
        if self._thread.ident is not None:
            self._over.set()
            with suppress(BlockingIOError):
                os.write(self._writing, b"\0")
            self._thread.join()
        os.close(self._reading)
        os.close(self._writing)

    def again(self, number: int) -> None:
        """Have it sent once more, after what is running now."""
        with suppress(OSError):
            os.write(self._writing, bytes([number]))

    def _insist(self) -> None:
        while number := os.read(self._reading, 1)[0]:
            signalled = time.monotonic()
            # It may have been handled just before this thread ran.
            while not self._over.wait(INSIST) and self._signals.ran.get(number, math.inf) < signalled - INSIST:
                signal.pthread_kill(self._main, number)


def _handler(signals: Signals, number: int) -> Any:
    if number in STOPPING:
        return signal.SIG_IGN
    return signals.refuse if number == signal.SIGTSTP else signals


def _ended_by(number: int) -> KeyboardInterrupt:
    return KeyboardInterrupt(f"ended by {signal.Signals(number).name}")


def _say(text: str) -> None:
    """Print from a signal handler, without raising and without waiting. If the terminal is dead, the text is lost."""
    stream, line = sys.stderr, f"plugpull: {text}\n"
    with suppress(Exception):
        try:
            fd = stream.fileno()
        except (OSError, ValueError):
            fd = -1
        if isinstance(stream, SteadyOutput) or fd < 0:
            stream.write(line)
            return
        # Not through the stream, which may itself have been interrupted.
        room = select.poll()
        room.register(fd, select.POLLOUT)
        if room.poll(0):
            os.write(fd, line.encode())
