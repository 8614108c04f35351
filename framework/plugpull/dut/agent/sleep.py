"""Suspends the DUT's devices for a few seconds, as a machine that sleeps does, and wakes them by itself."""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from typing import Any, Dict, Optional

from .attributes import SYS, read_attribute
from .disks import Refused
from .wire import now

LONGEST = 8
"""Seconds. The controller gives an agent up that is silent for ten."""


class Sleep:
    """The kernel's own test of suspending (Documentation/power/basic-pm-debugging.rst): it freezes all processes,
    suspends all devices, waits, and resumes them. No wake-up is needed."""

    def __init__(self, root: str = SYS) -> None:
        self._state = os.path.join(root, "power/state")
        self._test = os.path.join(root, "power/pm_test")
        self._delay = os.path.join(root, "module/suspend/parameters/pm_test_delay")
        self._thread: Optional[threading.Thread] = None
        self._done: Dict[str, Any] = {}

    def begin(self, seconds: int) -> bool:
        """Begin to suspend. False if this kernel cannot: it has no test of suspending, or no shallow sleep."""
        if not 1 <= seconds <= LONGEST:
            raise Refused("the DUT can sleep for 1 to %d s here, not %d" % (LONGEST, seconds))
        able = "devices" in read_attribute(self._test) and "freeze" in read_attribute(self._state).split()
        if not able or not os.path.exists(self._delay):
            return False
        self._done = {"begun": now(), "until": now(), "ok": False, "why": ""}
        self._thread = threading.Thread(target=self._run, args=(seconds,), name="sleep", daemon=True)
        self._thread.start()
        return True

    def end(self, within: float = 60.0) -> Dict[str, Any]:
        """Wait until it is awake again, and say from when to when it slept."""
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.join(within)
        return {**self._done, "stuck": thread is not None and thread.is_alive()}

    def _run(self, seconds: int) -> None:
        before = read_attribute(self._delay)
        try:
            _write(self._delay, str(seconds))
            _write(self._test, "devices")
            self._done["begun"] = now()
            _write(self._state, "freeze")
            self._done["ok"] = True
        except OSError as error:
            self._done["why"] = os.strerror(error.errno or 0)
        finally:
            self._done["until"] = now()
            for path, value in ((self._test, "none"), (self._delay, before)):
                with suppress(OSError):  # what it can be is reported already
                    _write(path, value)


def _write(path: str, value: str) -> None:
    with open(path, "w") as file:
        file.write(value)
