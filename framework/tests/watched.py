"""Stories in which the agent watches tasks, interrupts, properties and the kernel's state."""

from __future__ import annotations

import msgspec
from stories import BACK, VICTIM, Bench, healthy

from plugpull.history import events as ev

RECORDS = ("facility", "properties", "state", "tasks", "timers")
VALUES = {
    "driver": "uas",
    "ro": "0",
    "write_cache": "write back",
    "size": "131072",
    "logical_block_size": "512",
    "queue_depth": "28",
    "state": "running",
    "rx_lanes": "2",
    "speed": "480",
}
STATE = ev.DutState(
    moment="begin",
    boot_id="one",
    kernel="6.12.1",
    taint=0,
    modules={"usb_storage": 1, "uas": 0},
    memory={"SUnreclaim": 11 << 20, "KernelStack": 1 << 20},
    interrupts={"28 xhci_hcd": 100},
)
STACK = (
    "[<0>] __schedule+0x351/0xa20",
    "[<0>] wait_for_completion+0x99/0x180",
    "[<0>] usb_stor_disconnect+0x5d/0xb0 [usb_storage]",
    "[<0>] usb_unbind_interface+0x90/0x270",
)


def watched(bench: Bench | None = None) -> Bench:
    """The healthy story as an agent of today's version records it."""
    bench = bench or healthy()
    bench.replace(ev.DutReady, records=RECORDS)
    changed = (("/proc/sys/kernel/hung_task_timeout_secs", "120", "20"),)
    bench.add(ev.TimersSet(at=10.1, moment="begin", changed=changed), ev.TimersSet(at=25.9, moment="restored"))
    for number in range(1, int((bench.until - 10.0) / 2) + 1):
        bench.add(ev.Activity(at=10.0 + 2 * number, seconds=2.0, threads={"usb-storage (84)": 0.12}, soft=0.02))
    for attached in [event for event in bench.events if isinstance(event, ev.DiskAttached)]:
        bench.add(properties(attached, (attached.at or 0.0) + 0.03, "attached"))
        if attached.disk != VICTIM or attached.at == BACK:
            bench.add(properties(attached, 25.6, "end"))
    for gone in [event for event in bench.events if isinstance(event, ev.DiskDetached)]:
        bench.add(flushed(gone))
    bench.add(msgspec.structs.replace(STATE, at=10.9), msgspec.structs.replace(STATE, at=25.7, moment="end"))
    return bench


def properties(attached: ev.DiskAttached, at: float, moment: ev.PropertiesMoment, **other: str) -> ev.DiskProperties:
    return ev.DiskProperties(
        at=at,
        disk=attached.disk,
        kname=attached.kname,
        diskseq=attached.diskseq,
        moment=moment,
        values={**VALUES, **other},
    )


def flushed(gone: ev.DiskDetached) -> ev.KernelMessage:
    """What the disk driver says when a disk with a write cache leaves (drivers/scsi/sd.c, sd_shutdown)."""
    text = f"sd 1:0:0:0: [{gone.kname}] Synchronizing SCSI cache"
    return ev.KernelMessage(at=(gone.at or 0.0) - 0.015, text=text, level=5)


def blocked(seconds: float, **other: object) -> ev.TaskBlocked:
    known: dict[str, object] = {
        "pid": 41,
        "name": "kworker/1:2+usb_hub_wq",
        "kernel": True,
        "at": 15.1 + seconds,
        "since": 15.1,
        "seconds": seconds,
        "stack": STACK,
    }
    return ev.TaskBlocked(**(known | other))  # type: ignore[arg-type]


def real(bench: Bench) -> Bench:
    """The same story of a DUT that is reached by ssh."""
    bench.events = [
        msgspec.structs.replace(event, kind="ssh") if isinstance(event, ev.DutReady) else event
        for event in bench.events
    ]
    return bench


def change(bench: Bench, moment: str, disks: tuple[str, ...], values: dict[str, str], after: float = 0.0) -> None:
    """Change properties in the records of one moment."""
    bench.events = [
        msgspec.structs.replace(event, values={**event.values, **values})
        if isinstance(event, ev.DiskProperties)
        and event.moment == moment
        and event.disk in disks
        and (event.at or 0.0) > after
        else event
        for event in bench.events
    ]
