"""Disks: their attachments, their properties and their counters."""

from __future__ import annotations

from typing import Literal

from plugpull.history.counters import Counters
from plugpull.history.events.base import Event

PropertiesMoment = Literal["attached", "begin", "end"]
"""When the properties of a disk were read: whenever it was attached, and at the beginning and the end of the
scenario."""


class DiskAttached(Event, frozen=True, kw_only=True, tag="disk.attached"):
    """The kernel announced a disk (block uevent ``add``).

    ``disk`` is its name in the rig file, empty for a disk that is not of the rig. ``kname`` is today's kernel name and
    ``diskseq`` distinguishes two attachments with one name. ``place`` is where it is plugged in: the controller's PCI
    address, the chain of USB ports and the LUN, such as ``0000:00:05.0/1.2:0``. ``sockets`` say the same with the kind
    of bus (``0000:00:05.0/usb3-1.2:0``), by the port of its own bus and then by that of the controller's other bus
    which leads to the same socket; empty where the kernel does not know, and in older records. ``speed`` is the link's
    in Mb/s. ``scsi_type`` is the peripheral device type: 0 for a disk, and in older records; 5 for a CD-ROM.
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
    scsi_type: int = 0


class DiskDetached(Event, frozen=True, kw_only=True, tag="disk.detached"):
    """The kernel took the disk off its list (block uevent ``remove``)."""

    disk: str
    kname: str
    diskseq: int


class DiskMoved(Event, frozen=True, kw_only=True, tag="disk.moved"):
    """A disk was plugged into another socket of the rig, such as ``hub1.3``, on purpose, from ``at`` to ``until`` (DUT
    seconds): a person takes a while. ``place`` is where the agent must find it there."""

    disk: str
    socket: str
    place: str
    until: float


class RatesLifted(Event, frozen=True, kw_only=True, tag="rates.lifted"):
    """From here on, emulated disks whose rate is lower may move ``to`` bytes per second (``None``: they are held to
    their rates again). QEMU forgets what a disk owes when its limit changes (``throttle_config``, util/throttle.c)."""

    to: int | None


class DiskRecovered(Event, frozen=True, kw_only=True, tag="disk.recovered"):
    """The kernel was asked to reset a disk as its error handler does, ``resets`` times from ``at`` to ``until`` (DUT
    seconds), and ``failed`` times in vain, the last time for the reason ``detail``."""

    disk: str
    until: float
    resets: int
    failed: int = 0
    detail: str = ""


class DiskStalled(Event, frozen=True, kw_only=True, tag="disk.stalled"):
    """A disk answered no command on request, at ``spans`` ((begin, end), DUT seconds), while the kernel gave commands
    up after ``timeout`` seconds. At ``until`` the kernel had recovered it, or was no longer waited for.

    ``given_up`` is how many commands the SCSI layer had given up by then (``None``: it does not count them).
    ``disk_state`` and ``host_state`` are how it saw the disk and its host at ``until``; empty if they were gone.
    ``worked``: the disk had completed a command since, or had none to complete."""

    disk: str
    until: float
    spans: tuple[tuple[float, float], ...]
    timeout: int
    given_up: int | None = None
    disk_state: str = ""
    host_state: str = ""
    worked: bool = False


class DriveCacheSwitched(Event, frozen=True, kw_only=True, tag="disk.cache"):
    """The write cache of a disk was switched ``on`` or off on request, by MODE SELECT, from ``at`` to ``until`` (DUT
    seconds). If the drive did not do it, ``ok`` is false and ``detail`` says why."""

    disk: str
    on: bool
    until: float
    ok: bool = True
    detail: str = ""


class DiskProperties(Event, frozen=True, kw_only=True, tag="disk.properties"):
    """How the kernel drives a disk of the rig. ``moment``: see ``PropertiesMoment``.

    ``values`` are sysfs attributes as the kernel writes them (``dut/agent/properties.py`` says which): ``driver``,
    ``queue_depth``, ``write_cache``, ``ro``, ``size`` in sectors of 512 bytes, and others. They were read one after
    another from ``at`` to ``until`` (DUT seconds; absent in older histories). At the beginning and the end also
    ``read_ms``, how many milliseconds each of some short reads took, and ``read_error``, why they ended early."""

    disk: str
    kname: str
    diskseq: int
    moment: PropertiesMoment
    values: dict[str, str]
    until: float | None = None


class Sampled(Event, frozen=True, kw_only=True, tag="sample"):
    """All disks' counters at one instant, straight from ``/sys/block/*/stat`` and ``inflight``.

    ``disks`` has them by kernel name, cumulative since the disk was attached. ``cpu`` is the DUT's (busy, total)
    jiffies since boot from ``/proc/stat``, (0, 0) in the samples for which it was not asked.
    """

    disks: dict[str, Counters]
    cpu: tuple[int, int] = (0, 0)


class CountedOutside(Event, frozen=True, kw_only=True, tag="outside.counted"):
    """The bytes that an emulated disk itself counted since it was last plugged in: what reached it, whatever the DUT's
    kernel and its programs say."""

    disk: str
    read_bytes: int
    written_bytes: int


class SeenFromOutside(Event, frozen=True, kw_only=True, tag="outside"):
    """The bench looked at a disk's medium behind the DUT's back, by ``method``. ``ok``: it is as it was made;
    ``detail`` says what is different."""

    disk: str
    ok: bool
    method: str
    detail: str = ""
