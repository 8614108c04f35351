"""The arrays on record: how each was made, its states, its members' absences, and what was done to it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from msgspec.structs import replace

from plugpull.history.events import ArrayActed, ArrayMade, ArrayState, DiskAttached
from plugpull.history.story import Story
from plugpull.integrity.oracle.array_layout import ArrayLayout, covers

SECTOR = 512
TOGETHER = 5.0
"""Seconds within which cuts count as made at once: a disk leaves the kernel's list some time after its cut."""
EDGE = 0.5
"""Seconds around the making and the stopping of an array in which it may be inactive."""
WORKING = frozenset({"clean", "active", "active-idle", "write-pending", "readonly", "read-auto"})
"""Values of array_state in which an array can be read (Documentation/admin-guide/md.rst)."""


class MemberAbsence(NamedTuple):
    """A member's disk left the kernel's list at ``gone``; the member was in sync again at ``back`` (``None``: never).
    DUT seconds."""

    disk: str
    gone: float
    back: float | None


@dataclass(frozen=True)
class ArrayRecord:
    """One array of a story. ``states`` and ``acts`` are in the order of their times."""

    made: ArrayMade
    states: tuple[ArrayState, ...]
    acts: tuple[ArrayActed, ...]
    absences: tuple[MemberAbsence, ...]

    @property
    def name(self) -> str:
        return self.made.array

    @property
    def layout(self) -> ArrayLayout:
        return layout_of(self.made)

    def state_at(self, at: float) -> ArrayState | None:
        """The last state at ``at`` or before, DUT seconds."""
        before = [state for state in self.states if (state.at or 0.0) <= at]
        return before[-1] if before else None

    @property
    def last(self) -> ArrayState | None:
        """The last state in which the array ran."""
        return next((state for state in reversed(self.running) if state.values), None)

    @property
    def running(self) -> tuple[ArrayState, ...]:
        """The states in which the array was neither assembled nor stopped just then. While md takes an array apart,
        it still calls it clean, freezes its recovery (``do_md_stop`` in drivers/md/md.c) and lets one member go after
        the other: Linux 6.12 was seen to have let all of them go, with the recovery idle."""
        edges = [(act.at or 0.0, act.seconds) for act in self.done("make", "stop", "assemble")]
        # One that is gone was being stopped before, also if the step is not on record, which is doubted elsewhere.
        edges += [(state.at or 0.0, 0.0) for state in self.states if not state.values]
        return tuple(
            state
            for state in self.states
            if not any(at - took - EDGE <= (state.at or 0.0) <= at + EDGE for at, took in edges)
            or _works(state, len(self.made.members))
        )

    def missing_at(self, at: float) -> frozenset[str]:
        """Members that hold no current data at ``at``: gone, or not in sync again."""
        return frozenset(one.disk for one in self.absences if one.gone <= at and (one.back is None or at < one.back))

    @property
    def overwhelmed_at(self) -> float | None:
        """When more members were missing than the level covers; ``None``: never."""
        for one in sorted(self.absences, key=lambda absence: absence.gone):
            if not covers(self.made.level, self.made.members, self.missing_at(one.gone)):
                return one.gone
        return None

    def done(self, *actions: str) -> tuple[ArrayActed, ...]:
        """What was done of these actions."""
        return tuple(act for act in self.acts if act.action in actions)


