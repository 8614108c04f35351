"""The tables of a rig file.

These models are both the schema of the rig file (TOML) and the data that all other rooms work with. They check each
table by itself; checks across tables (a dangling reference, a loop of hubs) are in ``lint.py``.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints

from plugpull.rig.quantities import parse_duration, parse_rate, parse_size

Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z][A-Za-z0-9_-]*$", max_length=40)]
Size = Annotated[int, BeforeValidator(parse_size), Field(gt=0)]
"""Bytes; written as an integer or as "64 MiB"."""
Rate = Annotated[int, BeforeValidator(parse_rate), Field(gt=0)]
"""Bytes per second; written as an integer or as "2 MiB/s"."""
Duration = Annotated[float, BeforeValidator(parse_duration)]
"""Seconds; written as a number or as "30 s"."""
Socket = Annotated[str, StringConstraints(pattern=r"^[A-Za-z][A-Za-z0-9_-]*\.[0-9]+$", max_length=60)]
"""A place to plug into: "hub1.2" is port 2 of hub1."""
Outlet = Annotated[str, StringConstraints(pattern=r"^[A-Za-z][A-Za-z0-9_-]*\.[A-Za-z0-9_-]+$", max_length=60)]
"""A port of a switch: "cables.3"."""


class Mechanism(StrEnum):
    """What a switch port really interrupts. Different mechanisms are different faults."""

    DATA = "data"
    VBUS = "vbus"
    DATA_VBUS = "data+vbus"
    MAINS = "mains"
    LOGICAL = "logical"


class Table(BaseModel):
    """One table of a rig file.

    Strict, because ``ports = "4"`` in a rig file is usually a slip. Fields whose type TOML does not have (tuples,
    enumerations) set ``strict=False`` themselves.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class RigTable(Table):
    name: Name
    description: str = ""
    rows: tuple[str, ...] = Field(default=(), strict=False)
    """The rows of scenarios that ``plugpull run`` runs on this rig when none are asked for; all, if empty."""


class Dut(Table):
    """The device under test: the machine whose kernel is being judged."""

    kind: Literal["virtual", "local", "ssh"]
    memory: Size = 512 << 20
    """virtual: bytes of RAM."""
    cpus: int = Field(default=2, ge=1, le=8)
    """virtual: number of vCPUs."""
    memory_debugging: bool = False
    """virtual: boot with the kernel's own checks of its memory (SLUB poisoning, KFENCE), which make it slower."""
    power: Outlet | None = None
    host: str | None = None
    """ssh: the machine to connect to, a name as in the user's ssh configuration."""
    ssh_options: Annotated[tuple[str, ...], Field(strict=False)] = ()
    """ssh: more arguments for ``ssh``, such as "-p", "2222"."""
    sudo: bool = False
    """ssh, local: run the agent with ``sudo -n``, for a machine without root logins."""
    python: str = "python3"
    """ssh, local: the Python the agent runs on."""
    console: str | None = None
    """ssh: the controller's serial port that the DUT's console is connected to, or a named pipe with the output of
    netconsole."""
    console_speed: int = Field(default=115200, ge=300, le=4_000_000)
    """ssh: bits per second of that serial port."""


class LabgridPlace(Table):
    """The place of labgrid that stands for this rig. A run reserves it before it touches the rig."""

    place: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.-]+$", max_length=80)]
    """The place's name."""
    coordinator: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.:\[\]-]+$", max_length=200)] | None = None
    """HOST or HOST:PORT. None: as for labgrid's own programs, LG_COORDINATOR or this machine."""
    python: str | None = None
    """The interpreter that has labgrid. None: the one that runs plugpull."""
    wait: Duration | None = None
    """How long a run waits for the place. None: until it is free."""


class DeclaredSwitch(Table):
    """A device with ports that can be turned off and on. All further keys belong to its driver (``options``)."""

    model_config = ConfigDict(frozen=True, extra="allow", strict=True)

    name: Name
    driver: str
    ports: int = Field(ge=1, le=64)
    mechanism: Annotated[Mechanism, Field(strict=False)]
    via: Literal["controller", "dut"] = "controller"
    """The machine it is plugged into."""
    control: Socket | Literal["dut"] | None = None
    """Where its own control cable is plugged in, if that is on this rig: "hub1.3", or the DUT itself."""
    timeout: float = Field(default=5.0, gt=0, le=600)
    """Seconds it gets to answer one command."""
    shared: Annotated[tuple[str, ...], Field(strict=False)] = ()
    """Ports that feed more than one device on purpose: a cut takes all of them."""
    qualification: str | None = None
    """The file that ``plugpull switch qualify`` wrote about it, relative to the rig file."""

    @property
    def options(self) -> dict[str, Any]:
        return dict(self.__pydantic_extra__ or {})


