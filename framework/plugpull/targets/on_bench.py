"""Targets on the bench of a scenario: which can be opened now, and by what proof."""

from __future__ import annotations

from plugpull.dut.scenario_context import ScenarioContext
from plugpull.targets.claim import ScratchClaim
from plugpull.targets.target import Target


def is_usable(context: ScenarioContext, target: Target) -> bool:
    """Whether the target can be opened with the disks that are attached now."""
    return target.usable(lambda name: context.bench.disk_table.attached(name) is not None)


def claim_of(context: ScenarioContext, target: Target) -> ScratchClaim:
    """What the agent must prove before it opens the target now.

    Raises ``RigError`` if a disk that it needs is not attached, ``UsageError`` if one is not declared scratch.
    """
    table, names = context.bench.disk_table, target.disks
    if is_usable(context, target):
        names = tuple(name for name in names if table.attached(name) is not None)
    return target.claim({name: context.identity(name) for name in names})
