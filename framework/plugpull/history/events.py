"""Everything that can be written in a history, one Struct a kind of event.

``at`` is seconds on the DUT's CLOCK_MONOTONIC, the clock the kernel log is stamped with. What the controller
does is mapped onto it (see ``ClockMapped``); ``None`` means that no mapping existed yet. On a virtual bench every
scenario starts from a snapshot, so ``at`` starts anew with each ``ScenarioBegun``.

The JSON field ``type`` names the kind, ``n`` is the number of the line (``seals.py``). Readers skip kinds and fields
they do not know, so both may be added without a new version of the history.
"""

from __future__ import annotations

from typing import Any

import msgspec

from plugpull.history.counters import Counters

HISTORY_VERSION = 1


class Event(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="type"):
    """Base of all events.

    ``report`` is the agent's running number of the report that became this event, from 1 since the agent was started;
    0 for events that are no reports of the agent or have no number."""

    at: float | None = None
    report: int = 0


# --- the run and its scenarios -----------------------------------------------------------------------------


class RunBegun(Event, frozen=True, kw_only=True, tag="run.begin"):
    """First event of every history. ``rig`` is the rig file's content as data, ``wall`` is UTC in ISO 8601.

    ``numbered``: the lines of this history carry numbers and seals; ``False`` in those of earlier versions.
    ``planned``: the ids of the scenarios that are to be run, in this order; ``None`` in those of earlier versions.
    ``turn``: the number of the night, if victims were taken in turn (``draw.py``)."""

    version: int
    plugpull: str
    wall: str
    rig_name: str
    rig: dict[str, Any]
    seed: int
    argv: tuple[str, ...] = ()
    controller: dict[str, str] = {}
    numbered: bool = False
    planned: tuple[str, ...] | None = None
    turn: int | None = None


class RunEnded(Event, frozen=True, kw_only=True, tag="run.end"):
    wall: str
    interrupted: str = ""


class ScenarioBegun(Event, frozen=True, kw_only=True, tag="scenario.begin"):
    """``id`` is pytest's node id, ``story`` the scenario's own words, ``row`` the experiment it stands for."""

    id: str
    wall: str
    seed: int
    story: str = ""
    row: str = ""


class ScenarioEnded(Event, frozen=True, kw_only=True, tag="scenario.end"):
    """``seconds`` is wall time from the first to the last event; ``split`` where it went, in seconds by phase.
    ``asked`` is how many checks the scenario asked for, ``reports`` the number of the agent's last report, ``censuses``
    and ``grace_periods`` how many of them were recorded (``None``: not recorded). ``left_out`` is how many of the
    agent's reports are not for the record: the properties of disks that are not the rig's."""

    id: str
    wall: str
    seconds: float
    split: dict[str, float] = {}
    asked: int | None = None
    reports: int | None = None
    left_out: int = 0
    censuses: int | None = None
    grace_periods: int | None = None


class ScenarioError(Event, frozen=True, kw_only=True, tag="scenario.error"):
    """The scenario itself stopped with an exception.

    ``fault`` is ``rig``, ``framework``, ``assertion`` or ``interrupt``."""

    fault: str
    summary: str
    mend: str = ""
    traceback: str = ""


class RigFault(Event, frozen=True, kw_only=True, tag="rig.fault"):
    """The bench did not do what it was told, or evidence was lost: the verdict cannot be PASS.

    ``subject`` is the disk that the bench failed, if it was only one: nothing is held against that disk."""

    summary: str
    mend: str = ""
    subject: str = ""


class Note(Event, frozen=True, kw_only=True, tag="note"):
    """Something a reader wants to know and no check judges, such as a defect injected on purpose."""

    text: str
    subject: str = ""


class Phase(Event, frozen=True, kw_only=True, tag="phase"):
    """What the scenario does from here on.

    ``plug``, ``load``, ``settle``, ``armed``, ``hold``, ``return`` or ``verify``."""

    name: str
    text: str = ""


# --- the DUT -----------------------------------------------------------------------------------------------


