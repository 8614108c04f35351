"""Whether the recorded states of an array fit each other, its members and what was done to it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from plugpull.checks.raid.arrays import ArrayRecord
from plugpull.checks.raid.md_faults import rebuilds_doubted
from plugpull.checks.raid.members import AROUND, CLOCKS, LASTING, moves, since, usable
from plugpull.checks.raid.sync_log import interruptions_doubted, sync_lines
from plugpull.history.events import ArrayActed, ArrayState
from plugpull.history.story import Story
from plugpull.kernel.diagnosis.story_log import log_of

_SYNCS = frozenset({"resync", "recover", "check", "repair"})
_KICKED = re.compile(r"md: kicking non-fresh (\w+) from array!")
_NOT_RUN = ("cannot start dirty degraded array", "failed to run raid set", "not enough operational")
_PARITY = {"raid5": 1, "raid6": 2}
"""Members' worth of parity."""


def state_doubts(story: Story, record: ArrayRecord) -> Iterator[str]:
    """Contradictions in what is on record of an array, a sentence each."""
    yield from _miscounted(record)
    yield from _foreign(story, record)
    yield from _moved(record)
    yield from _begun_again(story, record)
    yield from rebuilds_doubted(story, record)
    yield from _never_missing(record)
    yield from interruptions_doubted(story, record)
    yield from _unended(story, record)
    yield from _odd_size(record)
    yield from _let_go(story, record)
    yield from _not_started(story, record)
    yield from _healed(story, record)


def _lasting(record: ArrayRecord, states: Iterator[ArrayState]) -> ArrayState | None:
    """The first of these states that is part of a row of them which lasts."""
    odd = {id(state) for state in states}
    begun: ArrayState | None = None
    for state in record.states:
        if begun is not None and (state.at or 0.0) - (begun.at or 0.0) >= LASTING:
            return begun
        begun = None if id(state) not in odd else begun or state
    return None


def _miscounted(record: ArrayRecord) -> Iterator[str]:
    """``degraded`` against the members that are in sync (md.c, md_print_devices; raid1.c, calc_sectors)."""
    size = len(record.made.members)

    def count(state: ArrayState) -> str:
        return str(size - len(usable(state)))

    odd = (state for state in record.running if state.values.get("degraded", count(state)) != count(state))
    first = _lasting(record, odd)
    if first is not None:
        said = first.values["degraded"]
        of = f"{len(usable(first))} of its {size} members are in sync"
        yield f"{record.name} counts {said} missing members at {first.at or 0.0:.2f} s, while {of}"


def _foreign(story: Story, record: ArrayRecord) -> Iterator[str]:
    """Members in sync that the array was not made of. A disk that left is shown by its kernel name."""
    known = {one.kname for disk in record.made.members for one in story.attachments(disk)} | set(record.made.members)
    odd = [state for state in record.running if usable(state) - known]
    first = _lasting(record, iter(odd))
    if first is not None:
        yield f"{', '.join(sorted(usable(first) - known))} is a member of {record.name}, which was not made of it"


def _moved(record: ArrayRecord) -> Iterator[str]:
    """An array that is gone, or has another kernel name, although nobody stopped it."""
    for before, after in pairwise(record.states):
        acts = record.done("make", "stop", "assemble")
        asked = any((before.at or 0.0) - AROUND <= (act.at or 0.0) <= (after.at or 0.0) + AROUND for act in acts)
        if asked or (after.at or 0.0) < (record.made.at or 0.0):
            continue
        if not after.values and before.values:
            yield f"{record.name} was gone at {after.at or 0.0:.2f} s, although nobody had stopped it"
            return
        if before.kname != after.kname:
            yield f"{record.name} was {before.kname} and then {after.kname}, although nobody had stopped it"
            return


def _begun_again(story: Story, record: ArrayRecord) -> Iterator[str]:
    """A resync, rebuild or check whose progress goes back, and a member that is not in sync any more, although nothing
    happened that makes md begin again."""
    doing = ["", *(state.values.get("sync_action", "") for state in record.running), ""]
    for number, (before, after) in enumerate(pairwise(record.running), 1):
        action, at = after.values.get("sync_action", ""), after.at or 0.0
        lost = _lost(story, record, before, after)
        was, now = _progress(before), _progress(after)
        if _at_the_end(before) and not doing[number - 1] == action == doing[number + 2]:
            was = None  # that of what md did before, or it has ended
        same = action in _SYNCS and before.values.get("sync_action") == action
        back = same and was is not None and now is not None and now < was
        back = back and not _another_ended(story, record, before, after)
        if not lost and (not back or _interferes(story, record, max(at - AROUND, since(record, at)), at)):
            continue
        if lost:
            yield f"{', '.join(sorted(lost))} was in sync in {record.name} and was not at {at:.2f} s"
        else:
            yield f"the {action} of {record.name} went back from sector {was} to {now} at {at:.2f} s"
        return


def _another_ended(story: Story, record: ArrayRecord, before: ArrayState, after: ArrayState) -> bool:
    """Whether the log shows the end of something else between these states. A member that is put back during a repair
    turns ``sync_action`` into ``recover`` at once, and the progress is that of the repair until it ends."""
    begin, end = (before.at or 0.0) - CLOCKS, (after.at or 0.0) + CLOCKS
    action = after.values.get("sync_action")
    ends = [one for one in sync_lines(story, record) if one.what != "begun" and one.action != action]
    return any(begin <= one.at <= end for one in ends)