MeterSide = Literal["mains", "usb"]
"""Where a meter measures: before the power supply, whose losses it includes, or on the USB side."""


class DeclaredMeter(Table):
    """A device that measures the power which disks draw. All further keys belong to its driver (``options``)."""

    model_config = ConfigDict(frozen=True, extra="allow", strict=True)

    name: Name
    driver: str
    side: MeterSide
    disks: Annotated[tuple[Name, ...], Field(strict=False)]
    """The disks behind it. What else it feeds, such as a hub or a fan, is in its readings too."""
    via: Literal["controller", "dut"] = "controller"
    """The machine it is plugged into."""
    timeout: float = Field(default=2.0, gt=0, le=60)
    """Seconds it gets for one reading."""
    rate: float | None = Field(default=None, gt=0, le=20)
    """Readings per second. None: what its kind can do."""

    @property
    def options(self) -> dict[str, Any]:
        return dict(self.__pydantic_extra__ or {})


class ExpectedRates(Table):
    """Limits of measured rates, in bytes per second: outside them, a study finds a fault (``plugpull measure``)."""

    write_at_least: Rate | None = None
    write_at_most: Rate | None = None
    read_at_least: Rate | None = None
    read_at_most: Rate | None = None


class Controller(Table):
    """A host controller of the DUT. On a bus other than USB, its ports are targets."""

    name: Name
    model: Literal["qemu-xhci", "nec-usb-xhci", "ich9-usb-ehci1", "virtio-scsi-pci"] | None = None
    """virtual: which controller QEMU emulates."""
    path: str | None = None
    """real: its PCI address, such as "0000:00:14.0"."""
    ports: int = Field(default=8, ge=1, le=255)
    """A real xHCI can have this many (xHCI 1.2, 5.3.3); QEMU's have 15."""
    rate: Rate | None = None
    """virtual: the most that all disks below it transfer together, bytes per second."""
    expect: ExpectedRates | None = None
    """What all scratch disks below it together are expected to transfer."""


class Hub(Table):
    name: Name
    at: Socket
    ports: int = Field(default=4, ge=1, le=15)
    cable: Outlet | None = None
    power: Outlet | None = None
    rate: Rate | None = None
    """virtual: the most that all disks below it transfer together, bytes per second."""
    expect: ExpectedRates | None = None
    """What all scratch disks below it together are expected to transfer."""


class DiskLimits(Table):
    """A disk's limits where a scenario sets none (``checks/limits.py``). None: the limit of the kind of bench."""

    removed: Duration | None = None
    """From the cut until it must be off the kernel's list."""
    returned: Duration | None = None
    """From the restoring edge until it must be announced again."""
    max_stall: Duration | None = None
    """How long a single stall may last while another disk is cut."""
    all_stalls: Duration | None = None
    """How long all stalls together may last."""
    min_ratio: float | None = Field(default=None, gt=0, le=1)
    """The share of its baseline rate that it must keep while another disk is cut."""
    recover_within: Duration | None = None
    """How soon after an edge it must have recovered its rate."""
    ended_with_error: Duration | None = None
    """From the cut until its users must have their error."""
    unmountable: Duration | None = None
    """How long unmounting its filesystem may take."""
    discovered: Duration | None = None
    """From plugging it in until it must be announced."""
    ready_under_load: float | None = Field(default=None, ge=1, le=100)
    """How many times longer than when idle it may take to return while the others are busy."""


