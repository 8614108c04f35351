"""What the disks of a bench do, gathered from the events of a running scenario."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping

from plugpull.history.counters import Counters, rates_between
from plugpull.history.events import DiskAttached, DiskDetached, Event, Sampled
from plugpull.meters.base import DiskWork, NoReading


class RecordedActivity:
    """The newest rates of every disk. ``hear`` is for the recorder's ``subscribe``."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._attached: dict[str, tuple[str, float]] = {}
        """Kernel name, and the controller's time at which the attachment was heard of, by disk."""
        self._samples: tuple[Sampled, Sampled] | None = None
        self._last: Sampled | None = None
        self._heard = 0.0

    def hear(self, event: Event) -> None:
        """Note an event."""
        now = time.monotonic()
        with self._lock:
            if isinstance(event, DiskAttached) and event.disk:
                self._attached[event.disk] = (event.kname, now)
            elif isinstance(event, DiskDetached):
                self._attached.pop(event.disk, None)
            elif isinstance(event, Sampled):
                if self._last is not None:
                    self._samples = (self._last, event)
                self._last, self._heard = event, now

    def rates(self, disks: tuple[str, ...]) -> tuple[float, Mapping[str, DiskWork | None]]:
        with self._lock:
            samples, heard, attached = self._samples, self._heard, dict(self._attached)
        if samples is None:
            raise NoReading("the disks' counters have not been heard of")
        one, two = samples
        seconds = (two.at or 0.0) - (one.at or 0.0)
        if seconds <= 0:
            raise NoReading("two samples of the disks' counters have the same time")
        found: dict[str, DiskWork | None] = {}
        for disk in disks:
            kname = attached[disk][0] if disk in attached else ""
            found[disk] = _work(one.disks.get(kname), two.disks.get(kname), seconds) if kname else None
        return heard, found

    def attached_for(self, disk: str) -> float | None:
        with self._lock:
            attached = self._attached.get(disk)
        return None if attached is None else time.monotonic() - attached[1]


def _work(one: Counters | None, two: Counters | None, seconds: float) -> DiskWork:
    """A disk that was attached in between has done nothing that matters. One with a request in flight is busy, also if
    none is completed between two samples: a slow disk completes less than one in 0.1 s."""
    if one is None or two is None or one.diskseq != two.diskseq:
        return DiskWork(0.0, busy=False)
    rate = rates_between(one, two, seconds).forward().total
    return DiskWork(rate, busy=rate > 0 or bool(one.in_flight and two.in_flight))
