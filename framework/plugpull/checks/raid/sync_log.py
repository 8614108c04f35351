"""What the kernel log says of the resyncs, rebuilds and checks of an array, and interruptions that nothing explains.

Linux 6.1 calls them otherwise than Linux 6.12, which uses the words of ``sync_action`` (md.c, md_do_sync): a rebuild is
``recovery`` or ``recover``, a check ``data-check`` or ``check``, and a repair ``requested-resync`` or ``repair``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal, NamedTuple

from plugpull.checks.raid.arrays import ArrayRecord
from plugpull.checks.raid.members import CLOCKS, since
from plugpull.history.events import AgentLost, ArrayActed, DutDied
from plugpull.history.story import Story
from plugpull.kernel.diagnosis.story_log import TimedLine, log_of

CAUSED = 5.0
"""Seconds from a cut, a removal or a step on the array until it interrupts a rebuild: at most 1.9 s."""
_EARLIER = {"recovery": "recover", "data-check": "check", "requested-resync": "repair"}
_BEGUN = re.compile(r"^md: ([a-z-]+) of RAID array (md\w+)")
_ENDED = re.compile(r"^md: (md\w+): ([a-z-]+) (done|interrupted)")


class SyncLine(NamedTuple):
    """A line of the kernel log: ``action`` is a word of ``sync_action``."""

    at: float
    action: str
    what: Literal["begun", "done", "interrupted"]
    line: TimedLine


def sync_lines(story: Story, record: ArrayRecord) -> list[SyncLine]:
    """What the kernel logged of this array, in the order of the log."""
    found = []
    for line in log_of(story).own_timed:
        begun, ended = _BEGUN.match(line.body), _ENDED.match(line.body)
        if begun and begun[2] == record.made.kname:
            found.append(SyncLine(line.at, _EARLIER.get(begun[1], begun[1]), "begun", line))
        elif ended and ended[1] == record.made.kname:
            what: Literal["done", "interrupted"] = "done" if ended[3] == "done" else "interrupted"
            found.append(SyncLine(line.at, _EARLIER.get(ended[2], ended[2]), what, line))
    return found


def interruptions_doubted(story: Story, record: ArrayRecord) -> Iterator[str]:
    """A resync, a rebuild or a reshape that was interrupted although no member left or came and nothing was done to
    the array, and a rebuild that was interrupted, did not begin again, and is complete."""
    if bool(story.of(AgentLost)) or bool(story.of(DutDied)):
        return
    begun: SyncLine | None = None
    for one in sync_lines(story, record):
        if one.action not in ("resync", "recover", "reshape"):
            continue
        began = since(record, one.at) if begun is None else begun.at
        if one.what == "interrupted" and not _caused(story, record, began, one.at):
            yield f"the kernel says at {one.at:.2f} s that it was interrupted, and nothing did that: {one.line.body}"
            return
        if one.what == "interrupted" and begun is not None and _complete(story, record, one):
            what = f"a rebuild of {record.name} was interrupted"
            yield f"the kernel says at {one.at:.2f} s that {what}, and it is complete"
            return
        begun = one if one.what == "begun" else None


def _complete(story: Story, record: ArrayRecord, ended: SyncLine) -> bool:
    """Whether the array missed a member when this rebuild ended, and none later, without another rebuild."""
    again = any(one.at >= ended.at and one.what == "begun" for one in sync_lines(story, record))
    counts = [(one.at or 0.0, one.values["degraded"]) for one in record.running if "degraded" in one.values]
    missing = [count for at, count in counts if at <= ended.at][-1:]
    later = any(at > ended.at and count == "0" for at, count in counts)
    return ended.action == "recover" and not again and missing not in ([], ["0"]) and later


def _caused(story: Story, record: ArrayRecord, begun: float, at: float) -> bool:
    """Whether the loss of a member or a step on the array can have interrupted at ``at`` what began at ``begun``."""
    if any(at - CAUSED <= left <= at + CLOCKS for left in _departures(story, record, begun)):
        return True
    steps = [act for act in record.acts if act.action not in ("check", "marked")]
    began_it = [act for act in steps if _puts_back(act) and abs(_start(act) - begun) <= CLOCKS]
    began_it = [act for act in began_it if not _ran_without(record, act.disks[0], begun, at)]
    if len(began_it) == 1:
        # What was done to the array before that cannot interrupt it. A second one that was put back can.
        steps = steps[steps.index(began_it[0]) + 1 :]
    return any(_start(act) - CLOCKS <= at <= (act.at or 0.0) + CAUSED for act in steps)


def _ran_without(record: ArrayRecord, disk: str, begun: float, at: float) -> bool:
    """Whether a state between these times has no such member: it was put back later, and did not begin the rebuild."""
    between = (state for state in record.running if begun < (state.at or 0.0) < at)
    return any(disk not in state.members for state in between)


def _puts_back(act: ArrayActed) -> bool:
    """Whether this step puts one member back, and so begins a rebuild."""
    return act.action in ("add", "readd") and len(act.disks) == 1


def _start(act: ArrayActed) -> float:
    return (act.at or 0.0) - act.seconds


def _departures(story: Story, record: ArrayRecord, begun: float) -> Iterator[float]:
    """When members left, or their cut was commanded: after something began, or before it if they were still away."""
    for disk in record.made.members:
        away = story.attachment_at(disk, begun) is None
        for one in story.attachments(disk):
            left = story.detached_at(one)
            if left is not None and (away or left >= begun - CLOCKS):
                yield left
    for cut in story.cut_records:
        commanded = cut.off.commanded_at
        if set(cut.armed.victims) & set(record.made.members) and commanded is not None and commanded >= begun - CLOCKS:
            yield commanded
