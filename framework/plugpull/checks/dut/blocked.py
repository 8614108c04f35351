"""Whether any task of the DUT was blocked. A task in uninterruptible sleep that nothing wakes never frees its locks."""

from __future__ import annotations

import re

from plugpull.checks.accusation import Accusation
from plugpull.checks.base import Check, Judgement
from plugpull.checks.collector import Collector
from plugpull.checks.evidence import limit, seconds
from plugpull.checks.limits import bench_kind
from plugpull.checks.record.watched import recorded, tasks_not_watched
from plugpull.checks.stalls import stood_still, unrecorded
from plugpull.checks.starved import awake
from plugpull.history.events import TaskBlocked
from plugpull.history.story import Story

WAITS_FOR_IO = 40.0
"""Seconds that a task of a real DUT may wait for I/O. A disk that failed behind a working bridge does not answer. A
command is aborted after 15 s (``dut/agent/timers.py``), and the error handler needs as long again."""
AWAKE = 0.5
"""Share of the limit for which the DUT must have run. The agent leaves out long starvation itself. On a host with many
times as many guests as CPUs, short starvations add up, and still no healthy task was blocked for 3 s."""
_FRAME = re.compile(r"(?:\[<[0-9a-f]*>\] )?([A-Za-z_][\w.]*)\+0x[0-9a-f]+/0x[0-9a-f]+(?: \[([\w-]+)\])?")
_WAITING = re.compile(
    r"^_*(?:schedule\w*|io_schedule\w*|wait_for_common\w*|wait_for_completion\w*|bit_wait\w*|out_of_line_wait\w*"
    r"|mutex_lock\w*|down(?:_\w+)?|rwsem_\w+|msleep|usleep\w*|wait_on_bit\w*|switch_to\w*|preempt_schedule\w*)"
    r"(?:\.\w+)*$"
)
_IO = re.compile(
    r"io_schedule|^bit_wait_io|blk_|bio_|^submit_|_page_bit|folio_wait|wait_on_(?:page|buffer)|rq_qos|dio_|iomap"
    r"|^scsi_execute|balance_dirty"
)


class NothingBlocked(Check, frozen=True, tag="nothing_blocked"):
    """No kernel thread and no process stays in uninterruptible sleep for longer than ``limit`` seconds. Tasks that were
    blocked before the scenario began do not count."""

    limit: float = 8.0

    def judge(self, story: Story) -> Judgement:
        longest: dict[tuple[int, float], TaskBlocked] = {}
        for event in story.of(TaskBlocked):
            known = longest.get((event.pid, event.since))
            # The last report says whether the task ran again; earlier ones have its stack.
            if not event.before and (known is None or event.seconds >= known.seconds):
                stack = event.stack or (known.stack if known else ())
                longest[event.pid, event.since] = _with_stack(event, stack)
        said, worst = Collector(self, "DUT"), 0.0
        for event in longest.values():
            allowed = self._allowed(story, event)
            allowed += stood_still(story, event.since, event.at or event.since) if _waits_for_io(event) else 0.0
            ran = awake(story, event.since, event.at or event.since)
            worst = max(worst, event.seconds)
            if event.seconds >= allowed and _waits_for_io(event) and unrecorded(story):
                said.doubt(
                    f"{_who(event)} waited for a disk, and when {unrecorded(story)[0]} stood still is not on record"
                )
            elif event.seconds >= allowed and ran >= AWAKE * allowed:
                said.take(self._accusation(event, allowed))
            elif event.seconds < allowed and not event.ended:
                said.doubt(
                    f"{_who(event)} was blocked since {event.since:.2f} s, and that it ran again is not on record"
                )
            elif event.seconds >= allowed:
                said.doubt(
                    f"{_who(event)} did not run for {seconds(event.seconds)}, but the whole DUT did not run either"
                )
        said.doubt(tasks_not_watched(story))
        times = f"longest {seconds(worst)} {limit(self.limit)}" if worst else f"limit {self.limit:g} s"
        return said.judgement(f"no task blocked ({times})" if recorded(story, "tasks") and said.clean else "")

    def _allowed(self, story: Story, event: TaskBlocked) -> float:
        """Seconds that this task may be blocked."""
        return WAITS_FOR_IO if _waits_for_io(event) and bench_kind(story) not in ("virtual", "") else self.limit

    def _accusation(self, event: TaskBlocked, allowed: float) -> Accusation:
        where = _where(event)
        verb = "was" if event.ended else "is"
        what = f"{_who(event)} {verb} blocked for {seconds(event.seconds)}{f' in {where}' if where else ''}"
        return Accusation(
            subject=event.name,
            summary=f"{what} {limit(allowed)}",
            at=event.since,
            evidence=(f"since {event.since:.2f} s", *event.stack),
        )


def nothing_blocked(limit: float = 8.0) -> NothingBlocked:
    """No task may be blocked for longer than ``limit`` seconds."""
    return NothingBlocked(limit)


def _waits_for_io(event: TaskBlocked) -> bool:
    return any(_IO.search(frame) for frame in (*event.stack, event.wchan))


def _with_stack(event: TaskBlocked, stack: tuple[str, ...]) -> TaskBlocked:
    return TaskBlocked(
        at=event.at,
        pid=event.pid,
        name=event.name,
        kernel=event.kernel,
        seconds=event.seconds,
        since=event.since,
        ended=event.ended,
        wchan=event.wchan,
        stack=stack,
    )


def _who(event: TaskBlocked) -> str:
    return f"{'kernel thread' if event.kernel else 'process'} {event.name} ({event.pid})"


def _where(event: TaskBlocked) -> str:
    """The innermost function that is not merely a wait: ``usb_stor_disconnect [usb_storage]``."""
    for line in event.stack:
        frame = _FRAME.search(line)
        if frame and not _WAITING.match(frame.group(1)):
            return f"{frame.group(1)} [{frame.group(2)}]" if frame.group(2) else frame.group(1)
    return event.wchan if event.wchan != "0" else ""
