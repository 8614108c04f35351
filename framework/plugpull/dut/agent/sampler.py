"""Counters of every disk at a steady rate, read from sysfs: the timeline that does not depend on fio."""

from __future__ import annotations

import os
import select
import threading
from typing import Any, Callable, Dict, List, Optional, Tuple

from .attributes import SYS, read_attribute
from .wire import now

CPU_EVERY = 10
"""The CPU's counters are read with one of this many samples."""


class Sampler:
    """Reads ``/sys/block/*/stat`` (Documentation/block/stat.rst) and ``inflight`` at a steady interval.

    The files are kept open and read again in place; that costs a quarter of opening them each time.
    """

    def __init__(self, send: Callable[[Dict[str, Any]], None], send_line: Callable[[bytes], None]) -> None:
        self._send = send
        self._send_line = send_line
        self._open: Dict[str, Tuple[int, int, int]] = {}
        self._lock = threading.Lock()
        self._stop, self._stopper = os.pipe()
        self._cpu = os.open("/proc/stat", os.O_RDONLY)
        self._thread: Optional[threading.Thread] = None
        self.interval = 0.0
        """Seconds between two samples. It may be changed; the sample that is waited for then still comes when it was
        due."""

    def start(self, interval: float) -> None:
        """Begin with the disks that were added."""
        self.interval = interval
        self._thread = threading.Thread(target=self._run, name="sampler", daemon=True)
        self._thread.start()

    def add(self, kname: str) -> None:
        """Sample this disk from now on. Called when the kernel announces it."""
        base = os.path.join(SYS, "block", kname)
        try:
            stat = os.open(os.path.join(base, "stat"), os.O_RDONLY)
            inflight = os.open(os.path.join(base, "inflight"), os.O_RDONLY)
        except OSError:
            return
        with self._lock:
            self._forget(kname)
            self._open[kname] = (int(read_attribute(base, "diskseq") or 0), stat, inflight)

    def remove(self, kname: str) -> None:
        with self._lock:
            self._forget(kname)

    def stop(self) -> None:
        os.close(self._stopper)
        if self._thread is not None:
            self._thread.join(5)
        os.close(self._stop)
        with self._lock:
            for kname in list(self._open):
                self._forget(kname)

    def _forget(self, kname: str) -> None:
        entry = self._open.pop(kname, None)
        if entry is not None:
            os.close(entry[1])
            os.close(entry[2])

    def _sample(self) -> str:
        """The disks' counters as the body of a JSON object. The kernel's own text is passed on unparsed: on an
        emulated DUT every instruction counts, and the controller has time."""
        disks: List[str] = []
        with self._lock:
            for kname, (diskseq, stat, inflight) in list(self._open.items()):
                try:
                    counters = os.pread(stat, 256, 0) + os.pread(inflight, 64, 0)
                except OSError:
                    self._forget(kname)
                    continue
                disks.append('"%s":[%d,"%s"]' % (kname, diskseq, counters.decode("ascii").replace("\n", " ")))
        return ",".join(disks)

    def _cpu_line(self) -> str:
        return os.pread(self._cpu, 256, 0).split(b"\n", 1)[0].decode("ascii")

    def _run(self) -> None:
        try:
            self._sample_on()
        except Exception as error:
            self._send({"ev": "watcher.broken", "at": now(), "what": "the disks' counters", "why": repr(error)})
        finally:
            os.close(self._cpu)

    def _sample_on(self) -> None:
        # Waiting on a descriptor is one call of C; waiting on a threading.Event is a page of Python.
        stopped = select.poll()
        stopped.register(self._stop, select.POLLHUP)
        due, number, wait = now(), 0, 0.0
        while not stopped.poll(wait * 1000):
            # The kernel counts every interrupt of the machine to answer for the CPU, so it is asked less often.
            cpu = ',"cpu":"%s"' % self._cpu_line() if number % CPU_EVERY == 0 else ""
            number += 1
            disks = self._sample()
            at = now()
            self._send_line(b'{"ev":"sample","at":%.6f,"disks":{%s}%s}\n' % (at, disks.encode(), cpu.encode()))
            due += self.interval
            if due < at:
                # Starved: take up the rhythm from here rather than catch up with a burst that would hide the gap.
                due = at
            wait = max(0.0, due - at)
