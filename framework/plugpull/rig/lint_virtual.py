"""Rules for rigs whose DUT is virtual: what QEMU's controllers, hubs and disks can and cannot do.

Source of the facts: QEMU's ``hw/usb/hcd-ehci.h`` (NB_PORTS) and ``hw/usb/dev-hub.c`` (MAX_PORTS, full speed only).
"""

from __future__ import annotations

from collections.abc import Iterator

from plugpull.rig.draft import Draft, Entry
from plugpull.rig.drivers import VIRTUAL_DRIVER
from plugpull.rig.mistakes import Mistake, closest, quote

EHCI = "ich9-usb-ehci1"
EHCI_PORTS = 6
XHCI_PORTS = 15
HUB_PORTS = 8
NEEDS_DISK = frozenset({"never-returns", "serial-changes", "slows", "stalls", "bit-flip"})
"""Kinds of defect that a disk has, not the bench."""


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


def controller_ports(draft: Draft, controller: Entry) -> int | None:
    """How many ports a controller has. An emulated EHCI has fewer than the rig file's default."""
    ports: int | None = controller.get("ports")
    if ports is None or draft.dut_kind != "virtual" or controller.get("model") != EHCI:
        return ports
    return min(ports, EHCI_PORTS)


def _controller(draft: Draft, controller: Entry) -> Iterator[Mistake]:
    if "model" not in controller.values and "model" not in controller.broken:
        what = f'{controller.label} has no "model": which controller QEMU is to emulate, such as "qemu-xhci"'
        yield draft.mistake(controller, "model", what)
    if controller.get("model") == EHCI and controller.values.get("ports", 0) > EHCI_PORTS:
        yield draft.mistake(controller, "ports", f"the emulated {EHCI} has {EHCI_PORTS} ports at most")
    elif controller.values.get("ports", 0) > XHCI_PORTS:
        yield draft.mistake(controller, "ports", f"an emulated xHCI has {XHCI_PORTS} ports at most")


def _hub(draft: Draft, hub: Entry) -> Iterator[Mistake]:
    if hub.values.get("ports", 0) > HUB_PORTS:
        yield draft.mistake(hub, "ports", f"an emulated hub has {HUB_PORTS} ports at most")
    socket = hub.split("at")
    above = draft.named("controller").get(socket[0]) if socket else None
    if above is not None and above.get("model") == EHCI:
        what = f"an emulated hub is a full-speed device, which the {EHCI} {quote(str(above.name))} does not take"
        yield draft.mistake(hub, "at", f"{what}: plug it into an xHCI controller")


def _disk(draft: Draft, disk: Entry) -> Iterator[Mistake]:
    socket = disk.split("at")
    if disk.get("protocol") == "uas" and socket and socket[0] in draft.named("hub"):
        what = f"a uas disk cannot hang off the hub {quote(socket[0])}, because an emulated hub is full speed only"
        yield draft.mistake(disk, "protocol", f"{what}: plug it into a controller or make it usb-storage")


def _switch(draft: Draft, switch: Entry) -> Iterator[Mistake]:
    driver = switch.get("driver")
    if driver is not None and driver != VIRTUAL_DRIVER:
        what = f"the driver {quote(driver)} cannot cut anything on a virtual bench: use {quote(VIRTUAL_DRIVER)}"
        near = closest(driver, (VIRTUAL_DRIVER,))
        yield draft.mistake(switch, "driver", what if not near else f"there is no driver {quote(driver)}", near)