class DutReady(Event, frozen=True, kw_only=True, tag="dut.ready"):
    """The agent answered. ``how`` is ``restored``, ``booted`` or ``found``; ``took`` seconds until it answered."""

    kernel: str
    kind: str
    how: str
    took: float
    fio: str = ""
    python: str = ""
    boot_id: str = ""
    cpus: int = 0
    memory_bytes: int = 0
    accel: str = ""
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


class DiskAttached(Event, frozen=True, kw_only=True, tag="disk.attached"):
    """The kernel announced a disk (block uevent ``add``).

    ``disk`` is its name in the rig file, empty when it is none of the rig's. ``kname`` is today's kernel name and
    ``diskseq`` tells two attachments with one name apart. ``place`` is where it hangs: the controller's PCI address,
    the chain of USB ports and the LUN, such as ``0000:00:05.0/1.2:0``. ``sockets`` say the same with the kind of bus
    (``0000:00:05.0/usb3-1.2:0``), by the port of its own bus and then by that of the controller's other bus which leads
    to the same socket; empty where the kernel does not know, and in older records. ``speed`` is the link's in Mb/s.
    """

    disk: str
    kname: str
    diskseq: int
    devt: str
    serial: str
    place: str
    size: int
    driver: str = ""
    speed: str = ""
    model: str = ""
    sysfs: str = ""
    sockets: tuple[str, ...] = ()


class DiskDetached(Event, frozen=True, kw_only=True, tag="disk.detached"):
    """The kernel took the disk off its list (block uevent ``remove``)."""

    disk: str
    kname: str
    diskseq: int


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


class KernelMessage(Event, frozen=True, kw_only=True, tag="kernel"):
    """One record of the kernel log. ``level`` is the syslog level, 0 emergency to 7 debug; ``facility`` the syslog
    facility: 0 for the kernel itself, at least 1 for what a process wrote to /dev/kmsg (devkmsg_write in
    kernel/printk/printk.c)."""

    text: str
    level: int = 6
    seq: int = -1
    source: str = "kmsg"
    facility: int = 0


class EarlierMessage(Event, frozen=True, kw_only=True, tag="kernel.earlier"):
    """A record of the kernel log from between two scenarios of a DUT that kept running: what it said after the agent of
    the earlier one had gone. Fields as in ``KernelMessage``."""

    text: str
    level: int = 6
    seq: int = -1
    facility: int = 0


class TimersSet(Event, frozen=True, kw_only=True, tag="dut.timers"):
    """Timeouts of the DUT's kernel were changed. ``moment`` is ``begin`` (shortened for the scenario), ``attached``
    (those of a disk that was plugged in) or ``restored``. ``changed`` holds (file, value before, value after);
    ``failed`` the reason per file that could not be written."""

    moment: str
    changed: tuple[tuple[str, str, str], ...] = ()
    failed: dict[str, str] = {}


class TaskBlocked(Event, frozen=True, kw_only=True, tag="task.blocked"):
    """A task has been in uninterruptible sleep (state D) for ``seconds`` and was not on a CPU in that time.

    ``since`` is when it was first seen so, DUT seconds. ``before``: it already was when the watch began. ``ended``: it
    has run again, or is gone. A task is reported after 3 s and whenever the time has doubled. ``kernel`` tells kernel
    threads, which go by ``name``, from processes, whose ``name`` is their command. ``stack`` is innermost first."""

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


class DutState(Event, frozen=True, kw_only=True, tag="dut.state"):
    """The kernel as a whole, at the ``begin`` or ``end`` of a scenario (``moment``).

    ``taint`` as in Documentation/admin-guide/tainted-kernels.rst; ``modules`` are the reference counts of those that
    drive storage and USB; ``memory`` bytes by line of /proc/meminfo; ``interrupts`` counts per line since the boot;
    ``pressure`` microseconds of stall since the boot (Documentation/accounting/psi.rst)."""

    moment: str
    boot_id: str = ""
    kernel: str = ""
    taint: int = 0
    modules: dict[str, int] = {}
    memory: dict[str, int] = {}
    interrupts: dict[str, int] = {}
    pressure: dict[str, int] = {}


