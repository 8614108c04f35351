"""Waits for the first of several events."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from plugpull.dut.scenario_context import ScenarioContext
from plugpull.errors import RigError
from plugpull.history import events as ev


class Watch:
    """One thing that is waited for, from the moment the watch is made.

    ``until`` is the controller's monotonic time, seconds, at which ``come`` is called at the latest.
    ``happened`` says what happened, such as "after 1.37 s (at random within 1 to 3 s)".
    """

    def __init__(self, context: ScenarioContext, until: float, happened: str, *, since: int | None = None) -> None:
        self.until = until
        self.happened = happened
        self._mark = context.recorder.mark() if since is None else since

    def sees(self, event: ev.Event) -> bool:
        """Whether this event is a reason to call ``come``. It runs under the recorder's lock, so it must be quick. It
        may get an event twice."""
        return False

    def come(self) -> bool:
        """Whether it has happened. Raises RigError when it cannot happen any more."""
        return time.monotonic() >= self.until

    def catch_up(self, context: ScenarioContext, mark: int) -> None:
        """Look at what was recorded up to position ``mark`` and perhaps a little later."""
        for event in context.recorder.since(self._mark):
            self.sees(event)
        self._mark = mark


class Timer(Watch):
    """Time that passes."""

    def __init__(self, context: ScenarioContext, seconds: float, happened: str) -> None:
        super().__init__(context, time.monotonic() + seconds, happened)


class Sighting(Watch):
    """An event of the history that satisfies ``wanted``. ``missed`` is the error if none does in ``within`` seconds."""

    def __init__(
        self,
        context: ScenarioContext,
        wanted: Callable[[ev.Event], bool],
        within: float,
        happened: str,
        missed: str,
        *,
        since: int | None = None,
    ) -> None:
        super().__init__(context, time.monotonic() + within, happened, since=since)
        self._wanted = wanted
        self._missed = missed
        self._seen = False

    def sees(self, event: ev.Event) -> bool:
        self._seen = self._seen or self._wanted(event)
        return self._seen

    def come(self) -> bool:
        if not self._seen and super().come():
            raise RigError(self._missed)
        return self._seen


class Attachment(Watch):
    """These disks are on the kernel's list, or off it, or ``within`` seconds are over. The checks judge which."""

    def __init__(self, context: ScenarioContext, disks: Sequence[str], attached: bool, within: float) -> None:
        super().__init__(context, time.monotonic() + within, "")
        self._disks = disks
        self._attached = attached
        self._disk_table = context.bench.disk_table

    def sees(self, event: ev.Event) -> bool:
        return isinstance(event, ev.DiskAttached if self._attached else ev.DiskDetached)

    def come(self) -> bool:
        there = ((self._disk_table.attached(disk) is not None) is self._attached for disk in self._disks)
        return all(there) or super().come()


def wait_for_first(context: ScenarioContext, watches: Sequence[Watch]) -> tuple[Watch, ...]:
    """Wait until one of these has happened. Returns all that have.

    Raises RigError when one cannot happen any more, and AgentGone when the DUT is lost."""
    while True:
        mark = context.recorder.mark()
        for watch in watches:
            watch.catch_up(context, mark)
        came = tuple(watch for watch in watches if watch.come())
        if came:
            return came
        left = min(watch.until for watch in watches) - time.monotonic()
        context.wait_for(lambda event: any(watch.sees(event) for watch in watches), max(0.0, left), since=mark)