def _lost(story: Story, record: ArrayRecord, before: ArrayState, after: ArrayState) -> set[str]:
    """Members that are in sync no more, although their disks are there."""
    at = after.at or 0.0
    gone = (usable(before) - usable(after)) & set(record.made.members) if after.values else set[str]()
    if not gone or _interferes(story, record, at - AROUND, at):
        return set()
    return {disk for disk in gone if story.attachment_at(disk, at) is not None}


def _progress(state: ArrayState) -> int | None:
    first = state.values.get("sync_completed", "").split(" ")[0]
    return int(first) if first.isdecimal() else None


def _at_the_end(state: ArrayState) -> bool:
    """Whether all of it was done. md clears the progress at the end, before or after it says what it does next."""
    done, _, all_of_it = state.values.get("sync_completed", "").partition(" / ")
    return bool(all_of_it) and done == all_of_it


def _interferes(story: Story, record: ArrayRecord, begin: float, at: float) -> bool:
    """Whether a member left or came, or something was being done to the array, after ``begin`` and until ``at``."""
    acts = [act for act in record.acts if act.action not in ("check", "marked")]
    if any((act.at or 0.0) > begin and (act.at or 0.0) - act.seconds <= at + CLOCKS for act in acts):
        return True
    return any(begin < one <= at + CLOCKS for one in moves(story, record))


def _never_missing(record: ArrayRecord) -> Iterator[str]:
    """A member that was put back into an array that never counted a missing one (md.c, md_update_sb)."""
    for act in record.done("readd", "add"):
        counts = [state.values["degraded"] for state in record.states if _before(state, act)]
        if act.ok and act.disks and counts and set(counts) == {"0"}:
            yield f"{', '.join(act.disks)} was put back into {record.name}, which never counted a missing member"
            return


def _before(state: ArrayState, act: ArrayActed) -> bool:
    return "degraded" in state.values and (state.at or 0.0) <= (act.at or 0.0) + CLOCKS


def _unended(story: Story, record: ArrayRecord) -> Iterator[str]:
    """A resync, a rebuild or a check of a stopped array whose beginning the kernel logged, and not whether it was done
    or interrupted (md.c, md_do_sync). All 173 in 469 recorded scenarios had both."""
    stopped = [act.at or 0.0 for act in record.done("stop")]
    if not stopped:
        return
    lines = [one for one in sync_lines(story, record) if one.at <= stopped[-1] + CLOCKS]
    for action in sorted(_SYNCS):
        ended = [one.what != "begun" for one in lines if one.action == action]
        begun = len(ended) - sum(ended)
        if begun > sum(ended):
            yield f"the kernel began {begun} times with a {action} of {record.name}, and {sum(ended)} ended"


def _let_go(story: Story, record: ArrayRecord) -> Iterator[str]:
    """A member that md did not take as it assembled the array, because its superblock was older (md.c, analyze_sbs),
    although no state shows a missing member soon after."""
    for line in log_of(story).own_timed:
        found = _KICKED.match(line.body)
        if found is None or not (record.made.at or 0.0) <= line.at or not _of_members(story, record, found[1], line.at):
            continue
        soon = [state for state in record.states if line.at - CLOCKS <= (state.at or 0.0) <= line.at + LASTING]
        if soon and all(state.values.get("degraded", "0") == "0" for state in soon):
            yield f"the kernel left {found[1]} out of {record.name} at {line.at:.2f} s, which counts no missing member"
            return


def _of_members(story: Story, record: ArrayRecord, kname: str, at: float) -> bool:
    """Whether a kernel name was that of a member at ``at``."""
    stays = (story.attachment_at(disk, at) for disk in record.made.members)
    return any(stay is not None and stay.kname == kname for stay in stays)


def _not_started(story: Story, record: ArrayRecord) -> Iterator[str]:
    """An array that the kernel says it did not start, although nothing that was done to it failed (raid5.c,
    raid5_run; md.c, do_md_run)."""
    words = tuple(f"md/raid{level}:{record.made.kname}: {what}" for level in ("", "1", "10") for what in _NOT_RUN)
    for line in log_of(story).own_timed:
        if not line.body.startswith(words) or line.at < (record.made.at or 0.0):
            continue
        near = [
            act for act in record.acts if (act.at or 0.0) - act.seconds - AROUND <= line.at <= (act.at or 0.0) + AROUND
        ]
        if all(act.ok for act in near):
            yield f"the kernel did not start {record.name} at {line.at:.2f} s, and nothing that was done to it failed"
            return


def _healed(story: Story, record: ArrayRecord) -> Iterator[str]:
    """A member that was faulty during a rebuild or a check and whole again in the next state, although nothing was done
    to the array (md.c, state_store). One that counts as in sync as well is about to become faulty, and need not: md
    keeps the last one."""
    for before, after in pairwise(record.running):
        busy = {one.values.get("sync_action", "") for one in (before, after)}
        if (
            len(busy) > 1
            or not busy <= _SYNCS
            or _interferes(story, record, (before.at or 0.0) - CLOCKS, after.at or 0.0)
        ):
            continue
        for disk, (_, says) in after.members.items():
            was = before.members.get(disk, ("", ""))[1].split(",")
            if "faulty" in was and "in_sync" not in was and "faulty" not in says.split(","):
                at = after.at or 0.0
                yield f"{disk} was faulty in {record.name} at {before.at or 0.0:.2f} s, and not any more at {at:.2f} s"
                return


def _odd_size(record: ArrayRecord) -> Iterator[str]:
    made = record.made
    if not made.component or (made.level != "raid1" and made.level not in _PARITY):
        return
    due = made.component * (len(made.members) - _PARITY[made.level] if made.level in _PARITY else 1)
    if abs(due - made.size) > max(made.chunk, 1 << 20) * len(made.members):
        yield f"{made.array} has {made.size} bytes, and {made.level} of its members has {due}"
