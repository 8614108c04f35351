"""Counters of every disk at a steady rate, read from sysfs: the timeline that does not depend on fio."""

from __future__ import annotations

import os
import threading
from typing import Any, Callable, Dict, List, Tuple

from .disks import SYS, read_attribute
from .wire import now


class Sampler:
    """Reads ``/sys/block/*/stat`` (Documentation/block/stat.rst) and ``inflight`` every ``interval`` seconds.

    The files are kept open and read again in place; that costs a quarter of opening them each time.
    """

    def __init__(self, tell: Callable[[Dict[str, Any]], None], interval: float) -> None:
        self._tell = tell
        self._interval = interval
        self._open: Dict[str, Tuple[int, int, int]] = {}
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._cpu = os.open("/proc/stat", os.O_RDONLY)
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
        self._stop.set()
        self._thread.join(5)
        with self._lock:
            for kname in list(self._open):
                self._forget(kname)

    def _forget(self, kname: str) -> None:
        entry = self._open.pop(kname, None)
        if entry is not None:
            os.close(entry[1])
            os.close(entry[2])

    def _sample(self) -> Dict[str, List[int]]:
        disks: Dict[str, List[int]] = {}
        with self._lock:
            for kname, (diskseq, stat, inflight) in list(self._open.items()):
                try:
                    s = os.pread(stat, 256, 0).split()
                    r, w = os.pread(inflight, 64, 0).split()
                except (OSError, ValueError):
                    self._forget(kname)
                    continue
                disks[kname] = [
                    diskseq,
                    int(s[2]) * 512,
                    int(s[6]) * 512,
                    int(s[0]),
                    int(s[4]),
                    int(r),
                    int(w),
                    int(s[9]),
                ]
        return disks

    def _cpu_jiffies(self) -> Tuple[int, int]:
        fields = [int(value) for value in os.pread(self._cpu, 256, 0).split(b"\n", 1)[0].split()[1:9]]
        return sum(fields) - fields[3] - fields[4], sum(fields)

    def _run(self) -> None:
        try:
            self._sample_on()
        except Exception as error:
            self._tell({"ev": "watcher.broken", "at": now(), "what": "the disks' counters", "why": repr(error)})
        finally:
            os.close(self._cpu)

    def _sample_on(self) -> None:
        due = now()
        while not self._stop.is_set():
            disks = self._sample()
            self._tell({"ev": "sample", "at": now(), "disks": disks, "cpu": self._cpu_jiffies()})
            due += self._interval
            late = now() - due
            if late > 0:
                # Starved: take up the rhythm from here rather than catch up with a burst that would hide the gap.
                due = now()
            self._stop.wait(max(0.0, due - now()))
