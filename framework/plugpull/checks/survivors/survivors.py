"""Which checks of survivors a scenario can do without, because on this rig nobody survives its faults."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from plugpull.checks.base import Check, check_name
from plugpull.history.events import CutArmed, DiskRecovered, DiskStalled, Event

OF_SURVIVORS = ("data_intact", "kept_pace", "no_errors", "untouched")
"""Checks that scenarios ask about those who are left. Asked about no disk, they are UNKNOWN."""


def nobody_left(scratch: Iterable[str], events: Iterable[Event]) -> bool:
    """Whether the scenario had something done to every scratch disk: a cut, a stall, resets."""
    left = set(scratch)
    for event in events:
        if isinstance(event, CutArmed):
            left.difference_update(event.victims)
        elif isinstance(event, DiskRecovered | DiskStalled):
            left.discard(event.disk)
    return not left


def that_apply(checks: Sequence[Check], scratch: Iterable[str], events: Iterable[Event]) -> tuple[Sequence[Check], str]:
    """The checks to judge, and why the others are not: survivors are asked about, and there are none. A check that was
    asked about no disk although there are survivors is the scenario's mistake, and is judged."""
    nobody = [one for one in checks if check_name(one) in OF_SURVIVORS and getattr(one, "disks", None) == ()]
    if not nobody or not nobody_left(scratch, events):
        return checks, ""
    why = f"no scratch disk of this rig survives, so this is not judged: {', '.join(map(check_name, nobody))}"
    return [one for one in checks if one not in nobody], why
