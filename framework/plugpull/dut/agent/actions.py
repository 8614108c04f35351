"""Requests that change how the DUT works while a scenario watches: copies, processors that rest, resets of a disk."""

from __future__ import annotations

import os
import pkgutil
import sys
from typing import Any, Dict, List, Optional

from .array_guard import open_target
from .disks import Disk, Refused
from .drive_cache import DriveCaches
from .jobs import Jobs
from .ports import set_quirks
from .processors import CpuHotplug
from .recovery import Recovery
from .sleep import Sleep
from .stalls import Stalls
from .timers import Timers
from .wire import now

ISOLATED = "-I"
"""Without it, Python imports from the directory that it is started in."""


class Actions:
    """The part of the agent's service that answers these requests. All of it is undone by ``end_actions``."""

    def __init__(self, jobs: Jobs) -> None:
        self.jobs = jobs
        self.caches = DriveCaches()
        self.processors = CpuHotplug()
        self.recovery = Recovery()
        self.sleep = Sleep()
        self.timers = Timers()
        self.stalls = Stalls(self.timers)

    def end_actions(self) -> None:
        """Give back the caches and the processors, and end the resets: the controller is gone."""
        self.caches.restore()
        self.processors.restore()
        self.recovery.end(0.0)
        self.stalls.restore()

    def op_copy(self, job: str, source: Disk, target: Disk, length: int, block: int) -> Dict[str, Any]:
        """Copy the first bytes of one disk onto another, both proved to be the wanted ones, until asked to end."""
        program = pkgutil.get_data(__package__, "copy_program.py")
        if program is None:
            raise Refused("this agent came without the program that copies")
        fds: List[int] = []
        try:
            fds.extend(open_target(disk) for disk in (source, target))
        except BaseException:
            for fd in fds:
                os.close(fd)
            raise
        words = [sys.executable, ISOLATED, "-c", program.decode()]
        words += [str(number) for number in (*fds, length, block)]
        return {"pid": self.jobs.start(job, words, tuple(fds)), "at": now()}

    def op_ports(self, quirks: str) -> Dict[str, Any]:
        """Give every USB port these quirks."""
        return {"at": now(), **set_quirks(quirks)}

    def op_drive_cache(self, disk: Disk) -> str:
        """What the kernel knows of this disk's write cache; empty if it cannot be switched."""
        return self.caches.read(disk)

    def op_drive_cache_set(self, disk: Disk, on: bool) -> Dict[str, Any]:
        """Switch the write cache of a scratch disk by MODE SELECT."""
        return self.caches.set(disk, on)

    def op_drive_cache_restore(self) -> None:
        """Give every drive's cache its first state back."""
        self.caches.restore()

    def op_processors(self, count: int) -> Dict[str, Any]:
        """Let only so many processors run; 0 gives all of them back."""
        if count:
            return self.processors.keep(count)
        self.processors.restore()
        return {}

    def op_recover(self, disk: Disk) -> str:
        """Reset this disk again and again, as the kernel's error handler does. Returns why its driver cannot."""
        return self.recovery.begin(disk)

    def op_recover_end(self) -> Dict[str, Any]:
        return self.recovery.end()

    def op_suspend(self, seconds: int) -> bool:
        """Begin to suspend the devices for so many seconds. False if this kernel cannot."""
        return self.sleep.begin(seconds)

    def op_suspend_end(self) -> Dict[str, Any]:
        return self.sleep.end()

    def op_stall(self, disk: Disk, seconds: int) -> Dict[str, Any]:
        """Have this disk's commands given up after so many seconds: its firmware will stand still."""
        return self.stalls.begin(disk, seconds)

    def op_stall_given_up(self) -> Optional[int]:
        return self.stalls.given_up()

    def op_stall_over(self, within: float) -> None:
        """It answers again: watch it being recovered."""
        self.stalls.over(within)

    def op_stall_end(self) -> Dict[str, Any]:
        return self.stalls.end()
