"""Lists what the kernel of the DUT holds now, by names that stay the same over a replug, to find what is left over."""

from __future__ import annotations

import os
import re
from typing import Any, Dict, Iterator, List, Tuple

from .attributes import read_attribute, read_lines, resolved
from .disks import all_disks, usb_place
from .state import memory

_BLOCK_FILE = re.compile(r"^/dev/(sd|nvme|md|dm-|loop|vd|mmcblk|bsg/|sg)")
_LOOP = re.compile(r"^/dev/(loop\d+)")
_ERROR_HANDLER = re.compile(r"^scsi_eh_\d+$")
_DRIVER_THREAD = re.compile(r"^(usb-storage$|uas$|scsi_tmf_\d+$|jbd2/sd|ext4-rsv-conver|xfs[-_]|md\d+_)")
_THREAD_NUMBER = re.compile(r"_\d+$|/sd\w+-\d+$")
_SCSI_NUMBER = re.compile(r"^(8|6[5-9]|7[01]|12[89]|13[0-5]):\d+$")
"""Device numbers of SCSI disks (Documentation/admin-guide/devices.txt)."""
_SCSI_ADDRESS = re.compile(r"^(?:host|target)?(\d+)(?:$|:)")
"""``host3``, ``target3:0:0`` or ``3:0:0:0``."""
_SCSI_FOLDERS = ("class/scsi_device", "class/scsi_disk", "class/bsg", "bus/scsi/devices")
_HUB, _MOST_REFERENCES = "09", 1000
_SLABS = re.compile(r"^kmalloc-|scsi|usb|urb|^bio|blkdev|bdev|request|^sd_|uas|sgpool")
"""Caches that storage and USB drivers allocate from. SLUB merges caches of equal size, so kmalloc's hold more than
theirs."""


def census(sys: str = "/sys", proc: str = "/proc", exact: bool = False) -> Dict[str, Any]:
    """``things``: per kind the sorted names of what is there, a name as often as it is. ``slab``: bytes in use per
    cache (slabinfo(5)); empty where it cannot be read. ``exact``: they are to be counted to the object."""
    counted = exact_slabs(sys, proc) if exact else {}
    things = {
        "scsi host": scsi_hosts(sys) + held_hosts(sys, proc),
        "block device": block_devices(sys),
        "usb device": [name for name in _listed(sys, "bus/usb/devices") if ":" not in name],
        "mount": list(mounts(sys, proc)),
        "open file": open_files(proc),
        "kernel thread": driver_threads(proc),
        "xhci slot": xhci_slots(sys),
        "reference to a hub": hub_references(sys),
        "trace of a disk": traces(sys) + host_traces(sys, proc),
    }
    return {
        "things": {kind: sorted(names) for kind, names in things.items()},
        "slab": counted or slabs(proc),
        "memory": memory(proc),
        "exact": bool(counted),
    }


def _listed(*parts: str) -> List[str]:
    try:
        return sorted(os.listdir(os.path.join(*parts)))
    except OSError:
        return []


def scsi_hosts(sys: str) -> List[str]:
    """``usb-storage at 0000:00:10.0/1``. Host numbers only grow; driver and place identify a host."""
    found = []
    for name in _listed(sys, "class/scsi_host"):
        base = os.path.join(sys, "class/scsi_host", name)
        path = resolved(base)
        place = usb_place(path)
        where = place.rpartition(":")[0] if place else os.path.relpath(path.partition("/host")[0], sys)
        found.append("%s at %s" % (read_attribute(base, "proc_name") or "scsi host", where))
    return found


def held_hosts(sys: str, proc: str) -> List[str]:
    """Hosts that were removed and not freed. sysfs has forgotten them; their error handlers end only when the last
    reference is put (drivers/scsi/hosts.c, scsi_host_dev_release), and numbers are not used again before that."""
    known = {"scsi_eh_" + name[len("host") :] for name in _listed(sys, "class/scsi_host")}
    threads = {read_attribute(proc, pid + "/comm") for pid in _listed(proc) if pid.isdigit()}
    left = (name for name in threads - known if _ERROR_HANDLER.match(name))
    return ["host%s (removed, not freed: %s still runs)" % (name[len("scsi_eh_") :], name) for name in left]


def block_devices(sys: str) -> List[str]:
    """Disks by their place, whatever they are called today; md, device-mapper and loop devices by their name."""
    found = ["%s (serial %s)" % (disk["place"], disk["serial"]) for disk in all_disks(sys)]
    for name in _listed(sys, "block"):
        base = os.path.join(sys, "block", name)
        # A loop or md device of no size is one that is not set up.
        if not os.path.exists(os.path.join(base, "device")) and read_attribute(base, "size") not in ("", "0"):
            found.append(name)
    return found


def driver_threads(proc: str) -> List[str]:
    """Threads of storage drivers by their name without its number. Error handlers are counted with their hosts."""
    threads = (read_attribute(proc, pid, "comm") for pid in _listed(proc) if pid.isdigit())
    return [_THREAD_NUMBER.sub("", name) for name in threads if _DRIVER_THREAD.match(name)]


