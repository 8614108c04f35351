"""Why the record of an array proves nothing: it lacks how the array was made, or what became of it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from plugpull.checks.limits import bench_kind
from plugpull.checks.raid.array_states import state_doubts
from plugpull.checks.raid.array_steps import missing_acts
from plugpull.checks.raid.arrays import ArrayRecord, arrays_of
from plugpull.checks.raid.sync_log import sync_lines
from plugpull.checks.starved import awake
from plugpull.history.events import ArrayActed, ArrayAction, ArrayMade, ArrayState, LegReadBegun
from plugpull.history.story import Story
from plugpull.kernel.diagnosis.story_log import log_of

CLOCKS = 0.5
"""Seconds by which the order of an array's states and of what was done to it is not known."""
SLOW, SLOW_REAL = 15.0, 90.0
"""Seconds that a step on an array may take, on emulated benches (2.7 s at most of 480 healthy ones) and on others."""
MUST_SUCCEED = ("make", "remove_gone", "udev_remove", "fail", "marked", "assemble", "stop", "check", "erase")
"""Actions that succeed at last: what comes later rests on them. A member that md does not take back (``readd``) is
added as a new one."""
LEADS_TO: tuple[ArrayAction, ...] = ("readd", "add", "assemble", "check", "stop")
"""Actions after which the array has another state than before."""
NOTICED = 10.0
"""Seconds after the kernel has dropped a member by which a state of its array shows that."""


def array_doubts(story: Story) -> Iterator[str]:
    """What of the arrays is not on record or contradicts itself, a sentence each."""
    made = {one.array for one in story.of(ArrayMade)}
    events: list[ArrayState | ArrayActed | LegReadBegun] = [*story.of(ArrayState), *story.of(ArrayActed)]
    used = dict.fromkeys(one.array for one in (*events, *story.of(LegReadBegun)))
    yield from (f"how {array} was made is not on record" for array in used if array not in made)
    for record in arrays_of(story).values():
        yield from _spare(record)
        yield from _slots(record)
        yield from filter(None, (other_members(record),))
        yield from _unfinished(record)
        yield from missing_acts(story, record)
        yield from _slow(story, record)
        yield from _interrupted(story, record)
        yield from state_doubts(story, record)
        yield from _dropped(story, record)
    for leg in story.of(LegReadBegun):
        if misread(story, leg):
            yield f"{leg.disk} was read from sector {leg.offset} on, where the data of {leg.array} does not begin"


def misread(story: Story, leg: LegReadBegun) -> bool:
    """Whether a member was read at another place than the array's data."""
    record = arrays_of(story).get(leg.array)
    offset = None if record is None else record.made.offsets.get(leg.disk)
    return offset is not None and not leg.error and offset != leg.offset


def _spare(record: ArrayRecord) -> Iterator[str]:
    made = record.made
    most = {"raid0": 0, "linear": 0, "raid1": len(made.members) - 1, "raid5": 1, "raid6": 2}.get(made.level)
    if most is not None and made.spare > most:
        yield f"{record.name} is {made.level} of {len(made.members)} members, which cannot spare {made.spare}"


def other_members(record: ArrayRecord) -> str:
    """A clause if an array was made of other members than it is on record with; otherwise empty."""
    made = [act for act in record.done("make") if act.ok and act.disks]
    if not made or sorted(made[-1].disks) == sorted(record.made.members):
        return ""
    of = ", ".join(record.made.members) or "no member"
    return f"{record.name} was made of {', '.join(made[-1].disks)}, and is on record with {of}"


def _slots(record: ArrayRecord) -> Iterator[str]:
    """A member that is in sync in another slot than it was made for: its data would be another member's."""
    slots = {disk: str(slot) for slot, disk in enumerate(record.made.members)}
    for state in record.states:
        for disk, (slot, says) in state.members.items():
            if slots.get(disk, slot) != slot and slot != "none" and "in_sync" in says.split(","):
                yield f"{disk} was in slot {slot} of {record.name}, and was made for slot {slots[disk]}"
                return


def _slow(story: Story, record: ArrayRecord) -> Iterator[str]:
    """Steps that took far longer than any did, and an array that nobody made."""
    most = SLOW if bench_kind(story) in ("virtual", "") else SLOW_REAL
    for act in record.acts:
        took = awake(story, (act.at or 0.0) - act.seconds, act.at or 0.0)
        if act.action != "check" and took > most:
            yield f"the step '{act.action}' of {record.name} took {took:.1f} s"
            break
    if record.done("erase") and not record.done("make"):
        yield f"how {record.name} was made is not on record"


def _unfinished(record: ArrayRecord) -> Iterator[str]:
    """Steps that failed and were not done again, and those that show in no state."""
    for action in MUST_SUCCEED:
        acts = record.done(action)
        if acts and not acts[-1].ok:
            yield f"the last {action} of {record.name} failed: {acts[-1].detail or '?'}"
    for act in record.done(*LEADS_TO):
        if act.ok and record.states and no_state_after(record, act):
            yield f"what became of {record.name} after {act.at or 0.0:.2f} s is not on record"
            break


def _dropped(story: Story, record: ArrayRecord) -> Iterator[str]:
    """Members that the kernel says it has dropped, and that every state on record since then has in sync."""
    words = re.compile(rf"md/\S+:{re.escape(record.made.kname)}: Disk failure on (\w+), disabling device")
    for line in log_of(story).timed:
        if (failed := words.match(line.body)) is None:
            continue
        # What is there after it was removed by mdadm shows nothing.
        acts = [(act.at or 0.0) - act.seconds for act in record.done("remove_gone", "udev_remove", "fail")]
        until = min([line.at + NOTICED, *(at for at in acts if at > line.at)])
        since = [one for one in record.states if line.at <= (one.at or 0.0) <= until and one.members]
        # A kernel name may have been that of several members.
        had = {one.disk for one in story.all_attachments if one.kname == failed.group(1) and (one.at or 0.0) <= line.at}
        meant = had & set(record.made.members)
        if since and meant and all(_in_sync(one, disk) for one in since for disk in meant):
            who = " or ".join(sorted(meant))
            yield f"the kernel dropped {who} of {record.name} at {line.at:.2f} s, and no state of it shows that"


def _in_sync(state: ArrayState, disk: str) -> bool:
    return state.members.get(disk, ("", ""))[1] == "in_sync"


def no_state_after(record: ArrayRecord, act: ArrayActed) -> bool:
    """Whether the states of the array on record end before something was done to it. One that was stopped has a state
    without any values then: 561 of 561 did."""
    since = [one for one in record.states if (one.at or 0.0) >= (act.at or 0.0) - act.seconds - CLOCKS]
    return not since or (act.action == "stop" and all(state.values for state in since))


def _interrupted(story: Story, record: ArrayRecord) -> Iterator[str]:
    """A comparison of all members that the kernel says was interrupted."""
    words = ("check", "interrupted")
    if record.done("check") and any((one.action, one.what) == words for one in sync_lines(story, record)):
        yield f"the kernel says that the check of {record.name} was interrupted"