class DiskProperties(Event, frozen=True, kw_only=True, tag="disk.properties"):
    """How the kernel drives a disk of the rig: ``moment`` is ``attached`` or ``end`` (of the scenario).

    ``values`` are sysfs attributes as the kernel writes them (``dut/agent/properties.py`` says which): ``driver``,
    ``queue_depth``, ``write_cache``, ``ro``, ``size`` in sectors of 512 bytes, and others. They were read one after
    another from ``at`` to ``until`` (DUT seconds; absent in older histories)."""

    disk: str
    kname: str
    diskseq: int
    moment: str
    values: dict[str, str]
    until: float | None = None


class LogLost(Event, frozen=True, kw_only=True, tag="kernel.lost"):
    """``count`` records of the kernel log were overwritten before they could be read."""

    count: int


class ConsoleLine(Event, frozen=True, kw_only=True, tag="console"):
    """A line of the DUT's console that the agent did not deliver, kept when the DUT died."""

    text: str


class Sampled(Event, frozen=True, kw_only=True, tag="sample"):
    """All disks' counters at one instant, straight from ``/sys/block/*/stat`` and ``inflight``.

    ``disks`` has them by kernel name, cumulative since the disk was attached. ``cpu`` is the DUT's (busy, total)
    jiffies since boot from ``/proc/stat``, (0, 0) in the samples for which it was not asked.
    """

    disks: dict[str, Counters]
    cpu: tuple[int, int] = (0, 0)


# --- cuts --------------------------------------------------------------------------------------------------


class FaultInjected(Event, frozen=True, kw_only=True, tag="fault"):
    """A fault begins, as data (``faults/codec.py``), so that it can be made again. ``number`` counts the faults of the
    scenario from 1. The cuts that it is made of follow."""

    number: int
    fault: dict[str, Any]


class CutArmed(Event, frozen=True, kw_only=True, tag="cut.armed"):
    """A cut is planned. ``cut`` numbers it within the scenario; ``victims`` is its blast radius; ``permanent`` cuts
    are not restored before the scenario ends. ``group`` is the number of the first of the cuts that are made at once
    with it, or in one burst (0: none are). ``fault`` is the number of the ``FaultInjected`` it belongs to (0: not
    recorded)."""

    cut: int
    point: str
    mechanism: str
    trigger: str
    victims: tuple[str, ...]
    permanent: bool = False
    group: int = 0
    fault: int = 0


class Edge(Event, frozen=True, kw_only=True, tag="edge"):
    """One step of switching one port. ``state`` is ``off`` or ``on``; ``phase`` is ``commanded`` (about to tell the
    switch), ``acknowledged`` (the switch answered) or ``read-back`` (it was asked again; ``agrees`` says whether it
    confirmed). ``error`` bounds ``at``, in seconds: the mapping of the controller's clock onto the DUT's. ``sent``, in
    the acknowledged step, is when the driver had the command on its way, DUT seconds (``None``: not recorded)."""

    cut: int
    point: str
    switch: str
    port: str
    state: str
    phase: str
    agrees: bool = True
    error: float = 0.0
    sent: float | None = None


class CutSwitched(Event, frozen=True, kw_only=True, tag="cut.switched"):
    """Several ports were switched at once, for these ``cuts``, and all have acknowledged.

    ``skew`` is from the first acknowledged edge to the last, in seconds of the controller's own clock: the mapping of
    clocks has no part in it. Ports that a device switches in one command acknowledge as one."""

    cuts: tuple[int, ...]
    state: str
    switches: tuple[str, ...]
    ports: int
    skew: float


class Healed(Event, frozen=True, kw_only=True, tag="heal"):
    """Power came back on the way out: every port that was off."""

    ports: tuple[str, ...]
    ok: bool = True
    detail: str = ""


# --- load and data -----------------------------------------------------------------------------------------


