"""The handling of signals, without a run."""

from __future__ import annotations

import errno
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Iterator
from types import FrameType

import pytest

from plugpull.interrupts import DEADLY, ENDING, STOPPING, signals_held, signals_raise

ALL = (*ENDING, *DEADLY, *STOPPING, signal.SIGTSTP)


@pytest.fixture(autouse=True)
def as_they_were() -> Iterator[None]:
    """Every handler is put back as it was found."""
    before = {number: signal.getsignal(number) for number in ALL}
    report = sys.unraisablehook
    yield
    assert sys.unraisablehook is report
    after = {number: signal.getsignal(number) for number in ALL}
    for number, handler in before.items():
        signal.signal(number, handler)
    assert after == before


class DeadTerminal:
    """Standard error after its terminal hung up, or on a full disk."""

    def __init__(self, error: int) -> None:
        self._error = error

    def fileno(self) -> int:
        raise OSError(self._error, os.strerror(self._error))

    def write(self, text: str) -> int:
        raise OSError(self._error, os.strerror(self._error))

    flush = fileno


def send(number: int) -> None:
    os.kill(os.getpid(), number)


@pytest.mark.parametrize("number", [*ENDING, *DEADLY])
def test_a_signal_ends_a_run_as_an_exception(number: signal.Signals) -> None:
    with pytest.raises(KeyboardInterrupt, match=number.name), signals_raise():
        send(number)


def test_a_run_under_nohup_does_not_end_with_its_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with signals_raise():
            send(signal.SIGHUP)
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)


def test_a_handler_of_somebody_else_stays() -> None:
    heard: list[int] = []
    signal.signal(signal.SIGUSR1, lambda number, frame: heard.append(number))
    try:
        with signals_raise():
            send(signal.SIGUSR1)
    finally:
        signal.signal(signal.SIGUSR1, signal.SIG_DFL)
    assert heard == [signal.SIGUSR1]


@pytest.mark.parametrize("number", ENDING)
def test_what_is_held_is_done_before_the_signal_counts(
    number: signal.Signals, capsys: pytest.CaptureFixture[str]
) -> None:
    done: list[bool] = []

    def held() -> None:
        with signals_held():
            send(number)
            done.append(True)

    with pytest.raises(KeyboardInterrupt, match=number.name):
        held()
    assert done
    assert "restoring power; please wait" in capsys.readouterr().err


