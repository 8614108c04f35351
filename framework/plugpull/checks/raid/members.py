"""The members of an array by its states and by what happened to their disks."""

from __future__ import annotations

from collections.abc import Iterator

from plugpull.checks.raid.arrays import ArrayRecord
from plugpull.history.events import ArrayState
from plugpull.history.story import Story

LASTING = 2.0
"""Seconds that a contradiction must last: md changes the attributes of one state one after the other, and the agent
reads them one after the other."""
AROUND = 5.0
"""Seconds before a state or a kernel message in which something may have happened that explains it."""
CLOCKS = 0.5
"""Seconds by which the order of an array's states, of what was done to it and of kernel messages is not known."""


def usable(state: ArrayState) -> set[str]:
    """The members that hold current data, by a state."""
    return {
        disk
        for disk, (slot, says) in state.members.items()
        if slot != "none" and "in_sync" in says.split(",") and "faulty" not in says.split(",")
    }


def moves(story: Story, record: ArrayRecord) -> Iterator[float]:
    """When members were cut, and when their disks left and came."""
    for disk in record.made.members:
        for one in story.attachments(disk):
            yield from (at for at in (one.at, story.detached_at(one)) if at is not None)
    for cut in story.cut_records:
        if set(cut.armed.victims) & set(record.made.members) and cut.off.commanded_at is not None:
            yield cut.off.commanded_at


def since(record: ArrayRecord, at: float) -> float:
    """When what md was doing at ``at`` began, by the states. mdadm freezes it for a while when it adds a member."""
    begun, action = float("-inf"), ""
    for state in record.states:
        if (state.at or 0.0) > at:
            break
        now = state.values.get("sync_action", "")
        if now == "frozen":
            continue
        begun, action = (begun if now == action else state.at or 0.0), now
    return begun