class Disk(Table):
    name: Name
    at: Socket
    serial: Annotated[str, StringConstraints(min_length=1, max_length=64)]
    size: Size
    lun: int = Field(default=0, ge=0, le=15)
    """Its logical unit number. Disks of one device have the same socket and serial number, and different numbers."""
    protocol: Literal["usb-storage", "uas", "scsi"] = "usb-storage"
    """scsi: a disk on a SCSI or SATA controller whose bus is hot-pluggable."""
    scratch: bool = False
    """May be erased. Nothing is ever written to a disk without it."""
    erase_members: bool = False
    """May be erased even if it is a part of an array, a volume group or a pool, an encrypted volume, or swap space, as
    long as it is not in use."""
    cable: Outlet | None = None
    power: Outlet | None = None
    self_powered: bool = True
    """False: powered by VBUS, so that cutting VBUS also takes its power (and its volatile cache)."""
    limits: DiskLimits | None = None
    expect: ExpectedRates | None = None
    """What it is expected to transfer alone."""
    rate: Rate | None = None
    """virtual: the most it can transfer, bytes per second."""
    cache: Size | None = None
    """virtual: its volatile write cache, bytes. None: writes go to the medium at once."""
    eviction: Literal["oldest", "random", "newest"] = "oldest"
    """virtual: which data leaves a full cache first."""
    write_back: float | None = Field(default=None, gt=0, le=3600)
    """virtual: seconds that data stays in the cache at most. None: until a flush, or until the cache is full."""
    latency: float = Field(default=0.0, ge=0, le=60)
    """virtual: seconds that each request takes at least; requests do not wait for each other."""
    fua: bool = False
    """virtual: it supports single writes past its cache (FUA), and reports that."""
    write_through: bool = False
    """virtual: it has no volatile cache and reports that, so that the kernel does not send flushes."""
    logical_block: Literal[512, 4096] = 512
    """virtual: bytes of its logical block, the smallest unit it can read or write."""
    cdrom: bool = False
    """virtual: its device also shows a CD-ROM without a disc, as the logical unit after the last one."""


class Defect(Table):
    """virtual: a deliberate defect of the bench, to show that a check finds it."""

    kind: Literal[
        "switch-lies",
        "never-returns",
        "needs-power-cycle",
        "unit-changes",
        "serial-changes",
        "slows",
        "stalls",
        "bit-flip",
        "kernel-panic",
        "agent-silent",
        "fio-missing",
        "flush-lost",
        "cache-lied",
        "reordered",
        "torn-sector",
        "misdirected",
        "lost-write",
        "lost-pass",
        "torn-write",
        "crossed",
        "wraps",
        "capacity-off-by-one",
        "stale",
        "bit-flips",
        "long-transfer-stall",
        "garbage-collection",
        "command-timeout",
        "cache-collapse",
        "slow-through",
        "crowded",
        "errors-at",
        "errors-scattered",
    ]
    disk: Name | None = None
    factor: float = Field(default=0.5, gt=0, lt=1)
    """slows: the fraction of the disk's rate that remains."""
    seconds: float = Field(default=3.0, gt=0, le=600)
    """stalls, long-transfer-stall, garbage-collection (1), command-timeout (31): how long."""
    every: int | None = Field(default=None, ge=1, le=1_000_000_000)
    """reordered, misdirected, lost-write, torn-write, bit-flips, long-transfer-stall, command-timeout: one in this
    many; lost-pass: after this many."""
    sector: int | None = Field(default=None, ge=0, le=1 << 54)
    """wraps: the first missing sector; errors-at: the first bad one. Sectors of 512 bytes, on every disk."""
    sectors: int | None = Field(default=None, ge=1, le=1 << 32)
    """torn-sector, stale: how many at most; misdirected: how far; errors-at: how many; long-transfer-stall: of the
    largest request that does not stall; garbage-collection: written between two."""
    rate: Rate | None = None
    """Bytes per second. cache-collapse: with a full cache; slow-through: of writes past the cache; crowded: of each
    disk in a crowd; garbage-collection: meanwhile."""
    disks: int | None = Field(default=None, ge=1, le=64)
    """crowded: the most that may be busy at once."""
    scenario: str = ""
    """Only in scenarios whose id contains this."""


class ArrayExpectation(Table):
    """What arrays of the scratch disks, which a study makes, are expected to transfer."""

    level: Literal["raid0", "raid1", "raid10", "raid5", "raid6"]
    members: int | None = Field(default=None, ge=2, le=64)
    """Of arrays of so many disks. None: of any number."""
    expect: ExpectedRates


class Rig(Table):
    """A whole rig file."""

    rig: RigTable
    dut: Dut
    labgrid: LabgridPlace | None = None
    switch: Annotated[tuple[DeclaredSwitch, ...], Field(strict=False)] = ()
    controller: Annotated[tuple[Controller, ...], Field(strict=False)] = ()
    hub: Annotated[tuple[Hub, ...], Field(strict=False)] = ()
    disk: Annotated[tuple[Disk, ...], Field(strict=False)] = ()
    array: Annotated[tuple[ArrayExpectation, ...], Field(strict=False)] = ()
    meter: Annotated[tuple[DeclaredMeter, ...], Field(strict=False)] = ()
    defect: Annotated[tuple[Defect, ...], Field(strict=False)] = ()