def xhci_slots(sys: str) -> List[str]:
    """The controller of each device slot that is in use (drivers/usb/host/xhci-debugfs.c); nothing without debugfs."""
    found = []
    for controller in _listed(sys, "kernel/debug/usb/xhci"):
        slots = _listed(sys, "kernel/debug/usb/xhci", controller, "devices")
        found += ["at %s" % controller for _ in slots]
    return found


def hub_references(sys: str) -> List[str]:
    """Each hub by its name, as often as something keeps it from being suspended: the ``usage_count`` of runtime power
    management (Documentation/power/runtime_pm.rst). Nothing without CONFIG_PM_ADVANCED_DEBUG."""
    found = []
    for name in _listed(sys, "bus/usb/devices"):
        base = os.path.join(sys, "bus/usb/devices", name)
        usage = read_attribute(base, "power/runtime_usage")
        if read_attribute(base, "bDeviceClass") == _HUB and usage.isdigit():
            found += [name] * min(int(usage), _MOST_REFERENCES)
    return found


def traces(sys: str) -> List[str]:
    """What is left of disks that are gone: backing devices (/sys/class/bdi) and directories in debugfs."""
    numbers = {read_attribute(sys, "block", name, "dev") for name in _listed(sys, "block")}
    backing = (name for name in _listed(sys, "class/bdi") if _SCSI_NUMBER.match(name) and name not in numbers)
    disks = set(_listed(sys, "block"))
    debug = (name for name in _listed(sys, "kernel/debug/block") if name.startswith("sd") and name not in disks)
    return ["backing device %s" % name for name in backing] + ["debugfs directory block/%s" % name for name in debug]


def host_traces(sys: str, proc: str) -> List[str]:
    """Entries of SCSI hosts that are not there any more, in the classes of sysfs, on the SCSI bus and in /proc/scsi
    (drivers/scsi/scsi_proc.c). Their names begin with the host's number, which is not used again soon."""
    hosts = {name[len("host") :] for name in _listed(sys, "class/scsi_host")}
    found = []
    for folder in _SCSI_FOLDERS:
        numbers = ((name, _SCSI_ADDRESS.match(name)) for name in _listed(sys, folder))
        found += ["/sys/%s/%s" % (folder, name) for name, host in numbers if host and host.group(1) not in hosts]
    for driver in _listed(proc, "scsi"):
        files = (name for name in _listed(proc, "scsi", driver) if name.isdigit())
        found += ["/proc/scsi/%s/%s" % (driver, name) for name in files if name not in hosts]
    return found


def exact_slabs(sys: str, proc: str) -> Dict[str, int]:
    """Bytes in use per cache, to the object: each is made to give back what it holds in reserve for each CPU, which
    counts as in use, and is read at once (Documentation/ABI/testing/sysfs-kernel-slab). Empty where that cannot be."""
    found = {}
    for name, (_, size) in _slabinfo(proc).items():
        base = os.path.join(sys, "kernel/slab", name)
        try:
            with open(os.path.join(base, "shrink"), "w") as file:
                file.write("1")
        except OSError:
            return {}
        count = read_attribute(base, "objects").split()
        if not count or not count[0].isdigit():
            return {}
        found[name] = int(count[0]) * size
    return found


def mounts(sys: str, proc: str) -> Iterator[str]:
    """proc(5), mountinfo: ``/dev/sda1 on /mnt/x (ext4)``. A loop device over a disk goes by the name of the disk."""
    for line in read_lines(proc, "self/mountinfo"):
        left, _, right = line.partition(" - ")
        fields, kind = left.split(), right.split()
        if len(fields) > 4 and len(kind) > 1:
            yield "%s on %s (%s)" % (_below_loops(sys, kind[1]), fields[4], kind[0])


def _below_loops(sys: str, source: str) -> str:
    """The disk below a loop device, or what was given. Partitions of loop devices (``loop3p1``) lie on the same."""
    found = _LOOP.match(source)
    below = read_attribute(sys, "block", found.group(1), "loop/backing_file") if found else ""
    return below if _BLOCK_FILE.match(below) and not _LOOP.match(below) else source


def open_files(proc: str) -> List[str]:
    """Block devices that this agent holds open, whether or not they still exist."""
    found = []
    for number in _listed(proc, "self/fd"):
        try:
            target = os.readlink(os.path.join(proc, "self/fd", number))
        except OSError:
            continue  # the descriptor of the listing itself
        if _BLOCK_FILE.match(target):
            found.append(target)
    return found


def slabs(proc: str) -> Dict[str, int]:
    return {name: count * size for name, (count, size) in _slabinfo(proc).items()}


def _slabinfo(proc: str) -> Dict[str, Tuple[int, int]]:
    """Objects in use, and the bytes of one, of each of the chosen caches."""
    found = {}
    for line in read_lines(proc, "slabinfo"):
        fields = line.split()
        if len(fields) > 3 and _SLABS.search(fields[0]) and fields[1].isdigit():
            found[fields[0]] = (int(fields[1]), int(fields[3]))
    return found
