"""Records the DUT's state at the beginning and at the end of a scenario."""

from __future__ import annotations

from collections.abc import Collection

from plugpull.dut.conversation.translation import properties_of
from plugpull.dut.scenario_context import ScenarioContext
from plugpull.history import events as ev

BLOCKED_FOR = 12.0
"""Seconds that a task which is blocked at the end of a scenario gets to run: the limit of ``nothing_blocked`` and half
of that. Nothing waits where none is blocked."""
READING = 30.0
"""Seconds that the agent gets for each disk, which is more than it gives the disk."""
RELEASED_WITHIN = 60.0
"""Seconds that the agent gets to unmount and stop what an interruption left."""
GRACE = 30.0
"""Seconds that every CPU gets to schedule at the end of a scenario. The kernel reports one that does not after 15
(an RCU stall) or 16 (a soft lockup, see plugpull/dut/agent/timers.py), so that its own report is on record by then."""

BACK_WITHIN = 20.0
"""Seconds that the disks of a permanent cut get to come back when the scenario restores them. A real disk that has to
spin up needs up to 10."""


def wait_back(context: ScenarioContext, disks: Collection[str]) -> None:
    """Wait until these disks are back, so that one that stays away is on record as missing. Disks with a defect need
    not come back."""
    faulty = {defect.disk for defect in context.rig.defect}
    context.wait_attached(tuple(sorted(set(disks) - faulty)), BACK_WITHIN)


def record_end(context: ScenarioContext, restored: Collection[str] = ()) -> int:
    """Wait for the disks that were restored, and record whether every CPU runs, what is blocked, and how the disks are
    driven.

    Returns the number of recorded grace periods. Raises ``RigError``."""
    if any(isinstance(one, ev.ScenarioError) and one.fault == "interrupt" for one in context.recorder.since()):
        # An array that was still being made has no block that stops it. It is not the DUT's that it is there.
        context.bench.link.call("release", RELEASED_WITHIN)
    wait_back(context, restored)
    grace_periods = 0
    said = context.bench.link.call("grace", 2 * GRACE, limit=GRACE)
    if said["asked"]:
        context.recorder.record(ev.GracePeriod(at=said["at"], seconds=said["seconds"], ended=said["ended"]))
        grace_periods = 1
    context.bench.link.call("tasks.settle", 4 * BLOCKED_FOR, limit=BLOCKED_FOR)
    record_disks(context, "end")
    return grace_periods


def record_disks(context: ScenarioContext, moment: ev.PropertiesMoment) -> None:
    """Record how the disks are driven, and how long short reads of them take. Disks with a defect are not read: it may
    count the requests. Raises ``RigError``."""
    faulty = {defect.disk for defect in context.rig.defect}
    disks = (disk.name for disk in context.rig.disk if disk.name not in faulty)
    attached = (context.bench.disk_table.attached(name) for name in disks)
    knames = [one.kname for one in attached if one is not None]
    for said in context.bench.link.call("properties", READING * (1 + len(knames)), read=knames):
        properties = properties_of(said, context.bench.disk_table, moment)
        if properties is not None:
            context.recorder.record(properties)
