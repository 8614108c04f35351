"""How a scenario begins: everything of the rig is plugged in, and every declared disk is waited for. And how long
emulated disks are given to settle."""

from __future__ import annotations

from plugpull.dut.conversation.translation import timers_set
from plugpull.dut.scenario_context import ScenarioContext
from plugpull.errors import RigError

READY_WITHIN = 60.0
"""Seconds until every declared disk must be on the kernel's list before a scenario begins."""
USUAL, QUICK = "0", "3"
"""Quirks of a USB port (include/linux/usb.h). ``QUICK``: a device is reset once, not twice, and has 10 ms to recover
from it, not 50, before it gets its address. The kernel sets up one device of a controller after the other."""


def plug_everything(context: ScenarioContext, kind: str) -> None:
    """Give every disk its cable and its power, and wait until the DUT, of this kind, has all of them. Raises RigError.

    An emulated disk needs no time to settle and little to recover from its reset, so a guest gives it no more until all
    are there. Whatever comes back later is set up as the kernel always does, unless ``let_none_settle`` is called.
    """
    context.phase("plug", "every disk gets its cable and its power")
    before = ""
    if kind == "virtual":
        before = _let_settle(context, "0")
        _set_up(context, QUICK)
    context.bench.power_everything()
    declared = tuple(disk.name for disk in context.rig.disk)
    missing = context.wait_attached(declared, READY_WITHIN)
    if kind == "virtual":
        _set_up(context, USUAL)
    if before:
        _let_settle(context, before)
    if missing:
        serials = ", ".join(f"{name} (serial {context.disk(name).serial})" for name in missing)
        raise RigError(
            f"not found within {READY_WITHIN:g} s: {serials}",
            hint="are they plugged in and powered, and are their serial and lun right in the rig file?",
        )


def let_none_settle(context: ScenarioContext) -> None:
    """Have emulated disks that come back set up without delay, for the rest of the scenario. For stories about what is
    on disks, an array or a filesystem: the second that usb-storage gives a device has no part in them, nor the time
    that the kernel gives a device that was reset. Scenarios about the disks themselves keep the delays that the kernel
    has. Nothing is changed on a real DUT."""
    if context.rig.dut.kind == "virtual":
        _let_settle(context, "0")
        _set_up(context, QUICK)


def _let_settle(context: ScenarioContext, seconds: str) -> str:
    """Change how long usb-storage lets a new device settle. Returns what it was before, empty if it is not loaded."""
    said = timers_set(context.bench.link.call("timers.settle", seconds=seconds), "plugging")
    context.recorder.record(said)
    return next((before for _, before, _ in said.changed), "")


def _set_up(context: ScenarioContext, quirks: str) -> None:
    """Change how the kernel sets up what is plugged into a USB port."""
    context.recorder.record(timers_set(context.bench.link.call("ports", quirks=quirks), "plugging"))