class LoadBegun(Event, frozen=True, kw_only=True, tag="load.begin"):
    """fio was started on a disk. ``mode`` is ``read`` or ``write``; ``block`` bytes per I/O; ``span`` bytes covered."""

    disk: str
    job: str
    mode: str
    block: int
    depth: int
    span: int
    kname: str = ""
    argv: tuple[str, ...] = ()


class LoadSettled(Event, frozen=True, kw_only=True, tag="load.settled"):
    """From here on the load counts as running steadily on ``disks``."""

    disks: tuple[str, ...]


class LoadEnded(Event, frozen=True, kw_only=True, tag="load.end"):
    """fio ended. ``asked`` says whether we told it to, ``asked_at`` when (DUT seconds; ``None``: not recorded).

    ``errno`` is the first I/O error it met (0: none). ``stuck`` means that it could not be ended: its process was
    still there at the deadline. ``longest`` is the time that its slowest request took to complete, seconds (``None``:
    not recorded)."""

    disk: str
    job: str
    asked: bool
    asked_at: float | None = None
    exit_status: int | None = None
    errno: int = 0
    message: str = ""
    read_bytes: int = 0
    written_bytes: int = 0
    stuck: bool = False
    usr_cpu: float = 0.0
    sys_cpu: float = 0.0
    longest: float | None = None


class Verified(Event, frozen=True, kw_only=True, tag="verify"):
    """What was written was read back. ``checked`` bytes were compared; ``bad`` are (offset, length, what was wrong)
    in bytes. ``error`` says why nothing could be compared, empty when it could."""

    disk: str
    checked: int
    bad: tuple[tuple[int, int, str], ...] = ()
    error: str = ""
    method: str = ""


class StampingPlanned(Event, frozen=True, kw_only=True, tag="stamp.round"):
    """A round of stamped writing is about to begin: session ``session`` of ``run``, on these disks."""

    run: int
    session: int
    disks: tuple[str, ...]


class StampingOver(Event, frozen=True, kw_only=True, tag="stamp.over"):
    """Stamped writing is over and was read back. ``sessions`` is the last session of each disk."""

    run: int
    disks: tuple[str, ...]
    sessions: dict[str, int]


class LedgerBegun(Event, frozen=True, kw_only=True, tag="ledger.begin"):
    """Stamped writing began on a disk (``integrity/``). ``run``, ``device`` and ``session`` are what its stamps say;
    ``extents`` the (first sector, sectors) that it covers; ``block`` sectors of a write, ``depth`` writes in flight;
    ``fua`` per cent of the writes with FUA; ``fill``: everything was written once before. ``bound`` is what can be
    missing of the ledger at most when it ends early, bytes."""

    disk: str
    job: str
    run: int
    device: int
    session: int
    extents: tuple[tuple[int, int], ...]
    block: int
    depth: int
    order: str
    flush_writes: int = 0
    flush_ms: int = 0
    fua: int = 0
    fill: bool = False
    kname: str = ""
    bound: int = 0


class LedgerPart(Event, frozen=True, kw_only=True, tag="ledger.part"):
    """A piece of a session's ledger as it arrived: base64 of the bytes from ``offset`` on; see
    ``integrity/oracle/ledger.py``."""

    disk: str
    job: str
    offset: int
    data: str


class LedgerEnded(Event, frozen=True, kw_only=True, tag="ledger.end"):
    """The writer ended. ``received`` bytes of its ledger arrived; ``why`` is what it said on standard error."""

    disk: str
    job: str
    asked: bool
    received: int
    status: int | None = None
    stuck: bool = False
    why: str = ""


class ReadBackBegun(Event, frozen=True, kw_only=True, tag="readback.begin"):
    """A disk is read back after session ``session``. ``job`` names the pieces; ``error`` says why it could not be.
    ``logical`` is the bytes of a logical block. ``again``: only what was found wrong is read, a second time."""

    disk: str
    job: str
    session: int
    extents: tuple[tuple[int, int], ...]
    logical: int = 512
    error: str = ""
    again: bool = False


class ReadBackPart(Event, frozen=True, kw_only=True, tag="readback.part"):
    """A piece of what was found, like ``LedgerPart`` (``integrity/oracle/readback.py``)."""

    disk: str
    job: str
    offset: int
    data: str


