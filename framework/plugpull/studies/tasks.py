"""The tasks of a scenario: fio's own figures, and whether each counts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from plugpull.checks.claims import Claim, Evidence
from plugpull.history.events import ArrayState, DriveCacheSwitched, Event, FioFigures, FioRan, ScenarioBegun
from plugpull.history.story import Story
from plugpull.studies.measured import held_up

AT_REST = ("idle", "frozen")
"""What md's ``sync_action`` says while it copies nothing."""


@dataclass(frozen=True)
class RanTask:
    """A task that ran. ``spoilt`` says why it does not count on any disk; empty if it does."""

    event: FioRan
    spoilt: str = ""

    def figures(self, disk: str) -> FioFigures | None:
        """The figures of a disk; ``None`` if they do not count."""
        found = self.event.figures.get(disk)
        return None if self.spoilt or found is None or found.error else found

    def rate(self, disk: str) -> float | None:
        """Bytes per second as fio reports them."""
        found = self.figures(disk)
        return None if found is None or found.seconds <= 0 else found.bytes / found.seconds


def tasks_of(story: Story) -> tuple[RanTask, ...]:
    """All tasks of a story, in order of time."""
    return story.once(_tasks_of)


def _tasks_of(story: Story) -> tuple[RanTask, ...]:
    return tuple(RanTask(event, _spoilt(story, event)) for event in story.of(FioRan))


def _spoilt(story: Story, event: FioRan) -> str:
    return held_up(story, event.begin, event.at or event.begin) or _out_of_sync(story, event)


def _out_of_sync(story: Story, event: FioRan) -> str:
    """Why this is not the rate of an array in sync, a clause: md copied or compared its members meanwhile, or one was
    missing. Empty if it is."""
    end = event.at or event.begin
    for name in event.disks:
        states = [one for one in story.of(ArrayState) if one.array == name and one.at is not None and one.at <= end]
        earlier = [one for one in states if (one.at or 0.0) <= event.begin]
        for state in states[max(0, len(earlier) - 1) :]:
            action = state.values.get("sync_action", "idle")
            if action not in AT_REST:
                return f"md did a {action} of {name} while the {event.task} was measured at {event.begin:.1f} s"
            if state.values.get("degraded", "0") != "0":
                return f"{name} was degraded while the {event.task} was measured at {event.begin:.1f} s"
    return ""


def named(story: Story, task: str, disk: str) -> dict[int, FioFigures]:
    """The figures that count of a task on a disk, by round."""
    found = {}
    for one in tasks_of(story):
        figures = one.figures(disk) if one.event.task == task else None
        if figures is not None:
            found[one.event.repeat] = figures
    return found


def names_of(story: Story, disk: str) -> tuple[str, ...]:
    """The names of the tasks that ran on a disk, in the order in which they were first run."""
    return tuple(dict.fromkeys(one.event.task for one in tasks_of(story) if disk in one.event.disks))


def rates_of(figures: dict[int, FioFigures]) -> list[float]:
    """Bytes per second of each round, in order of time."""
    return [one.bytes / one.seconds for _, one in sorted(figures.items())]


def repeats_of(story: Story, task: str, disk: str) -> int:
    """The planned number of rounds of a task."""
    events = (one.event for one in tasks_of(story) if one.event.task == task and disk in one.event.disks)
    return max((event.repeats for event in events), default=0)


def why_not(story: Story, task: str, disk: str) -> tuple[str, ...]:
    """Why runs of a task on a disk do not count: a clause each."""
    found = []
    for one in tasks_of(story):
        if one.event.task == task and disk in one.event.disks:
            figures = one.event.figures.get(disk)
            found.append(one.spoilt or ("there are no figures" if figures is None else figures.error))
    return tuple(dict.fromkeys(clause for clause in found if clause))


def missing_tasks(story: Story) -> str:
    """How many planned tasks are not on record, as a sentence; empty if all are."""
    if not story.of(FioRan):
        return "nothing was measured"
    planned = missing = 0
    for design in _designs(story.of(FioRan)):
        planned += design[0].planned
        missing += len(set(range(1, design[0].planned + 1)) - {event.number for event in design})
    return f"{missing} of {planned} tasks were not run" if missing else ""


def task_doubts(story: Story) -> Iterator[str]:
    """What is missing of the planned tasks, and which of them were not what the record says, a sentence each."""
    yield missing_tasks(story)
    for event in story.of(FioRan):
        strange = sorted(event.figures.keys() - set(event.disks))
        if strange:
            yield f"{event.task} has figures of {', '.join(strange)}, on which it did not run"
        for disk, figures in event.figures.items():
            if figures.error:
                yield f"{event.task} failed on {disk} at {event.begin:.1f} s: {figures.error}"
    yield from dict.fromkeys(_other_caches(story))


def _other_caches(story: Story) -> Iterator[str]:
    """Tasks that were to run with the drives' caches on or off, and whose last switching says otherwise."""
    for event in story.of(FioRan):
        for disk in event.disks if event.drive_cache is not None else ():
            made = [one for one in story.of(DriveCacheSwitched) if one.disk == disk and one.until <= event.begin]
            state = "on" if event.drive_cache else "off"
            if made and made[-1].on == event.drive_cache and not made[-1].ok:
                yield f"the write cache of {disk} could not be switched {state}: {made[-1].detail or '?'}"
            elif (not made and not event.drive_cache) or (made and made[-1].on != event.drive_cache):
                yield f"that the write cache of {disk} was switched {state} for {event.task} is not on record"


def _designs(events: tuple[FioRan, ...]) -> list[list[FioRan]]:
    """Each design's tasks: the numbers of each begin with 1."""
    found: list[list[FioRan]] = []
    for event in events:
        if not found or event.number <= found[-1][-1].number:
            found.append([])
        found[-1].append(event)
    return found


def task_claims(story: Story) -> Iterator[Claim]:
    """The samples that show that the DUT was not starved while tasks ran that count."""
    for one in tasks_of(story):
        if not one.spoilt and one.event.at is not None:
            yield Claim(
                what=f"the host let the DUT run while {one.event.task} was measured",
                evidence=(Evidence.SAMPLES,),
                begin=one.event.begin,
                end=one.event.at,
            )


def tasks_to_repeat(events: Sequence[Event], since: int) -> tuple[FioRan, ...]:
    """The tasks of a running scenario that do not count, and were not repeated with success, from the ``since``-th on.
    ``events`` are all of the scenario."""
    begun = next((event for event in events if isinstance(event, ScenarioBegun)), None)
    if begun is None:
        return ()
    story = Story(begun, events)
    state: dict[tuple[tuple[str, ...], str, int], FioRan | None] = {}
    for event in story.of(FioRan)[since:]:
        key = (event.disks, event.task, event.repeat)
        if state.get(key, event) is not None:
            state[key] = event if _spoilt(story, event) else None
    return tuple(event for event in state.values() if event is not None)
