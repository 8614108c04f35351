"""Whether the members of every array that no cut took stayed in it, and whether the array could always be written. No
request of an array that nobody uses may be counted as under way. What md_faults.py looks for is accused here as well.

It holds whatever else a scenario claims of its arrays: md sets a member aside because of an error of that member, and
an array read-only because somebody asked. In 1,866 states of arrays on healthy benches neither was seen.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from plugpull.checks.accusation import Accusation
from plugpull.checks.base import Check, Judgement
from plugpull.checks.collector import Collector
from plugpull.checks.raid.arrays import ArrayRecord, arrays_of, may_fail_from
from plugpull.checks.raid.md_faults import never_rebuilt, not_working, superblock_errors
from plugpull.checks.raid.members import CLOCKS
from plugpull.checks.raid.sync_log import interruptions_doubted, sync_lines
from plugpull.history.events import Phase
from plugpull.history.story import Story
from plugpull.kernel.diagnosis.story_log import log_of

TAKEN_OUT = ("fail", "udev_remove", "remove_gone")
"""What plugpull does to an array that sets members aside."""
BRIEFLY = 3
"""States in which md may not have counted a missing member yet."""
FAILING = frozenset({"faulty", "write_error", "want_replacement"})
"""Flags of a member in sysfs that md sets after a request to it has failed (Documentation/admin-guide/md.rst)."""
READ_ONLY = frozenset({"readonly", "suspended"})
"""Values of array_state in which md takes no write. An array that was just assembled may be ``read-auto``."""
FAILED = frozenset({"block.error", "fs.error", "fs.readonly"})
"""Kinds of messages that an array or a filesystem on it causes only if more members are missing than it can spare."""
_CAPACITY = re.compile(r"^(md\d+): detected capacity change from (\d+) to (\d+)")
_CONTINUING = re.compile(r"\bmd/\S+:(md\d+):.*\bOperation continuing on (\d+) devices", re.DOTALL)


class ArraysSound(Check, frozen=True, tag="arrays_sound"):
    """No array set a member aside that no cut and nobody else took out, became read-only, or changed its size."""

    def judge(self, story: Story) -> Judgement:
        said = Collector(self)
        for record in arrays_of(story).values():
            said.take(*_set_aside(story, record), *_read_only(record), *_said_by_md(story, record))
            said.take(*_errors(story, record), *_never_ended(record))
            said.take(*never_rebuilt(story, record), *superblock_errors(story, record), *not_working(story, record))
            said.doubt(*_check_without_end(story, record), *_states_against_log(story, record))
            said.doubt(*interruptions_doubted(story, record))
        return said.judgement()


def arrays_sound() -> ArraysSound:
    """Every array must keep the members that no cut took. It is judged for every scenario."""
    return ArraysSound()


def _taken(story: Story, record: ArrayRecord) -> set[str]:
    """Members that a cut, a removal or plugpull may have taken out of the array at any time."""
    gone = {one.disk for one in record.absences}
    gone |= {disk for cut in story.cut_records for disk in cut.armed.victims}
    return gone | {disk for act in record.done(*TAKEN_OUT) for disk in act.disks}


def _set_aside(story: Story, record: ArrayRecord) -> Iterator[Accusation]:
    """Members with flags of a failed request before anything took them, or after they were put back for good."""
    taken = _taken(story, record)
    for disk in record.made.members:
        until, since = _first_taken(story, record, disk), _put_back(story, record, disk)
        for state in record.states:
            slot, says = state.members.get(disk, ("", ""))
            bad = FAILING & set(says.split(","))
            if bad and (disk not in taken or (state.at or 0.0) < until or (state.at or 0.0) > since):
                how = "set {0} aside as faulty" if "faulty" in bad else "counts a failed request to {0}"
                what = f"{record.name} {how.format(disk)} ({says}, slot {slot}) though nothing had taken it"
                yield Accusation(subject=disk, summary=what, at=state.at)
                break


def _times_taken(story: Story, record: ArrayRecord, disk: str, unknown: float) -> list[float]:
    """When a member was cut, left, or was taken out; ``unknown`` for a cut whose time is not on record."""
    times = [one.gone for one in record.absences if one.disk == disk]
    for cut in story.cut_records:
        if disk in cut.armed.victims:
            times.append(unknown if cut.off.commanded_at is None else cut.off.commanded_at)
    acts = [act for act in record.done(*TAKEN_OUT) if disk in act.disks or act.action != "fail"]
    return times + [act.at or 0.0 for act in acts]


def _first_taken(story: Story, record: ArrayRecord, disk: str) -> float:
    """Until when nothing had taken a member."""
    times = _times_taken(story, record, disk, float("-inf"))
    longest = max((act.seconds for act in record.done(*TAKEN_OUT)), default=0.0)
    return min(times, default=float("inf")) - longest - CLOCKS


def _put_back(story: Story, record: ArrayRecord, disk: str) -> float:
    """Since when a member that was taken out is one again that nobody took: it was put back, and neither cut nor taken
    out later. Infinity if it was not."""
    taken = _times_taken(story, record, disk, float("inf"))
    back = [act.at or 0.0 for act in record.done("readd", "add", "assemble") if act.ok and disk in act.disks]
    if not back or back[-1] <= max(taken, default=float("-inf")) or record.made.at is None:
        return float("inf")
    return back[-1]


def _read_only(record: ArrayRecord) -> Iterator[Accusation]:
    for state in record.states:
        word = state.values.get("array_state", "")
        if word in READ_ONLY:
            what = f"{record.name} was {word} at {state.at or 0.0:.2f} s, and nobody asked for that"
            yield Accusation(subject=record.name, summary=what, at=state.at)
            return


def _said_by_md(story: Story, record: ArrayRecord) -> Iterator[Accusation | str]:
    """What the kernel log says of the array, and its states do not explain."""
    made, taken = record.made, _taken(story, record)
    least = len(made.members) - len(taken & set(made.members))
    for line in log_of(story).own_timed:
        if made.kname not in line.body:
            continue
        size, left = (pattern.search(line.body) for pattern in (_CAPACITY, _CONTINUING))
        if size and size[1] == made.kname and "0" not in (size[2], size[3]):
            what = f"the size of {record.name} changed from {size[2]} to {size[3]} sectors"
            yield Accusation(subject=record.name, summary=what, at=line.at, evidence=(line.text,))
        elif left and left[1] == made.kname and int(left[2]) < least:
            what = f"{record.name} went on with {left[2]} members, and {least} had not been taken"
            yield Accusation(subject=record.name, summary=what, at=line.at, evidence=(line.text,))


def _never_ended(record: ArrayRecord) -> Iterator[Accusation]:
    """Requests that the kernel began to count, and whose end it did not: programs such as iostat show an array that is
    always busy."""
    for act in record.done("stop"):
        if act.in_flight:
            what = f"the kernel counts {act.in_flight} requests of {record.name} as under way though nobody uses it"
            yield Accusation(subject=record.name, summary=what, at=act.at)
            return


def _about(kname: str) -> re.Pattern[str]:
    """A message of a block device itself, or of the filesystem on it."""
    return re.compile(rf"\b(?:dev|device) {re.escape(kname)}\b|\({re.escape(kname)}\)")


def _errors(story: Story, record: ArrayRecord) -> Iterator[Accusation]:
    """Errors of the array itself, or of a filesystem on it, while its level covers the members that are missing."""
    word, lost = _about(record.made.kname), may_fail_from(story, record.name)
    for line in log_of(story).own_timed:
        failed = line.event is not None and line.event.kind in FAILED and word.search(line.body)
        if failed and (record.made.at or 0.0) <= line.at < lost:
            what = f"the kernel reported an error on {record.name}, which was to do without its missing members"
            yield Accusation(subject=record.name, summary=f"{what}: {line.text}", at=line.at, evidence=(line.text,))
            return


def _states_against_log(story: Story, record: ArrayRecord) -> Iterator[str]:
    """A recovery that only the kernel log shows, and members that are missing while md counts none as missing. The log
    and the states showed the same recoveries 19 of 19 times."""
    actions = {state.values.get("sync_action") for state in record.states}
    logged = any((one.action, one.what) == ("recover", "done") for one in sync_lines(story, record))
    if "recover" not in actions and logged:
        yield f"{record.name} was rebuilt by the kernel log, and its states do not show it"
    counted = [state for state in record.states if "degraded" in state.values]
    lacking = [
        state for state in counted if any("in_sync" not in says.split(",") for _, says in state.members.values())
    ]
    if len(lacking) > BRIEFLY and all(state.values["degraded"] == "0" for state in counted):
        yield f"members of {record.name} were missing, and no state of it counts a missing one"


def _check_without_end(story: Story, record: ArrayRecord) -> Iterator[str]:
    """A comparison of all members that shows in the states of the array, in the kernel log or as a phase, and whose
    result nobody recorded."""
    compared = any(state.values.get("sync_action") == "check" for state in record.states)
    compared = compared or any(one.action == "check" for one in sync_lines(story, record))
    compared = compared or any(event.text == f"checking {record.name}" for event in story.of(Phase))
    if compared and not record.done("check"):
        yield f"{record.name} was checked, and what came of it is not on record"