class ReadBackEnded(Event, frozen=True, kw_only=True, tag="readback.end"):
    disk: str
    job: str
    received: int
    status: int | None = None
    stuck: bool = False
    why: str = ""


class SeenFromOutside(Event, frozen=True, kw_only=True, tag="outside"):
    """The bench looked at a disk's medium behind the DUT's back, by ``method``. ``ok``: it is as it was made;
    ``detail`` says what is different."""

    disk: str
    ok: bool
    method: str
    detail: str = ""


class ProcessStuck(Event, frozen=True, kw_only=True, tag="process.stuck"):
    """A process of ours could not be ended.

    ``state`` is the letter of ``/proc/PID/stat``; ``stack`` its kernel stack."""

    pid: int
    command: str
    state: str
    disk: str = ""
    stack: tuple[str, ...] = ()


class Acted(Event, frozen=True, kw_only=True, tag="action"):
    """A step done on the DUT for the scenario: ``mkfs``, ``mount``, ``umount``, ... ``seconds`` it took."""

    action: str
    disk: str
    ok: bool
    seconds: float
    detail: str = ""


class Residue(Event, frozen=True, kw_only=True, tag="residue"):
    """What is on the DUT after the scenario ended its loads: processes of ours still there, by name and state."""

    processes: tuple[str, ...] = ()


class Census(Event, frozen=True, kw_only=True, tag="census"):
    """What the DUT holds. ``moment`` is ``begin`` and ``end`` of a scenario, ``settling`` while something is left over
    before its end, or ``cycle``, taken as the scenario asks for it. ``things`` are names by kind (``scsi host``,
    ``block device``, ``usb device``, ``mount``, ``open file``, ``kernel thread``, ``xhci slot``, ``trace of a disk``),
    each as often as it is there; ``slab`` bytes in use per cache of the kernel, empty where it does not tell;
    ``memory`` bytes by line of /proc/meminfo. ``exact``: the caches held nothing in reserve, so that ``slab`` is exact.
    """

    moment: str
    things: dict[str, tuple[str, ...]]
    slab: dict[str, int] = {}
    memory: dict[str, int] = {}
    exact: bool = False


class Judged(Event, frozen=True, kw_only=True, tag="judge"):
    """The checks the scenario asked for, as data, so that they can be judged again."""

    checks: tuple[dict[str, Any], ...]


class ScenarioSkipped(Event, frozen=True, kw_only=True, tag="scenario.skipped"):
    """A scenario was not run because this rig cannot serve it, or because its author said so. It stands within the
    scenario, or in none if the scenario was not even begun."""

    id: str
    reason: str


class Seal(Event, frozen=True, kw_only=True, tag="seal"):
    """The SHA-256 of all lines since the seal before, chained with that one's. Written by the recorder (``seals.py``);
    part of the file, and of no scenario."""

    digest: str


AnyEvent = (
    RunBegun
    | RunEnded
    | ScenarioBegun
    | ScenarioEnded
    | ScenarioError
    | RigFault
    | Note
    | Phase
    | DutReady
    | ClockMapped
    | AgentLost
    | DutDied
    | DiskAttached
    | DiskDetached
    | Uevent
    | KernelMessage
    | EarlierMessage
    | TimersSet
    | TaskBlocked
    | GracePeriod
    | Activity
    | DutState
    | DiskProperties
    | LogLost
    | ConsoleLine
    | Sampled
    | FaultInjected
    | CutArmed
    | Edge
    | CutSwitched
    | Healed
    | LoadBegun
    | LoadSettled
    | LoadEnded
    | Verified
    | StampingPlanned
    | StampingOver
    | LedgerBegun
    | LedgerPart
    | LedgerEnded
    | ReadBackBegun
    | ReadBackPart
    | ReadBackEnded
    | SeenFromOutside
    | ProcessStuck
    | Acted
    | Residue
    | Census
    | Judged
    | ScenarioSkipped
    | Seal
)
