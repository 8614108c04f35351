"""Messages that are not in the catalogue: which of them a healthy kernel prints."""

from __future__ import annotations

import re

CRITICAL = 2
"""KERN_CRIT (include/linux/kern_levels.h). An unknown message of this level or a worse one is a finding."""
ERROR = 3
"""KERN_ERR. An unknown message of this level is a doubt: on a real DUT if it is about storage; on an emulated one
always, since that has no other hardware that logs errors."""

_HARMLESS = re.compile(
    r"^reboot: |^Restarting system|^System halted|^Power down"  # kernel/reboot.c; restarts are judged elsewhere
    r"|^watchdog: watchdog\d+: watchdog did not stop"  # drivers/watchdog/watchdog_dev.c: its process was ended
    r"|^(?:mce: )?CPU\d+: .*(?:temperature|power limit)"  # arch/x86/kernel/cpu/mce/therm_throt.c
    r"|^(?:ACPI|PNP|pnp|EDID|i8042|tpm\w*|nouveau|amdgpu|snd\w*)\b"
    r"|\[Firmware (?:Bug|Warn|Info)\]"
    r"|^(?:ses|scsi|sd) \S+: (?:Wrong diagnostic page|Failed to (?:get diagnostic page|bind enclosure))"  # ses.c
    r"|^(?:Spectre V\d|RETBleed|MDS|TAA|L1TF|SRBDS|GDS|RFDS|ITS|MMIO Stale Data|Speculative \w[\w ]*) ?: "  # cpu/bugs.c
    r"|^CPU: \d+ (?:UID: \d+ )?PID: \d+ |^Hardware name: |^Call [Tt]race|^handlers:$|^\[<[\da-f]+>\]"
    r"|^\S+: \d+ callbacks suppressed"
    r"|^usb \S+: usbfs: process \d+ \(.*\) did not claim interface"  # drivers/usb/core/devio.c: a program's mistake
    r"|^k?audit\w*: |^Memory cgroup out of memory"  # kernel/audit.c; a container at its memory limit
    r"|^serial8250: too much work for irq"  # drivers/tty/serial/8250: an emulated port is faster than a real one
    r"|not a recommended IO charset|Deprecated V4 format|\bEXPERIMENTAL\b|mounted filesystem"  # fs/*/super.c
    r"|Optimal transfer size|Preferred minimum I/O size|physical block alignment offset"  # drivers/scsi/sd.c
)
_POWER = re.compile(r"[Uu]nder-?voltage detected")
_STORAGE = re.compile(
    r"^(?:usb|usbcore|hub|usb-storage|uas|xhci\w*|[eou]hci\w*|dwc[23]|scsi\w*|sd|sr|sg|ses|st|block|blk\w*|bdi|bio"
    r"|genhd|Buffer I/O|buffer|end_request|EXT[234]-fs|JBD2?|XFS|BTRFS|F2FS-fs|FAT-fs|exFAT-fs|ntfs3?|VFS|md\d*"
    r"|md/\S+|raid\d*|async_tx|device-mapper|dm-\d+|dmraid|loop\d*|writeback|iomap|sd[a-z]{1,3}\d*(?!-))(?=[ :/(\[-])"
)
_WORK = re.compile(
    r"^workqueue: (?:usb\w*|hub_\w+|[xeou]hci\w*|uas\w*|scsi\w*|sd_\w+|sg_\w+|blk\w*|kblockd\w*|wb_\w+|disk_\w+"
    r"|bdi_\w+|jbd2\w*|ext4\w*|xfs\w*|xlog\w*|btrfs\w*|md_\w+|raid\w*|dm_\w+|bio_\w+|flush_\w*|writeback\w*"
    r"|storvsc\w*|async_run_entry_fn|loop_\w+|iomap_\w+)(?: \[\w+\])? hogged CPU"
)


def harmless(body: str) -> bool:
    """Whether healthy kernels print this message although it has the level of an error."""
    return bool(_HARMLESS.search(body))


def power_fails(body: str) -> bool:
    """Whether the DUT's supply voltage was too low. Its power supply may then be the cause of other errors."""
    return bool(_POWER.search(body))


def about_storage(body: str) -> bool:
    """Whether a message begins with words of the USB, SCSI, block, filesystem or RAID code."""
    return bool(_STORAGE.match(body))


def storage_work(body: str) -> bool:
    """Whether a work item that "hogged CPU" belongs to storage. On healthy machines graphics drivers hog CPUs too."""
    return bool(_WORK.match(body))
