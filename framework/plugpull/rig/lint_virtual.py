"""Rules about rigs whose DUT is virtual: the limits of QEMU's controllers, hubs and disks.

Source of the facts: QEMU's ``hw/usb/hcd-ehci.h`` (NB_PORTS) and ``hw/usb/dev-hub.c`` (MAX_PORTS, full speed only).
"""

from __future__ import annotations

from collections.abc import Iterator

from plugpull.rig.draft import Draft, DraftTable
from plugpull.rig.drivers import VIRTUAL_DRIVER
from plugpull.rig.mistakes import Mistake, closest, quote
from plugpull.rig.quantities import QuantityError, parse_size

EHCI = "ich9-usb-ehci1"
SCSI = "virtio-scsi-pci"
SCSI_TARGETS = 32
"""More than any rig needs. QEMU's limit is 256 (hw/scsi/virtio-scsi.c, VIRTIO_SCSI_MAX_TARGET)."""
EHCI_PORTS = 6
XHCI_PORTS = 15
HUB_PORTS = 8
FIRMWARE: dict[str, frozenset[str]] = {
    "flush-lost": frozenset(),
    "cache-lied": frozenset(),
    "reordered": frozenset({"every"}),
    "torn-sector": frozenset({"sectors"}),
    "misdirected": frozenset({"every", "sectors"}),
    "lost-write": frozenset({"every"}),
    "lost-pass": frozenset({"every"}),
    "torn-write": frozenset({"every"}),
    "wraps": frozenset({"sector"}),
    "capacity-off-by-one": frozenset(),
    "stale": frozenset({"sectors"}),
    "bit-flips": frozenset({"every"}),
    "long-transfer-stall": frozenset({"every", "seconds", "sectors"}),
    "garbage-collection": frozenset({"sectors", "seconds", "rate"}),
    "command-timeout": frozenset({"every", "seconds"}),
    "cache-collapse": frozenset({"rate"}),
    "slow-through": frozenset({"rate"}),
    "crowded": frozenset({"disks", "rate"}),
    "errors-at": frozenset({"sector", "sectors"}),
    "errors-scattered": frozenset({"every"}),
}
"""Kinds of defect in a disk's firmware, and the parameters of each."""
ALL_DISKS = "crowded"
"""The kind of defect in the firmware that all scratch disks have, if none is named."""
PARAMETERS = ("every", "sector", "sectors", "rate", "disks")
"""Parameters that only these kinds have. "seconds" and "factor" are older."""
NEEDS_DISK = frozenset(
    {
        "never-returns",
        "needs-power-cycle",
        "unit-changes",
        "serial-changes",
        "slows",
        "stalls",
        "bit-flip",
        "crossed",
        *(kind for kind in FIRMWARE if kind != ALL_DISKS),
    }
)
"""Kinds of defect that a disk has, not the bench."""
NEEDS_CACHE = frozenset({"flush-lost", "cache-lied", "reordered", "torn-sector", "cache-collapse", "slow-through"})
"""Kinds of defect that a disk without a volatile cache cannot have."""


def lint(draft: Draft) -> Iterator[Mistake]:
    for controller in draft.of("controller"):
        yield from _controller(draft, controller)
    for hub in draft.of("hub"):
        yield from _hub(draft, hub)
    for disk in draft.of("disk"):
        yield from _disk(draft, disk)
    for switch in draft.of("switch"):
        yield from _switch(draft, switch)
    for defect in draft.of("defect"):
        if defect.get("kind") in NEEDS_DISK and "disk" not in defect.values and "disk" not in defect.broken:
            yield draft.mistake(defect, "disk", f'the defect {quote(defect.get("kind"))} needs a "disk" that has it')
        yield from _parameters(draft, defect)
        yield from _fits_disk(draft, defect)


def controller_ports(draft: Draft, controller: DraftTable) -> int | None:
    """How many ports a controller has. An emulated EHCI has fewer than the rig file's default."""
    ports: int | None = controller.get("ports")
    if ports is None or draft.dut_kind != "virtual" or controller.get("model") != EHCI:
        return ports
    return min(ports, EHCI_PORTS)


def _controller(draft: Draft, controller: DraftTable) -> Iterator[Mistake]:
    if "model" not in controller.values and "model" not in controller.broken:
        what = f'{controller.label} has no "model": which controller QEMU is to emulate, such as "qemu-xhci"'
        yield draft.mistake(controller, "model", what)
    if controller.get("model") == EHCI and controller.values.get("ports", 0) > EHCI_PORTS:
        yield draft.mistake(controller, "ports", f"the emulated {EHCI} has {EHCI_PORTS} ports at most")
    elif controller.get("model") == SCSI:
        if controller.values.get("ports", 0) > SCSI_TARGETS:
            yield draft.mistake(controller, "ports", f"an emulated {SCSI} has {SCSI_TARGETS} ports at most")
    elif controller.values.get("ports", 0) > XHCI_PORTS:
        yield draft.mistake(controller, "ports", f"an emulated xHCI has {XHCI_PORTS} ports at most")


def _hub(draft: Draft, hub: DraftTable) -> Iterator[Mistake]:
    if hub.values.get("ports", 0) > HUB_PORTS:
        yield draft.mistake(hub, "ports", f"an emulated hub has {HUB_PORTS} ports at most")
    socket = hub.split("at")
    above = draft.named("controller").get(socket[0]) if socket else None
    if above is not None and above.get("model") == SCSI:
        what = f"a USB hub cannot be plugged into {quote(str(above.name))}, which is a {SCSI}"
        yield draft.mistake(hub, "at", f"{what}: plug it into an xHCI controller")
    elif above is not None and above.get("model") == EHCI:
        what = f"an emulated hub is a full-speed device, which the {EHCI} {quote(str(above.name))} does not take"
        yield draft.mistake(hub, "at", f"{what}: plug it into an xHCI controller")


