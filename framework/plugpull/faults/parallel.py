"""Commands several switches at the same moment."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress

from plugpull.errors import PlugpullError, RigError

LAST_WORDS = 15.0
"""Seconds that commands under way get to end when the run is interrupted. Most switches answer in milliseconds; a
person who was asked to pull a plug need not be waited for."""


def at_once(works: Mapping[str, Callable[[], None]]) -> dict[str, Exception]:
    """Run these in parallel, started at the same instant. Returns the exceptions of those that failed.

    A single one runs in the calling thread. When it is interrupted, it waits for the commands under way: a port that is
    switched off after it was healed would stay off.
    """
    failures: dict[str, Exception] = {}
    if len(works) == 1:
        _run(*next(iter(works.items())), failures)
        return failures
    barrier = threading.Barrier(len(works))
    over = {name: threading.Event() for name in works}

    def begin(name: str, work: Callable[[], None]) -> None:
        try:
            with suppress(threading.BrokenBarrierError):
                barrier.wait()
                _run(name, work, failures)
        finally:
            over[name].set()

    threads = {
        name: threading.Thread(target=begin, args=(name, work), name=f"switch-{name}", daemon=True)
        for name, work in works.items()
    }
    try:
        for thread in threads.values():
            thread.start()
        # Up to Python 3.12, a thread whose join() is interrupted counts as ended while it runs (Lib/threading.py,
        # _wait_for_tstate_lock), so nobody would wait for its command.
        for name, thread in threads.items():
            over[name].wait()
            thread.join()
    except BaseException:
        barrier.abort()
        _let_end([over[name] for name, thread in threads.items() if thread.ident is not None])
        raise
    return failures


def _let_end(over: Iterable[threading.Event]) -> None:
    """Give commands under way their time to end."""
    deadline = time.monotonic() + LAST_WORDS
    for each in over:
        each.wait(max(0.0, deadline - time.monotonic()))


def _run(name: str, work: Callable[[], None], failures: dict[str, Exception]) -> None:
    try:
        work()
    except Exception as error:  # a driver may raise anything
        failures[name] = error


def words_of(error: Exception) -> str:
    return error.what if isinstance(error, PlugpullError) else repr(error)


def raise_all(failures: Mapping[str, Exception], of: int) -> None:
    """One error for all of them, or the error itself if there was only one thing to do."""
    if not failures:
        return
    if of == 1:
        raise next(iter(failures.values()))
    failed = "; ".join(f"{name}: {words_of(error)}" for name, error in failures.items())
    hints = dict.fromkeys(error.hint for error in failures.values() if isinstance(error, PlugpullError) and error.hint)
    raise RigError(f"{len(failures)} of {of} switches failed: {failed}", hint="; ".join(hints))
