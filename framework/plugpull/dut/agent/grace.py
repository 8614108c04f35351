"""Checks that every CPU still schedules: an RCU grace period ends when each of them has scheduled or idled."""

from __future__ import annotations

import ctypes
import os
import threading
from typing import Any, Callable, Dict, Optional

from .wire import now

_MEMBARRIER = {"x86_64": 324, "aarch64": 283, "riscv64": 283, "ppc64le": 365, "s390x": 356}
"""Number of the system call, by machine (syscall.tbl of each architecture)."""
_GLOBAL = 1
"""MEMBARRIER_CMD_GLOBAL, which is synchronize_rcu() (membarrier(2), kernel/sched/membarrier.c)."""


def synchronize() -> bool:
    """Wait for a grace period. False if this kernel has no call for it."""
    number = _MEMBARRIER.get(os.uname().machine)
    # CDLL lets go of the interpreter: a CPU that never answers must not stop the whole agent.
    return number is not None and ctypes.CDLL(None).syscall(number, _GLOBAL, 0, 0) == 0


def grace_period(limit: float, wait: Callable[[], bool] = synchronize) -> Dict[str, Any]:
    """Wait for a grace period. ``asked``: whether the kernel has a call for it. ``ended``: whether the grace period
    ended. ``seconds`` is how long it was waited for, at most ``limit``."""
    begun = now()
    asked: Optional[bool] = None

    def ask() -> None:
        nonlocal asked
        asked = wait()

    asking = threading.Thread(target=ask, name="grace", daemon=True)
    asking.start()
    asking.join(limit)
    return {"asked": asked is not False, "ended": asked is not None, "seconds": round(now() - begun, 3)}
