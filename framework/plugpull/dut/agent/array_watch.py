"""Follows an array's state in sysfs and reports each change."""

from __future__ import annotations

import os
import select
import threading
from contextlib import suppress
from typing import Any, Callable, Dict, List, Optional, Tuple

from .array_guard import members_of
from .attributes import SYS, read_attribute
from .wire import now

WATCHED = ("array_state", "degraded", "sync_action")
"""Attributes that wake a poll when they change (Documentation/admin-guide/md.rst)."""
READ = (*WATCHED, "sync_completed", "mismatch_cnt", "resync_start")
"""Attributes of a report. The last three do not wake a poll."""
OFTEN = 0.25
"""Seconds between two looks at what does not wake a poll: new members, and how far a resync is."""

Member = Tuple[int, str, str]
"""(diskseq of the disk, slot, state) of a member; the slot is "none" for a spare."""


class ArrayWatch:
    """A thread that reports the state of one array at each change, until ``stop``."""

    def __init__(self, name: str, kname: str, send: Callable[[Dict[str, Any]], None]) -> None:
        self._name = name
        self._kname = kname
        self._node = os.path.join(SYS, "block", kname)
        self._send = send
        self._sequences: Dict[str, int] = {}
        self._open: Dict[str, int] = {}
        self._last: Tuple[Dict[str, str], Dict[str, Member]] = ({}, {})
        self._stopped, self._stopper = os.pipe()
        self._thread = threading.Thread(target=self._run, name="array-" + kname, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop watching, after a last look."""
        os.close(self._stopper)
        self._thread.join(5)

    def look(self) -> Tuple[Dict[str, str], Dict[str, Member]]:
        """The array's attributes, and its members by kernel name. Both are empty if the array is gone."""
        values = {name: read_attribute(self._node, "md", name) for name in READ}
        members: Dict[str, Member] = {}
        for kname, path in members_of(self._node).items():
            slot, state = read_attribute(path, "slot"), read_attribute(path, "state")
            if slot and state:
                members[kname] = (self._sequence(kname), slot, state)
        return ({}, {}) if not values["array_state"] else ({k: v for k, v in values.items() if v}, members)

    def _sequence(self, kname: str) -> int:
        """The diskseq of a member. That of a disk that is gone is remembered: the array keeps its name occupied."""
        found = read_attribute(SYS, "block", kname, "diskseq")
        if found:
            self._sequences[kname] = int(found)
        return self._sequences.get(kname, 0)

    def _run(self) -> None:
        try:
            over = False
            while not over:
                # Read first what wakes the poll: a change after that is not missed.
                files = self._files()
                self._report()
                over = self._wait(files)
            self._report()
        except Exception as error:
            self._send({"ev": "watcher.broken", "at": now(), "what": "the array's state", "why": repr(error)})
        finally:
            for fd in (*self._open.values(), self._stopped):
                os.close(fd)

    def _report(self) -> None:
        found = self.look()
        if found != self._last and (found[0] or self._last[0]):
            self._last = found
            values, members = found
            said = {"ev": "array", "at": now(), "array": self._name, "kname": self._kname}
            self._send({**said, "values": values, "members": members})

    def _wait(self, files: List[int]) -> bool:
        """Wait for a change; whether the watch is over."""
        poll = select.poll()
        poll.register(self._stopped, select.POLLHUP)
        for fd in files:
            poll.register(fd, select.POLLPRI | select.POLLERR)
        ready = poll.poll(OFTEN * 1000)
        return any(fd == self._stopped for fd, _ in ready)

    def _files(self) -> List[int]:
        """Descriptors of what wakes a poll, each read to its end: only then does the next change wake it
        (Documentation/filesystems/sysfs.rst)."""
        wanted = [os.path.join(self._node, "md", name) for name in WATCHED]
        wanted += [os.path.join(path, "state") for path in members_of(self._node).values()]
        for path in set(self._open) - set(wanted):
            os.close(self._open.pop(path))
        found = []
        for path in wanted:
            fd = self._file(path)
            if fd is not None:
                found.append(fd)
        return found

    def _file(self, path: str) -> Optional[int]:
        with suppress(OSError):
            if path not in self._open:
                self._open[path] = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            os.pread(self._open[path], 4096, 0)
            return self._open[path]
        fd = self._open.pop(path, None)
        if fd is not None:
            os.close(fd)
        return None