def _disk(draft: Draft, disk: DraftTable) -> Iterator[Mistake]:
    socket = disk.split("at")
    if disk.get("protocol") == "uas" and socket and socket[0] in draft.named("hub"):
        what = f"a uas disk cannot be behind the hub {quote(socket[0])}, because an emulated hub is full speed only"
        yield draft.mistake(disk, "protocol", f"{what}: plug it into a controller or make it usb-storage")

    yield from _bus(draft, disk)
    yield from _cache(draft, disk)
    if disk.get("write_through") and "cache" in disk.values:
        what = f'{disk.label} cannot have a volatile "cache" and write through: leave one out, or use "cache-lied"'
        yield draft.misplaced(disk, "write_through", what)
    block, size = disk.get("logical_block"), _bytes(disk, "size")
    if block is not None and size is not None and size % block and not size % 512:
        yield draft.mistake(disk, "size", f"a disk with logical blocks of {block} bytes has a whole number of them")


def _bus(draft: Draft, disk: DraftTable) -> Iterator[Mistake]:
    """A SCSI disk is on a SCSI controller, and nothing else is."""
    socket = disk.split("at")
    holder = draft.named("controller", "hub").get(socket[0]) if socket else None
    if holder is None or (holder.kind == "controller" and "model" not in holder.values):
        return
    on_scsi, protocol = holder.kind == "controller" and holder.get("model") == SCSI, disk.get("protocol")
    if on_scsi and protocol != "scsi" and "protocol" not in disk.broken:
        what = f"{disk.label} is plugged into {quote(str(holder.name))}, which is a {SCSI}"
        yield draft.mistake(disk, "protocol", f'{what}: give it protocol = "scsi"')
    elif protocol == "scsi" and not on_scsi:
        what = f'a disk with protocol = "scsi" cannot be plugged into {quote(str(holder.name))}'
        yield draft.mistake(disk, "protocol", f"{what}: plug it into a controller whose model is {quote(SCSI)}")
    if on_scsi:
        for key in ("lun", "cdrom"):
            if disk.values.get(key):
                yield draft.misplaced(disk, key, f"an emulated SCSI target has one unit, so {quote(key)} has no effect")


def _bytes(entry: DraftTable, key: str) -> int | None:
    """A size in bytes. None if it is not given or invalid."""
    try:
        return parse_size(entry.get(key))
    except QuantityError:
        return None


def _cache(draft: Draft, disk: DraftTable) -> Iterator[Mistake]:
    cache, block = _bytes(disk, "cache"), disk.get("logical_block")
    if cache is not None and block is not None and cache % block:
        yield draft.mistake(disk, "cache", f"a cache holds whole logical blocks, of {block} bytes on this disk")
    if "cache" in disk.values or "cache" in disk.broken:
        return
    for key in ("eviction", "write_back"):
        if key in disk.values:
            what = f'{quote(key)} says what leaves the volatile cache, but {disk.label} has none: give it a "cache"'
            yield draft.misplaced(disk, key, what)


def _parameters(draft: Draft, defect: DraftTable) -> Iterator[Mistake]:
    """A defect has only the parameters of its kind. Others would have no effect."""
    kind = defect.get("kind")
    if kind is None:
        return
    checked = (*PARAMETERS, "seconds", "factor") if kind in FIRMWARE else PARAMETERS
    for key in checked:
        if key in defect.values and key not in FIRMWARE.get(kind, ()):
            having = ", ".join(quote(other) for other, keys in FIRMWARE.items() if key in keys) or '"slows"'
            yield draft.misplaced(defect, key, f"the defect {quote(kind)} has no {quote(key)}: it is for {having}")
    if kind == "errors-at" and "sector" not in defect.values and "sector" not in defect.broken:
        yield draft.mistake(defect, "sector", 'the defect "errors-at" needs a "sector": the first that is bad')


def _fits_disk(draft: Draft, defect: DraftTable) -> Iterator[Mistake]:
    """A defect of the firmware fits its disk."""
    kind, disk = defect.get("kind"), draft.named("disk").get(defect.get("disk") or "")
    if disk is None or kind not in FIRMWARE:
        return
    if kind in NEEDS_CACHE and "cache" not in disk.values and "cache" not in disk.broken:
        yield draft.mistake(defect, "disk", f'the defect {quote(kind)} needs a disk with a "cache"')
    sector, size, block = defect.get("sector"), _bytes(disk, "size"), disk.get("logical_block")
    if sector is None or size is None:
        return
    if sector * 512 >= size:
        what = f"{disk.label} has no sector {sector}: its last one is {size // 512 - 1}"
        yield draft.mistake(defect, "sector", what)
    elif kind == "wraps" and (sector == 0 or (block is not None and sector * 512 % block)):
        what = "addresses wrap where a logical block begins, and not at 0"
        yield draft.mistake(defect, "sector", what)


def _switch(draft: Draft, switch: DraftTable) -> Iterator[Mistake]:
    driver = switch.get("driver")
    if driver is not None and driver != VIRTUAL_DRIVER:
        what = f"the driver {quote(driver)} cannot cut anything on a virtual bench: use {quote(VIRTUAL_DRIVER)}"
        near = closest(driver, (VIRTUAL_DRIVER,))
        yield draft.mistake(switch, "driver", what if not near else f"there is no driver {quote(driver)}", near)