@pytest.mark.parametrize("error", [errno.EIO, errno.EPIPE, errno.ENOSPC])
def test_a_dead_terminal_does_not_interrupt_what_is_held(error: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The message of the handler once surfaced as an OSError in the code that restored power."""
    monkeypatch.setattr(sys, "stderr", DeadTerminal(error))
    done: list[bool] = []

    def held() -> None:
        with signals_held():
            for number in ENDING:
                send(number)
            done.append(True)

    with pytest.raises(KeyboardInterrupt, match=ENDING[0].name):
        held()
    assert done


def test_a_full_pipe_does_not_stop_what_is_held(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody reads standard error: the message is left out."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    while True:
        try:
            os.write(writing, b"x" * 65536)
        except BlockingIOError:
            break
    os.set_blocking(writing, True)
    with os.fdopen(writing, "w") as full, os.fdopen(reading):
        monkeypatch.setattr(sys, "stderr", full)
        with signals_held(then_raise=False):
            send(signal.SIGTERM)


def test_the_second_signal_does_not_interrupt_what_the_first_one_began() -> None:
    undone: list[str] = []

    def work() -> None:
        try:
            send(signal.SIGTERM)
        finally:
            for number in ENDING:  # Ctrl-C held down, and a terminal that hangs up
                send(number)
            undone.append("everything")

    with pytest.raises(KeyboardInterrupt, match="SIGTERM"), signals_raise():
        work()
    assert undone


def test_held_within_held_waits_for_the_outer_one() -> None:
    done: list[bool] = []

    def held() -> None:
        with signals_held():
            with signals_held():
                send(signal.SIGTERM)
            done.append(True)

    with pytest.raises(KeyboardInterrupt):
        held()
    assert done


def test_a_signal_ends_only_the_interruptible_part() -> None:
    done: list[str] = []

    def cycle() -> None:
        with signals_held() as signals:
            try:
                with signals.interruptible():
                    done.append("off")
                    send(signal.SIGHUP)
                    done.append("never")
            finally:
                send(signal.SIGTERM)
                done.append("on")

    with pytest.raises(KeyboardInterrupt, match="SIGTERM"):
        cycle()
    assert done == ["off", "on"]


class Interruption:
    """A trace function that sends SIGTERM before the ``count``-th instruction that is traced."""

    def __init__(self, count: int) -> None:
        self.left = count

    def __call__(self, frame: FrameType, event: str, argument: object) -> Interruption:
        frame.f_trace_opcodes = True
        self.left -= 1
        if self.left == 0:
            send(signal.SIGTERM)
        return self


def traced_cycle(interruption: Interruption) -> list[str]:
    """Off and on as `plugpull switch cycle` does it, with each instruction traced."""
    done: list[str] = []
    try:
        with signals_held() as signals:
            sys.settrace(interruption)
            sys._getframe().f_trace = interruption
            try:
                with signals.interruptible():
                    done.append("off")
            finally:
                done.append("on")
                sys.settrace(None)
    except KeyboardInterrupt:
        done.append("interrupted")
    finally:
        sys.settrace(None)
    return done


def test_no_instruction_between_off_and_on_can_be_interrupted_so_that_it_stays_off() -> None:
    """Python runs handlers between any two instructions, also just before ``finally`` is entered."""
    for count in range(1, 5000):
        interruption = Interruption(count)
        done = traced_cycle(interruption)
        assert "on" in done, (count, done)
        if interruption.left > 0:
            assert done == ["off", "on"]
            assert count > 100, "little was traced"
            return
        assert done[-1] == "interrupted", (count, done)
    raise AssertionError("it never came to its end")


def test_a_background_process_that_prints_or_is_stopped_goes_on() -> None:
    with signals_raise():
        for number in (*STOPPING, signal.SIGTSTP):
            send(number)


def test_a_signal_that_did_not_interrupt_a_system_call_is_sent_again() -> None:
    """It arrives just before the main thread waits: here, on another thread, which the kernel may choose as well."""
    begun = time.monotonic()

    def elsewhere() -> None:
        time.sleep(0.2)  # until the main thread waits
        signal.pthread_kill(threading.get_ident(), signal.SIGTERM)

    def wait() -> None:
        with signals_raise():
            threading.Thread(target=elsewhere).start()
            select.select([], [], [], 300)

    with pytest.raises(KeyboardInterrupt):
        wait()
    assert time.monotonic() - begun < 200


class Finalized:
    """An object whose finalizer, where Python ignores exceptions, is interrupted."""

    def __del__(self) -> None:
        send(signal.SIGTERM)


def test_a_signal_in_a_callback_that_python_ignores_the_exceptions_of_ends_the_work() -> None:
    done: list[str] = []

    def work() -> None:
        with signals_held() as signals:
            try:
                with signals.interruptible():
                    Finalized()
                    done.append("went on")
                    select.select([], [], [], 30)
                    done.append("never")
            finally:
                done.append("on")

    with pytest.raises(KeyboardInterrupt, match="SIGTERM"):
        work()
    assert done == ["went on", "on"]


def test_such_a_signal_counts_when_the_work_ends_before_it_is_sent_again() -> None:
    done: list[str] = []

    def work() -> None:
        with signals_raise():
            Finalized()
            done.append("went on")

    with pytest.raises(KeyboardInterrupt, match="SIGTERM"):
        work()
    assert done == ["went on"]


def test_other_exceptions_in_such_callbacks_are_reported_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    class Failing:
        def __del__(self) -> None:
            raise ValueError("in a finalizer")

    reported: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda unraisable: reported.append(str(unraisable.exc_value)))
    with signals_raise():
        Failing()
    assert reported == ["in a finalizer"]
