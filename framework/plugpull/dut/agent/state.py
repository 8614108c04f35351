"""The state of the DUT's kernel as a whole, to be compared over a scenario."""

from __future__ import annotations

import re
from typing import Any, Dict

from .attributes import read_attribute, read_lines

_MODULES = re.compile(r"^(usb|uas|ums|scsi|sd_mod|sr_mod|sg$|xhci|ehci|uhci|ohci|ext4|jbd2|xfs|btrfs|f2fs|md|raid|dm_)")
"""Modules whose reference counts matter: those that drive storage, USB and file systems."""
_MEMORY = ("SUnreclaim", "KernelStack", "PageTables", "VmallocUsed", "Percpu")
"""Lines of /proc/meminfo (proc_meminfo(5)) that say what the kernel itself holds."""


def state(proc: str = "/proc") -> Dict[str, Any]:
    """Boot, kernel, taint, reference counts of modules, memory in bytes, interrupts by line, and stall times in
    microseconds (Documentation/accounting/psi.rst)."""
    return {
        "boot_id": read_attribute(proc, "sys/kernel/random/boot_id"),
        "kernel": read_attribute(proc, "sys/kernel/osrelease"),
        "taint": int(read_attribute(proc, "sys/kernel/tainted") or 0),
        "modules": modules(proc),
        "memory": memory(proc),
        "interrupts": interrupts(proc),
        "pressure": pressure(proc),
    }


def modules(proc: str) -> Dict[str, int]:
    """Reference counts (proc(5), modules); -1 for one that is being removed."""
    found = {}
    for line in read_lines(proc, "modules"):
        fields = line.split()
        if len(fields) > 2 and _MODULES.match(fields[0]):
            found[fields[0]] = int(fields[2]) if fields[2].isdigit() else -1
    return found


def memory(proc: str) -> Dict[str, int]:
    found = {}
    for line in read_lines(proc, "meminfo"):
        name, _, value = line.partition(":")
        if name in _MEMORY:
            found[name] = int(value.split()[0]) * 1024
    return found


def interrupts(proc: str) -> Dict[str, int]:
    """``26 xhci_hcd`` -> how often, on all CPUs together."""
    found: Dict[str, int] = {}
    for line in read_lines(proc, "interrupts")[1:]:
        name, _, rest = line.strip().partition(":")
        fields = rest.split()
        counts = [int(field) for field in fields if field.isdigit()]
        words = [field for field in fields if not field.isdigit()]
        if sum(counts):
            found["%s %s" % (name, words[-1] if words else "")] = sum(counts)
    return found


def pressure(proc: str) -> Dict[str, int]:
    found = {}
    for kind in ("io", "memory", "cpu"):
        for line in read_lines(proc, "pressure", kind):
            total = re.search(r"total=(\d+)", line)
            if total is not None:
                found["%s %s" % (kind, line.split()[0])] = int(total.group(1))
    return found
