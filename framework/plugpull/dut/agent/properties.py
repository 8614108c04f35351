"""Reads what the kernel knows of a disk beyond its identity: how it is driven, cached and powered."""

from __future__ import annotations

import os
import queue
import threading
from typing import Any, Callable, Dict, List

from .attributes import SYS, read_attributes, resolved
from .disks import Disk, _driver, _usb_device
from .short_reads import short_reads
from .timers import Timers
from .wire import now

BLOCK = {
    "size": "size",
    "ro": "ro",
    "write_cache": "queue/write_cache",
    "fua": "queue/fua",
    "logical_block_size": "queue/logical_block_size",
    "physical_block_size": "queue/physical_block_size",
    "max_sectors_kb": "queue/max_sectors_kb",
    "max_hw_sectors_kb": "queue/max_hw_sectors_kb",
    "nr_requests": "queue/nr_requests",
    "rotational": "queue/rotational",
    "nomerges": "queue/nomerges",
    "read_ahead_kb": "queue/read_ahead_kb",
    "add_random": "queue/add_random",
    "rq_affinity": "queue/rq_affinity",
    "max_segments": "queue/max_segments",
    "max_segment_size": "queue/max_segment_size",
    "minimum_io_size": "queue/minimum_io_size",
    "optimal_io_size": "queue/optimal_io_size",
    "stable_writes": "queue/stable_writes",
    "removable": "removable",
    "revision": "device/rev",
    "scheduler": "queue/scheduler",
    "discard_max_bytes": "queue/discard_max_bytes",
    "discard_granularity": "queue/discard_granularity",
    "chunk_sectors": "queue/chunk_sectors",
    "zoned": "queue/zoned",
    "iostats": "queue/iostats",
    "max_discard_segments": "queue/max_discard_segments",
    "alignment_offset": "alignment_offset",
    "queue_depth": "device/queue_depth",
    "state": "device/state",
    "timeout": "device/timeout",
    "eh_timeout": "device/eh_timeout",
    "wwid": "device/wwid",
    "scsi_level": "device/scsi_level",
    "queue_type": "device/queue_type",
    "failed_commands": "device/ioerr_cnt",
    "timed_out_commands": "device/iotmo_cnt",
}
"""Property -> file below /sys/block/NAME (Documentation/ABI/stable/sysfs-block)."""
SCSI_DISK = {name: name for name in ("max_retries", "max_medium_access_timeouts", "allow_restart")}
"""Properties of the SCSI disk (drivers/scsi/sd.c). The kernel names its directory after the address."""
USB = {
    "speed": "speed",
    "rx_lanes": "rx_lanes",
    "tx_lanes": "tx_lanes",
    "usb_version": "version",
    "quirks": "quirks",
    "authorized": "authorized",
    "power_control": "power/control",
    "autosuspend_delay_ms": "power/autosuspend_delay_ms",
    "persist": "power/persist",
    "usb2_lpm": "power/usb2_hardware_lpm",
    "usb3_lpm_u1": "power/usb3_hardware_lpm_u1",
    "usb3_lpm_u2": "power/usb3_hardware_lpm_u2",
}
"""Property -> file in the directory of the USB device (Documentation/ABI/testing/sysfs-bus-usb)."""
_PAGE = "vpd_pg"


def properties(kname: str, root: str = SYS) -> Dict[str, str]:
    """The properties that the disk has, as the kernel writes them. ``size`` is in sectors of 512 bytes."""
    base = os.path.join(root, "block", kname)
    sysfs = resolved(base)
    usb = _usb_device(sysfs)
    found = read_attributes(base, BLOCK)
    if usb:
        found.update(read_attributes(usb, USB))
    address = os.path.basename(resolved(os.path.join(base, "device")))
    found.update(read_attributes(os.path.join(base, "device/scsi_disk", address), SCSI_DISK))
    found["product_pages"] = " ".join(_product_pages(base))
    found["driver"] = _driver(sysfs, usb)
    return {name: value for name, value in found.items() if value}


def _product_pages(base: str) -> List[str]:
    """The numbers of the pages of product data that the kernel has read of a SCSI disk (``vpd_pg80`` and others,
    drivers/scsi/scsi_sysfs.c), from which udev makes names. Their files exist only if the page was read."""
    try:
        names = os.listdir(os.path.join(base, "device"))
    except OSError:
        return []
    return sorted(name[len(_PAGE) :] for name in names if name.startswith(_PAGE))


class Attendant:
    """Looks at each disk that was announced, and shortens its timers, in a thread of its own: the one that announces
    disks must not be held up."""

    def __init__(self, send: Callable[[Dict[str, Any]], None], timers: Timers) -> None:
        self._send = send
        self._timers = timers
        self._queue: "queue.SimpleQueue[Disk]" = queue.SimpleQueue()
        threading.Thread(target=self._run, name="attendant", daemon=True).start()

    def attach(self, disk: Disk) -> None:
        self._queue.put(disk)

    def _run(self) -> None:
        while True:
            disk = self._queue.get()
            try:
                self._attend(disk)
            except Exception as error:
                self._send({"ev": "watcher.broken", "at": now(), "what": "disks that come", "why": repr(error)})

    def _attend(self, disk: Disk) -> None:
        self._send(described(disk["kname"], disk["diskseq"], "attached"))
        done = self._timers.attached(disk)
        if done["changed"] or done["failed"]:
            self._send({"ev": "timers", "at": now(), "moment": "attached", **done})


def described(kname: str, diskseq: int, moment: str, read: bool = False) -> Dict[str, Any]:
    at = now()
    values = properties(kname)
    if read:
        values.update(short_reads(kname))
    return {
        "ev": "disk.properties",
        "at": at,
        "until": now(),
        "kname": kname,
        "diskseq": diskseq,
        "moment": moment,
        "values": values,
    }
