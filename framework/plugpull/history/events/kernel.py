"""What the kernel of the DUT says and does."""

from __future__ import annotations

from typing import Literal

from plugpull.history.events.base import Event

MessageSource = Literal["kmsg", "console", "serial", "netconsole"]
"""The way by which a message of the kernel reached the controller: ``kmsg`` is the agent's."""


class KernelMessage(Event, frozen=True, kw_only=True, tag="kernel"):
    """One record of the kernel log. ``level`` is the syslog level, 0 emergency to 7 debug; ``facility`` the syslog
    facility: 0 for the kernel itself, at least 1 for what a process wrote to /dev/kmsg (devkmsg_write in
    kernel/printk/printk.c)."""

    text: str
    level: int = 6
    seq: int = -1
    source: MessageSource = "kmsg"
    facility: int = 0


class EarlierMessage(Event, frozen=True, kw_only=True, tag="kernel.earlier"):
    """A record of the kernel log from between two scenarios of a DUT that kept running: what it said after the agent of
    the earlier one had gone. Fields as in ``KernelMessage``."""

    text: str
    level: int = 6
    seq: int = -1
    facility: int = 0


class LogLost(Event, frozen=True, kw_only=True, tag="kernel.lost"):
    """``count`` records of the kernel log were overwritten before they could be read."""

    count: int


class Uevent(Event, frozen=True, kw_only=True, tag="uevent"):
    """One kernel uevent, as pyudev sees it. ``disks`` are the rig's disks that hang at or below ``devpath``.

    ``others`` is how many uevents of other subsystems, which are not recorded, came since the one before (``None``: not
    recorded). The kernel numbers all of them in one row (``seqnum``), so that a lost one leaves a gap."""

    action: str
    subsystem: str
    devpath: str
    devtype: str = ""
    seqnum: int = 0
    disks: tuple[str, ...] = ()
    others: int | None = None


class TaskBlocked(Event, frozen=True, kw_only=True, tag="task.blocked"):
    """A task has been in uninterruptible sleep (state D) for ``seconds`` and was not on a CPU in that time.

    ``since`` is when it was first seen so, DUT seconds. ``before``: it already was when the watch began. ``ended``: it
    has run again, or is gone. A task is reported after 3 s and whenever the time has doubled. ``kernel``: it is a
    kernel thread of this ``name``, and not a process, whose ``name`` is its command. ``stack`` is innermost first."""

    pid: int
    name: str
    kernel: bool
    seconds: float
    since: float
    before: bool = False
    ended: bool = False
    wchan: str = ""
    stack: tuple[str, ...] = ()


class GracePeriod(Event, frozen=True, kw_only=True, tag="dut.grace"):
    """At the end of a scenario an RCU grace period was waited for, which ends when every CPU has scheduled or idled.

    ``seconds`` is how long; ``ended`` whether it came to its end in that time."""

    seconds: float
    ended: bool


class Activity(Event, frozen=True, kw_only=True, tag="dut.activity"):
    """What kernel threads and interrupts cost in the ``seconds`` that end at ``at``, each as a share of one CPU.

    ``threads`` are the busiest kernel threads, ``NAME (PID)``; ``hard`` and ``soft`` the interrupts of all CPUs;
    ``interrupts`` their number per second."""

    seconds: float
    threads: dict[str, float] = {}
    hard: float = 0.0
    soft: float = 0.0
    interrupts: int = 0
