"""Has the kernel give up the commands of one disk sooner while its firmware stands still, and sees it recover the disk.

Only the disk's own timeout is changed, and only for that time.
"""

from __future__ import annotations

import os
import re
import threading
import time
from typing import Any, Dict, Optional, Tuple

from .attributes import SYS, read_attribute, resolved
from .disks import Disk, Refused, compare, describe
from .timers import Timers
from .wire import now

_HOST = re.compile(r"/(host\d+)/")
LOOKS_EVERY = 0.02
DRAINED_WITHIN = 5.0
"""Seconds."""


class Stalls:
    """One disk at a time."""

    def __init__(self, timers: Timers, root: str = SYS) -> None:
        self._timers = timers
        self._root = root
        self._kname = ""
        self._device = ""
        self._before = ""
        self._shortened = ""
        self._diskseq = 0
        self._watch: Optional[threading.Thread] = None
        self._seen: Dict[str, Any] = {}

    def begin(self, wanted: Disk, seconds: int) -> Dict[str, Any]:
        """Have the commands of the disk that is proved to be ``wanted`` given up after ``seconds``. Raises Refused."""
        if self._device:
            raise Refused("another disk is being stalled already")
        kname = os.path.basename(str(wanted["kname"]))
        found = describe(kname, self._root)
        if found is None:
            raise Refused("%s is gone" % kname)
        compare(kname, found, wanted)
        device = resolved(os.path.join(found["sysfs"], "device"))
        before = read_attribute(device, "timeout")
        if not before:
            raise Refused("%s has no timeout for its commands: it is not a SCSI disk" % kname)
        self._kname, self._device, self._before = kname, device, before
        self._shortened, self._diskseq, self._seen = str(seconds), found["diskseq"], {}
        changed = self._timers.set_timeout(device, str(seconds))
        self._wait_drained()
        return {"at": now(), "given_up": self.given_up(), **changed}

    def _wait_drained(self) -> None:
        """Wait until the commands are done that were sent with the old timeout, which they keep."""
        completed, under_way = self._counters()
        deadline = time.monotonic() + DRAINED_WITHIN
        while time.monotonic() < deadline:
            now_completed, now_under_way = self._counters()
            if not now_under_way or now_completed >= completed + under_way:
                return
            time.sleep(LOOKS_EVERY)  # sysfs has no event for a counter

    def given_up(self) -> Optional[int]:
        """How many commands of the disk have timed out; None if this kernel does not count them, or it is gone."""
        value = read_attribute(self._device, "iotmo_cnt")
        return int(value, 0) if value else None

    def over(self, within: float) -> None:
        """The disk answers again: watch for up to ``within`` seconds until it works."""
        self._watch = threading.Thread(target=self._run, args=(within,), name="stall", daemon=True)
        self._watch.start()

    def _run(self, within: float) -> None:
        host = _HOST.search(self._device + "/")
        adapter_state = "%s/class/scsi_host/%s/state" % (self._root, host[1] if host else "")
        first, _ = self._counters()
        deadline = time.monotonic() + within
        while True:
            disk, adapter = read_attribute(self._device, "state"), read_attribute(adapter_state)
            completed, under_way = self._counters()
            if not self._there():
                disk = adapter = ""
            worked = completed != first or not under_way
            self._seen = {"until": now(), "disk": disk, "host": adapter, "worked": worked}
            if not disk or (worked and disk == adapter == "running") or time.monotonic() > deadline:
                return
            time.sleep(LOOKS_EVERY)  # sysfs has no event for a state

    def end(self) -> Dict[str, Any]:
        """Give the disk its timeout back once it works. Says since when it does, how the SCSI layer saw it and its host
        then, and whether it had completed a command or had none to complete; without these if it never answered."""
        watch, self._watch = self._watch, None
        if watch is not None:
            watch.join()
        given_up = self.given_up() if self._there() else None
        return {**self._seen, "given_up": given_up, "at": now(), **self._give_back()}

    def restore(self) -> None:
        """Give the timeout back, because the controller is gone."""
        if self._device:
            self._give_back()

    def _give_back(self) -> Dict[str, object]:
        device, self._device = self._device, ""
        # A disk that came back has the kernel's timeout until the attendant shortens it.
        same = self._there() and read_attribute(device, "timeout") == self._shortened
        return self._timers.set_timeout(device, self._before) if same else {"changed": [], "failed": {}}

    def _there(self) -> bool:
        """Whether it is still the same attachment of the disk."""
        found = describe(self._kname, self._root)
        return found is not None and bool(found["diskseq"] == self._diskseq)

    def _counters(self) -> Tuple[int, int]:
        """The commands completed so far, and those under way; see Documentation/block/stat.rst."""
        fields = [int(word) for word in read_attribute(self._root, "block", self._kname, "stat").split()]
        return (fields[0] + fields[4], fields[8]) if len(fields) > 8 else (0, 0)
