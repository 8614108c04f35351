"""The DUT: how it was reached, what it holds, and how it died."""

from __future__ import annotations

from typing import Literal

from plugpull.history.events.base import Event

DutKind = Literal["virtual", "local", "ssh"]
"""What the DUT is: a guest, the controller itself, or a machine behind ssh."""

DutReached = Literal[
    "restored",  # a guest was restored from its snapshot
    "booted",  # a guest was booted
    "connected",  # an agent was connected on a real DUT, which kept running
    "found",  # the same, in histories of earlier versions
]
"""How the DUT was reached."""

TimersMoment = Literal["begin", "plugging", "attached", "stalled", "restored"]
"""When timeouts of the kernel were changed: shortened for the scenario, the one for new devices while an emulated bench
is plugged in, those of a disk that was plugged in, that of a disk that stands still on request, or given back their
values."""

StateMoment = Literal["begin", "end"]
"""Which end of the scenario."""

CensusMoment = Literal[
    "begin",  # of the scenario
    "cycle",  # the scenario asked for it, after each cut
    "settling",  # before the end, while something is left over
    "end",  # of the scenario
]
"""When a census was taken."""

ActionName = Literal["mkfs", "mount", "umount", "overlay", "overlay.drop"]
"""A step that the agent does for the scenario."""


class DutReady(Event, frozen=True, kw_only=True, tag="dut.ready"):
    """The agent answered, ``took`` seconds after it was started. ``kind`` and ``how``: see ``DutKind`` and
    ``DutReached``."""

    kernel: str
    kind: DutKind
    how: DutReached
    took: float
    fio: str = ""
    python: str = ""
    boot_id: str = ""
    cpus: int = 0
    memory_bytes: int = 0
    accel: str = ""
    threads: int = 0
    """How many threads emulate its CPUs, and so how many CPU seconds per second its host can give it. 0: not emulated,
    or not recorded, which means one for each CPU."""
    modules: tuple[str, ...] = ()
    records: tuple[str, ...] = ()
    """What this agent records beyond what the first agents did (``RECORDS`` in ``dut/agent/service.py``): a history
    that names it has to have it."""
    log_clock_offset: float = 0.0
    """Seconds to add to a kernel log stamp to get CLOCK_MONOTONIC; already applied to ``KernelMessage.at``."""
    log_clock_error: float | None = None
    """Bound on the error of that, seconds; ``None``: not recorded."""
    reports: int | None = None
    """How many numbered reports the agent had made by then; ``None``: not recorded."""


CLOCK_DRIFT = 200e-6
"""Seconds per second that the controller's and the DUT's clock may drift apart between two exchanges: twice what a
cheap crystal does. The mapping and its judgement both allow for it."""


class ClockMapped(Event, frozen=True, kw_only=True, tag="clock"):
    """One exchange with the agent.

    Controller time ``controller`` was DUT time ``at``, give or take ``error`` seconds. ``ran`` is the CPU time, in
    seconds, that an emulated DUT had had from its host by then (``None``: not emulated, or not recorded)."""

    controller: float
    error: float
    ran: float | None = None


class AgentLost(Event, frozen=True, kw_only=True, tag="agent.lost"):
    """The agent fell silent; ``last_heard`` is the DUT time of the last thing it said."""

    why: str
    last_heard: float | None = None


class DutDied(Event, frozen=True, kw_only=True, tag="dut.died"):
    """The DUT's kernel died. ``headline`` is the line a kernel developer would quote."""

    headline: str
    evidence: tuple[str, ...] = ()


class ConsoleLine(Event, frozen=True, kw_only=True, tag="console"):
    """A line of the DUT's console that the agent did not deliver, kept when the DUT died."""

    text: str


class TimersSet(Event, frozen=True, kw_only=True, tag="dut.timers"):
    """Timeouts of the DUT's kernel were changed. ``moment``: see ``TimersMoment``. ``changed`` holds (file, value
    before, value after); ``failed`` the reason per file that could not be written."""

    moment: TimersMoment
    changed: tuple[tuple[str, str, str], ...] = ()
    failed: dict[str, str] = {}


class DutState(Event, frozen=True, kw_only=True, tag="dut.state"):
    """The kernel as a whole, at one end of a scenario (``moment``).

    ``taint`` as in Documentation/admin-guide/tainted-kernels.rst; ``modules`` are the reference counts of those that
    drive storage and USB; ``memory`` bytes by line of /proc/meminfo; ``interrupts`` counts per line since the boot;
    ``pressure`` microseconds of stall since the boot (Documentation/accounting/psi.rst)."""

    moment: StateMoment
    boot_id: str = ""
    kernel: str = ""
    taint: int = 0
    modules: dict[str, int] = {}
    memory: dict[str, int] = {}
    interrupts: dict[str, int] = {}
    pressure: dict[str, int] = {}


class Census(Event, frozen=True, kw_only=True, tag="census"):
    """What the DUT holds. ``moment``: see ``CensusMoment``. ``things`` are names by kind (``scsi host``,
    ``block device``, ``usb device``, ``mount``, ``open file``, ``kernel thread``, ``xhci slot``,
    ``reference to a hub``, ``trace of a disk``), each as often as it is there; ``slab`` bytes in use per cache of the
    kernel, empty where it does not say; ``memory`` bytes by line of /proc/meminfo. ``exact``: the caches held nothing
    in reserve, so that ``slab`` is exact.
    """

    moment: CensusMoment
    things: dict[str, tuple[str, ...]]
    slab: dict[str, int] = {}
    memory: dict[str, int] = {}
    exact: bool = False


class Residue(Event, frozen=True, kw_only=True, tag="residue"):
    """What is on the DUT after the scenario ended its loads: processes of ours still there, by name and state."""

    processes: tuple[str, ...] = ()


class ProcessStuck(Event, frozen=True, kw_only=True, tag="process.stuck"):
    """A process of ours could not be ended.

    ``state`` is the letter of ``/proc/PID/stat``; ``stack`` its kernel stack."""

    pid: int
    command: str
    state: str
    disk: str = ""
    stack: tuple[str, ...] = ()


class DutSuspended(Event, frozen=True, kw_only=True, tag="dut.suspended"):
    """The DUT's devices were suspended on request, from ``at`` to ``until`` (DUT seconds), and resumed. Otherwise
    ``detail`` says why they were not.

    ``flushes``: how often each emulated disk with a cache was flushed meanwhile, by its own count."""

    until: float
    ok: bool
    detail: str = ""
    flushes: dict[str, int] = {}


class Acted(Event, frozen=True, kw_only=True, tag="action"):
    """A step that was done on the DUT for the scenario (see ``ActionName``), and took ``seconds``."""

    action: ActionName
    disk: str
    ok: bool
    seconds: float
    detail: str = ""


class StepBegun(Event, frozen=True, kw_only=True, tag="action.begin"):
    """The system call of a step begins (see ``Acted``, which comes at its end): of a mount or an umount."""

    action: ActionName
    disk: str