def layout_of(made: ArrayMade) -> ArrayLayout:
    """The layout of an array on record."""
    return ArrayLayout(made.level, len(made.members), made.chunk // SECTOR, made.layout)


def _works(state: ArrayState, size: int) -> bool:
    """Whether an array of ``size`` members works and has all members that it does not count as missing. While md stops
    an array, it removes one member after the other and does not count them (``export_array`` in drivers/md/md.c): on
    Linux 6.1, one of three was left in an array that was clean with 0 missing members."""
    working = state.values.get("array_state") in WORKING and state.values.get("sync_action") != "frozen"
    missing = state.values.get("degraded", "")
    expected = size - int(missing) if missing.isdecimal() else 1
    return working and len(state.members) >= max(expected, 1)


def arrays_of(story: Story) -> dict[str, ArrayRecord]:
    """The arrays that a story made, by name."""
    return story.once(_arrays_of)


def _arrays_of(story: Story) -> dict[str, ArrayRecord]:
    found = {}
    for made in story.of(ArrayMade):
        states = tuple(_one_line(state) for state in story.of(ArrayState) if state.array == made.array)
        acts = tuple(act for act in story.of(ArrayActed) if act.array == made.array)
        begin = made.at or 0.0
        absences = tuple(one for member in made.members for one in _absences(story, member, states, begin))
        found[made.array] = ArrayRecord(made, states, acts, absences)
    return found


def _one_line(state: ArrayState) -> ArrayState:
    """The state with the first line of each value. Earlier agents read attributes twice, and if the state changed in
    between, what they recorded ends with a part of the new one: "active\\nidle" of active and active-idle."""
    if not any("\n" in value for value in state.values.values()):
        return state
    return replace(state, values={name: value.partition("\n")[0] for name, value in state.values.items()})


def _absences(story: Story, disk: str, states: tuple[ArrayState, ...], begin: float) -> Iterator[MemberAbsence]:
    for attachment in story.attachments(disk):
        gone = story.detached_at(attachment)
        if gone is not None and gone >= begin and _ended(states) >= gone:
            yield MemberAbsence(disk, gone, _in_sync_after(states, disk, _next(story, attachment, gone)))


def _ended(states: tuple[ArrayState, ...]) -> float:
    """Until when the array ran, as far as that is on record."""
    if states and not states[-1].values:
        return states[-1].at or 0.0
    return float("inf")


def _next(story: Story, attachment: DiskAttached, gone: float) -> float | None:
    """When a disk that had left was attached again."""
    later = (one.at for one in story.attachments(attachment.disk) if one.at is not None and one.at >= gone)
    return next(later, None)


def _in_sync_after(states: tuple[ArrayState, ...], disk: str, attached: float | None) -> float | None:
    """When a member is in sync for the first time after its disk was attached again. Until the array has noticed that
    the disk was gone, the member still counts as in sync."""
    if attached is None:
        return None
    out = False
    for state in states:
        at = state.at or 0.0
        slot, says = state.members.get(disk, ("none", ""))
        in_sync = "in_sync" in says.split(",") and "faulty" not in says.split(",") and slot != "none"
        if at >= attached and in_sync and out:
            return at
        out = (out or not in_sync) if at >= attached - _NOTICED else out
    return None


_NOTICED = 120.0
"""Seconds before the return of a disk in which its array may have noticed that it was gone."""


def may_fail_from(story: Story, array: str) -> float:
    """The earliest time from which more members may have been missing than the array's level covers, by the commands of
    the cuts; infinity if there is none. DUT seconds."""
    record = arrays_of(story)[array]
    members = record.made.members
    cuts = [(cut, (cut.off.commanded_at or 0.0) - cut.error) for cut in story.cut_records]
    for cut, at in sorted(cuts, key=lambda pair: pair[1]):
        taken = {disk for other, begin in cuts if at - TOGETHER <= begin <= at for disk in other.armed.victims}
        missing = record.missing_at(at) | taken | set(cut.armed.victims)
        if not covers(record.made.level, members, missing):
            return float("-inf") if cut.off.doubt else at
    return float("inf")


def held_by_array(story: Story, disk: str, begin: float, end: float) -> bool:
    """Whether an array still had the disk for a member between ``begin`` and ``end``, DUT seconds: until it is removed
    from the array, the array keeps its kernel name occupied."""
    for record in arrays_of(story).values():
        if disk in record.made.members and (record.made.at or 0.0) <= end and _ended(record.states) >= begin:
            earlier = record.state_at(begin)
            within = [state for state in record.states if begin <= (state.at or 0.0) <= end]
            if any(disk in state.members for state in ([earlier] if earlier else []) + within):
                return True
    known = arrays_of(story)
    for name in {state.array for state in story.of(ArrayState)} - known.keys():  # how it was made is not on record
        states = [state for state in story.of(ArrayState) if state.array == name and (state.at or 0.0) <= end]
        before = [state for state in states if (state.at or 0.0) < begin][-1:]
        if any(disk in state.members for state in (*before, *(one for one in states if (one.at or 0.0) >= begin))):
            return True
    return False
