"""The limits that checks use where a scenario gives none.

A limit is looked up in this order: the value in the scenario, the disk's own ``limits`` in the rig file, the default of
the kind of bench. The defaults are close to the behaviour of healthy benches, so that small changes are noticed:

- *virtual*: 211 removals of one disk took 0.03 s (median) to 0.39 s, 186 returns 0.34 to 2.61 s; the longest stall of
  126 survivors was 0.16 s; the users of a dead disk had their error after 0.4 s, a filesystem was unmounted in 0.06 s,
  and the last of nine disks was found after 2.0 s.
- *real* (``local`` and ``ssh``): more time for the debouncing of a hub and the start of a bridge. A disk that lost its
  own power must also spin up before its bridge announces it.

A hub's disks leave and return one after the other, because one worker of the kernel handles them all (``hub_event`` in
drivers/usb/core/hub.c). In a tree of six, the last disk is gone 1.5 s after the cut and back 3.5 s after the restoring.
So each further disk that is cut at once adds ``EACH_MORE``, unless the scenario gives the limit.

Time in which the DUT was starved by its host does not count in any measured value: see ``starved.py``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from plugpull.history.story import Story

SPIN_UP = 15.0
"""Seconds that a real disk may take to return after a loss of power. 3.5 inch disks need 6 to 12 s to spin up, and most
bridges announce the disk only then."""
EACH_MORE = 0.5
"""Additional seconds for each further disk to leave and to return. In 20 cuts of two to nine disks at once, each disk
took up to 0.30 s longer than the one before to leave, and up to 0.33 s longer to return."""
EACH_FOUND = 0.3
"""Additional seconds for each further disk to be found when all are plugged in at once."""
SMALL_RIG = 3
"""The number of disks of the rigs on which the time until the last disk is found was measured."""
POWER_CUTS = frozenset({"mains", "vbus", "data+vbus"})
"""Mechanisms that can take a real disk's power."""


@dataclass(frozen=True)
class Limits:
    """One disk's limits. Times are seconds.

    ``max_stall`` is the longest single stall of a survivor and ``all_stalls`` the sum of them; ``min_ratio`` the share
    of its baseline rate that it must keep; ``recover_within`` how soon after an edge. ``ready_under_load`` is a factor:
    how much longer than idle a disk may take to return while the others are busy. The other fields are named after the
    check that uses them.
    """

    removed: float
    returned: float
    max_stall: float
    all_stalls: float
    min_ratio: float
    recover_within: float
    ended_with_error: float
    unmountable: float
    discovered: float
    ready_under_load: float


VIRTUAL = Limits(
    removed=1.0,
    returned=5.0,
    max_stall=0.5,
    all_stalls=1.0,
    min_ratio=0.85,
    recover_within=1.5,
    ended_with_error=5.0,
    unmountable=5.0,
    discovered=6.0,
    ready_under_load=1.5,
)
"""Defaults of emulated benches."""
REAL = replace(VIRTUAL, removed=2.0)
"""Defaults of real benches."""
NAMES = tuple(Limits.__dataclass_fields__)


def limits_of(story: Story, disk: str = "") -> Limits:
    """The limits of ``disk`` in this story, or of the bench if ``disk`` is empty or has no limits in the rig file."""
    defaults = VIRTUAL if bench_kind(story) == "virtual" else REAL
    return replace(defaults, **declared(story, disk))


def declared(story: Story, disk: str) -> dict[str, float]:
    """The ``limits`` of ``disk`` in the rig file, by name."""
    table: dict[str, Any] = next((one for one in story.rig.get("disk", ()) if one.get("name") == disk), {})
    own = table.get("limits") or {}
    return {name: float(own[name]) for name in NAMES if own.get(name) is not None}


def bench_kind(story: Story) -> str:
    """``virtual``, ``local`` or ``ssh``, from the rig file or else from the DUT. Empty if neither is on record."""
    kind = (story.rig.get("dut") or {}).get("kind")
    if kind:
        return str(kind)
    readies = [event.kind for event in story.readies]
    return readies[-1] if readies else ""


def removed_within(story: Story, disk: str, given: float | None = None, *, together: int = 1) -> float:
    """Seconds from a cut's commanded edge until ``disk`` must be off the kernel's list. ``together`` is how many disks
    were cut at once."""
    return limits_of(story, disk).removed + EACH_MORE * (together - 1) if given is None else given


def returned_within(
    story: Story, disk: str, given: float | None = None, *, mechanism: str = "", together: int = 1
) -> float:
    """Seconds from the restoring edge until ``disk`` must be announced again. ``mechanism`` is what the cut
    interrupted: a real disk that lost its power gets ``SPIN_UP``, unless its rig file says otherwise. ``together`` is
    how many disks were cut at once."""
    if given is not None:
        return given
    spins_up = mechanism in POWER_CUTS and bench_kind(story) != "virtual" and "returned" not in declared(story, disk)
    return (SPIN_UP if spins_up else limits_of(story, disk).returned) + EACH_MORE * (together - 1)


def max_stall(story: Story, disk: str, given: float | None = None) -> float:
    """Seconds that one stall of a survivor may last."""
    return limits_of(story, disk).max_stall if given is None else given


def all_stalls(story: Story, disk: str, given: float | None = None) -> float:
    """Seconds that all stalls of a survivor may last together, given its scenario's limit on one: twice that."""
    return limits_of(story, disk).all_stalls if given is None else 2 * given


def min_ratio(story: Story, disk: str, given: float | None = None) -> float:
    """Share of its baseline rate that a survivor must keep."""
    return limits_of(story, disk).min_ratio if given is None else given


def recover_within(story: Story, disk: str, given: float | None = None) -> float:
    """Seconds after an edge until a survivor must be at pace again."""
    return limits_of(story, disk).recover_within if given is None else given


def ended_with_error(story: Story, disk: str, given: float | None = None) -> float:
    """Seconds from a cut until the users of ``disk`` must have an error."""
    return limits_of(story, disk).ended_with_error if given is None else given


def unmountable(story: Story, disk: str, given: float | None = None) -> float:
    """Seconds that unmounting the filesystem of ``disk`` may take."""
    return limits_of(story, disk).unmountable if given is None else given


def discovered(story: Story, disk: str, given: float | None = None) -> float:
    """Seconds from when ``disk`` was plugged in, with all the others, until it must be announced."""
    if given is not None:
        return given
    own = declared(story, disk).get("discovered")
    others = max(0, len(story.rig.get("disk", ())) - SMALL_RIG)
    return limits_of(story, disk).discovered + EACH_FOUND * others if own is None else own


def ready_under_load(story: Story, disk: str, given: float | None = None) -> float:
    """How many times as long as idle ``disk`` may take to return while the others are busy."""
    return limits_of(story, disk).ready_under_load if given is None else given
