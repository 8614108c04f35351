"""Judges the scenarios of a long run on all CPUs of this machine, which is the longest wait at its end."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import NamedTuple

from plugpull.history.reader import History, Story
from plugpull.judging.judge import judge_story
from plugpull.judging.results import ScenarioResult

WORTH_IT = 16
"""Scenarios from which on it is faster, for a process has to be made."""
MOST = 8
"""Processes at most: each of them copies what it reads of the history."""


class StoryToJudge(NamedTuple):
    """A scenario, its place in the run, and the one that ran before it on the same bench."""

    place: int
    story: Story
    earlier: Story | None


def judged_side_by_side(history: History, cpus: int | None = None) -> dict[int, ScenarioResult]:
    """The results of the run's scenarios by their place, as ``judge_story`` gives them; none if that is not worth it.

    Those of a process that died are missing: whoever needs them judges them again.
    """
    count = min(MOST, len(os.sched_getaffinity(0)) if cpus is None else cpus)
    turns = [StoryToJudge(place, story, earlier) for place, (story, earlier, _) in enumerate(history.in_turn())]
    # A process that is made of one with other threads may wait forever for a lock that one of them held.
    if len(turns) < WORTH_IT or count < 2 or threading.active_count() > 1:
        return {}
    mine, *others = _shares(turns, count)
    with _processes(others) as answers:
        results = dict(_judged(mine))
        for answer in answers:
            with suppress(EOFError, OSError):
                results.update(answer.recv())
    return results


def _shares(turns: Sequence[StoryToJudge], count: int) -> list[list[StoryToJudge]]:
    """So many shares, with about as many events each."""
    shares: list[list[StoryToJudge]] = [[] for _ in range(count)]
    events = [0] * count
    for turn in sorted(turns, key=lambda turn: -len(turn.story.events)):
        least = events.index(min(events))
        shares[least].append(turn)
        events[least] += len(turn.story.events)
    return shares


def _judged(share: Sequence[StoryToJudge]) -> Iterator[tuple[int, ScenarioResult]]:
    return ((turn.place, judge_story(turn.story, turn.earlier)) for turn in share)


@contextmanager
def _processes(shares: Sequence[Sequence[StoryToJudge]]) -> Iterator[list[Connection]]:
    """A process for each share, which has the history already because it is a copy of this one."""
    context = get_context("fork")
    pairs = [context.Pipe(duplex=False) for _ in shares]
    processes = [
        context.Process(target=_answer, args=(share, theirs), daemon=True)
        for share, (_, theirs) in zip(shares, pairs, strict=True)
    ]
    try:
        for process, (_, theirs) in zip(processes, pairs, strict=True):
            process.start()
            theirs.close()
        yield [ours for ours, _ in pairs]
    finally:
        for process in processes:
            if process.pid is not None:
                process.kill()  # it has answered, or nobody waits for its answer any more
                process.join()


def _answer(share: Sequence[StoryToJudge], connection: Connection) -> None:
    with suppress(KeyboardInterrupt, BrokenPipeError):
        connection.send(dict(_judged(share)))
